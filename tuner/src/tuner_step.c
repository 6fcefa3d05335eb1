// The manager at work: windows, trials, switches.
#include "tuner_internal.h"
#include <math.h>
#include <string.h>

// A dozen cycles that agree by chance do not make a cycle certain.
static const double CYCLE_CV_LEAST = 0.1;
// S.d. of log t where only a bound on it is known.
static const double BOUND_SD = 0.3;
// S.d. of log t seen in a trial that was broken off, when promises are judged by it.
static const double ABANDONED_SD = 0.5;

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
    t->window_iterations = t->iterations;
    t->transition_seen = t->in_transition;
    t->fit_in_window = 0;
    t->window_loss = tt_estimator_last_loss(t->estimator);
    tt_estimator_begin(t->estimator, t->current, t->generation, s->workers, s->feature,
                       s->feature_count);
}

static double
now_stage(const tt_tuner *t)
{
    double stage = tt_estimator_stage(t->estimator);
    return isfinite(stage) ? stage : 0;
}

static void
close_window(tt_tuner *t, int abandoned, int cut, tt_est_window *w)
{
    tt_estimator_end(t->estimator, !abandoned, w);
    tti_tuner_note_lag(t, w);
    tti_tuner_note_busy(t);
    const double borne = tti_tuner_lag_borne(t);
    tt_tuner_window_record record = {.index = t->window_index++,
                                     .setting_id = t->current,
                                     .generation = t->generation,
                                     .setting = &t->tried[t->current].setting,
                                     .phase = time_phase(t),
                                     .begin_s = t->window_begin_s,
                                     .end_s = t->now_s,
                                     .stage = now_stage(t),
                                     .abandoned = abandoned,
                                     .overlaps_fit = t->fit_in_window,
                                     .overlaps_transition = t->transition_seen || cut,
                                     .estimate = *w,
                                     .lag_borne = isfinite(borne) ? borne : NAN};
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
    if (t->warm && t->current == t->own_id && !abandoned)
        tti_tuner_prior_judge_own(t, log(t->pending.realised_ratio), sqrt(var));
    t->pending.setting = &t->tried[t->current].setting;
    t->pending.considered = NULL;
    t->pending.setting_id = t->current;
    if (t->callbacks.on_proposal != NULL)
        t->callbacks.on_proposal(t->callbacks.self, &t->pending);
}

// Enters what the window measured. bound: seconds per iteration known to be exceeded, when the
// estimator has none yet.
static tt_status
enter_row(tt_tuner *t, const tt_est_window *w, double bound, tt_error *err)
{
    tti_tried *s = &t->tried[t->current];
    tti_measured m = {
        .window = w, .weight = fmax(w->kept, 1), .stage = now_stage(t), .broken_off = bound > 0};
    double value = w->seconds_per_iteration;
    if (isfinite(value) && value > 0) {
        double cv = fmax(isfinite(w->time_cv) ? w->time_cv : 0, CYCLE_CV_LEAST);
        m.log_t = log(value);
        m.var = cv * cv * s->merged / fmax(w->kept, 1);
    } else if (bound > 0) {
        // Somewhat above the bound.
        m.log_t = log(bound) + BOUND_SD;
        m.var = BOUND_SD * BOUND_SD;
    } else {
        return TT_OK;
    }
    s->windows++;
    s->seen_s = t->now_s;
    s->seen_window = t->window_index;
    int failed = t->memory_fails;
    report_realised(t, m.log_t, m.var, bound > 0);
    s->weight_all += m.weight;
    s->var_all = m.var * m.weight / s->weight_all;
    s->log_t_all += m.weight / s->weight_all * (m.log_t - s->log_t_all);
    if (t->search.dims == 0)
        return TT_OK;
    TT_TRY(t->way->enter(t, &m, err));
    s->abandoned = m.broken_off;
    if (t->memory_fails && !failed)
        t->way->forget(t);
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
                                     .considered = c->considered.count > 0 ? &c->considered : NULL,
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
    if (t->next_trial && c->promise > 0)
        tti_tuner_credit_promise(t, t->next, f->best, c->promise);
    t->expected_t = c->outlook.t_mean;
    t->expected_sd = c->outlook.sd;
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
    TT_TRY(t->way->decide(t, must_leave, &choice, &frame, err));
    t->fit_in_window = 1;
    int trying = choice.decision == TT_TUNER_TRY;
    if (trying) {
        t->phase = choice.planned ? TT_TUNER_START : TT_TUNER_EXPLORE;
        t->rest_s = 0;
    } else if (choice.id == t->current || choice.settles) {
        t->way->rest(t, &choice);
    }
    if (must_leave && choice.decision == TT_TUNER_MOVE)
        choice.decision = TT_TUNER_ABANDON;
    report_choice(t, &choice, &frame);
    if (choice.id == t->current)
        return TT_OK;
    return begin_switch(t, &choice, &frame, action, err);
}

// ---- trials ----------------------------------------------------------------------------------

static tt_status
abandon(tt_tuner *t, double seen, const char *why, tt_tuner_action *action, tt_error *err)
{
    tt_est_window w;
    tti_tried *s = &t->tried[t->current];
    double ratio = seen / t->ref_t;
    if (why == NULL)
        tti_tuner_broke_off(t, ratio, t->now_s - t->applied_s);
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

// The setting in force is out of the question.
static tt_status
leave(tt_tuner *t, tt_tuner_action *action, tt_error *err)
{
    return t->own_id == TTI_TUNER_NOBODY ? flee(t, action, err) : decide(t, 1, action, err);
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
    tti_next next = t->way->after_window(t, &w, was_trial);
    if (next == TTI_NEXT_LEAVE)
        return leave(t, action, err);
    return next == TTI_NEXT_DECIDE ? decide(t, 0, action, err) : TT_OK;
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
    t->step = view->step > 0 ? view->step : 1;
    follow_transition(t, view);
    if (t->in_transition)
        return TT_OK;
    tt_est_window w;
    double seen;
    const char *why = NULL;
    tt_estimator_window(t->estimator, &w);
    tti_next next = t->way->watch(t, &w, &seen, &why);
    if (next == TTI_NEXT_ABANDON)
        return abandon(t, seen, why, action, err);
    if (next == TTI_NEXT_LEAVE) {
        close_window(t, 1, 0, &w);
        open_window(t);
        return leave(t, action, err);
    }
    return t->way->window_full(t, &w) ? finish_window(t, action, err) : TT_OK;
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
