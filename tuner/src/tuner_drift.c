// Has the machine changed? Every window under a setting seen before is compared with that setting's
// recent windows:
//
//     r = log t - mean of the recent log t,   s^2 = spread^2 (1 + 1/n),   suspect when |r| > 2 s
//
// spread: root mean square of such residuals over all settings of the job, so that a noisy machine
// is not taken for a changing one. While a change is suspected the setting stays in force; after
// three suspect windows in a row, all to the same side, whose sum is beyond 3 s.d. of such sums, it
// is believed: what was measured before is carried over by the mean residual and counts less, and
// exploring begins again. A burst of other load looks the same while it lasts. How long bursts last
// here is learned from those that passed, believed or not; only what outlasts them is believed from
// then on. A trial that was broken off is no measure of its setting: it was for being slow, which
// may have been bad luck.
//
// A setting's first window is compared with nothing. But the process told what to expect of it:
//
//     e = log t - what was promised,   s'^2 = its variance + spread^2,   z = e / s'
//
// and their cumulative sum to the side that the first of them is off to (CUSUM: E. S. Page,
// Continuous inspection schemes, Biometrika 41, 1954),
//
//     C = max(0, C +- z - 1),   a surprise when C >= 3 and more than one trial is in it,
//
// tells that the trials have been off to that side ever since; at 0 it begins anew, to either. A
// surprise sends the job back to the best setting, or to one about as fast that is known well: not
// to the better known of slower ones, which may be slow for another reason than what has changed,
// and not feel it. Where that is suspect too, to their side, the n trials count as windows before
// it, and (sum of z)^2 / n with the square of the sum's; but the size of a change is told by known
// settings alone.
#include "tuner_internal.h"
#include <math.h>
#include <stdlib.h>

// The first windows of a setting may have been unlucky: the job's own spread is believed after
// these.
enum { SUSPECTS = 3, SUSPECT_WINDOWS_MAX = 20, KNOWN_WINDOWS = 3 };
static const double SUSPECT_SD = 2, BELIEF_SD = 3;
// Trials that it takes to surprise; windows of known settings that are needed beside them.
enum { SURPRISES = 2, SUSPECTS_BESIDE = 2 };
// What a trial may be off without adding to the sum, and what sum of them surprises: a change that
// trials show by 2 s.d. is looked for, and found after three (docs/rationale.md).
static const double CUSUM_ALLOWANCE = 1, CUSUM_SURPRISES = 3;
// How much longer an iteration may take, in the logarithm, under a setting about as fast.
static const double ABOUT_AS_FAST = 0.1;
// A change is believed when it has lasted this multiple of the longest burst so far, ...
static const double OUTLASTS = 1.5;
// ... and, as no burst may have been seen yet, at least a hundredth of the job so far, but no more
// than half a second. No burst holds it up for longer than a tenth of the job so far.
static const double SUSPECT_SHARE = 0.01, SUSPECT_S = 0.5, BURST_SHARE = 0.1;
// Changes of under 15 % are not worth starting over for.
static const double SUSPECT_LEAST = 0.14;
// Log of the spread of windows before any was compared, and how many windows that belief is worth.
static const double SPREAD_PRIOR = 0.1, SPREAD_PRIOR_WINDOWS = 4;
// Windows a setting, and residuals the job, remembers.
static const double PACE_WINDOWS = 8, SPREAD_WINDOWS = 50;
// Of a change, what another setting may have felt more or less than the one it was seen under.
static const double UNLIKE_SHARE = 0.5;
// What the mean over all windows of a setting keeps of their weight.
static const double FORGET_SHARE = 0.1;

// Variance of a window about the mean of its setting's windows.
static double
spread_of(const tti_drift *d)
{
    const double prior = SPREAD_PRIOR_WINDOWS * SPREAD_PRIOR * SPREAD_PRIOR;
    return (d->squares + prior) / (d->n + SPREAD_PRIOR_WINDOWS);
}

static void
remember(tti_pace *p, double log_t)
{
    p->n = fmin(p->n + 1, PACE_WINDOWS);
    p->mean += (log_t - p->mean) / p->n;
}

static void
forget_trials(tti_drift *d)
{
    d->off_trials = 0;
    d->off_sum = 0;
}

static double
cusum(const tti_drift *d)
{
    const int side = d->off_trials < 0 ? -1 : 1;
    return side * (d->off_sum - d->off_trials * CUSUM_ALLOWANCE);
}

static int
surprised(const tti_drift *d)
{
    return abs(d->off_trials) >= SURPRISES && cusum(d) >= CUSUM_SURPRISES;
}

// A suspicion is over: what was suspected lasted until `end_s`.
static void
passed(tti_drift *d, double end_s)
{
    if (d->suspects > 0)
        d->burst_s = fmax(d->burst_s, end_s - d->since_s);
    d->suspects = 0;
    forget_trials(d);
}

// Trials just before the suspect windows that surprised to their side.
static uint32_t
trials_before(const tti_drift *d)
{
    return surprised(d) && d->off_trials * d->sum > 0 ? (uint32_t)abs(d->off_trials) : 0;
}

// What was taken for a change and went away again was a burst too.
static void
learn_burst(tti_drift *d, double shift)
{
    if (d->shift * shift < 0)
        d->burst_s = fmax(d->burst_s, d->since_s - d->changed_s);
    d->shift = shift;
    d->changed_s = d->since_s;
}

static int
outlasts_bursts(const tt_tuner *t)
{
    const tti_drift *d = &t->drift;
    const double so_far = t->now_s - t->begin_s;
    const double least = fmax(OUTLASTS * d->burst_s, fmin(SUSPECT_S, SUSPECT_SHARE * so_far));
    return d->suspects >= SUSPECTS_BESIDE && d->suspects + trials_before(d) >= SUSPECTS &&
           t->now_s - d->since_s >= fmin(least, BURST_SHARE * so_far);
}

// Their sum, of so many residuals about a mean of n windows, with the trials just before them is
// more than windows' spread explains.
static int
beyond_chance(const tti_drift *d, double var, double n)
{
    const double k = d->suspects;
    const double trials = trials_before(d);
    const double theirs = trials > 0 ? d->off_sum * d->off_sum / trials : 0;
    return d->sum * d->sum / (var * (k + k * k / n)) + theirs > BELIEF_SD * BELIEF_SD;
}

static void
start_over(tt_tuner *t, double shift)
{
    char lasted[32];
    tti_tuner_event(t,
                    TT_TUNER_CHANGED ": setting %u takes %.2fx what it did (%u windows, %s); "
                                     "what was measured before counts less%s",
                    t->current, exp(shift), t->drift.suspects,
                    tti_tuner_seconds(t->now_s - t->drift.since_s, lasted, sizeof lasted),
                    t->phase == TT_TUNER_OFF ? "" : ", exploring begins again");
    tti_tuner_close_account(t, t->drift.since_iterations, shift);
    const double unlike = UNLIKE_SHARE * shift;
    tt_gp_shift(t->gp, shift, unlike * unlike);
    tti_tuner_prior_shift(t, shift, unlike * unlike);
    for (uint32_t i = 0; i < t->tried_count; i++) {
        tti_tried *s = &t->tried[i];
        s->log_t += shift;
        s->log_t_all += shift;
        s->var_all += unlike * unlike;
        s->weight_all *= FORGET_SHARE; // the next windows of it decide
        s->row_weight = 0;             // the next window takes the row's place
        s->row_windows = TT_MIN(s->row_windows, 1u);
        s->pace.mean += shift;
        s->pace.n = fmin(s->pace.n, 1);
    }
    tti_tuner_credit_open(t);
    t->ref_t *= exp(shift);
    t->fit_rows = 0; // and new hyperparameters
    t->rest_s = 0;
    t->next_decision_s = t->now_s;
    t->phase = t->phase == TT_TUNER_OFF ? TT_TUNER_OFF : TT_TUNER_EXPLORE;
    t->drifts++;
}

// The mean of the suspect residuals. The first window may have begun before the change, and shows
// less of it then: where it shows no less than the others it is as good as they are.
static double
shift_of(const tti_drift *d)
{
    const double others = (d->sum - d->first) / (d->suspects - 1);
    return fabs(d->first) < fabs(others) ? others : d->sum / d->suspects;
}

static void
suspect(tt_tuner *t, double residual)
{
    tti_drift *d = &t->drift;
    if (d->sum * residual < 0)
        passed(d, t->window_begin_s);
    if (d->suspects == 0) {
        d->sum = 0;
        d->first = residual;
        d->since_s = t->window_begin_s;
        d->since_iterations = t->window_iterations;
    }
    d->suspects++;
    d->sum += residual;
    if (d->suspects == 1 && trials_before(d) > 0)
        d->since_s = d->off_since_s;
}

int
tti_tuner_drift_suspected(const tt_tuner *t)
{
    return t->drift.suspects > 0 && t->drift.suspects < SUSPECT_WINDOWS_MAX;
}

// A trial's window against what was promised of it.
static void
note_trial(tt_tuner *t, const tti_measured *m)
{
    tti_drift *d = &t->drift;
    const double error = m->log_t - log(t->ref_t) - t->expected_t;
    const double var = t->expected_sd * t->expected_sd + fmax(spread_of(d), m->var);
    const double z = error / sqrt(var);
    if (!isfinite(z) || (m->broken_off && z < 0)) {
        forget_trials(d);
        return;
    }
    int side = d->off_trials < 0 ? -1 : 1;
    if (d->off_trials == 0 || cusum(d) + side * z <= CUSUM_ALLOWANCE) { // it begins anew
        forget_trials(d);
        if (fabs(z) <= CUSUM_ALLOWANCE)
            return;
        side = z < 0 ? -1 : 1;
        d->off_since_s = t->window_begin_s;
    }
    d->off_trials += side;
    d->off_sum += z;
}

uint32_t
tti_tuner_drift_recheck(const tt_tuner *t, double stage)
{
    if (!surprised(&t->drift) || !tti_tuner_follows(t, TT_TUNER_RULE_DRIFT))
        return TTI_TUNER_NOBODY;
    const double by_s = t->drift.off_since_s; // the trials cannot speak for themselves
    const uint32_t best = tti_tuner_best_known(t, stage, 1, by_s);
    const uint32_t well = tti_tuner_best_known(t, stage, KNOWN_WINDOWS, by_s);
    const int as_fast = well != TTI_TUNER_NOBODY &&
                        t->tried[well].pace.mean < t->tried[best].pace.mean + ABOUT_AS_FAST;
    return as_fast ? well : best;
}

int
tti_tuner_drift_watch(tt_tuner *t, const tti_measured *m)
{
    tti_drift *d = &t->drift;
    tti_pace *p = &t->tried[t->current].pace;
    const double residual = m->log_t - p->mean;
    if (t->trial && t->current != 0)
        note_trial(t, m);
    if (m->broken_off)
        return 0;
    if (p->n < 1 || t->trial || !tti_tuner_follows(t, TT_TUNER_RULE_DRIFT)) {
        remember(p, m->log_t);
        return 0;
    }
    double spread = spread_of(d);
    if (p->n < KNOWN_WINDOWS)
        spread = fmax(spread, SPREAD_PRIOR * SPREAD_PRIOR);
    const double sd = sqrt(fmax(spread, m->var) * (1 + 1 / p->n));
    if (fabs(residual) > fmax(SUSPECT_SD * sd, SUSPECT_LEAST)) {
        suspect(t, residual);
        if (!outlasts_bursts(t) || !beyond_chance(d, fmax(spread, m->var), p->n))
            return 0;
        const double shift = shift_of(d);
        learn_burst(d, shift);
        start_over(t, shift);
        d->suspects = 0;
        forget_trials(d);
        return 1;
    }
    passed(d, t->window_begin_s);
    // Of a mean of n windows: its own error is no spread of windows.
    d->squares += residual * residual / (1 + 1 / p->n);
    d->n += 1;
    if (d->n > SPREAD_WINDOWS) {
        d->squares *= SPREAD_WINDOWS / d->n;
        d->n = SPREAD_WINDOWS;
    }
    remember(p, m->log_t);
    return 0;
}
