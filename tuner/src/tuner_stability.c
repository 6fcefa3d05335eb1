// How far settings may go in what the loss has to bear.
//
// Under ASP and SSP a gradient is applied about as many iterations after its parameters were read
// as there are workers, times the iterations merged into a push: the setting's delay,
//
//     delay(X) = workers(X) merged(X)
//
// and there is a product of step size and delay beyond which SGD diverges (Mania et al. 2017, Stich
// and Karimireddy 2020: the step may be at most of the order of 1 / delay). That product, with the
// step in units of the first one, is the setting's strain:
//
//     strain(X) = delay(X) step
//
// Near the limit the loss rises slowly, and a trial is broken off before much is lost; far beyond
// it, it explodes within a few iterations. So the strain is raised by steps from what was borne
// (safe exploration: Sui et al. 2015), settings near a strain that was not borne are left out, and
// after a rise nothing is tried until the loss is where it was. What all that takes is the guard's.
// A rise under one setting says nothing against a strain that was borne for long since the last
// one, by itself or by others: the loss may have gone up for what else is different in it, or by
// chance. It is that setting alone that is left out then. And where it is known how far delays may
// go (tuner_lag.c) a rise is not held against any for the rest of a job.
// Where the learning rate falls, longer and longer delays are borne, also those that were not.
//
// Short of that limit the loss still ends the higher the longer the delay is (the stationary error
// of SGD grows with the step, and merged pushes are longer steps): where it has stopped falling
// above the target, half of the way back to the start setting's delay is tried, in the logarithm,
// and then what the loss bears under the start setting, which the user chose. Each step takes as
// long to judge as a good part of the job has lasted, so there are no more of them. A loss that has
// a long way to go looks just so for a while. Where it is known how far delays may go
// (tuner_lag.c) they are not to blame: it is transfer in 16 bits and its like that are given up,
// and not for good.
#include "tuner_internal.h"
#include <math.h>

// A strain may be tried that is so many times the largest one that was borne,
static const double RAISE = 2;
// for so many times its own iterations;
static const double BORNE_DELAYS = 4;
// and no nearer to one that was not borne.
static const double CEILING_SHARE = 0.8;
// Loss at which a rise is over, against the one before it, give or take a standard error.
static const double RECOVERED = 1.02;
// What was read before a rise still comes in after it: so many delays long the next setting is not
// to blame.
static const double BLAMELESS_DELAYS = 8;
// Where the loss does not come down clearly after so many more of its own, the setting that the job
// went back to does not bear its delay either: it need not explode, it may swing for ever. If that
// one asks no more than the user chose, there is nothing to wait for: the loss is where it belongs.
static const double RECOVERY_DELAYS = 32;
// The last part of the job by which it is judged whether the loss still falls: it has stopped when
// no fall is clear, and even one so many s.e. faster would take as long again as the job has
// lasted.
static const double LOOK_SHARE = 0.5, LEAST_SHARE = 0.2, CLEAR_SE = 2, FALL_SE = 1;
// It is believed when it is still so after so many times the iterations.
static const double CONFIRMED = 1.25;
// A promise of the estimator's is broken when the job has lasted so many times as long.
static const double OVERDUE = 1.1;
// What is given up although the lag is borne is given up until the job has lasted so many times as
// long.
static const double GIVEN_UP = 4;
// A lag of so much of what is borne may be to blame; then it becomes shorter by so much.
static const double NEAR = 0.8, SHORTER = 0.9;
// Neither is judged by fewer iterations: in the first thousand of a job that needs twenty a loss
// that falls as it should still drowns in its noise.
enum { JUDGED_FROM = 4000 };
// A strain is borne for long in so many delays.
static const double BORNE_LONG = 200;
// A rise is held against strains until the job has lasted so many times as long.
static const double HELD_AGAINST = 4;
// Delays that differ by less are the same.
static const double SAME = 1.01;

static int
is_longer(const tt_tuner *t, const tti_tried *x)
{
    return x->delay > SAME * t->own.delay;
}

static double
strain(const tt_tuner *t, const tti_tried *x)
{
    return x->delay * t->step;
}

// Within what the start setting asked for when the job began, which is the user's choice.
static int
is_chosen(const tt_tuner *t, const tti_tried *x)
{
    return strain(t, x) <= SAME * t->own.delay;
}

static double
largest_borne(const tt_tuner *t)
{
    double largest = t->own.delay;
    for (uint32_t i = 0; i < t->tried_count; i++)
        largest = fmax(largest, t->tried[i].borne);
    return largest;
}

// The loss rose under it, which is not forgotten.
static int
is_held_against(const tt_tuner *t, const tti_tried *x)
{
    return x->not_borne > 0 && !(isfinite(tti_tuner_lag_borne(t)) &&
                                 (double)t->iterations >= HELD_AGAINST * (double)x->rose_at);
}

// The smallest strain that was not borne, of those beyond the user's choice.
static double
ceiling(const tt_tuner *t)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < t->tried_count; i++) {
        const tti_tried *x = &t->tried[i];
        if (x->not_borne > SAME * t->own.delay && !x->is_alone_to_blame && is_held_against(t, x))
            least = fmin(least, x->not_borne);
    }
    return least;
}

// Has the start setting's transfer, and whatever else has a name and may change the loss.
static int
is_plain(const tt_tuner *t, const tti_tried *x)
{
    for (uint32_t d = 0; d < t->search.dims; d++) {
        uint32_t k = t->search.knob[d];
        const tt_knob *knob = t->space->knob[k].knob;
        int named = knob->kind == TT_KNOB_BOOL || knob->kind == TT_KNOB_ENUM;
        if (named && knob->changes_statistics && x->setting.value[k] != t->own.setting.value[k])
            return 0;
    }
    return 1;
}

// Asks no more of the loss than the start setting does.
static int
is_mild(const tt_tuner *t, const tti_tried *x)
{
    return !is_longer(t, x) && x->merged <= t->own.merged && is_plain(t, x);
}

// As far as stalls have shown the target can be reached under it.
static int
may_reach(const tt_tuner *t, const tti_tried *x)
{
    const tti_rise *r = &t->rise;
    return (t->iterations >= r->plain_until || is_plain(t, x)) &&
           (r->stalls == 0 || (r->strict ? is_mild(t, x) : x->delay <= r->reach * SAME));
}

int
tti_tuner_is_out(const tt_tuner *t, const tti_tried *x)
{
    return x->banned || (is_held_against(t, x) && strain(t, x) > CEILING_SHARE * x->not_borne);
}

int
tti_tuner_is_borne(const tt_tuner *t, const tti_tried *x)
{
    if (!tti_tuner_follows(t, TT_TUNER_RULE_DELAY))
        return 1;
    return may_reach(t, x) && (is_chosen(t, x) || (strain(t, x) <= CEILING_SHARE * ceiling(t) &&
                                                   tti_tuner_is_stable(t, x)));
}

int
tti_tuner_may_try(const tt_tuner *t, const tti_tried *x)
{
    if (!tti_tuner_follows(t, TT_TUNER_RULE_DELAY))
        return 1;
    return tti_tuner_is_borne(t, x) && (is_chosen(t, x) || isfinite(tti_tuner_lag_borne(t)) ||
                                        strain(t, x) <= RAISE * largest_borne(t) * SAME);
}

int
tti_tuner_is_trusted(const tt_tuner *t, const tti_tried *x)
{
    return x->not_borne <= 0 || x->borne >= strain(t, x);
}

int
tti_tuner_is_to_blame(const tt_tuner *t)
{
    const tti_rise *r = &t->rise;
    double delay = fmax(r->delay, t->tried[t->current].delay);
    return !r->recovering || (double)(t->iterations - r->left_at) > BLAMELESS_DELAYS * delay;
}

// Iterations since the last rise that a strain was borne by any setting, but for this window's.
static double
iterations_borne(const tt_tuner *t, double least)
{
    double iterations = 0;
    for (uint32_t i = 0; i < t->tried_count; i++) {
        const tti_tried *x = &t->tried[i];
        if (SAME * x->borne >= least)
            iterations += (double)(x->iterations - x->before_rise);
    }
    if (SAME * t->tried[t->current].borne >= least)
        iterations -= (double)(t->iterations - t->window_iterations);
    return iterations;
}

void
tti_tuner_rose(tt_tuner *t)
{
    tti_rise *r = &t->rise;
    tti_tried *current = &t->tried[t->current];
    current->not_borne = strain(t, current);
    current->is_alone_to_blame =
        iterations_borne(t, current->not_borne) >= BORNE_LONG * current->delay;
    current->borne = 0;
    current->rose_at = t->iterations;
    for (uint32_t i = 0; i < t->tried_count; i++)
        t->tried[i].before_rise = t->tried[i].iterations;
    if (!r->recovering) {
        r->recovering = 1;
        r->from = t->window_iterations;
        r->loss = r->calm_loss;
        r->loss_se = r->calm_loss_se;
    }
    r->delay = t->tried[t->current].delay;
    r->left_at = t->iterations;
}

// Under the setting in force for long enough, and does not fall clearly.
static int
stays_up(const tt_tuner *t)
{
    const tti_rise *r = &t->rise;
    const tti_tried *current = &t->tried[t->current];
    double done = (double)t->iterations;
    double since = (double)r->left_at + BLAMELESS_DELAYS * fmax(r->delay, current->delay);
    tt_est_trend trend;
    return done - since >= RECOVERY_DELAYS * current->delay &&
           tt_estimator_trend(t->estimator, done - LOOK_SHARE * (done - since), &trend) &&
           -trend.slope < CLEAR_SE * trend.slope_se;
}

static int
has_come_down(const tti_rise *r, double loss, double se)
{
    return !isfinite(r->loss) || loss <= RECOVERED * r->loss + hypot(se, r->loss_se);
}

void
tti_tuner_calm(tt_tuner *t, const tt_est_window *w)
{
    tti_rise *r = &t->rise;
    tti_tried *current = &t->tried[t->current];
    if (!tti_tuner_is_out(t, current) && current->row >= 0 &&
        (double)current->iterations >= BORNE_DELAYS * current->delay)
        current->borne = fmax(current->borne, strain(t, current));
    int rising = (w->flags & (TT_EST_RISING | TT_EST_DIVERGING)) != 0;
    if (!isfinite(w->mean_loss) || rising)
        return;
    const double se = isfinite(w->noise) ? w->noise / sqrt(w->kept) : 0;
    if (r->recovering && !has_come_down(r, w->mean_loss, se) &&
        (is_longer(t, current) || !stays_up(t)))
        return;
    if (r->recovering)
        r->lost_iterations += (double)(t->iterations - r->from);
    r->recovering = 0;
    r->calm_loss = w->mean_loss;
    r->calm_loss_se = se;
}

int
tti_tuner_does_not_recover(const tt_tuner *t)
{
    return t->rise.recovering && is_longer(t, &t->tried[t->current]) && stays_up(t);
}

// Judged by the last part of the job, all of it since delays became shorter. False: it falls
// clearly.
static int
look_at_trend(const tt_tuner *t, tt_est_trend *out)
{
    double done = (double)t->iterations, since = (double)t->rise.since;
    double from = fmax(since, (1 - LOOK_SHARE) * done);
    return done - since >= LEAST_SHARE * done && tt_estimator_trend(t->estimator, from, out) &&
           out->gap > 0 && -out->slope < CLEAR_SE * out->slope_se;
}

// By when the estimator was 90 % sure that the target would be reached. A loss that has come near
// its own end above the target, or swings above it, looks as if it were nearly there, for ever; by
// the losses alone, for the lowest looks go on falling and keep what they promise.
static int
is_overdue(tt_tuner *t)
{
    tt_est_remaining left;
    double done = (double)t->iterations;
    tt_estimator_left_by_losses(t->estimator, &left);
    if ((left.flags & TT_EST_FALLBACK) == 0 && isfinite(left.iterations_p90) &&
        t->iterations >= JUDGED_FROM)
        t->rise.promised = fmin(t->rise.promised, done + left.iterations_p90);
    return done > OVERDUE * t->rise.promised;
}

static int
is_confirmed(tt_tuner *t, const tt_est_trend *trend)
{
    tti_rise *r = &t->rise;
    double fall = -trend->slope + FALL_SE * trend->slope_se;
    if (fall * (double)t->iterations >= trend->gap)
        r->suspected = 0;
    else if (r->suspected == 0)
        r->suspected = t->iterations;
    return r->suspected > 0 && (double)t->iterations >= CONFIRMED * (double)r->suspected;
}

static int
is_near_the_edge(const tt_tuner *t, const tti_tried *x)
{
    return is_longer(t, x) && tti_tuner_lag(t, x) > NEAR * tti_tuner_lag_borne(t);
}

// What the loss is not asked for any more, for people.
static const char *
give_up(tt_tuner *t, const tti_tried *current, int bears_it)
{
    tti_rise *r = &t->rise;
    if (!bears_it) {
        r->strict = r->stalls++ > 0 || !is_longer(t, current);
        r->reach = fmax(t->own.delay, sqrt(t->own.delay * current->delay));
        return "fewer iterations a push or fewer workers";
    }
    if (!is_plain(t, current)) {
        r->plain_until = (uint64_t)(GIVEN_UP * (double)t->iterations);
        return "transfer as at the start";
    }
    tti_tuner_lag_less(t, SHORTER * tti_tuner_lag(t, current));
    return "a shorter lag";
}

const char *
tti_tuner_stalls(tt_tuner *t)
{
    tti_rise *r = &t->rise;
    const tti_tried *current = &t->tried[t->current];
    const int bears_it = isfinite(tti_tuner_lag_borne(t)) && tti_tuner_is_stable(t, current);
    const int blameless =
        bears_it ? is_plain(t, current) && !is_near_the_edge(t, current) : is_mild(t, current);
    tt_est_trend trend;
    // Where the delay is borne a broken promise is more likely the estimator's fault.
    const int overdue = is_overdue(t) && !bears_it;
    if (t->iterations < JUDGED_FROM || blameless || !tti_tuner_follows(t, TT_TUNER_RULE_DELAY) ||
        r->recovering || !look_at_trend(t, &trend)) {
        r->suspected = 0;
        return NULL;
    }
    if (!is_confirmed(t, &trend) && !overdue)
        return NULL;
    r->since = t->iterations;
    r->suspected = 0;
    r->promised = INFINITY;
    return give_up(t, current, bears_it);
}

double
tti_tuner_lost_iterations(const tt_tuner *t)
{
    const tti_rise *r = &t->rise;
    return r->lost_iterations + (r->recovering ? (double)(t->iterations - r->from) : 0);
}
