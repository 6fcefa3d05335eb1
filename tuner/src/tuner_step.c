// The manager at work: windows, trials, switches.
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
// A dozen cycles that agree by chance do not make a cycle certain.
static const double CYCLE_CV_LEAST = 0.1;
// S.d. of log t where only a bound on it is known.
static const double BOUND_SD = 0.3;
// S.d. of log t seen in a trial that was broken off, when promises are judged by it.
static const double ABANDONED_SD = 0.5;
// A switch that loses fewer iterations than this is cheap, and the start phase short.
static const double CHEAP_ITERATIONS = 20;
enum { PLAN_DEAR = 10, PLAN_CHEAP = 5, PLAN_WARM = 3, PLAN_REMEMBERING = 2 };

void
tti_tuner_plan(tt_tuner *t)
{
    const tt_tuner_options *o = &t->options;
    uint32_t wanted = o->initial_settings, room = (uint32_t)TT_COUNT_OF(t->plan);
    t->plan_count = t->plan_done;
    for (uint32_t i = 0; i < o->warm_count && o->warm != NULL && t->plan_count < PLAN_WARM; i++)
        if (tt_space_valid(t->space, &o->warm[i]) &&
            !tt_setting_equal(&o->warm[i], &t->search.base) &&
            !tt_setting_equal(&o->warm[i], &t->tried[0].setting))
            t->plan[t->plan_count++] = o->warm[i];
    if (t->plan_count > 0 || t->search.dims == 0 || t->warm)
        return;
    wanted = wanted > 0 ? wanted : t->prior_count > 0 ? PLAN_REMEMBERING : PLAN_DEAR;
    t->plan_count = tt_search_spread(&t->search, o->seed, t->taken, (uint32_t)t->tried_count,
                                     TT_MIN(wanted, room), t->plan);
    t->plan_auto = o->initial_settings == 0;
}

// Memory does not hold here: the points of a cold start, after all.
static void
plan_afresh(tt_tuner *t)
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

// ---- time and windows ------------------------------------------------------------------------

// The phase a stretch of time belongs to: trials to the phase that asked for them, the rest to the
// settled one.
static tt_tuner_phase
time_phase(const tt_tuner *t)
{
    if (t->phase == TT_TUNER_START || (t->trial && t->phase == TT_TUNER_EXPLORE))
        return t->phase;
    return TT_TUNER_SETTLED;
}

static void
count_time(tt_tuner *t, double now_s)
{
    t->phase_s[time_phase(t)] += fmax(now_s - t->phase_since_s, 0);
    t->phase_since_s = now_s;
    t->now_s = now_s;
}

static void
count_iterations(tt_tuner *t, uint64_t iterations)
{
    if (iterations > t->iterations) {
        t->tried[t->current].iterations += iterations - t->iterations;
        t->iterations = iterations;
    }
}

static void
open_window(tt_tuner *t)
{
    const tti_tried *s = &t->tried[t->current];
    t->window_begin_s = t->now_s;
    t->transition_seen = t->in_transition;
    t->fit_in_window = 0;
    tt_estimator_begin(t->estimator, t->current, t->generation, s->workers, s->feature,
                       s->feature_count);
}

static void
close_window(tt_tuner *t, int abandoned, int cut, tt_est_window *w)
{
    tt_estimator_end(t->estimator, !abandoned, w);
    double stage = tt_estimator_stage(t->estimator);
    tt_tuner_window_record record = {.index = t->window_index++,
                                     .setting_id = t->current,
                                     .generation = t->generation,
                                     .setting = &t->tried[t->current].setting,
                                     .phase = time_phase(t),
                                     .begin_s = t->window_begin_s,
                                     .end_s = t->now_s,
                                     .stage = isfinite(stage) ? stage : 0,
                                     .abandoned = abandoned,
                                     .overlaps_fit = t->fit_in_window,
                                     .overlaps_transition = t->transition_seen || cut,
                                     .estimate = *w};
    if (t->callbacks.on_window != NULL && (w->kept > 0 || !cut))
        t->callbacks.on_window(t->callbacks.self, &record);
}

// Tells what the trial's proposal brought.
static void
report_realised(tt_tuner *t, double log_t, double var, int abandoned)
{
    if (!t->has_pending)
        return;
    double error = log_t - log(t->ref_t) - t->expected_t;
    // Of a trial that was broken off, a few iterations or only a bound are known: that it is
    // slower than promised says little, that it is faster nothing.
    var += abandoned ? ABANDONED_SD * ABANDONED_SD : 0;
    if (!abandoned || error > 0)
        tti_tuner_prior_judge(t, error, sqrt(t->expected_sd * t->expected_sd + var));
    t->has_pending = 0;
    double rate = tti_tuner_log_rate(t, &t->tried[t->current], t->current, NULL);
    t->pending.realised_ratio = exp(log_t - rate) / (t->ref_t * exp(-t->ref_rate));
    t->pending.setting = &t->tried[t->current].setting;
    t->pending.setting_id = t->current;
    if (t->callbacks.on_proposal != NULL)
        t->callbacks.on_proposal(t->callbacks.self, &t->pending);
}

// Enters the window's time. bound: seconds per iteration known to be exceeded, when the estimator
// has none yet.
static tt_status
enter_row(tt_tuner *t, const tt_est_window *w, double bound, tt_error *err)
{
    tti_tried *s = &t->tried[t->current];
    double value = w->seconds_per_iteration, var;
    if (isfinite(value) && value > 0) {
        double cv = fmax(isfinite(w->time_cv) ? w->time_cv : 0, CYCLE_CV_LEAST);
        var = cv * cv * s->merged / fmax(w->kept, 1);
    } else if (bound > 0) {
        // Somewhat above the bound.
        value = bound * exp(BOUND_SD);
        var = BOUND_SD * BOUND_SD;
    } else {
        return TT_OK;
    }
    s->windows++;
    s->seen_s = t->now_s;
    s->seen_window = t->window_index;
    int failed = t->memory_fails;
    report_realised(t, log(value), var, bound > 0);
    TT_TRY(tti_tuner_add_row(t, t->current, log(value), var, fmax(w->kept, 1), err));
    if (t->memory_fails && !failed)
        plan_afresh(t);
    return TT_OK;
}

// ---- proposals -------------------------------------------------------------------------------

static void
report_choice(tt_tuner *t, const tti_choice *c, const tti_frame *f)
{
    t->pending = (tt_tuner_proposal){.id = t->proposals++,
                                     .now_s = t->now_s,
                                     .phase = t->phase,
                                     .decision = c->decision,
                                     .setting_id = c->id,
                                     .from_id = t->current,
                                     .best_id = f->best,
                                     .setting = &c->setting,
                                     .predicted_s = f->best_t * exp(c->outlook.t_mean),
                                     .log_ratio_mean = c->outlook.mean,
                                     .log_ratio_sd = c->outlook.sd,
                                     .ei_s = c->ei_s,
                                     .cost_s = c->cost_s,
                                     .guard_left_s = f->guard_s,
                                     .realised_ratio = NAN};
    (void)snprintf(t->pending.reason, sizeof t->pending.reason, "%s", c->reason);
    (void)snprintf(t->note, sizeof t->note, "%s", c->reason);
    if (t->callbacks.on_proposal != NULL)
        t->callbacks.on_proposal(t->callbacks.self, &t->pending);
}

static tt_status
begin_switch(
    tt_tuner *t, const tti_choice *c, const tti_frame *f, tt_tuner_action *action, tt_error *err)
{
    t->next = tti_tuner_adopt(t, &c->setting);
    if (t->next == TTI_TUNER_NOBODY)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for another setting");
    if (tt_setting_equal(&c->setting, &t->own.setting))
        t->own_id = t->next;
    t->state = TTI_SWITCHING;
    t->next_trial = t->tried[t->next].row < 0;
    t->has_pending = t->next_trial;
    t->expected_t = c->outlook.t_mean;
    t->expected_sd = c->outlook.t_sd;
    t->ref_id = f->best;
    t->ref_t = f->best_t;
    t->ref_rate = f->best_rate;
    *action = (tt_tuner_action){.kind = TT_TUNER_SWITCH,
                                .phase = t->phase,
                                .proposal = t->pending.id,
                                .setting_id = t->next,
                                .setting = c->setting};
    (void)snprintf(action->reason, sizeof action->reason, "%s", c->reason);
    return TT_OK;
}

static void
rest(tt_tuner *t, const tti_choice *c)
{
    double fit = tti_tuner_fit_seconds(t);
    if (c->decision == TT_TUNER_HELD) {
        t->next_decision_s = t->now_s + HELD_FITS * fit;
        return;
    }
    t->rest_s = fmax(REST_FITS * fit, REST_GROWTH * t->rest_s);
    t->next_decision_s = t->now_s + t->rest_s;
    t->phase = c->decision == TT_TUNER_QUIT ? TT_TUNER_OFF : TT_TUNER_SETTLED;
}

// The loss rises under what a warm start began with, and nothing else was measured yet: to the
// job's own start setting, without asking the model.
static tt_status
flee(tt_tuner *t, tt_tuner_action *action, tt_error *err)
{
    tti_choice c = {
        .decision = TT_TUNER_TRY, .id = TTI_TUNER_NOBODY, .setting = t->own.setting, .planned = 1};
    tti_frame f = {.best = t->current, .best_t = exp(t->tried[t->current].log_t_all)};
    (void)snprintf(c.reason, sizeof c.reason,
                   "back to the job's own start setting: the loss rises under what was remembered");
    report_choice(t, &c, &f);
    TT_TRY(begin_switch(t, &c, &f, action, err));
    t->has_pending = 0;
    t->ref_t = INFINITY; // no trial: it is not broken off, however slow
    return TT_OK;
}

static tt_status
decide(tt_tuner *t, int must_leave, tt_tuner_action *action, tt_error *err)
{
    tti_choice choice;
    tti_frame frame;
    TT_TRY(tti_tuner_decide(t, must_leave, &choice, &frame, err));
    t->fit_in_window = 1;
    int trying = choice.decision == TT_TUNER_TRY;
    if (trying) {
        t->phase = choice.planned ? TT_TUNER_START : TT_TUNER_EXPLORE;
        t->rest_s = 0;
    } else if (choice.id == t->current || choice.settles) {
        rest(t, &choice);
    }
    if (must_leave && choice.decision == TT_TUNER_MOVE)
        choice.decision = TT_TUNER_ABANDON;
    report_choice(t, &choice, &frame);
    if (choice.id == t->current)
        return TT_OK;
    return begin_switch(t, &choice, &frame, action, err);
}

// ---- trials ----------------------------------------------------------------------------------

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

static tt_status
abandon(tt_tuner *t, double seen, const char *why, tt_tuner_action *action, tt_error *err)
{
    tt_est_window w;
    tti_tried *s = &t->tried[t->current];
    double ratio = seen / t->ref_t;
    close_window(t, 1, 0, &w);
    TT_TRY(enter_row(t, &w, seen, err));
    s->abandoned = 1;
    t->abandoned++;
    if (why != NULL)
        tti_tuner_event(t, "setting %u abandoned after %u iterations: %s", t->current, w.kept, why);
    else
        tti_tuner_event(t, "setting %u abandoned after %u iterations: %.1fx slower than setting %u",
                        t->current, w.kept, ratio, t->ref_id);
    t->trial = 0;
    open_window(t);
    return decide(t, 1, action, err);
}

// ---- step ------------------------------------------------------------------------------------

static void
follow_transition(tt_tuner *t, const tt_tuner_view *view)
{
    int moving = view->in_transition || view->generation < t->generation;
    if (isnan(t->adopted_s) && view->generation >= t->generation)
        t->adopted_s = t->now_s;
    if (t->in_transition && !view->in_transition) {
        // What was measured while parameters moved is no measure of the setting.
        tt_est_window w;
        t->in_transition = 0;
        close_window(t, 0, 1, &w);
        open_window(t);
        t->adopted_s = moving ? NAN : t->now_s;
    }
    t->in_transition = view->in_transition;
    t->transition_seen |= t->in_transition;
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

// The loss rises under the setting in force, which is not the one that the user asked for.
static tt_status
leave_diverged(tt_tuner *t, tt_tuner_action *action, tt_error *err)
{
    tti_tuner_event(t, "setting %u: the loss rises under it, leaving it", t->current);
    if (t->own_id == TTI_TUNER_NOBODY)
        return flee(t, action, err);
    t->ref_id = t->current == 0 ? t->own_id : t->previous;
    return decide(t, 1, action, err);
}

static void
ban_diverged(tt_tuner *t)
{
    t->tried[t->current].banned = t->tried[t->current].diverged = 1;
    t->diverged++;
}

static tt_status
finish_window(tt_tuner *t, tt_tuner_action *action, tt_error *err)
{
    tt_est_window w;
    int marked = t->transition_seen, was_trial = t->trial;
    close_window(t, 0, 0, &w);
    if (!marked)
        TT_TRY(enter_row(t, &w, 0, err));
    t->trial = 0;
    open_window(t);
    if (!t->options.enabled || t->search.dims == 0)
        return TT_OK;
    shorten_plan(t);
    if ((w.flags & TT_EST_DIVERGING) != 0 && t->current != t->own_id) {
        ban_diverged(t);
        return leave_diverged(t, action, err);
    }
    if (!was_trial && t->now_s < t->next_decision_s)
        return TT_OK;
    return decide(t, 0, action, err);
}

tt_status
tt_tuner_step(tt_tuner *tuner, const tt_tuner_view *view, tt_tuner_action *action, tt_error *err)
{
    tt_tuner *t = tuner;
    *action = (tt_tuner_action){.kind = TT_TUNER_NONE, .phase = t->phase};
    if (t->state != TTI_RUNNING)
        return TT_OK;
    count_time(t, view->now_s);
    count_iterations(t, view->iterations);
    follow_transition(t, view);
    if (t->in_transition)
        return TT_OK;
    tt_est_window w;
    double seen;
    tt_estimator_window(t->estimator, &w);
    int rising = (w.flags & (TT_EST_RISING | TT_EST_DIVERGING)) != 0;
    if (t->trial && t->current == 0 && t->warm && rising) {
        ban_diverged(t);
        close_window(t, 1, 0, &w);
        open_window(t);
        return leave_diverged(t, action, err);
    }
    if (t->trial && t->current != 0) {
        if (rising && t->current != t->own_id) {
            ban_diverged(t);
            (void)too_slow(t, &w, &seen);
            return abandon(t, seen, "the loss rises under it", action, err);
        }
        if (too_slow(t, &w, &seen))
            return abandon(t, seen, NULL, action, err);
    }
    return window_full(t, &w) ? finish_window(t, action, err) : TT_OK;
}

// ---- what the job tells ----------------------------------------------------------------------

void
tt_tuner_begin(tt_tuner *tuner, double now_s, uint64_t generation)
{
    tt_tuner *t = tuner;
    TT_ASSERT(t->state == TTI_NEW);
    t->state = TTI_RUNNING;
    t->begin_s = t->now_s = t->phase_since_s = t->adopted_s = t->applied_s = now_s;
    t->generation = generation;
    int idle = !t->options.enabled || t->search.dims == 0;
    t->phase = idle ? TT_TUNER_OFF : TT_TUNER_START;
    if (idle)
        (void)snprintf(t->note, sizeof t->note, "%s",
                       t->options.enabled ? "no knob is free to be tuned" : "tuning is turned off");
    t->trial = 1;
    open_window(t);
}

void
tt_tuner_resume(tt_tuner *tuner, double now_s, uint64_t generation)
{
    tt_tuner *t = tuner;
    TT_ASSERT(t->state == TTI_NEW && t->tried_count > 0);
    t->state = TTI_RUNNING;
    t->now_s = t->phase_since_s = t->applied_s = now_s;
    t->adopted_s = NAN;
    t->generation = generation;
    t->in_transition = 0;
    t->next_decision_s = fmax(t->next_decision_s, now_s);
    open_window(t);
}

void
tt_tuner_applied(tt_tuner *tuner, uint64_t generation, double now_s, uint64_t iterations)
{
    tt_tuner *t = tuner;
    TT_ASSERT(t->state == TTI_SWITCHING);
    tt_est_window w;
    count_time(t, now_s);
    count_iterations(t, iterations);
    close_window(t, t->tried[t->current].abandoned, 1, &w);
    t->state = TTI_RUNNING;
    t->previous = t->current;
    t->moved_window = t->window_index;
    t->current = t->next;
    t->trial = t->next_trial;
    t->generation = generation;
    t->applied_s = now_s;
    t->adopted_s = NAN;
    t->in_transition = 0;
    t->switches++;
    open_window(t);
}

void
tt_tuner_refused(tt_tuner *tuner, double now_s, const char *why)
{
    tt_tuner *t = tuner;
    TT_ASSERT(t->state == TTI_SWITCHING);
    count_time(t, now_s);
    t->state = TTI_RUNNING;
    t->tried[t->next].banned = 1;
    t->has_pending = 0;
    t->next_decision_s = now_s;
    tti_tuner_event(t, "setting %u was refused: %s", t->next,
                    why != NULL ? why : "no reason given");
}

void
tt_tuner_end(tt_tuner *tuner, double now_s, uint64_t iterations)
{
    tt_tuner *t = tuner;
    tt_est_window w;
    if (t->state != TTI_RUNNING && t->state != TTI_SWITCHING)
        return;
    count_time(t, now_s);
    count_iterations(t, iterations);
    close_window(t, 0, 1, &w);
    t->state = TTI_ENDED;
}
