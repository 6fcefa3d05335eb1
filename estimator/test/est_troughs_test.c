// Goal: the lowest looks follow the slow course of the loss however far it swings above it, are
// merged without losing the lowest, and foretell a job's end where the mean of a swinging loss does
// not. Method: made-up looks at 1 / k and a mode that swings above it with a period of its own and
// an amplitude that wanders; a whole estimator on such a loss, with and without looks, beside when
// the target is found held.
#include "est_troughs.h"
#include "estimator_traces.h"

#include <math.h>
#include <setjmp.h>

#include <cmocka.h>

enum { PERIOD = 197, EPOCH = 163, EVERY = 25, ROW = 1, SEEDS = 40 };

static const trace course = {.curve = TRACE_INVERSE, .start = 0.7, .floor = 0.3, .constant = 500};

// 1/2 curvature x^2 of a direction that swings: the square's mean is `size`, that of its logarithm
// wanders.
typedef struct swinging {
    tt_rng rng;
    double size, log_factor, begin;
} swinging;

static swinging
start_swinging(double size, uint64_t seed)
{
    swinging s = {.size = size};
    tt_rng_init(&s.rng, seed, TT_RNG_TEST, 3);
    s.begin = tt_rng_uniform(&s.rng) * PERIOD;
    return s;
}

static double
swing_at(swinging *s, int k)
{
    const double ANGLE = 2 * 3.14159265358979323846 / PERIOD, kept = 0.995;
    s->log_factor = kept * s->log_factor + 0.7 * sqrt(1 - kept * kept) * tt_rng_normal(&s->rng);
    const double x = cos(ANGLE * (k + s->begin));
    return s->size * exp(s->log_factor) * 2 * x * x;
}

static void
troughs_follow_the_course(void **state)
{
    TT_UNUSED(state);
    enum { LOOKS = 400 };
    for (double size = 1e-4; size < 1; size *= 10) {
        tti_troughs troughs = {.count = 0};
        tti_curve_data data;
        swinging s = start_swinging(size, 5);
        double swings = 0, off = 0, weight = 0;
        for (int k = 1, looks = 0; looks < LOOKS; k++) {
            const double swing = swing_at(&s, k);
            if (k % EPOCH != 0)
                continue;
            looks++;
            tti_troughs_add(&troughs, k, trace_mean_loss(&course, k) + swing);
            swings += looks > LOOKS / 2 ? swing / (LOOKS / 2) : 0;
        }
        tti_troughs_data(&troughs, 0.31, &data);
        for (uint32_t i = data.count / 2; i < data.count; i++) {
            const double above = data.y[i] - trace_mean_loss(&course, data.x[i]);
            assert_true(above >= 0);
            off += above / data.variance[i];
            weight += 1 / data.variance[i];
        }
        print_message("swings of %.5f: troughs %.6f above the course, swings said %.5f\n", swings,
                      off / weight, tti_troughs_above(&troughs));
        const double fall = trace_mean_loss(&course, data.x[data.count / 2]) -
                            trace_mean_loss(&course, data.x[data.count - 1]);
        assert_true(off / weight < 0.02 * fmax(swings, fall));
        assert_true(fabs(log(tti_troughs_above(&troughs) / swings)) < log(2.5));
    }
}

static void
merging_keeps_the_lowest(void **state)
{
    TT_UNUSED(state);
    tti_troughs troughs = {.count = 0};
    double lowest = INFINITY, sum = 0, kept = INFINITY, kept_sum = 0;
    uint32_t looks = 0;
    tt_rng rng;
    tt_rng_init(&rng, 1, TT_RNG_TEST, 4);
    for (int k = 0; k < 1000; k++) {
        const double loss = tt_rng_uniform(&rng);
        tti_troughs_add(&troughs, k, k % 10 == 9 ? NAN : loss);
        if (k % 10 == 9)
            continue;
        lowest = fmin(lowest, loss);
        sum += loss;
        assert_true(troughs.count < TTI_TROUGHS);
    }
    for (uint32_t i = 0; i < troughs.count; i++) {
        assert_true(i == 0 || troughs.list[i].clock > troughs.list[i - 1].clock);
        kept = fmin(kept, troughs.list[i].loss);
        kept_sum += troughs.list[i].sum;
        looks += troughs.list[i].looks;
    }
    assert_true(troughs.doublings > 0);
    assert_int_equal(looks + troughs.pending.looks, 900);
    assert_true(fmin(kept, troughs.pending.looks > 0 ? troughs.pending.loss : INFINITY) == lowest);
    assert_true(fabs(kept_sum + troughs.pending.sum - sum) < 1e-9);
}

// A loss that was looked at many times without training, or on a clock that was set back, that
// rises to the end, or is one and the same.
static void
odd_looks_are_points(void **state)
{
    TT_UNUSED(state);
    static const struct {
        int clock_step, clock_wraps;
        double rise;
    } looks[] = {{0, 100, 0}, {1, 60, 0}, {1, 100, 0.01}, {1, 100, 0}};
    for (size_t kind = 0; kind < TT_COUNT_OF(looks); kind++) {
        tti_troughs troughs = {.count = 0};
        tti_curve_data data;
        assert_true(tti_troughs_above(&troughs) == 0);
        for (int k = 0; k < 100; k++)
            tti_troughs_add(&troughs, k % looks[kind].clock_wraps * looks[kind].clock_step,
                            2 + looks[kind].rise * k);
        tti_troughs_data(&troughs, 0.5, &data);
        assert_int_equal(data.count, 25);
        for (uint32_t i = 0; i < data.count; i++) {
            assert_true(i == 0 || data.x[i] >= data.x[i - 1]);
            assert_true(isfinite(data.y[i]) && data.variance[i] > 0 && isfinite(data.variance[i]));
        }
        assert_true(isfinite(tti_troughs_above(&troughs)));
    }
}

// Iterations left when two fifths are gone, as told, over those until the target was held.
static double
told(int with_looks, double size, uint64_t seed)
{
    const double target = 0.306;
    const tt_est_options options = {.target_loss = target,
                                    .budget_iterations = INFINITY,
                                    .look_every = EVERY,
                                    .looks_held = ROW};
    swinging s = start_swinging(size, seed);
    int end = 0;
    for (int under = 0; under < ROW;) {
        end++;
        const double loss = trace_mean_loss(&course, end) + swing_at(&s, end);
        if (end % EVERY == 0)
            under = loss <= target ? under + 1 : 0;
    }
    tt_estimator *est;
    tt_est_remaining left;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    tt_estimator_begin(est, 0, 1, 4, NULL, 0);
    s = start_swinging(size, seed);
    const int asked = 2 * end / 5;
    for (int k = 1; k <= asked; k++) {
        const double loss = trace_mean_loss(&course, k) + swing_at(&s, k);
        const tt_est_sample sample = {.generation = 1,
                                      .sequence = (uint64_t)k,
                                      .worker = (uint32_t)k % 4,
                                      .examples = 100,
                                      .loss = loss,
                                      .time_s = 0.01 * k,
                                      .cycle_s = 0.04,
                                      .staleness = NAN};
        tt_estimator_add(est, &sample);
        if (with_looks && k % EPOCH == 0)
            tt_estimator_look(est, loss);
    }
    tt_estimator_remaining(est, &left);
    tt_estimator_close(est);
    return left.iterations_median / (end - asked);
}

static void
the_end_of_a_swinging_loss_is_foretold(void **state)
{
    TT_UNUSED(state);
    int with = 0, without = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const double a = told(1, 0.01, seed), b = told(0, 0.01, seed);
        with += a > 0.5 && a < 2;
        without += b > 0.5 && b < 2;
    }
    print_message("within 2x: %d of %d with looks, %d without\n", with, SEEDS, without);
    assert_true(with >= 0.85 * SEEDS);
    assert_true(without <= 0.6 * SEEDS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(troughs_follow_the_course),
        cmocka_unit_test(merging_keeps_the_lowest),
        cmocka_unit_test(odd_looks_are_points),
        cmocka_unit_test(the_end_of_a_swinging_loss_is_foretold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
