// Goal: the statistical rate moves only on evidence, little on what tells of a wrong forecast, and
// the noise ratio sees staleness. Method: the Bayesian update against a brute-force posterior,
// noise windows of known spread, pure noise over 10,000 seeds, and simulated settings of known
// rate.
#include "est_noise.h"
#include "est_rate.h"
#include "estimator_traces.h"

#include <setjmp.h>

#include <cmocka.h>

static void
update_agrees_with_a_grid_posterior(void **state)
{
    TT_UNUSED(state);
    tti_rate rate;
    tti_rate_init(&rate);
    const double u[TT_EST_FEATURES_MAX] = {0.7, 0.4};
    const double v[TT_EST_FEATURES_MAX] = {0.2, 0.9};
    tti_rate_update(&rate, u, -0.11, 0.03 * 0.03);
    tti_rate_update(&rate, v, 0.05, 0.02 * 0.02);
    double weight = 0, mean = 0, squares = 0;
    for (double a = -0.4; a < 0.4; a += 0.001)
        for (double b = -0.4; b < 0.4; b += 0.001) {
            const double first = (-0.11 - 0.7 * a - 0.4 * b) / 0.03;
            const double second = (0.05 - 0.2 * a - 0.9 * b) / 0.02;
            const double prior = (a * a + b * b) / (0.05 * 0.05);
            const double w = exp(-0.5 * (first * first + second * second + prior));
            const double x = 0.7 * a + 0.4 * b;
            weight += w;
            mean += w * x;
            squares += w * x * x;
        }
    mean /= weight;
    double got, sd;
    tti_rate_predict(&rate, u, 0, &got, &sd);
    assert_true(fabs(got - mean) < 1e-6);
    assert_true(fabs(sd - sqrt(squares / weight - mean * mean)) < 1e-6);
}

static void
rate_is_clamped_and_charged_for_noise(void **state)
{
    TT_UNUSED(state);
    tti_rate rate;
    tti_rate_init(&rate);
    const double u[TT_EST_FEATURES_MAX] = {1};
    double mean, sd;
    tti_rate_predict(&rate, u, 0.29, &mean, &sd);
    assert_true(mean == 0 && fabs(sd - 0.05) < 1e-15);
    tti_rate_predict(&rate, u, 0.8, &mean, &sd);
    assert_true(fabs(mean + 0.5 * 0.5) < 1e-15);
    tti_rate_predict(&rate, u, 99, &mean, &sd);
    assert_true(fabs(mean - log(0.2)) < 1e-15);
    for (int i = 0; i < 100; i++)
        tti_rate_update(&rate, u, 30, 1e-6);
    tti_rate_predict(&rate, u, 0, &mean, &sd);
    assert_true(fabs(mean - log(5)) < 1e-15);
}

// A slope five times the forecast's is the forecast's doing: with a s.d. of 0.43 a Gaussian would
// move the rate by 0.053. One that is not far from what is known counts as a Gaussian has it, and
// many that agree are believed.
static void
far_slopes_hardly_move_the_rate(void **state)
{
    TT_UNUSED(state);
    tti_rate rate;
    const double u[TT_EST_FEATURES_MAX] = {1};
    double mean, sd, least = 1;
    tti_rate_init(&rate);
    tti_rate_update(&rate, u, 4, 0.43 * 0.43);
    tti_rate_predict(&rate, u, 0, &mean, &sd);
    assert_true(mean > 0 && mean < 0.01);
    assert_true(sd < 0.05 && sd > 0.049);
    tti_rate_init(&rate);
    tti_rate_update(&rate, u, -0.2, 0.1 * 0.1); // 1.8 s.d. of both
    tti_rate_predict(&rate, u, 0, &mean, &sd);
    assert_true(fabs(mean + 0.2 * 0.2) < 1e-12 && fabs(sd - 0.05 * sqrt(0.8)) < 1e-12);
    for (double value = 0; value > -4; value -= 0.01) {
        tti_rate_init(&rate);
        tti_rate_update(&rate, u, value, 0.1 * 0.1);
        tti_rate_predict(&rate, u, 0, &mean, &sd);
        assert_true(mean <= 0);
        least = fmin(least, mean);
    }
    assert_true(least < -0.05 && mean > -0.02); // the most is believed of what is 2.5 s.d. away
    tti_rate_init(&rate);
    for (int i = 0; i < 40; i++)
        tti_rate_update(&rate, u, -0.5, 0.1 * 0.1);
    tti_rate_predict(&rate, u, 0, &mean, &sd);
    assert_true(mean < -0.3);
}

typedef struct slope_seen {
    double u[3], value, sd;
} slope_seen;

static double
predicted(const tti_rate *rate, double a, double b, double c)
{
    const double u[TT_EST_FEATURES_MAX] = {a, b, c};
    double mean, sd;
    tti_rate_predict(rate, u, 0, &mean, &sd);
    return mean;
}

// -2 log of the posterior density of theta = (a, b, c).
static double
unlikely(const slope_seen *seen, size_t count, double a, double b, double c)
{
    double sum = (a * a + b * b + c * c) / (0.05 * 0.05);
    for (size_t i = 0; i < count; i++) {
        const double *u = seen[i].u;
        const double off = (seen[i].value - u[0] * a - u[1] * b - u[2] * c) / seen[i].sd;
        sum += off * off;
    }
    return sum;
}

// By chance windows show more progress under two lossy features: the most probable theta with
// neither above 0, against a search over a grid.
static void
more_of_a_lossy_feature_never_promises_more(void **state)
{
    TT_UNUSED(state);
    const slope_seen seen[] = {{{0.5, 1, 0}, 0.09, 0.03},
                               {{0.3, 0, 1}, 0.05, 0.04},
                               {{0.9, 1, 1}, 0.07, 0.05},
                               {{0.1, 0, 0}, -0.03, 0.02}};
    tti_rate rate;
    tti_rate_init(&rate);
    for (size_t i = 0; i < TT_COUNT_OF(seen); i++) {
        double u[TT_EST_FEATURES_MAX] = {0};
        memcpy(u, seen[i].u, sizeof seen[i].u);
        tti_rate_update(&rate, u, seen[i].value, seen[i].sd * seen[i].sd);
    }
    const double free = predicted(&rate, 1, 0, 0);
    assert_true(predicted(&rate, 0, 1, 0) > 0.01 && predicted(&rate, 0, 0, 1) > 0.01);
    double least = INFINITY, at[3] = {0};
    for (double a = -0.2; a < 0.2; a += 0.0005)
        for (double b = -0.05; b < 0.0005; b += 0.0025)
            for (double c = -0.05; c < 0.0005; c += 0.0025) {
                const double x = unlikely(seen, TT_COUNT_OF(seen), a, b, c);
                if (x < least) {
                    least = x;
                    at[0] = a;
                    at[1] = b;
                    at[2] = c;
                }
            }
    rate.lossy = 1 << 1 | 1 << 2;
    assert_true(fabs(predicted(&rate, 1, 0, 0) - at[0]) < 0.001);
    assert_true(fabs(predicted(&rate, 0, 1, 0) - at[1]) < 1e-9);
    assert_true(fabs(predicted(&rate, 0, 0, 1) - at[2]) < 1e-9);
    assert_true(predicted(&rate, 1, 0, 0) > free); // which gets what came with them
}

// Less progress under it is believed as of any other feature.
static void
what_a_lossy_feature_costs_is_learned(void **state)
{
    TT_UNUSED(state);
    tti_rate rate, lossy;
    const double u[TT_EST_FEATURES_MAX] = {0.5, 1};
    tti_rate_init(&rate);
    tti_rate_update(&rate, u, -0.2, 0.05 * 0.05);
    lossy = rate;
    lossy.lossy = 1 << 1;
    assert_true(predicted(&rate, 0, 1, 0) < -0.05);
    assert_true(predicted(&lossy, 0, 1, 0) == predicted(&rate, 0, 1, 0));
    assert_true(predicted(&lossy, 1, 0, 0) == predicted(&rate, 1, 0, 0));
}

static void
detrended_spread_is_that_of_the_noise(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 31, TT_RNG_TEST, 0);
    tti_detrend detrend;
    tti_detrend_reset(&detrend, 8);
    for (int i = 0; i < 7; i++)
        tti_detrend_add(&detrend, i, 1);
    assert_true(isnan(tti_detrend_sd(&detrend)));
    // a bend worth twenty times the noise, seen piecewise; 1/sqrt(2 n) = 0.5 %
    tti_detrend_reset(&detrend, 8);
    for (int i = 0; i < 20000; i++)
        tti_detrend_add(&detrend, i, 0.3 * exp(-i / 4000.0) + 0.0137 * tt_rng_normal(&rng));
    assert_true(fabs(tti_detrend_sd(&detrend) / 0.0137 - 1) < 0.02);
}

static void
noise_ratio_sees_the_noisy_setting_only(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 32, TT_RNG_TEST, 0);
    tti_noise noise = {0};
    double calm[TT_EST_FEATURES_MAX] = {0.2, 0.3}, stale[TT_EST_FEATURES_MAX] = {0.95, 0.3};
    assert_true(tti_noise_ratio(&noise, calm, TT_EST_FEATURES_MAX) == 0);
    for (int i = 0; i < 60; i++) {
        const int bad = i % 4 == 3;
        calm[0] = 0.1 * (i % 3); // three calm settings, one stale one
        const double loss = 2.3 * exp(-0.03 * i);
        const double sd = 0.1 * pow(loss, 0.8) * (bad ? exp(0.7) : 1);
        tti_noise_add(&noise, bad ? 9 : (uint32_t)i % 3, sd * (1 + 0.05 * tt_rng_normal(&rng)),
                      loss, 105, bad ? stale : calm);
        assert_true(noise.count <= TTI_NOISE_WINDOWS);
    }
    const double nu = tti_noise_ratio(&noise, stale, TT_EST_FEATURES_MAX);
    assert_true(nu > 0.55 && nu < 0.85);
    assert_true(tti_noise_ratio(&noise, calm, TT_EST_FEATURES_MAX) < 0.1);
    assert_int_equal(tti_noise_width(&noise), 2); // the others are 0, and need not be looked at
    assert_true(tti_noise_ratio(&noise, stale, 2) == nu);
    const double unseen[TT_EST_FEATURES_MAX] = {0.2, 0.3, 1};
    assert_true(tti_noise_ratio(&noise, unseen, TT_EST_FEATURES_MAX) == 0);
}

static void
settled_setting_does_not_become_its_own_reference(void **state)
{
    TT_UNUSED(state);
    tti_noise noise = {0};
    double features[TT_EST_FEATURES_MAX] = {0};
    for (int i = 0; i < 12; i++) {
        features[0] = 0.05 * (i % 3);
        tti_noise_add(&noise, (uint32_t)i % 3, 0.05, 1, 105, features);
    }
    // two windows of 30 pushes, 0.2 above: within 3 s.e. (0.27), so nothing is said
    const double hardly[TT_EST_FEATURES_MAX] = {0, 1};
    tti_noise_add(&noise, 8, 0.05 * exp(0.2), 1, 30, hardly);
    tti_noise_add(&noise, 8, 0.05 * exp(0.2), 1, 30, hardly);
    assert_true(tti_noise_ratio(&noise, hardly, TT_EST_FEATURES_MAX) == 0);
    const double stale[TT_EST_FEATURES_MAX] = {1};
    for (int i = 0; i < 200; i++)
        tti_noise_add(&noise, 7, 0.05 * exp(0.6), 1, 105, stale);
    assert_true(fabs(tti_noise_ratio(&noise, stale, TT_EST_FEATURES_MAX) - 0.6) < 1e-6);
}

static void
add_pushes(tt_estimator *est, trace *t, uint32_t pushes)
{
    for (uint32_t i = 0; i < pushes; i++) {
        const tt_est_sample sample = trace_next(t);
        tt_estimator_add(est, &sample);
    }
}

// Estimator-math, section 7: pure noise around a constant.
static void
pure_noise_leaves_the_rate_at_the_pooled_one(void **state)
{
    TT_UNUSED(state);
    const tt_est_options options = {.target_loss = 0.31, .budget_iterations = INFINITY};
    const double base[1] = {0}, other[1] = {1};
    double worst_mean = 0, least_sd = 1, most_sd = 0;
    uint32_t plateaus = 0, rising = 0;
    for (uint64_t seed = 0; seed < 10000; seed++) {
        trace t = {.curve = TRACE_CONSTANT, .start = 0.693, .noise = 0.15};
        t.cycle_s = 0.1;
        t.jitter = 0.3;
        t.workers = 4;
        trace_begin(&t, seed);
        tt_estimator *est;
        tt_est_window window;
        assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
        for (int i = 0; i < 3; i++) {
            tt_estimator_begin(est, i == 2, 0, 4, i == 2 ? other : base, 1);
            add_pushes(est, &t, i == 2 ? 130 : 150);
            tt_estimator_end(est, 1, &window);
            rising += (window.flags & TT_EST_RISING) != 0;
        }
        double mean, sd;
        tt_estimator_log_rate(est, 1, other, 1, &mean, &sd);
        tt_est_remaining left;
        tt_estimator_remaining(est, &left);
        tt_est_eta eta;
        tt_estimator_eta(est, log(window.seconds_per_iteration), 0.1, mean, sd, &eta);
        assert_false(isnan(mean) || isnan(sd) || isnan(window.slope) || isnan(window.noise));
        assert_false(isnan(left.log_iterations) || isnan(left.log_iterations_sd));
        assert_false(isnan(left.iterations_median) || isnan(left.iterations_p10));
        assert_false(isnan(left.iterations_p90) || isnan(eta.seconds_median));
        assert_false(isnan(tt_estimator_stage(est)) || isnan(tt_estimator_loss(est)));
        plateaus += (left.flags & TT_EST_PLATEAU) != 0;
        worst_mean = fmax(worst_mean, fabs(mean));
        least_sd = fmin(least_sd, sd / 0.05);
        most_sd = fmax(most_sd, sd / 0.05);
        tt_estimator_close(est);
    }
    print_message("pure noise: |log r| <= %.4f, s.d. / width in [%.4f, %.4f], rising %u, "
                  "plateau %u of 10,000\n",
                  worst_mean, least_sd, most_sd, rising, plateaus);
    assert_true(least_sd >= 0.99 && most_sd <= 1);
    assert_true(worst_mean < 0.02); // under half the shrinkage width in the worst of 10,000
    assert_true(rising <= 10);      // of 30,000 windows
}

// A setting that makes 0.6 of the progress a push: the rate goes there as far as its prior lets it,
// and never the wrong way.
static void
slow_setting_is_seen_within_its_prior(void **state)
{
    TT_UNUSED(state);
    const double base[2] = {0.1, 0}, slow[2] = {1, 0};
    const tt_est_options options = {.target_loss = 0.45, .budget_iterations = INFINITY};
    double sum = 0, least_sd = 1;
    enum { ROUNDS = 20 };
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        trace t = {.curve = TRACE_EXPONENTIAL, .start = 2.3, .floor = 0.3, .constant = 2e-4};
        t.noise = 0.05;
        t.workers = 4;
        t.cycle_s = 0.1;
        t.jitter = 0.2;
        trace_begin(&t, seed);
        tt_estimator *est;
        tt_est_window window;
        assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
        for (int i = 0; i < 40; i++) {
            t.rate = i < 25 ? 1 : 0.6;
            tt_estimator_begin(est, i >= 25, 0, 4, i >= 25 ? slow : base, 2);
            add_pushes(est, &t, 200);
            tt_estimator_end(est, 1, &window);
        }
        double mean, sd;
        tt_estimator_log_rate(est, 1, slow, 2, &mean, &sd);
        sum += mean / ROUNDS;
        least_sd = fmin(least_sd, sd);
        assert_true(mean < 0.02 && mean > log(0.6) - 0.05);
        tt_estimator_close(est);
    }
    print_message("rate 0.6 after 15 windows: mean log r %.3f (truth %.3f), least s.d. %.4f\n", sum,
                  log(0.6), least_sd);
    assert_true(sum < -0.03);
    assert_true(least_sd > 0);
}

// Through the estimator, and a checkpoint of one that was told nothing of it.
static void
lossy_features_survive_a_checkpoint(void **state)
{
    TT_UNUSED(state);
    const tt_est_options options = {.target_loss = 0.31, .budget_iterations = INFINITY};
    const double base[2] = {0.3, 0}, rounded[2] = {0.3, 1};
    trace t = {.curve = TRACE_EXPONENTIAL, .start = 2.3, .floor = 0.3, .constant = 2e-4};
    t.noise = 0.05;
    t.workers = 4;
    t.cycle_s = 0.1;
    t.jitter = 0.2;
    trace_begin(&t, 5);
    tt_estimator *est, *later;
    tt_est_window window;
    tt_archive saved = {0};
    double plain, mean, base_mean, sd;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    assert_int_equal(tt_estimator_open(&options, &later, NULL), TT_OK);
    for (int i = 0; i < 30; i++) {
        t.rate = i < 20 ? 1 : 2; // which rounding cannot do
        tt_estimator_begin(est, i >= 20, 0, 4, i >= 20 ? rounded : base, 2);
        add_pushes(est, &t, 200);
        tt_estimator_end(est, 1, &window);
    }
    tt_estimator_log_rate(est, 0, base, 2, &base_mean, &sd);
    tt_estimator_log_rate(est, 0, rounded, 2, &plain, &sd);
    assert_true(plain > base_mean + 0.02);
    tt_estimator_save(est, &saved);
    tt_estimator_lossy(later, 1 << 1);
    tt_archive in;
    tt_archive_read(&in, saved.bytes, saved.count);
    assert_int_equal(tt_estimator_load(later, &in), TT_OK);
    tt_estimator_log_rate(later, 0, base, 2, &base_mean, &sd);
    tt_estimator_log_rate(later, 0, rounded, 2, &mean, &sd);
    assert_true(fabs(mean - base_mean) < 1e-12);
    tt_archive_fini(&saved);
    tt_estimator_close(est);
    tt_estimator_close(later);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_agrees_with_a_grid_posterior),
        cmocka_unit_test(rate_is_clamped_and_charged_for_noise),
        cmocka_unit_test(far_slopes_hardly_move_the_rate),
        cmocka_unit_test(more_of_a_lossy_feature_never_promises_more),
        cmocka_unit_test(what_a_lossy_feature_costs_is_learned),
        cmocka_unit_test(detrended_spread_is_that_of_the_noise),
        cmocka_unit_test(noise_ratio_sees_the_noisy_setting_only),
        cmocka_unit_test(settled_setting_does_not_become_its_own_reference),
        cmocka_unit_test(pure_noise_leaves_the_rate_at_the_pooled_one),
        cmocka_unit_test(slow_setting_is_seen_within_its_prior),
        cmocka_unit_test(lossy_features_survive_a_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
