// Goal: each curve family recovers its own curve, says how sure it is, and never answers nonsense.
// Method: noise-free curves with GSL's Lambert W as oracle, noisy curves many times over with the
// scatter of the answers against the claimed s.d., and degenerate data.
#include "est_family.h"
#include "est_mix.h"
#include "est_robust.h"
#include "estimator_traces.h"
#include <gsl/gsl_sf_lambert.h>

#include <setjmp.h>

#include <cmocka.h>

static tti_curve_data data;

// `count` points, 25 clocks apart, at the curve; noise of the block means `sd` (relative).
static void
fill(const trace *t, uint32_t count, double sd, tt_rng *rng, double target)
{
    memset(&data, 0, sizeof data);
    data.count = count;
    data.target = target;
    for (uint32_t i = 0; i < count; i++) {
        data.x[i] = 25.0 * i + 12.5;
        data.width[i] = 25;
        const double mean = trace_mean_loss(t, data.x[i]);
        data.y[i] = mean * (1 + (sd > 0 ? sd * tt_rng_normal(rng) : 0));
        const double s = fmax(sd * mean, 1e-12 + 1e-9 * mean);
        data.variance[i] = s * s;
    }
}

static void
lambert_w_agrees_with_gsl(void **state)
{
    TT_UNUSED(state);
    for (double x = 1e-12; x < 1e300; x *= 3.7)
        assert_true(fabs(tti_lambert_w0(x) / gsl_sf_lambert_W0(x) - 1) < 1e-12);
    assert_true(tti_lambert_w0(0) == 0);
}

// Losses that solve j = (A/l) log(B/l): l = A W0(jB/A)/j.
static double
hogwild_loss(double j, double scale, double bound)
{
    return scale * gsl_sf_lambert_W0(j * bound / scale) / j;
}

static void
hogwild_is_exact_with_the_bound_given(void **state)
{
    TT_UNUSED(state);
    const double scale = 237.45, bound = 4.813, target = 0.0917;
    enum { COUNT = 40 };
    memset(&data, 0, sizeof data);
    data.count = COUNT;
    data.target = target;
    for (uint32_t i = 0; i < COUNT; i++) {
        data.x[i] = 25.0 * i + 13;
        data.y[i] = hogwild_loss(data.x[i], scale, bound);
        data.variance[i] = 1e-8;
    }
    tti_fit fit;
    tti_hogwild_fit_bound(&data, COUNT, bound, 0, &fit);
    assert_int_equal(fit.ok, 1);
    assert_true(fabs(fit.p[0] / scale - 1) < 1e-9);
    tti_left left;
    const double now = 1000, k = scale / target * log(bound / target) - now;
    tti_family_hogwild.inverse(&fit, now, target, &left);
    assert_true(fabs(exp(left.log_mean) - k) < 1);
    double sd;
    const double ahead = tti_family_hogwild.predict(&fit, 2345.6, &sd);
    assert_true(fabs(ahead / hogwild_loss(2345.6, scale, bound) - 1) < 1e-9);
}

static void
paper_estimator_is_exact_with_the_bound_given(void **state)
{
    TT_UNUSED(state);
    const double scale = 61.27, bound = 3.309, target = 0.2113;
    double losses[105];
    for (int j = 1; j <= 105; j++)
        losses[j - 1] = hogwild_loss(j, scale, bound);
    tt_est_paper paper;
    tt_est_paper_fit(losses, 105, bound, target, 1, bound, 1234, &paper);
    assert_int_equal(paper.flags, 0);
    assert_true(fabs(paper.scale / scale - 1) < 1e-9);
    assert_true(fabs(paper.iterations - (scale / target * log(bound / target) - 105)) < 1);
    // one absurd minibatch is left out by the studentised residual
    losses[70] = 1e-4;
    tt_est_paper_fit(losses, 105, bound, target, 1, bound, 1234, &paper);
    assert_int_equal(paper.outliers, 1);
    assert_true(fabs(paper.scale / scale - 1) < 1e-9);
}

static void
expfloor_recovers_its_curve(void **state)
{
    TT_UNUSED(state);
    const trace t = {
        .curve = TRACE_EXPONENTIAL, .start = 2.385, .floor = 0.317, .constant = 2.3e-3};
    const double target = 0.41;
    fill(&t, 48, 0, NULL, target);
    tti_fit fit;
    tti_left left;
    tti_family_expfloor.fit(&data, data.count, &fit);
    assert_int_equal(fit.ok, 1);
    assert_true(fabs(fit.p[0] / t.constant - 1) < 1e-3);
    assert_true(fabs(tti_family_expfloor.floor(&fit) / t.floor - 1) < 1e-3);
    const double now = 1200, k = trace_clock_of(&t, target) - now;
    tti_family_expfloor.inverse(&fit, now, target, &left);
    assert_true(fabs(exp(left.log_mean) / k - 1) < 0.02);
    assert_true(left.unreachable < 1e-6);
}

static void
sublinear_recovers_its_curve(void **state)
{
    TT_UNUSED(state);
    const trace t = {.curve = TRACE_INVERSE, .start = 2.2, .floor = 0.25, .constant = 217};
    const double target = 0.43;
    fill(&t, 40, 0, NULL, target);
    tti_fit fit;
    tti_left left;
    tti_family_sublinear.fit(&data, data.count, &fit);
    assert_int_equal(fit.ok, 1);
    assert_true(fabs(fit.p[0] / t.constant - 1) < 0.01);
    const double now = 1000, k = trace_clock_of(&t, target) - now;
    tti_family_sublinear.inverse(&fit, now, target, &left);
    assert_true(fabs(exp(left.log_mean) / k - 1) < 0.02);
}

static void
slaq_recovers_its_curve(void **state)
{
    TT_UNUSED(state);
    // floors of the grid lie 1.4 % of the lowest loss apart: the curve between two of them is met
    // to about that
    const trace t = {.curve = TRACE_BENDING, .start = 2.2, .floor = 0, .constant = 390};
    const double target = 0.131, now = 1000, k = trace_clock_of(&t, target) - now;
    fill(&t, 40, 0, NULL, target);
    tti_fit fit;
    tti_left left;
    tti_family_slaq.fit(&data, data.count, &fit);
    assert_int_equal(fit.ok, 1);
    assert_true(fabs(tti_family_slaq.floor(&fit)) < 1e-3);
    const double unit = fit.unit / t.constant; // block means are taken at their middle here
    assert_true(fabs(fit.p[1] * 2.2 / unit - 1) < 0.01);
    assert_true(fabs(fit.p[0] * 2.2 / unit / unit - 1) < 0.01);
    tti_family_slaq.inverse(&fit, now, target, &left);
    assert_true(fabs(exp(left.log_mean) / k - 1) < 0.02);
    assert_true(left.unreachable < 0.25); // half of the floors could be over the target
    double sd;
    assert_true(fabs(tti_family_slaq.predict(&fit, 2000, &sd) / trace_mean_loss(&t, 2000) - 1) <
                0.01);
    // a floor, and block means with noise
    tt_rng rng;
    tt_rng_init(&rng, 23, TT_RNG_TEST, 0);
    const trace high = {.curve = TRACE_BENDING, .start = 2.2, .floor = 0.9, .constant = 190};
    fill(&high, 60, 0.005, &rng, 0.6);
    tti_family_slaq.fit(&data, data.count, &fit);
    assert_true(fabs(tti_family_slaq.floor(&fit) - 0.9) < 0.05);
    tti_family_slaq.inverse(&fit, 1500, 0.6, &left);
    assert_true(left.unreachable > 0.9);
    tti_family_slaq.inverse(&fit, 750, 1.0, &left);
    assert_true(left.unreachable < 0.1);
    assert_true(fabs(left.log_mean - log(fmax(trace_clock_of(&high, 1.0) - 750, 3.75))) < 0.7);
}

// A rising loss has no falling curve: the constant, and a target under it cannot be reached.
static void
slaq_of_a_rising_loss_is_flat(void **state)
{
    TT_UNUSED(state);
    const trace t = {.curve = TRACE_CONSTANT, .start = 0.7};
    fill(&t, 20, 0, NULL, 0.2);
    for (uint32_t i = 0; i < 20; i++)
        data.y[i] += 0.01 * i;
    tti_fit fit;
    tti_left left;
    tti_family_slaq.fit(&data, 20, &fit);
    assert_true(fit.ok && fit.p[0] == 0 && fit.p[1] == 0);
    tti_family_slaq.inverse(&fit, 500, 0.2, &left);
    assert_true(left.log_mean > log(1e8));
}

// Over many noisy curves: (log k - truth) / claimed s.d. is about standard.
static void
expfloor_claims_the_right_spread(void **state)
{
    TT_UNUSED(state);
    enum { ROUNDS = 300 };
    tt_rng rng;
    tt_rng_init(&rng, 17, TT_RNG_TEST, 0);
    const trace t = {.curve = TRACE_EXPONENTIAL, .start = 1.9, .floor = 0.31, .constant = 1.9e-3};
    const double target = 0.5, now = 750, truth = trace_clock_of(&t, target) - now;
    double squares = 0, sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        fill(&t, 30, 0.02, &rng, target);
        tti_fit fit;
        tti_left left;
        tti_family_expfloor.fit(&data, data.count, &fit);
        tti_family_expfloor.inverse(&fit, now, target, &left);
        const double z = (left.log_mean - log(truth)) / left.log_sd;
        sum += z / ROUNDS;
        squares += z * z / ROUNDS;
    }
    print_message("standardised error of expfloor: mean %.2f, root mean square %.2f\n", sum,
                  sqrt(squares));
    assert_true(fabs(sum) < 0.5);
    assert_true(sqrt(squares) > 0.6 && sqrt(squares) < 1.4);
}

static void
target_under_the_floor_is_unreachable(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 18, TT_RNG_TEST, 0);
    const trace t = {.curve = TRACE_EXPONENTIAL, .start = 1.9, .floor = 0.6, .constant = 6e-3};
    fill(&t, 60, 0.01, &rng, 0.4);
    tti_fit fit;
    tti_left left;
    tti_family_expfloor.fit(&data, data.count, &fit);
    tti_family_expfloor.inverse(&fit, 1500, 0.4, &left);
    assert_true(left.unreachable > 0.99);
    tti_family_expfloor.inverse(&fit, 1500, 0.7, &left);
    assert_true(left.unreachable < 0.01);
}

// With a handful of blocks almost any floor is possible; a person's target is given credit.
static void
little_data_does_not_call_a_target_unreachable(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    const trace t = {.curve = TRACE_EXPONENTIAL, .start = 1.9, .floor = 0.2, .constant = 2e-4};
    uint32_t doubtful = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        tt_rng_init(&rng, seed, TT_RNG_TEST, 3);
        fill(&t, 12, 0.01, &rng, 0.3);
        tti_fit fit;
        tti_left left;
        tti_family_expfloor.fit(&data, data.count, &fit);
        tti_family_expfloor.inverse(&fit, 300, 0.3, &left);
        doubtful += left.unreachable > 0.9;
    }
    print_message("called unreachable on little data: %u of 40\n", doubtful);
    assert_true(doubtful <= 4);
}

// Ordinary noise with one minibatch far out: the studentised rule takes that one.
static void
paper_estimator_drops_outliers_beyond_three(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 21, TT_RNG_TEST, 0);
    double losses[60];
    for (int j = 1; j <= 60; j++)
        losses[j - 1] = hogwild_loss(j, 400, 2.4) * (1 + 1e-3 * tt_rng_normal(&rng));
    losses[30] *= 0.95;
    tt_est_paper paper;
    tt_est_paper_fit(losses, 60, 2.4, 0.3, 1, 2.5, 1234, &paper);
    assert_true(paper.outliers >= 1 && paper.outliers <= 5);
}

static void
every_family_survives_degenerate_data(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tti_families families;
    tti_families_init(&families);
    tt_rng_init(&rng, 19, TT_RNG_TEST, 0);
    for (int kind = 0; kind < 6; kind++) {
        for (uint32_t count = 0; count <= 40; count += count < 8 ? 1 : 16) {
            const trace t = {.curve = TRACE_CONSTANT, .start = 0.7};
            fill(&t, count, kind == 0 ? 0 : 0.03, &rng, 0.2);
            for (uint32_t i = 0; i < count; i++) {
                data.y[i] += kind == 2 ? 0.05 * i : 0;      // rising
                data.y[i] -= kind == 3 ? 3 + 0.01 * i : 0;  // negative
                data.y[i] *= kind == 4 ? exp(-4.0 * i) : 1; // down to underflow
                data.x[i] += kind == 5 ? 1e9 : 0;           // a long job
            }
            for (uint32_t f = 0; f < TTI_FAMILIES; f++) {
                tti_fit fit;
                tti_left left;
                double sd;
                const tti_family *family = families.list[f];
                family->fit(&data, count, &fit);
                if (!fit.ok)
                    continue;
                assert_true(isfinite(family->predict(&fit, 5000, &sd)) && isfinite(sd));
                assert_true(isfinite(family->log_predictive(&fit, 5000, 0.31, 1e-4)));
                for (double target = -4; target < 4; target += 0.37) {
                    family->inverse(&fit, 25.0 * count, target, &left);
                    assert_true(isfinite(left.log_mean) && left.log_mean >= 0);
                    assert_true(left.log_mean <= log(TTI_ITERATIONS_MAX));
                    assert_true(isfinite(left.log_sd) && left.log_sd >= 0);
                    assert_true(left.unreachable >= 0 && left.unreachable <= 1);
                }
            }
        }
    }
}

static void
inverse_of_three_by_three(void **state)
{
    TT_UNUSED(state);
    const double a[3][3] = {{4.1, 0.7, -0.3}, {0.7, 2.9, 0.8}, {-0.3, 0.8, 1.7}};
    double inverse[3][3];
    assert_int_equal(tti_invert3(a, inverse), 1);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double s = 0;
            for (int k = 0; k < 3; k++)
                s += a[i][k] * inverse[k][j];
            assert_true(fabs(s - (i == j)) < 1e-12);
        }
    const double absent[3][3] = {{4.1, 0, -0.3}, {0, 0, 0}, {-0.3, 0, 1.7}};
    assert_int_equal(tti_invert3(absent, inverse), 1);
    assert_true(inverse[1][1] == 0 && fabs(inverse[0][0] * (4.1 * 1.7 - 0.09) / 1.7 - 1) < 1e-12);
    const double singular[3][3] = {{1, 1, 0}, {1, 1, 0}, {0, 0, 1}};
    assert_int_equal(tti_invert3(singular, inverse), 0);
}

static void
weight_goes_to_the_family_that_foretells(void **state)
{
    TT_UNUSED(state);
    for (uint64_t seed = 0; seed < 20; seed++) {
        tt_rng rng;
        tt_rng_init(&rng, seed, TT_RNG_TEST, 7);
        const trace t = {
            .curve = TRACE_EXPONENTIAL, .start = 2.385, .floor = 0.517, .constant = 1.3e-2};
        static tti_series history;
        static tti_mix mix;
        tti_series_reset(&history);
        tti_families families;
        tti_families_init(&families);
        tti_mix_reset(&mix, &families);
        for (int i = 0; i < 12; i++) {
            const double clock = 25.0 * i + 12.5, mean = trace_mean_loss(&t, clock);
            const double sd = 0.01 * mean; // of one loss
            const tti_block block = {clock,   clock, 25, mean + sd / 5 * tt_rng_normal(&rng),
                                     sd * sd, sd * sd, 25};
            (void)tti_series_append(&history, &block);
            tti_mix_sync(&mix, &families, &history, 0.55);
        }
        for (uint32_t f = 0; f < TTI_FAMILIES; f++) {
            if (families.list[f] == &tti_family_expfloor)
                assert_true(mix.weight[f] > 0.9);
            if (families.list[f] == &tti_family_hwonly)
                assert_true(mix.weight[f] == 0);
        }
    }
}

static void
mixture_quantiles_and_moments(void **state)
{
    TT_UNUSED(state);
    const tti_mixture one = {1, {1}, {6.3}, {0.4}, 0};
    const double shift = -2.1, sd = hypot(0.4, 0.3);
    for (double p = 0.05; p < 1; p += 0.09)
        assert_true(fabs(tti_mixture_quantile(&one, p, shift, 0.3) -
                         (6.3 + shift + sd * tti_normal_quantile(p))) < 1e-9);
    const tti_mixture two = {2, {0.3, 0.7}, {5, 7}, {0.1, 0.2}, 0};
    double mean, spread;
    tti_mixture_moments(&two, &mean, &spread);
    assert_true(fabs(mean - 6.4) < 1e-12);
    assert_true(fabs(spread * spread - (0.3 * (0.01 + 25) + 0.7 * (0.04 + 49) - 6.4 * 6.4)) <
                1e-12);
    const double m = tti_mixture_quantile(&two, 0.2, 0, 0);
    const double below = 0.3 * tti_normal_cdf((m - 5) / 0.1) + 0.7 * tti_normal_cdf((m - 7) / 0.2);
    assert_true(fabs(below - 0.2) < 1e-9);
}

// Residuals that neighbours take back (what one block drew too many of the next one lacks) leave
// means of several better known than they look; those that neighbours share, less well.
static void
spread_is_of_means_over_several_blocks(void **state)
{
    TT_UNUSED(state);
    enum { N = 64, SEEDS = 200 };
    double apart = 0, back = 0, shared = 0, r[N], h[N];
    tt_rng rng;
    tt_rng_init(&rng, 3, TT_RNG_TEST, 11);
    for (uint32_t i = 0; i < N; i++)
        h[i] = 1;
    for (int seed = 0; seed < SEEDS; seed++) {
        for (uint32_t i = 0; i < N; i++)
            r[i] = tt_rng_normal(&rng);
        apart += tti_spread_factor(r, h, N, 3, 1) / SEEDS;
        for (uint32_t i = 0; i < N; i++)
            r[i] = (r[i] - r[(i + 1) % N]) * 0.70710678118654752440;
        back += tti_spread_factor(r, h, N, 3, 1) / SEEDS;
        r[0] = tt_rng_normal(&rng);
        for (uint32_t i = 1; i < N; i++)
            r[i] = 0.9 * r[i - 1] + sqrt(1 - 0.81) * tt_rng_normal(&rng);
        shared += tti_spread_factor(r, h, N, 3, 1) / SEEDS;
    }
    print_message("spread factor: independent %.2f, taken back %.2f, shared %.2f\n", apart, back,
                  shared);
    // three parameters were not fitted here, and 0.866 is of residuals that were cut
    assert_true(apart > 1 && apart < 1.7);
    assert_true(back < 0.4 * apart && shared > 2 * apart);
    assert_true(tti_spread_factor(r, h, 13, 3, 0.37) == 0.37); // too few to tell
}

// A hinge loss: straight down, then a corner, then an exponential.
static double
cornered(double clock)
{
    return clock < 400 ? 1.9 - 0.0032 * clock : 0.57 + 0.05 * exp(-(clock - 400) / 700);
}

static void
late_families_do_not_see_the_corner(void **state)
{
    TT_UNUSED(state);
    const double target = 0.573, now = 1500, truth = 400 + 700 * log(0.05 / 0.003) - now;
    memset(&data, 0, sizeof data);
    data.count = 60;
    data.target = target;
    for (uint32_t i = 0; i < data.count; i++) {
        data.x[i] = 25.0 * i + 12.5;
        data.width[i] = 25;
        data.y[i] = cornered(data.x[i]);
        data.variance[i] = 1e-10;
    }
    tti_fit fit;
    tti_left left;
    tti_family_expfloor_late.fit(&data, data.count, &fit);
    tti_family_expfloor_late.inverse(&fit, now, target, &left);
    assert_true(fabs(exp(left.log_mean) / truth - 1) < 0.03);
    tti_family_expfloor.fit(&data, data.count, &fit);
    tti_family_expfloor.inverse(&fit, now, target, &left);
    assert_true(left.unreachable > 0.9 || fabs(left.log_mean - log(truth)) > log(2));
    tti_family_power_late.fit(&data, 11, &fit); // half of so few would be too few
    assert_int_equal(fit.ok, 0);
}

// Most of the fall within the first block.
static void
sublinear_recovers_a_steep_beginning(void **state)
{
    TT_UNUSED(state);
    const double shape = 5, target = 0.302, now = 1500, truth = shape * (2 / 0.002 - 1) - now;
    memset(&data, 0, sizeof data);
    data.count = 60;
    data.target = target;
    for (uint32_t i = 0; i < data.count; i++) {
        const double from = 25.0 * i, to = from + 25;
        data.x[i] = from + 12.5;
        data.width[i] = 25;
        data.y[i] = 0.3 + 2 * shape * log((shape + to) / (shape + from)) / 25;
        data.variance[i] = 1e-12;
    }
    tti_fit fit;
    tti_left left;
    tti_family_sublinear.fit(&data, data.count, &fit);
    assert_true(fabs(fit.p[0] / shape - 1) < 0.01);
    tti_family_sublinear.inverse(&fit, now, target, &left);
    assert_true(fabs(exp(left.log_mean) / truth - 1) < 0.02);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lambert_w_agrees_with_gsl),
        cmocka_unit_test(hogwild_is_exact_with_the_bound_given),
        cmocka_unit_test(paper_estimator_is_exact_with_the_bound_given),
        cmocka_unit_test(expfloor_recovers_its_curve),
        cmocka_unit_test(sublinear_recovers_its_curve),
        cmocka_unit_test(sublinear_recovers_a_steep_beginning),
        cmocka_unit_test(late_families_do_not_see_the_corner),
        cmocka_unit_test(spread_is_of_means_over_several_blocks),
        cmocka_unit_test(slaq_recovers_its_curve),
        cmocka_unit_test(slaq_of_a_rising_loss_is_flat),
        cmocka_unit_test(expfloor_claims_the_right_spread),
        cmocka_unit_test(target_under_the_floor_is_unreachable),
        cmocka_unit_test(little_data_does_not_call_a_target_unreachable),
        cmocka_unit_test(paper_estimator_drops_outliers_beyond_three),
        cmocka_unit_test(every_family_survives_degenerate_data),
        cmocka_unit_test(inverse_of_three_by_three),
        cmocka_unit_test(weight_goes_to_the_family_that_foretells),
        cmocka_unit_test(mixture_quantiles_and_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
