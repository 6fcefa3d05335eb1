// Synthetic asynchronous training: W workers with jittered cycles push minibatch losses taken at
// the model they pulled. The mean loss follows a known curve, so the iteration at which it meets a
// target is known exactly.
#ifndef TT_ESTIMATOR_TRACES_H
#define TT_ESTIMATOR_TRACES_H

#include "tt/core.h"
#include "tt/estimator.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_WORKERS_MAX = 64 };

typedef enum trace_curve {
    TRACE_EXPONENTIAL,
    TRACE_INVERSE,
    TRACE_BENDING,
    TRACE_CONSTANT
} trace_curve;

typedef struct trace {
    tt_rng rng;
    trace_curve curve;
    double start, floor; // loss at 0 and at infinity
    double constant;     // rate (exponential) or half-way point (inverse), in iterations at rate 1
    double noise;        // s.d. of a push relative to its mean loss, log-normal
    double rate;         // progress per push
    double cycle_s, jitter;
    uint32_t workers, examples;
    uint64_t generation;
    // state
    double clock, now_s;
    uint64_t pushes;
    double due_s[TRACE_WORKERS_MAX], pulled_s[TRACE_WORKERS_MAX], pulled_clock[TRACE_WORKERS_MAX];
    uint64_t pulled_generation[TRACE_WORKERS_MAX];
} trace;

static inline double
trace_mean_loss(const trace *t, double clock)
{
    const double e = t->start - t->floor;
    switch (t->curve) {
    case TRACE_EXPONENTIAL:
        return t->floor + e * exp(-t->constant * clock);
    case TRACE_INVERSE:
        return t->floor + e * t->constant / (clock + t->constant);
    case TRACE_BENDING: { // SLAQ's: from 1/x to 1/x^2
        const double u = clock / t->constant;
        return t->floor + e / (1 + u + u * u);
    }
    case TRACE_CONSTANT:
        break;
    }
    return t->start;
}

// The clock at which the mean loss meets `target`.
static inline double
trace_clock_of(const trace *t, double target)
{
    const double share = (target - t->floor) / (t->start - t->floor);
    if (t->curve == TRACE_BENDING)
        return t->constant * (sqrt(0.25 + 1 / share - 1) - 0.5);
    return t->curve == TRACE_EXPONENTIAL ? -log(share) / t->constant
                                         : t->constant * (1 / share - 1);
}

// A log-normal factor of mean 1 and standard deviation `sd`.
static inline double
trace_factor(tt_rng *rng, double sd)
{
    const double s = sqrt(log1p(sd * sd));
    return exp(s * tt_rng_normal(rng) - 0.5 * s * s);
}

static inline void
trace_pull(trace *t, uint32_t worker)
{
    t->pulled_s[worker] = t->now_s;
    t->pulled_clock[worker] = t->clock;
    t->pulled_generation[worker] = t->generation;
    t->due_s[worker] = t->now_s + t->cycle_s * trace_factor(&t->rng, t->jitter);
}

static inline void
trace_begin(trace *t, uint64_t seed)
{
    tt_rng_init(&t->rng, seed, TT_RNG_TEST, 0);
    if (t->rate <= 0)
        t->rate = 1;
    for (uint32_t w = 0; w < t->workers; w++)
        trace_pull(t, w);
}

// The workers from now on, e.g. after a switch; the new ones pull at once.
static inline void
trace_resize(trace *t, uint32_t workers)
{
    t->generation++;
    for (uint32_t w = t->workers; w < workers; w++)
        trace_pull(t, w);
    t->workers = workers;
}

// The next push.
static inline tt_est_sample
trace_next(trace *t)
{
    uint32_t worker = 0;
    for (uint32_t w = 1; w < t->workers; w++)
        if (t->due_s[w] < t->due_s[worker])
            worker = w;
    t->now_s = t->due_s[worker];
    t->clock += t->rate;
    tt_est_sample sample = {
        .generation = t->pulled_generation[worker],
        .sequence = t->pushes++,
        .worker = worker,
        .examples = t->examples,
        .loss = trace_mean_loss(t, t->pulled_clock[worker]) * trace_factor(&t->rng, t->noise),
        .time_s = t->now_s,
        .cycle_s = t->now_s - t->pulled_s[worker],
    };
    trace_pull(t, worker);
    return sample;
}

static inline int
trace_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Quantile p of values[0..count); sorts them.
static inline double
trace_quantile(double *values, uint32_t count, double p)
{
    qsort(values, count, sizeof *values, trace_ascending);
    return values[TT_MIN((uint32_t)(p * count), count - 1)];
}

#endif
