// The tuner of "Towards Self-Tuning Parameter Servers" (arXiv 1810.02935, Section III) as
// published, for comparisons: `tuner.model: paper`. It runs a = 10 random settings for a window
// each, then proposes argmax EI at the current loss after every window of b = 3 x workers
// iterations, and reconfigures when EI exceeds the cost of it.
//
//     Y(X, l) = t_X k_X   seconds to the target from loss l under setting X, one row a window:
//                         (X, l of the iteration just before the window, Y)
//     f ~ GP over (X, -log l), y = f + N(0, s^2)
//     EI(X)   = E[(f(cur, l) - f(X, l))^+],   apply argmax EI when EI > R(cur, X), both in seconds
//
// k_X comes from the estimator: with `method: paper` the fit of that window, else the pooled
// estimate over the setting's rate. No guard, no hysteresis, no rests, nothing broken off because
// it is slow. docs/paper-mode.md names every place where the text is silent and what stands here.
#include "tuner_internal.h"
#include <math.h>
#include <string.h>

enum { INITIAL = 10, DRAWS_MAX = 4096, STREAM_INITIAL = 0x70617065 };
// As in tuner_gate.c: the text does not say how EI is maximised.
enum { CANDIDATES = 300, AROUND = 40, STARTS = 2, BATCH = 64 };

static void
make_plan(tt_tuner *t)
{
    uint32_t wanted = t->options.initial_settings > 0 ? t->options.initial_settings : INITIAL;
    tt_rng rng;
    tt_rng_init(&rng, t->options.seed, TT_RNG_TUNER, STREAM_INITIAL);
    wanted = TT_MIN(wanted, (uint32_t)TT_COUNT_OF(t->plan));
    t->plan_count = t->plan_done;
    for (int draw = 0; draw < DRAWS_MAX && t->plan_count < wanted && t->search.dims > 0; draw++) {
        double x[TT_KNOBS_MAX];
        for (uint32_t d = 0; d < t->search.dims; d++)
            x[d] = tt_rng_uniform(&rng);
        tt_search_decode(&t->search, x, &t->plan[t->plan_count]);
        if (t->search.listed_count > 0)
            t->plan[t->plan_count] = t->search.listed[tt_rng_below(&rng, t->search.listed_count)];
        t->plan_count += tt_space_valid(t->space, &t->plan[t->plan_count]) ? 1 : 0;
    }
}

static int
window_full(const tt_tuner *t, const tt_est_window *w)
{
    return w->kept >= t->tried[t->current].full_window && isfinite(w->seconds_per_iteration) &&
           t->now_s - t->window_begin_s >= t->options.window_s_min;
}

// Losses that are no numbers never fill a window; everything else is endured.
static tti_next
watch(tt_tuner *t, const tt_est_window *w, double *seen, const char **why)
{
    if (!t->trial || t->current == 0 || (w->flags & TT_EST_DIVERGING) == 0 ||
        (w->flags & TT_EST_RISING) != 0)
        return TTI_NEXT_WINDOW;
    *seen = (t->now_s - t->window_begin_s) / (w->kept + 1.0);
    *why = "its losses are not numbers";
    return TTI_NEXT_ABANDON;
}

// The loss as an input: its logarithm, where it has one.
static double
loss_input(const tt_tuner *t, double loss)
{
    double stage = tt_estimator_stage(t->estimator);
    if (loss > 0 && isfinite(loss))
        return -log(loss);
    return isfinite(stage) ? stage : 0;
}

// Iterations to the target under the setting in force, from the window's beginning.
static double
iterations_from_begin(const tt_tuner *t, const tt_est_window *w)
{
    tt_est_remaining left;
    double k, finite[3], rate = 0;
    tt_estimator_remaining(t->estimator, &left);
    tti_tuner_left(t, finite);
    k = isfinite(left.iterations_median) ? left.iterations_median : finite[1];
    if (tt_estimator_method(t->estimator) != TT_EST_PAPER)
        rate = tti_tuner_log_rate(t, &t->tried[t->current], t->current, NULL);
    return k * exp(-rate) + w->kept;
}

static tt_status
enter(tt_tuner *t, const tti_measured *m, tt_error *err)
{
    tti_tried *s = &t->tried[t->current];
    double seconds = exp(m->log_t) * iterations_from_begin(t, m->window);
    if ((m->window->flags & TT_EST_DIVERGING) != 0)
        seconds = fmax(seconds, t->paper_worst_s);
    t->paper_worst_s = fmax(t->paper_worst_s, seconds);
    tt_gp_row row = {.stage = loss_input(t, t->window_loss), .y = seconds};
    uint32_t place = s->paper_rows++ % TTI_PAPER_ROWS;
    s->log_t = m->log_t;
    if (s->paper_rows > TTI_PAPER_ROWS)
        return tt_gp_replace(t->gp, s->paper_row[place], &row, err);
    TT_TRY(tt_gp_add(t->gp, s->x, &row, err));
    s->paper_row[place] = tt_gp_rows(t->gp) - 1;
    s->row = (int)s->paper_row[place];
    return TT_OK;
}

static tti_next
after_window(tt_tuner *t, const tt_est_window *w, int was_trial)
{
    TT_UNUSED(w);
    TT_UNUSED(was_trial);
    // A window in which parameters still moved gave no row: once more.
    return t->tried[t->current].row < 0 ? TTI_NEXT_WINDOW : TTI_NEXT_DECIDE;
}

static void
rest(tt_tuner *t, const tti_choice *c)
{
    TT_UNUSED(c);
    t->phase = TT_TUNER_SETTLED;
}

// ---- the acquisition -------------------------------------------------------------------------

typedef struct view {
    const tt_tuner *t;
    tt_gp_slice *slice; // at the current loss
    double current_s;   // posterior mean under the setting in force
} view;

static int
is_banned(const tt_tuner *t, const tt_setting *setting)
{
    for (uint32_t i = 0; i < t->tried_count; i++)
        if (t->tried[i].banned && tt_setting_equal(&t->tried[i].setting, setting))
            return 1;
    return 0;
}

static void
score(void *self, const double *x, uint32_t count, double *out)
{
    const view *v = self;
    double mean[BATCH], var[BATCH];
    uint32_t dims = v->t->search.dims;
    for (uint32_t at = 0; at < count; at += BATCH) {
        uint32_t n = TT_MIN(count - at, (uint32_t)BATCH);
        tt_gp_slice_eval(v->slice, x + (size_t)at * dims, n, mean, var);
        for (uint32_t i = 0; i < n; i++) {
            tt_setting setting;
            tt_search_decode(&v->t->search, x + (size_t)(at + i) * dims, &setting);
            out[at + i] = is_banned(v->t, &setting)
                              ? -INFINITY
                              : tt_ei_log(mean[i], sqrt(var[i]), v->current_s, NULL, NULL);
        }
    }
}

static double
score_gradient(void *self, const double *x, double *gradient)
{
    const view *v = self;
    double mean, var, dm[TT_KNOBS_MAX], dv[TT_KNOBS_MAX], by_mean, by_sd;
    tt_gp_slice_gradient(v->slice, x, &mean, &var, dm, dv);
    double value = tt_ei_log(mean, sqrt(var), v->current_s, &by_mean, &by_sd);
    for (uint32_t d = 0; d < v->t->search.dims; d++)
        gradient[d] = by_mean * dm[d] + by_sd * dv[d] / (2 * sqrt(var));
    return value;
}

static void
consider(const view *v, const tt_setting *setting, uint32_t id, double log_ei, tti_choice *out)
{
    if (!(log_ei > -INFINITY) || (out->setting.count > 0 && exp(log_ei) <= out->ei_s))
        return;
    double x[TT_KNOBS_MAX], mean, var;
    tt_search_encode(&v->t->search, setting, x);
    tt_gp_slice_eval(v->slice, x, 1, &mean, &var);
    *out = (tti_choice){.decision = id == TTI_TUNER_NOBODY ? TT_TUNER_TRY : TT_TUNER_MOVE,
                        .id = id,
                        .setting = *setting,
                        .ei_s = exp(log_ei),
                        .cost_s = tti_tuner_switch_s(v->t, v->t->current, setting)};
    int ratio = mean > 0 && v->current_s > 0;
    out->outlook.mean = ratio ? log(mean / v->current_s) : (double)NAN;
    out->outlook.sd = ratio ? sqrt(var) / mean : (double)NAN;
}

// Those that were tried and may be moved to, in batches.
static void
consider_tried(const tt_tuner *t, view *v, tti_choice *out)
{
    double x[BATCH * TT_KNOBS_MAX], log_ei[BATCH];
    uint32_t id[BATCH], count = 0, dims = t->search.dims;
    for (uint32_t i = 0; i < t->tried_count; i++) {
        if (i != t->current && t->tried[i].row >= 0) {
            memcpy(x + (size_t)count * dims, t->tried[i].x, dims * sizeof *x);
            id[count++] = i;
        }
        if (count < BATCH && i + 1 < t->tried_count)
            continue;
        score(v, x, count, log_ei);
        for (uint32_t k = 0; k < count; k++)
            consider(v, &t->tried[id[k]].setting, id[k], log_ei[k], out);
        count = 0;
    }
}

// argmax EI over the space, tried settings included.
static tt_status
propose(tt_tuner *t, view *v, tti_choice *out, tt_error *err)
{
    const tt_setting anchors[2] = {t->tried[t->way->best(t)].setting, t->tried[t->current].setting};
    tt_search_target target = {v, score, score_gradient};
    tt_search_options options = {.seed = t->options.seed * 0x9E3779B97F4A7C15u + t->proposals,
                                 .anchors = anchors,
                                 .anchor_count = TT_COUNT_OF(anchors),
                                 .taken = &t->tried[t->current].setting,
                                 .taken_count = 1,
                                 .candidates = CANDIDATES,
                                 .around = AROUND,
                                 .starts = STARTS};
    tt_search_result found;
    TT_TRY(tt_search_maximize(&t->search, &target, &options, &found, err));
    *out = (tti_choice){.id = t->current};
    consider_tried(t, v, out);
    for (int k = 0; k < TT_SEARCH_CLASSES; k++)
        if (found.found[k])
            consider(v, &found.setting[k], TTI_TUNER_NOBODY, found.score[k], out);
    return TT_OK;
}

// EI against the cost, and the words for it.
static void
gate(const tt_tuner *t, int must_leave, tti_choice *c)
{
    char ei[32], cost[32];
    if (c->setting.count == 0 && must_leave) { // nothing else is known: where it began
        c->id = 0;
        c->decision = TT_TUNER_MOVE;
        c->setting = t->tried[0].setting;
    }
    (void)tti_tuner_seconds(c->ei_s, ei, sizeof ei);
    (void)tti_tuner_seconds(c->cost_s, cost, sizeof cost);
    if (must_leave || c->ei_s > c->cost_s) {
        (void)snprintf(c->reason, sizeof c->reason,
                       "expected improvement %s, reconfiguring costs %s (the paper's gate)", ei,
                       cost);
        return;
    }
    (void)snprintf(c->reason, sizeof c->reason,
                   "staying in setting %u: expected improvement %s, reconfiguring would cost %s "
                   "(the paper's gate)",
                   t->current, ei, cost);
    c->decision = TT_TUNER_STAY;
    c->id = t->current;
    c->setting = t->tried[t->current].setting;
    c->outlook = (tti_outlook){0};
}

static tt_status
decide(tt_tuner *t, int must_leave, tti_choice *out, tti_frame *frame, tt_error *err)
{
    const tti_tried *current = &t->tried[t->current];
    *frame = (tti_frame){.now_s = t->now_s,
                         .from = t->current,
                         .best = t->current,
                         .best_t = exp(current->log_t),
                         .guard_s = NAN};
    frame->best_rate = tti_tuner_log_rate(t, current, t->current, NULL);
    if (t->plan_done < t->plan_count) {
        *out = (tti_choice){.decision = TT_TUNER_TRY,
                            .id = TTI_TUNER_NOBODY,
                            .setting = t->plan[t->plan_done++],
                            .planned = 1};
        out->cost_s = tti_tuner_switch_s(t, t->current, &out->setting);
        (void)snprintf(out->reason, sizeof out->reason,
                       "initial setting %u of %u, drawn at random (the paper's start)",
                       t->plan_done, t->plan_count);
        return TT_OK;
    }
    double var;
    view v = {.t = t};
    TT_TRY(tti_tuner_refit(t, err));
    const double now = loss_input(t, tt_estimator_last_loss(t->estimator));
    TT_TRY(tt_gp_slice_open(t->gp, now, NULL, &v.slice, err));
    tt_gp_slice_eval(v.slice, current->x, 1, &v.current_s, &var);
    tt_status status = propose(t, &v, out, err);
    tt_gp_slice_close(v.slice);
    if (status == TT_OK)
        gate(t, must_leave, out);
    return status;
}

// ---- inspection ------------------------------------------------------------------------------

// Tried, with the least posterior mean at the current loss.
static uint32_t
best(const tt_tuner *t)
{
    uint32_t found = t->current;
    double least = INFINITY;
    tt_gp_slice *slice = NULL;
    const double now = loss_input(t, tt_estimator_last_loss(t->estimator));
    if (t->gp == NULL || tt_gp_slice_open(t->gp, now, NULL, &slice, NULL) != TT_OK)
        return found;
    for (uint32_t i = 0; i < t->tried_count; i++) {
        if (t->tried[i].row < 0 || t->tried[i].banned)
            continue;
        double mean = tt_gp_slice_mean(slice, t->tried[i].x);
        if (mean < least) {
            least = mean;
            found = i;
        }
    }
    tt_gp_slice_close(slice);
    return found;
}

// The process is of seconds left: of an iteration only what was measured is known.
static int
predict(const tt_tuner *t, const tt_setting *setting, double *log_mean, double *log_sd)
{
    for (uint32_t i = 0; i < t->tried_count; i++)
        if (t->tried[i].windows > 0 && tt_setting_equal(&t->tried[i].setting, setting)) {
            *log_mean = t->tried[i].log_t;
            *log_sd = 0.1; // of one window
            return 1;
        }
    return 0;
}

// The loss is one more input, and y is in seconds: nothing is known of its spread beforehand.
const tti_way tti_way_paper = {.name = "paper",
                               .model = TT_GP_PRODUCT,
                               .rows_of_left = 1,
                               .plan = make_plan,
                               .window_full = window_full,
                               .watch = watch,
                               .enter = enter,
                               .after_window = after_window,
                               .decide = decide,
                               .rest = rest,
                               .best = best,
                               .predict = predict};
