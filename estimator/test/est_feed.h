// An estimator and what feeds it: losses that a test makes up, at the pace of made-up workers.
#ifndef TT_EST_FEED_H
#define TT_EST_FEED_H

#include "tt/core.h"
#include "tt/estimator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const double features[2] = {0.25, 0.5};

static inline tt_estimator *
open_with(double target)
{
    const tt_est_options options = {.target_loss = target, .budget_iterations = INFINITY};
    tt_estimator *est = NULL;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    return est;
}

typedef struct feed {
    tt_estimator *est;
    tt_rng rng;
    uint64_t sequence, generation;
    double now_s;
    uint32_t workers;
} feed;

static inline feed
feed_of(tt_estimator *est, uint32_t workers)
{
    feed f = {.est = est, .workers = workers};
    tt_rng_init(&f.rng, 4711, TT_RNG_TEST, 0);
    return f;
}

static inline void
push(feed *f, double loss)
{
    const double cycle = 0.1 + 0.02 * tt_rng_uniform(&f->rng);
    f->now_s += cycle / f->workers;
    const tt_est_sample sample = {.generation = f->generation,
                                  .sequence = f->sequence,
                                  .worker = (uint32_t)(f->sequence % f->workers),
                                  .examples = 64,
                                  .loss = loss,
                                  .time_s = f->now_s,
                                  .cycle_s = cycle};
    f->sequence++;
    tt_estimator_add(f->est, &sample);
}

static inline void
push_noisy(feed *f, uint32_t count, double from, double to, double sd)
{
    for (uint32_t i = 0; i < count; i++)
        push(f, from + (to - from) * i / count + sd * tt_rng_normal(&f->rng));
}

static inline void
begin(feed *f, uint32_t setting)
{
    tt_estimator_begin(f->est, setting, f->generation, f->workers, features, 2);
}

static inline tt_est_window
end(feed *f, int keep)
{
    tt_est_window window;
    tt_estimator_end(f->est, keep, &window);
    return window;
}

static inline tt_est_remaining
remaining(const feed *f)
{
    tt_est_remaining left;
    tt_estimator_remaining(f->est, &left);
    return left;
}

#endif
