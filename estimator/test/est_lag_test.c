// Goal: how far gradients may lag, as the estimator says it, is where the recursion of delayed SGD
// turns from falling to swinging ever wider, merged pushes included; the curvature it goes by is
// the median of the last measurements; a window knows its staleness; a loss at the limit swings
// with the period that is said. Method: the recursion itself, on both sides of the limit; samples
// by hand.
#include "tt/estimator.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static tt_estimator *
open_one(void)
{
    const tt_est_options options = {.target_loss = 0.1, .budget_iterations = INFINITY};
    tt_estimator *est = NULL;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    tt_estimator_begin(est, 1, 1, 2, NULL, 0);
    return est;
}

static void
add(tt_estimator *est, uint64_t sequence, uint64_t generation, double curvature, double staleness)
{
    const tt_est_sample sample = {.generation = generation,
                                  .sequence = sequence,
                                  .worker = sequence % 2,
                                  .examples = 10,
                                  .loss = 1,
                                  .time_s = 0.1 * (double)sequence,
                                  .cycle_s = 0.2,
                                  .curvature = curvature,
                                  .staleness = staleness};
    tt_estimator_add(est, &sample);
}

// Largest |x| of the last quarter over that of the second, of x(k + 1) = x(k) - m rate x(k - late):
// a push of m iterations whose parameters were read `late` pushes before it.
static double
growth(double rate, uint32_t late, uint32_t m)
{
    enum { STEPS = 40000, LATE_MAX = 64 };
    double x[LATE_MAX + 1], early = 0, last = 0;
    assert_true(late <= LATE_MAX);
    for (uint32_t i = 0; i <= LATE_MAX; i++)
        x[i] = 1;
    for (uint32_t k = 0; k < STEPS; k++) {
        double *oldest = &x[k % (late + 1)]; // x(k - late), where x(k + 1) will be
        const double next = x[(k + late) % (late + 1)] - m * rate * *oldest;
        *oldest = next;
        if (k >= STEPS / 4 && k < STEPS / 2)
            early = fmax(early, fabs(next));
        if (k >= STEPS / 4 * 3)
            last = fmax(last, fabs(next));
    }
    return last / early;
}

static void
is_where_delayed_sgd_turns(void **state)
{
    TT_UNUSED(state);
    static const uint32_t lates[] = {3, 8, 20, 60}, merges[] = {1, 2, 8};
    const double curvature = 0.7;
    tt_estimator *est = open_one();
    assert_true(isinf(tt_estimator_lag_borne(est, 1))); // nothing was measured
    add(est, 0, 1, curvature, NAN);
    for (size_t l = 0; l < TT_COUNT_OF(lates); l++)
        for (size_t i = 0; i < TT_COUNT_OF(merges); i++) {
            const uint32_t late = lates[l], m = merges[i];
            // Its own iterations came one after the other, those of others in whole pushes.
            const double lag = (double)late * m + (m - 1) / 2.0;
            double low = 0, high = 10; // the step from which on this lag is not borne
            for (int turn = 0; turn < 60; turn++) {
                const double middle = (low + high) / 2;
                *(tt_estimator_lag_borne(est, middle) > lag ? &low : &high) = middle;
            }
            assert_true(growth(0.97 * low * curvature, late, m) < 1);
            assert_true(growth(1.03 * low * curvature, late, m) > 1);
        }
    assert_true(tt_estimator_lag_borne(est, 1e9) == 0);
    assert_true(isinf(tt_estimator_lag_borne(est, 0)));
    tt_estimator_close(est);
}

// The curvature that a lag borne goes by; NAN: none.
static double
curvature_of(const tt_estimator *est)
{
    const double pi = 3.14159265358979323846, step = 1e-4,
                 borne = tt_estimator_lag_borne(est, step);
    return isinf(borne) ? NAN : pi / (2 * borne + 1) / step;
}

static int
is_near(double x, double y)
{
    return fabs(x - y) < 1e-9 * y;
}

static void
goes_by_the_median_of_the_last(void **state)
{
    TT_UNUSED(state);
    tt_estimator *est = open_one();
    assert_true(isnan(curvature_of(est)));
    add(est, 0, 1, 0, 1);
    add(est, 1, 1, NAN, 1);
    add(est, 2, 1, INFINITY, 1);
    assert_true(isnan(curvature_of(est)));
    add(est, 3, 1, 5, 1);
    assert_true(is_near(curvature_of(est), 5));
    for (uint32_t i = 0; i < 9; i++) // 1 to 9, in disorder
        add(est, 4 + i, 1, 1 + (4 * i) % 9, 1);
    assert_true(is_near(curvature_of(est), 5));
    for (uint32_t i = 0; i < 5; i++)
        add(est, 13 + i, 1, 100, 1);
    assert_true(is_near(curvature_of(est), 100));
    tt_archive saved = {0}, in;
    tt_estimator_save(est, &saved);
    tt_estimator *again = open_one();
    tt_archive_read(&in, saved.bytes, saved.count);
    assert_int_equal(tt_estimator_load(again, &in), TT_OK);
    assert_true(is_near(curvature_of(again), 100));
    tt_archive_fini(&saved);
    tt_estimator_close(again);
    tt_estimator_close(est);
}

// 0.1 at the end, grown as the root of the iterations: by 1.41 at twice of them.
static void
foresees_curvature_that_grows(void **state)
{
    TT_UNUSED(state);
    enum { COUNT = 12800, EVERY = 32 };
    tt_estimator *est = open_one();
    for (uint64_t i = 0; i < COUNT; i++)
        add(est, i, 1, i % EVERY == EVERY - 1 ? 0.1 * sqrt((double)(i + 1) / COUNT) : 0, 1);
    const double ahead = curvature_of(est);
    assert_true(ahead > 0.139 && ahead < 0.145);
    tt_estimator_close(est);
}

static void
a_window_knows_its_staleness(void **state)
{
    TT_UNUSED(state);
    tt_estimator *est = open_one();
    tt_est_window window;
    add(est, 0, 1, 0, NAN);
    tt_estimator_window(est, &window);
    assert_true(isnan(window.staleness));
    add(est, 1, 1, 0, 3);
    add(est, 2, 1, 0, 6);
    add(est, 3, 0, 0, 100); // read under the generation before
    tt_estimator_end(est, 1, &window);
    assert_true(window.staleness == 4.5);
    tt_estimator_begin(est, 1, 1, 2, NULL, 0);
    add(est, 4, 1, 0, 2);
    tt_estimator_end(est, 1, &window);
    assert_true(window.staleness == 2);
    tt_estimator_close(est);
}

// What the time left reckons with (estimator.c): at the limit of a lag x^2, and with it the loss,
// comes to nothing every 2 lag + 1 iterations.
static void
a_loss_swings_with_the_lag(void **state)
{
    TT_UNUSED(state);
    enum { STEPS = 20000, LAG_MAX = 64 };
    static const uint32_t lags[] = {1, 4, 20, 60};
    for (size_t l = 0; l < TT_COUNT_OF(lags); l++) {
        const uint32_t lag = lags[l];
        const double rate = 2 * sin(3.14159265358979323846 / (4.0 * lag + 2));
        double x[LAG_MAX + 1], before = 1;
        uint32_t crossings = 0;
        for (uint32_t i = 0; i <= LAG_MAX; i++)
            x[i] = 1;
        for (uint32_t k = 0; k < STEPS; k++) {
            double *oldest = &x[k % (lag + 1)];
            *oldest = before - rate * *oldest;
            crossings += (*oldest < 0) != (before < 0);
            before = *oldest;
        }
        assert_true(fabs((double)STEPS / crossings / (2 * lag + 1) - 1) < 0.01);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_where_delayed_sgd_turns),
        cmocka_unit_test(goes_by_the_median_of_the_last),
        cmocka_unit_test(foresees_curvature_that_grows),
        cmocka_unit_test(a_window_knows_its_staleness),
        cmocka_unit_test(a_loss_swings_with_the_lag),
    };
    return cmocka_run_group_tests_name("lag", tests, NULL, NULL);
}
