// Goal: `method: paper` answers with the paper's fit of the last window and nothing else, and falls
// back where that fit is of no use.
// Method: windows of known losses through the public interface, compared with tt_est_paper_fit on
// the same losses; (kappa = 10 is the one the header of est_paper.c names).
#include "estimator_traces.h"

#include <setjmp.h>

#include <cmocka.h>

static const double features[1] = {0.5};

static tt_estimator *
open_with(tt_est_method method, double target)
{
    const tt_est_options options = {
        .target_loss = target, .budget_iterations = 900, .method = method};
    tt_estimator *est = NULL;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    assert_int_equal(tt_estimator_method(est), method);
    return est;
}

static tt_estimator *
open_paper(double target)
{
    assert_string_equal(tt_est_method_name(TT_EST_PAPER), "paper");
    return open_with(TT_EST_PAPER, target);
}

// A window of `count` losses under a setting; they fall as 1/sqrt and vary by 4 %.
static void
window(tt_estimator *est, uint32_t setting, uint32_t count, double *losses, tt_rng *rng)
{
    tt_est_window ignored;
    tt_estimator_begin(est, setting, 0, 7, features, 1);
    for (uint32_t i = 0; i < count; i++) {
        const double k = (double)tt_estimator_iterations(est);
        losses[i] = 2.385 / sqrt(1 + k / 40) * (1 + 0.04 * tt_rng_normal(rng));
        const tt_est_sample sample = {.sequence = (uint64_t)k,
                                      .worker = i % 7,
                                      .examples = 64,
                                      .loss = losses[i],
                                      .time_s = 0.003 * k,
                                      .cycle_s = 0.021};
        tt_estimator_add(est, &sample);
    }
    tt_estimator_end(est, 1, &ignored);
}

static void
answer_is_the_fit_of_the_last_window(void **state)
{
    TT_UNUSED(state);
    static double first[60], losses[60];
    const double target = 0.217;
    tt_rng rng;
    tt_rng_init(&rng, 3, TT_RNG_TEST, 0);
    tt_estimator *est = open_paper(target);
    window(est, 0, 60, first, &rng);
    window(est, 1, 21, losses, &rng); // 3 W
    tt_est_paper fit;
    tt_est_paper_fit(losses, 21, first[59], target, 10, 0, 1234, &fit);
    assert_int_equal(fit.flags, 0);
    tt_est_remaining left;
    tt_estimator_remaining(est, &left);
    assert_true(fabs(left.iterations_median / fit.iterations - 1) < 1e-9);
    // no interval: the paper gives none
    assert_true(fabs(left.iterations_p90 / left.iterations_p10 - 1) < 1e-6);
    assert_int_equal(left.flags & TT_EST_FALLBACK, 0);
    assert_true(fabs(tt_estimator_last_loss(est) - losses[20]) < 1e-15);
    // what passes until the next window ends is one iteration less each
    tt_estimator_begin(est, 1, 0, 7, features, 1);
    for (uint64_t i = 0; i < 5; i++) {
        const tt_est_sample sample = {
            .sequence = 81 + i, .examples = 64, .loss = 0.9, .time_s = 0.3, .cycle_s = 0.021};
        tt_estimator_add(est, &sample);
    }
    tt_estimator_remaining(est, &left);
    assert_true(fabs(left.iterations_median - (fit.iterations - 5)) < 1e-6 * fit.iterations);
    tt_estimator_close(est);
}

// What the maths page says of it: the fit answers with the order of the window.
static void
answer_grows_with_the_window(void **state)
{
    TT_UNUSED(state);
    static double losses[400];
    double median[2];
    for (int i = 0; i < 2; i++) {
        tt_rng rng;
        tt_rng_init(&rng, 5, TT_RNG_TEST, 0);
        tt_estimator *est = open_paper(0.3);
        window(est, 0, 200, losses, &rng);
        window(est, 1, i == 0 ? 20 : 200, losses, &rng);
        tt_est_remaining left;
        tt_estimator_remaining(est, &left);
        median[i] = left.iterations_median;
        tt_estimator_close(est);
    }
    assert_true(median[1] > 4 * median[0]);
}

static void
useless_window_falls_back(void **state)
{
    TT_UNUSED(state);
    static double losses[100];
    tt_rng rng;
    tt_rng_init(&rng, 7, TT_RNG_TEST, 0);
    tt_estimator *est = open_paper(0.217);
    tt_est_remaining left, pooled;
    // before the first window
    tt_estimator_remaining(est, &left);
    assert_true((left.flags & TT_EST_FALLBACK) != 0 && isfinite(left.log_iterations));
    // losses at or below zero have no logarithm
    tt_est_window ignored;
    window(est, 0, 100, losses, &rng);
    tt_estimator_begin(est, 1, 0, 7, features, 1);
    for (uint64_t i = 0; i < 21; i++) {
        const tt_est_sample sample = {
            .sequence = 100 + i, .examples = 64, .loss = -0.1, .time_s = 0.3, .cycle_s = 0.021};
        tt_estimator_add(est, &sample);
    }
    tt_estimator_end(est, 1, &ignored);
    tt_estimator_remaining(est, &left);
    assert_true((left.flags & TT_EST_FALLBACK) != 0 && isfinite(left.iterations_median));
    assert_true(left.iterations_median >= 1 && left.iterations_median <= 1e9);
    tt_estimator_close(est);
    // without a target the budget rules, as with every method
    est = open_paper(NAN);
    window(est, 0, 100, losses, &rng);
    tt_estimator_remaining(est, &pooled);
    assert_true(fabs(pooled.iterations_median - 800) < 1e-9);
    assert_true((pooled.flags & TT_EST_NO_TARGET) != 0);
    tt_estimator_close(est);
}

static void
long_window_counts_from_its_last_losses(void **state)
{
    TT_UNUSED(state);
    static double losses[6000];
    tt_rng rng;
    tt_rng_init(&rng, 9, TT_RNG_TEST, 0);
    tt_estimator *est = open_paper(0.1);
    window(est, 0, 6000, losses, &rng);
    tt_est_paper fit;
    tt_est_paper_fit(losses + 6000 - 4095, 4095, losses[6000 - 4096], 0.1, 10, 0, 1234, &fit);
    tt_est_remaining left;
    tt_estimator_remaining(est, &left);
    assert_int_equal(fit.flags, 0);
    assert_true(fabs(left.iterations_median / fit.iterations - 1) < 1e-9);
    tt_estimator_close(est);
}

static void
same_left(const tt_estimator *a, const tt_estimator *b, unsigned more_flags)
{
    tt_est_remaining x, y;
    tt_estimator_remaining(a, &x);
    tt_estimator_remaining(b, &y);
    assert_true(x.iterations_median == y.iterations_median);
    assert_int_equal(x.flags | more_flags, y.flags);
}

// The fit goes through bytes; an estimator of the other method takes what both share and not that.
static void
saved_and_restored(void **state)
{
    TT_UNUSED(state);
    static double losses[600];
    tt_rng rng, same;
    tt_archive saved = {0}, in;
    tt_rng_init(&rng, 11, TT_RNG_TEST, 0);
    tt_estimator *est = open_paper(0.1), *again = open_paper(0.1);
    tt_estimator *pooled = open_with(TT_EST_POOLED, 0.1);
    window(est, 0, 600, losses, &rng);
    tt_estimator_save(est, &saved);
    tt_archive_read(&in, saved.bytes, saved.count);
    assert_int_equal(tt_estimator_load(again, &in), TT_OK);
    same_left(est, again, 0);
    same = rng;
    window(est, 1, 300, losses, &rng);
    window(again, 1, 300, losses, &same);
    same_left(est, again, 0);
    tt_archive_read(&in, saved.bytes, saved.count);
    assert_int_equal(tt_estimator_load(pooled, &in), TT_OK);
    tt_archive_rewind(&saved);
    tt_estimator_save(pooled, &saved);
    tt_estimator_close(again);
    again = open_paper(0.1);
    tt_archive_read(&in, saved.bytes, saved.count);
    assert_int_equal(tt_estimator_load(again, &in), TT_OK);
    same_left(pooled, again, TT_EST_FALLBACK); // it has no window of its own yet
    tt_archive_fini(&saved);
    tt_estimator_close(est);
    tt_estimator_close(again);
    tt_estimator_close(pooled);
}

static void
unknown_method_is_refused(void **state)
{
    TT_UNUSED(state);
    const tt_est_options options = {
        .target_loss = 0.3, .budget_iterations = INFINITY, .method = (tt_est_method)9};
    tt_estimator *est;
    tt_error err = {0};
    assert_int_equal(tt_estimator_open(&options, &est, &err), TT_INVALID);
    assert_null(est);
    assert_string_equal(tt_est_method_name(options.method), "unknown");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_is_the_fit_of_the_last_window),
        cmocka_unit_test(answer_grows_with_the_window),
        cmocka_unit_test(useless_window_falls_back),
        cmocka_unit_test(long_window_counts_from_its_last_losses),
        cmocka_unit_test(saved_and_restored),
        cmocka_unit_test(unknown_method_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
