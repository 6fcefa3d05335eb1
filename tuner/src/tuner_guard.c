// Time left, the ledger that keeps tuning from costing more than it may, and what switches and
// windows cost.
#include "tuner_internal.h"
#include <math.h>

// Blocks of 25 iterations before the estimator's lower quantile is believed.
enum { BELIEVED_ITERATIONS = 20 * 25 };
// Uncertainty of the stage while few blocks are in: added before the stage bounds what is left.
static const double STAGE_MARGIN = 0.03;
// Least share of what the job has lasted that it is taken to last on.
static const double LASTS_ON = 0.3;
// Share of the job that changing settings may cost before trials wait.
static const double SWITCH_SHARE = 0.03;
// Share of the guard that is spent; the rest covers errors of the ledger's own measurements.
static const double GUARD_SHARE = 0.7;
static const double CLEARLY_SLOWER = 2;
// Share of the job that trials may lose at worst while the ledger is overdrawn: without any the
// start setting would be all there is, and nothing made up for.
static const double TRICKLE_SHARE = 0.01;

// The stage is a share of the way in log loss. Loss curves flatten, so the rest of the way takes at
// least as long in proportion: left >= done (1 - c)/c. A bound that needs no curve, and exact when
// the stage is a share of the budget.
static double
least_left(const tt_tuner *t)
{
    double stage = tt_estimator_stage(t->estimator);
    if (!isfinite(stage))
        return 0;
    stage = fmax(stage, 0) + STAGE_MARGIN;
    return stage < 1 ? (double)t->iterations * (1 - stage) / stage : 0;
}

// By the losses alone. With the looks, too, the rest of a job whose loss swings is longer and
// better known, and settings that swing more seem to be worth it (docs/rationale.md).
void
tti_tuner_left(const tt_tuner *t, double out[3])
{
    tt_est_remaining r;
    tt_estimator_left_by_losses(t->estimator, &r);
    out[0] = r.iterations_p10;
    out[1] = r.iterations_median;
    out[2] = r.iterations_p90;
    double done = (double)t->iterations, least = least_left(t);
    int blind = (r.flags & TT_EST_FALLBACK) != 0 || t->iterations < BELIEVED_ITERATIONS;
    // Nothing known: as long again as it has lasted.
    for (int i = 0; i < 3; i++)
        if (blind || !isfinite(out[i]))
            out[i] = i == 0 ? 0 : fmax(done, least);
    out[0] = fmax(out[0], blind ? least : 0);
    // A curve that has come near the target may still need many times what it took: what has lasted
    // long lasts on (of a duration that nothing is known of, 0.3 more of it with 77 %).
    double lasts_on = (r.flags & TT_EST_NO_TARGET) != 0 ? 0 : LASTS_ON * done;
    out[1] = fmax(out[1], fmax(out[0], lasts_on));
    out[2] = fmax(out[2], out[1]);
}

uint32_t
tti_tuner_yardstick(const tt_tuner *t)
{
    if (!t->warm || t->own_id == TTI_TUNER_NOBODY)
        return 0;
    const tti_tried *own = &t->tried[t->own_id], *began = &t->tried[0];
    if (tti_tuner_is_out(t, own) || !(own->weight_all > 0))
        return 0;
    if (tti_tuner_is_out(t, began) || !(began->weight_all > 0))
        return t->own_id;
    double gain = began->log_t_all - tti_tuner_log_rate(t, began, 0, NULL) - own->log_t_all +
                  tti_tuner_log_rate(t, own, t->own_id, NULL);
    return gain > 0 ? t->own_id : 0;
}

static double
start_seconds(const tt_tuner *t)
{
    // As measured, not as modelled: the model may carry a trend of the job's stage to a setting
    // that was not seen for long.
    const tti_tried *start = &t->tried[tti_tuner_yardstick(t)];
    return start->weight_all > 0 ? exp(start->log_t_all) : 0;
}

static double
start_rate(const tt_tuner *t)
{
    uint32_t id = tti_tuner_yardstick(t);
    return tti_tuner_log_rate(t, &t->tried[id], id, NULL);
}

double
tti_tuner_ledger(const tt_tuner *t)
{
    double start = start_seconds(t), rate = start_rate(t), worth = 0;
    for (uint32_t i = 0; i < t->tried_count; i++) {
        uint64_t open = t->tried[i].iterations - t->tried[i].priced;
        if (open > 0)
            worth += (double)open * exp(tti_tuner_log_rate(t, &t->tried[i], i, NULL) - rate);
    }
    worth -= tti_tuner_lost_iterations(t);
    return t->now_s - t->begin_s - t->forgiven_s - t->worth_s - worth * start;
}

void
tti_tuner_close_account(tt_tuner *t, uint64_t since, double shift)
{
    double start = start_seconds(t), rate = start_rate(t);
    for (uint32_t i = 0; i < t->tried_count; i++) {
        tti_tried *s = &t->tried[i];
        double worth = exp(tti_tuner_log_rate(t, s, i, NULL) - rate) * start;
        t->worth_s += (double)(s->iterations - s->priced) * worth;
        if (i == t->current)
            t->worth_s += (double)(t->iterations - since) * worth * expm1(shift);
        s->priced = s->iterations;
    }
}

// Seconds the job will still take at least, at the start setting's speed.
static double
least_seconds_left(const tt_tuner *t)
{
    double left[3], elapsed = t->now_s - t->begin_s;
    tti_tuner_left(t, left);
    double least = left[0] * exp(-start_rate(t)) * start_seconds(t);
    if (t->options.budget_s > 0)
        least = fmin(least, fmax(t->options.budget_s - elapsed, 0));
    return least;
}

int
tti_tuner_switching_spent(const tt_tuner *t)
{
    // The job may end several times sooner than at the start setting's speed, so little of what is
    // left counts.
    return tti_tuner_follows(t, TT_TUNER_RULE_SHARE) &&
           t->lost_s > SWITCH_SHARE * (t->now_s - t->begin_s + 0.2 * least_seconds_left(t));
}

double
tti_tuner_guard_left(const tt_tuner *t)
{
    double elapsed = t->now_s - t->begin_s, least = least_seconds_left(t);
    return GUARD_SHARE * t->options.guard * (elapsed + least) - tti_tuner_ledger(t);
}

double
tti_tuner_trickle_left(const tt_tuner *t)
{
    return TRICKLE_SHARE * (t->now_s - t->begin_s) - t->trickled_s;
}

double
tti_tuner_switch_s(const tt_tuner *t, uint32_t from, const tt_setting *to)
{
    if (tt_setting_equal(&t->tried[from].setting, to))
        return 0;
    unsigned class = tt_search_class(&t->search, &t->tried[from].setting, to);
    // The prior counts as one switch seen.
    return (t->options.switch_s_prior[class] + t->switch_lost_s[class]) /
           (1 + t->switch_count[class]);
}

// What is begun under it is finished under it. Beyond that a trial that is clearly slower is left
// for what does not arrive, before anything has.
static double
until_broken_off(const tt_tuner *t, const tti_tried *setting, double t_ref, double ratio)
{
    const double begun = (double)setting->workers * setting->merged;
    return fmax(begun * t_ref * ratio, t->options.window_s_min);
}

void
tti_tuner_broke_off(tt_tuner *t, double ratio, double seconds)
{
    const double foreseen = until_broken_off(t, &t->tried[t->current], t->ref_t, ratio);
    if (!(ratio > CLEARLY_SLOWER) || !isfinite(foreseen))
        return;
    t->broken_off++;
    t->broken_off_sum += seconds / foreseen;
}

double
tti_tuner_window_loss(const tt_tuner *t, const tti_tried *setting, double t_ref, double ratio)
{
    if (ratio <= 1)
        return 0;
    double duration;
    if (ratio > CLEARLY_SLOWER) {
        // As much longer as such trials were; that they are not counts as one of them.
        duration = until_broken_off(t, setting, t_ref, ratio) *
                   fmax((1 + t->broken_off_sum) / (1 + t->broken_off), 1);
    } else {
        const double n = (double)setting->workers * setting->merged + setting->full_window;
        duration = fmax(n * t_ref * ratio, t->options.window_s_min);
    }
    return duration * (1 - 1 / ratio);
}
