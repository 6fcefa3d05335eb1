// The tuner's own way: short windows, trials broken off early, rests that grow. What it decides is
// in tuner_gate.c, what it may lose in tuner_guard.c.
#include "tuner_internal.h"
#include <math.h>
#include <string.h>

// A trial is broken off when it is this much slower than what it is compared with, after allowing
// for statistics.
static const double ABANDON_RATIO = 1.6;
// The job's own start setting, after a warm start.
static const double OWN_RATIO = 10;
// A rest lasts so many times what a fit costs (1 % of a core), and each rest is longer than the
// last.
static const double REST_FITS = 100, REST_GROWTH = 1.5, HELD_FITS = 20;
// Settled windows last at least this share of the job, so that a long job does not drown in them.
static const double SETTLED_WINDOW_SHARE = 0.01;
// A switch that loses fewer iterations than this is cheap, and the start phase short.
static const double CHEAP_ITERATIONS = 20;
enum { PLAN_DEAR = 10, PLAN_CHEAP = 5, PLAN_WARM = 3, PLAN_REMEMBERING = 2 };

static void
make_plan(tt_tuner *t)
{
    const tt_tuner_options *o = &t->options;
    uint32_t wanted = o->initial_settings, room = (uint32_t)TT_COUNT_OF(t->plan);
    t->plan_count = t->plan_done;
    for (uint32_t i = 0; i < o->warm_count && o->warm != NULL && t->plan_count < PLAN_WARM; i++)
        if (tt_space_valid(t->space, &o->warm[i]) &&
            !tt_setting_equal(&o->warm[i], &t->search.base) &&
            !tt_setting_equal(&o->warm[i], &t->tried[0].setting))
            t->plan[t->plan_count++] = o->warm[i];
    if (t->plan_count > 0 || t->search.dims == 0 || t->warm ||
        !tti_tuner_follows(t, TT_TUNER_RULE_SPREAD))
        return;
    wanted = wanted > 0 ? wanted : t->prior_count > 0 ? PLAN_REMEMBERING : PLAN_DEAR;
    t->plan_count = tt_search_spread(&t->search, o->seed, t->taken, (uint32_t)t->tried_count,
                                     TT_MIN(wanted, room), t->plan);
    t->plan_auto = o->initial_settings == 0;
}

// Memory does not hold here: the points of a cold start, after all.
static void
forget(tt_tuner *t)
{
    uint32_t room = (uint32_t)TT_COUNT_OF(t->plan);
    // What it has cost is lost: making up for it by trying less would cost more.
    t->forgiven_s = fmax(tti_tuner_ledger(t), 0);
    t->plan_count = t->plan_done;
    t->plan_count +=
        tt_search_spread(&t->search, t->options.seed, t->taken, (uint32_t)t->tried_count,
                         TT_MIN((uint32_t)PLAN_CHEAP, room - t->plan_done), t->plan + t->plan_done);
    tti_tuner_event(t, "what earlier runs taught does not hold here: exploring afresh");
}

// Seconds per iteration that the trial certainly exceeds: since all nodes run it, at most the
// counted iterations and one unfinished a worker were worked on.
static double
lower_bound(const tt_tuner *t, const tt_est_window *w)
{
    if (isnan(t->adopted_s))
        return 0;
    double unfinished = (double)t->tried[t->current].workers * t->tried[t->current].merged;
    return (t->now_s - t->adopted_s) / (w->kept + unfinished);
}

static int
too_slow(const tt_tuner *t, const tt_est_window *w, double *seen)
{
    const tti_tried *s = &t->tried[t->current];
    double sd, sd_ref, rate = tti_tuner_log_rate(t, s, t->current, &sd);
    (void)tti_tuner_log_rate(t, &t->tried[t->ref_id], t->ref_id, &sd_ref);
    // The most that better statistics could make up for.
    double benefit = exp(fmax(rate - t->ref_rate, 0) + 1.96 * sqrt(sd * sd + sd_ref * sd_ref));
    double bound = lower_bound(t, w);
    int timed = isfinite(w->seconds_per_iteration) && w->kept >= (s->workers + 2) * s->merged;
    *seen = timed ? fmax(w->seconds_per_iteration, bound) : bound;
    // The first iterations after a move may be slow whatever the setting. Where a memory is checked
    // by the job's own start setting, that must not pass for its confirmation.
    if (t->current == t->own_id && *seen < OWN_RATIO * t->ref_t)
        return 0;
    return *seen > ABANDON_RATIO * benefit * t->ref_t;
}

// The setting in force, which is not the one that the user asked for, does the loss no good.
static tti_next
leave_diverged(tt_tuner *t, const char *why)
{
    tti_tuner_rose(t);
    tti_tuner_event(t, "setting %u: the loss %s, leaving it", t->current, why);
    t->ref_id = t->current == 0 ? t->own_id : t->previous;
    return TTI_NEXT_LEAVE;
}

// Losses that are no numbers fill no window: those of known settings are watched as those of
// trials. A rise alone may be noise, and condemns only what is yet to be trusted.
static tti_next
watch(tt_tuner *t, const tt_est_window *w, double *seen, const char **why)
{
    const unsigned signs = t->trial || !tti_tuner_is_trusted(t, &t->tried[t->current])
                               ? TT_EST_RISING | TT_EST_DIVERGING
                               : TT_EST_DIVERGING;
    int rising = (w->flags & signs) != 0 && t->current != t->own_id && tti_tuner_is_to_blame(t);
    if (!t->trial || t->current == 0)
        return rising ? leave_diverged(t, "rises under it") : TTI_NEXT_WINDOW;
    int slow = too_slow(t, w, seen) && tti_tuner_follows(t, TT_TUNER_RULE_ABANDON);
    if (rising) {
        tti_tuner_rose(t);
        *why = "the loss rises under it";
        return TTI_NEXT_ABANDON;
    }
    return slow ? TTI_NEXT_ABANDON : TTI_NEXT_WINDOW;
}

static int
window_full(const tt_tuner *t, const tt_est_window *w)
{
    double least = t->options.window_s_min;
    if (!t->trial && (t->phase == TT_TUNER_SETTLED || t->phase == TT_TUNER_OFF))
        least = fmax(least, SETTLED_WINDOW_SHARE * (t->now_s - t->begin_s));
    // Everything is measured against the start setting: twice as carefully.
    // (After a warm start memory may be wrong: that is left the sooner, and its own start setting
    // is still to come.)
    int own = t->current == t->own_id && t->tried[t->current].windows == 0;
    uint32_t wanted = t->tried[t->current].full_window << own;
    return w->kept >= wanted && isfinite(w->seconds_per_iteration) &&
           t->now_s - t->window_begin_s >= least;
}

// Once the start setting's pace is known: a cheap switch needs fewer points before the model takes
// over.
static void
shorten_plan(tt_tuner *t)
{
    double iterations = t->options.switch_s_prior[0] * exp(-t->tried[0].log_t);
    if (t->plan_auto && t->tried[0].row >= 0 && iterations <= CHEAP_ITERATIONS)
        t->plan_count = TT_MIN(t->plan_count, TT_MAX((uint32_t)PLAN_CHEAP, t->plan_done));
    t->plan_auto = t->plan_auto && t->tried[0].row < 0;
}

static tt_status
enter(tt_tuner *t, const tti_measured *m, tt_error *err)
{
    TT_TRY(tti_tuner_add_row(t, m, err));
    (void)tti_tuner_drift_watch(t, m);
    return TT_OK;
}

static tti_next
after_window(tt_tuner *t, const tt_est_window *w, int was_trial)
{
    shorten_plan(t);
    tti_tuner_calm(t, w);
    if (tti_tuner_does_not_recover(t)) {
        tti_next next = leave_diverged(t, "does not come down under it either");
        t->ref_id = t->own_id; // not where it was before, under which the loss rose
        return next;
    }
    if (tti_tuner_lags_too_far(t)) {
        tti_tuner_event(t,
                        "setting %u: its gradients lag by %.0f iterations; as much as the loss "
                        "bends or will bend it bears %.0f",
                        t->current, tti_tuner_lag(t, &t->tried[t->current]),
                        tti_tuner_lag_borne(t));
        t->ref_id = t->own_id;
        return TTI_NEXT_LEAVE;
    }
    const char *remedy = tti_tuner_stalls(t);
    if (remedy != NULL) {
        tti_tuner_event(t,
                        "setting %u: the loss no longer falls towards the target, which %s may "
                        "mend",
                        t->current, remedy);
        t->ref_id = t->own_id;
        return TTI_NEXT_LEAVE;
    }
    if (tti_tuner_drift_suspected(t))
        return TTI_NEXT_WINDOW;
    return was_trial || t->now_s >= t->next_decision_s ? TTI_NEXT_DECIDE : TTI_NEXT_WINDOW;
}

static void
rest(tt_tuner *t, const tti_choice *c)
{
    double fit = tti_tuner_fit_seconds(t);
    if (c->decision == TT_TUNER_HELD) {
        t->next_decision_s = t->now_s + HELD_FITS * fit;
        return;
    }
    if (c->decision != TT_TUNER_QUIT && t->tried[c->id].row_windows < tti_tuner_replicates(t)) {
        t->next_decision_s = t->now_s;
        t->phase = TT_TUNER_SETTLED;
        return;
    }
    t->rest_s = tti_tuner_follows(t, TT_TUNER_RULE_REST)
                    ? fmax(REST_FITS * fit, REST_GROWTH * t->rest_s)
                    : 0;
    t->next_decision_s = t->now_s + t->rest_s;
    t->phase = c->decision == TT_TUNER_QUIT ? TT_TUNER_OFF : TT_TUNER_SETTLED;
}

static uint32_t
best(const tt_tuner *t)
{
    double stage = tt_estimator_stage(t->estimator);
    return tti_tuner_incumbent(t, isfinite(stage) ? stage : 0);
}

static int
predict(const tt_tuner *t, const tt_setting *setting, double *log_mean, double *log_sd)
{
    tti_tried described;
    if (t->gp == NULL || tt_gp_rows(t->gp) == 0)
        return 0;
    tti_tuner_describe(t, setting, &described);
    tti_tuner_log_t(t, &described, log_mean, log_sd);
    return isfinite(*log_sd);
}

// Log seconds per iteration of a space of settings spread by about e^0.7 either way. That is not
// learned from the rows: while the guard lets only cheap trials pass they are of settings much like
// the best known one, and all alike; the process then took every setting to be so, and the search
// was over. What the rows do teach is along which knobs nothing changes (their length scales).
#define OWN_WAY(title, process)                                                                    \
    {                                                                                              \
        .name = title, .model = process, .scale = 0.7, .scale_rows = INFINITY, .signal_sd = 0.4,   \
        .plan = make_plan, .window_full = window_full, .watch = watch, .enter = enter,             \
        .forget = forget, .after_window = after_window, .decide = tti_tuner_decide, .rest = rest,  \
        .best = best, .predict = predict                                                           \
    }

const tti_way tti_way_sum = OWN_WAY("sum", TT_GP_SUM);
const tti_way tti_way_time = OWN_WAY("time", TT_GP_TIME);
const tti_way tti_way_product = OWN_WAY("product", TT_GP_PRODUCT);
