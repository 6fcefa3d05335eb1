// Goal: the time left is honest between 30 and 80 % of a run.
// Method: synthetic asynchronous SGD with a known end (exponential with floor, 1/k), 200 seeds of
// random size, noise, floor and target each, under one setting and under many; count how often the
// median is within 2x and the 80 % interval holds.
#include "estimator_traces.h"

// cmocka wants setjmp.h before it
#include <setjmp.h>

#include <cmocka.h>

enum { SEEDS = 200, CHECKPOINTS = 6 };

// p90 / p10 of the time left, at the checkpoints.
static const double WIDTH_MOST[CHECKPOINTS] = {6, 3.5, 2.5, 2.2, 2, 1.9};

typedef struct tally {
    uint32_t asked, within_2x, covered, infinite, early, late;
    double error[SEEDS]; // |log(median / truth)|, infinite ones included
    double width[SEEDS]; // log(p90 / p10)
} tally;

static trace
random_trace(trace_curve curve, uint64_t seed, double *target, double *end)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 1 + (uint64_t)curve);
    trace t = {.curve = curve, .examples = 64, .generation = 1};
    t.start = 0.7 + 1.9 * tt_rng_uniform(&rng);
    t.floor = t.start * 0.35 * tt_rng_uniform(&rng);
    t.noise = 0.04 + 0.16 * tt_rng_uniform(&rng);
    t.workers = 1 + (uint32_t)tt_rng_below(&rng, 32);
    t.cycle_s = 0.05 * exp(2 * tt_rng_uniform(&rng));
    t.jitter = 0.1 + 0.4 * tt_rng_uniform(&rng);
    const double share = 0.05 + 0.25 * tt_rng_uniform(&rng);
    *target = t.floor + share * (t.start - t.floor);
    *end = 3000 * exp(2.3 * tt_rng_uniform(&rng));
    t.constant = 1;
    const double one = trace_clock_of(&t, *target); // in units of the constant, or of its inverse
    t.constant = curve == TRACE_EXPONENTIAL ? one / *end : *end / one;
    trace_begin(&t, seed);
    return t;
}

static void
judge(const tt_estimator *est, const tt_est_window *window, double truth, tally *sum)
{
    tt_est_eta eta;
    tt_estimator_eta(est, log(window->seconds_per_iteration), window->time_log_se, 0, 0, &eta);
    const double error = log(eta.seconds_median / truth);
    const double width = log(eta.seconds_p90 / eta.seconds_p10);
    sum->width[sum->asked] = isfinite(width) ? width : INFINITY;
    sum->error[sum->asked++] = fabs(error);
    if (isinf(eta.seconds_median)) {
        sum->infinite++;
        return;
    }
    sum->within_2x += fabs(error) <= log(2);
    sum->covered += eta.seconds_p10 <= truth && truth <= eta.seconds_p90;
    sum->early += eta.seconds_p90 < truth;
    sum->late += eta.seconds_p10 > truth;
}

// `switching`: the first third tries a new setting every window, as a tuner does.
static void
run_seed(trace_curve curve, uint64_t seed, int switching, tally sums[CHECKPOINTS])
{
    double target, end;
    trace t = random_trace(curve, seed, &target, &end);
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 99);
    const tt_est_options options = {.target_loss = target, .budget_iterations = INFINITY};
    tt_estimator *est;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    tt_est_window window = {0};
    uint32_t setting = 0;
    for (int c = 0; c < CHECKPOINTS;) {
        if (switching && t.clock < 0.28 * end) {
            trace_resize(&t, 1 + (uint32_t)tt_rng_below(&rng, 32));
            setting++;
        }
        const double features[2] = {t.workers / 32.0, 0.5};
        const uint32_t full =
            TT_MAX(tt_est_full_window(t.workers), switching && t.clock < 0.28 * end ? 12u : 100u);
        tt_estimator_begin(est, setting, t.generation, t.workers, features, 2);
        // pushes pulled before the switch are dropped: at most one a worker
        for (uint32_t i = 0; i < full + (switching ? t.workers : 0); i++) {
            const tt_est_sample sample = trace_next(&t);
            tt_estimator_add(est, &sample);
        }
        tt_estimator_end(est, 1, &window);
        if (t.clock >= (0.3 + 0.1 * c) * end)
            judge(est, &window, (end - t.clock) * t.cycle_s / t.workers, &sums[c++]);
    }
    tt_estimator_close(est);
}

static void
calibrate(trace_curve curve, int switching, const char *name)
{
    static tally sums[CHECKPOINTS];
    memset(sums, 0, sizeof sums);
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        run_seed(curve, seed, switching, sums);
    for (int c = 0; c < CHECKPOINTS; c++) {
        const tally *s = &sums[c];
        const double n = s->asked, width = exp(trace_quantile(sums[c].width, s->asked, 0.5));
        print_message("%s at %d %%: within 2x %.3f, interval holds %.3f (too early %.3f, too late "
                      "%.3f), infinite %.3f; error median x%.3f, p90 x%.3f; width median x%.2f\n",
                      name, 30 + 10 * c, s->within_2x / n, s->covered / n, s->early / n,
                      s->late / n, s->infinite / n,
                      exp(trace_quantile(sums[c].error, s->asked, 0.5)),
                      exp(trace_quantile(sums[c].error, s->asked, 0.9)), width);
        assert_true(s->within_2x >= 0.85 * n);
        // Rather too wide, for no real curve is of a family's form, and these are; but not so wide
        // as to tell nothing.
        assert_true(s->covered >= 0.80 * n && s->covered <= 0.985 * n);
        assert_true(width <= WIDTH_MOST[c]);
        assert_true(s->infinite <= 0.02 * n);
    }
}

static void
exponential_with_floor(void **state)
{
    TT_UNUSED(state);
    calibrate(TRACE_EXPONENTIAL, 0, "exponential");
}

static void
inverse_with_floor(void **state)
{
    TT_UNUSED(state);
    calibrate(TRACE_INVERSE, 0, "1/k");
}

static void
bending_with_floor(void **state)
{
    TT_UNUSED(state);
    calibrate(TRACE_BENDING, 0, "1/(1 + k + k^2)");
}

static void
exponential_while_settings_change(void **state)
{
    TT_UNUSED(state);
    calibrate(TRACE_EXPONENTIAL, 1, "exponential, switching");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential_with_floor),
        cmocka_unit_test(inverse_with_floor),
        cmocka_unit_test(bending_with_floor),
        cmocka_unit_test(exponential_while_settings_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
