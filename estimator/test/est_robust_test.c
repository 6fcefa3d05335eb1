// Goal: the order statistics, the Huber line and the distributions are what their headers say.
// Method: against sorting, against GSL, and by repeating a noisy experiment and comparing the
// spread of its answers with the standard error they claim.
#include "est_blocks.h"
#include "est_robust.h"
#include "tt/core.h"
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int
by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
median_and_mad_agree_with_sorting(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 71, TT_RNG_TEST, 0);
    for (size_t n = 1; n <= 60; n++) {
        double x[60], sorted[60], copy[60], scratch[60];
        for (size_t i = 0; i < n; i++) // ties on purpose
            x[i] = floor(9 * tt_rng_normal(&rng)) / 7;
        memcpy(sorted, x, n * sizeof *x);
        memcpy(copy, x, n * sizeof *x);
        qsort(sorted, n, sizeof *x, by_value);
        const double expected = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
        assert_true(tti_median(copy, n) == expected);
        for (size_t i = 0; i < n; i++)
            sorted[i] = fabs(x[i] - 0.37);
        qsort(sorted, n, sizeof *x, by_value);
        assert_true(tti_mad(x, n, 0.37, scratch) == 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]));
    }
}

static void
winsorising_keeps_skewed_means_and_stops_wild_values(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 72, TT_RNG_TEST, 0);
    double sum = 0, hinge = 0, hinge_raw = 0, low, high;
    enum { ROUNDS = 2000, LAST = 100 };
    for (int round = 0; round < ROUNDS; round++) {
        double x[LAST], y[LAST];
        for (int i = 0; i < LAST; i++) {
            x[i] = -log(1 - tt_rng_uniform(&rng));
            // hinge losses of single examples: three quarters are exactly 0
            y[i] = fmax(0, 0.8 * tt_rng_normal(&rng) - 0.55);
            hinge_raw += y[i] / LAST / ROUNDS;
        }
        tti_winsor_bounds(x, LAST, &low, &high);
        sum += tti_winsorise(x, LAST, low, high) / ROUNDS;
        tti_winsor_bounds(y, LAST, &low, &high);
        hinge += tti_winsorise(y, LAST, low, high) / ROUNDS;
    }
    // 4 s.e. of the exponential's mean over 200,000 draws is 0.9 %; Huber's would be 6 % low
    assert_true(fabs(sum - 1) < 0.01);
    // medians are 0 there: a scale by MAD alone would return 0. Measured 0.1 % low.
    print_message("kept share of a sparse mean: %.4f\n", hinge / hinge_raw);
    assert_true(fabs(hinge / hinge_raw - 1) < 0.01);
    double wild[25];
    for (int i = 0; i < 25; i++)
        wild[i] = 2.385 + 0.01 * i;
    wild[11] = 7.3e6;
    tti_winsor_bounds(wild, 25, &low, &high);
    const double mean = tti_winsorise(wild, 25, low, high);
    assert_true(mean > 2.4 && mean < 2.7);
    double constant[4] = {1.7, 1.7, 1.7, 1.7};
    tti_winsor_bounds(constant, 4, &low, &high);
    assert_true(tti_winsorise(constant, 4, low, high) == 1.7);
}

static void
huber_line_is_exact_without_noise_and_survives_outliers(void **state)
{
    TT_UNUSED(state);
    double x[20], y[20], w[20];
    for (int i = 0; i < 20; i++) {
        x[i] = 17.3 + 25 * i;
        y[i] = 2.385 - 3.1e-3 * x[i];
        w[i] = i == 19 ? 7 / 25.0 : 1;
    }
    tti_line line;
    assert_int_equal(tti_huber_line(x, y, w, 20, &line), 1);
    assert_true(fabs(line.slope / -3.1e-3 - 1) < 1e-12);
    y[4] += 40;
    y[13] -= 25;
    assert_int_equal(tti_huber_line(x, y, w, 20, &line), 1);
    // plain least squares is off by more than 100 % here
    assert_true(fabs(line.slope / -3.1e-3 - 1) < 0.25);
    assert_int_equal(tti_huber_line(x, y, w, 2, &line), 0);
    for (int i = 0; i < 20; i++)
        x[i] = 4.2;
    assert_int_equal(tti_huber_line(x, y, w, 20, &line), 0);
}

static void
constant_loss_has_a_small_positive_standard_error(void **state)
{
    TT_UNUSED(state);
    double x[5] = {0, 25, 50, 75, 100}, y[5], w[5];
    for (int i = 0; i < 5; i++) {
        y[i] = 0.693;
        w[i] = 1;
    }
    tti_line line;
    assert_int_equal(tti_huber_line(x, y, w, 5, &line), 1);
    assert_true(line.slope == 0);
    const double expected = (1e-12 + 1e-9 * 0.693) / sqrt(line.sum_xx);
    assert_true(fabs(line.slope_se / expected - 1) < 1e-9);
}

static void
huber_standard_error_is_the_spread_of_slopes(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 73, TT_RNG_TEST, 0);
    enum { ROUNDS = 4000, POINTS = 30 };
    double slopes = 0, slope_squares = 0, se_squares = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double x[POINTS], y[POINTS], w[POINTS];
        for (int i = 0; i < POINTS; i++) {
            w[i] = i % 3 == 0 ? 0.4 : 1; // partial blocks
            x[i] = i;
            // one in twelve comes from a distribution five times wider
            const double noise = tt_rng_below(&rng, 12) == 0 ? 5 : 1;
            y[i] = 1.3 - 0.02 * i + noise * tt_rng_normal(&rng) / sqrt(w[i]);
        }
        tti_line line;
        assert_int_equal(tti_huber_line(x, y, w, POINTS, &line), 1);
        slopes += line.slope / ROUNDS;
        slope_squares += line.slope * line.slope / ROUNDS;
        se_squares += line.slope_se * line.slope_se / ROUNDS;
    }
    const double spread = sqrt(slope_squares - slopes * slopes);
    // 5 s.e. of the mean; the s.d. is known to 1/sqrt(2 * 4000) = 1.1 %, the formula is asymptotic
    assert_true(fabs(slopes + 0.02) < 5 * spread / sqrt(ROUNDS));
    assert_true(fabs(sqrt(se_squares) / spread - 1) < 0.1);
}

static void
distributions_agree_with_gsl(void **state)
{
    TT_UNUSED(state);
    for (double z = -7.3; z < 7.5; z += 0.37) {
        assert_true(fabs(tti_normal_cdf(z) / gsl_cdf_ugaussian_P(z) - 1) < 1e-12);
        const double density = exp(tti_student4_log_density(z * 1.7, 1.7)) * 1.7;
        assert_true(fabs(density / gsl_ran_tdist_pdf(z, 4) - 1) < 1e-12);
    }
    for (double p = 1e-9; p < 1; p += 0.0173)
        assert_true(fabs(tti_normal_quantile(p) - gsl_cdf_ugaussian_Pinv(p)) < 1e-7);
}

static void
series_stays_bounded_and_keeps_its_sums(void **state)
{
    TT_UNUSED(state);
    static tti_series series;
    tti_series_reset(&series);
    enum { BLOCKS = 10007 };
    for (int i = 0; i < BLOCKS; i++) {
        const tti_block block = {25.0 * i, 25.0 * i + 12, 25, 3.7 - 1e-4 * i, 0.013, 0.013, 25};
        (void)tti_series_append(&series, &block);
        assert_true(series.count < TTI_SERIES_BLOCKS);
    }
    assert_true(series.count >= TTI_SERIES_BLOCKS / 2 - 1);
    double n = series.pending.n, clock = series.pending.n * series.pending.clock;
    double mean = series.pending.n * series.pending.mean;
    for (uint32_t i = 0; i < series.count; i++) {
        assert_true(i == 0 || series.blocks[i].clock > series.blocks[i - 1].clock);
        assert_true(fabs(series.blocks[i].variance / 0.013 - 1) < 1e-12);
        n += series.blocks[i].n;
        clock += series.blocks[i].n * series.blocks[i].clock;
        mean += series.blocks[i].n * series.blocks[i].mean;
    }
    assert_true(n == 25.0 * BLOCKS);
    assert_true(fabs(clock / n / (12.5 * (BLOCKS - 1)) - 1) < 1e-12);
    assert_true(fabs(mean / n / (3.7 - 0.5e-4 * (BLOCKS - 1)) - 1) < 1e-12);
}

static void
restored_series_forgets_what_came_after(void **state)
{
    TT_UNUSED(state);
    static tti_series series;
    tti_series_reset(&series);
    tti_series_mark mark = {0};
    for (int i = 0; i < 150; i++) {
        const tti_block block = {i, i, 1, i < 101 ? 0.4 : 9.9, 0.1, 0.1, i % 7 == 6 ? 8 : 25};
        if (i == 101)
            mark = tti_series_remember(&series);
        (void)tti_series_append(&series, &block);
    }
    assert_true(series.doublings > mark.doublings);
    tti_series_restore(&series, &mark);
    assert_true(series.count > 10);
    for (uint32_t i = 0; i < series.count; i++)
        assert_true(series.blocks[i].mean < 0.41);
    assert_true(series.pending.n == mark.pending.n);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_and_mad_agree_with_sorting),
        cmocka_unit_test(winsorising_keeps_skewed_means_and_stops_wild_values),
        cmocka_unit_test(huber_line_is_exact_without_noise_and_survives_outliers),
        cmocka_unit_test(constant_loss_has_a_small_positive_standard_error),
        cmocka_unit_test(huber_standard_error_is_the_spread_of_slopes),
        cmocka_unit_test(distributions_agree_with_gsl),
        cmocka_unit_test(series_stays_bounded_and_keeps_its_sums),
        cmocka_unit_test(restored_series_forgets_what_came_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
