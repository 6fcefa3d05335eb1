// Goal: a plug-in's family is fitted, asked, inverted and weighed as well as a built-in one, and
// one that misbehaves is left out. Method: families given as tables, points of known laws with
// known noise, closed forms.
#include "est_curve.h"
#include "est_mix.h"
#include "est_robust.h"
#include "stretched.c" // the families of a plug-in, as tables
#include "tt/core.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

// --- families

// a exp(-b clock) with a floor that is given: 0.2.
static double
decay_loss(const double *p, double clock)
{
    return 0.2 + p[0] * exp(-p[1] * clock);
}

static double
decay_floor(const double *p)
{
    TT_UNUSED(p);
    return 0.2;
}

static int
decay_guess(const double *clock, const double *loss, uint32_t count, double target, double *p)
{
    TT_UNUSED(target);
    p[0] = loss[0];
    p[1] = 1 / clock[count - 1];
    return 1;
}

static const tt_curve decay = {.struct_size = sizeof(tt_curve),
                               .parameters = 2,
                               .name = "decay",
                               .help = "down to 0.2",
                               .prior = 1,
                               .guess = decay_guess,
                               .loss = decay_loss,
                               .floor = decay_floor};

static double
not_a_number(const double *p, double clock)
{
    TT_UNUSED(p);
    TT_UNUSED(clock);
    return NAN;
}

// Well until 400 iterations, nothing from there on: what was fitted cannot be asked.
static double
breaks_off(const double *p, double clock)
{
    return clock < 400 ? p[0] - p[1] * clock : NAN;
}

// No value about iteration 325: a fit of what came before is whole, and silent there.
static double
has_a_hole(const double *p, double clock)
{
    return clock > 300 && clock < 350 ? NAN : p[0] - p[1] * clock;
}

// Blows up far ahead.
static double
explodes(const double *p, double clock)
{
    return p[0] + p[1] * exp(clock);
}

static int
refuses(const double *clock, const double *loss, uint32_t count, double target, double *p)
{
    TT_UNUSED(clock);
    TT_UNUSED(loss);
    TT_UNUSED(count);
    TT_UNUSED(target);
    TT_UNUSED(p);
    return 0;
}

static int
guesses_nonsense(const double *clock, const double *loss, uint32_t count, double target, double *p)
{
    TT_UNUSED(clock);
    TT_UNUSED(loss);
    TT_UNUSED(count);
    TT_UNUSED(target);
    p[0] = NAN;
    p[1] = INFINITY;
    return 1;
}

// --- points

static tti_curve_data data;

// Blocks of 25 losses of a law, each loss with s.d. noise times its mean.
static void
fill(const double *truth, uint32_t count, double noise, double target, tt_rng *rng)
{
    data.count = count;
    data.target = target;
    for (uint32_t i = 0; i < count; i++) {
        const double x = 25.0 * i + 12.5, mean = stretched_loss(truth, x), sd = noise * mean / 5;
        data.x[i] = x;
        data.width[i] = 25;
        data.y[i] = mean + sd * tt_rng_normal(rng);
        data.variance[i] = sd * sd + 1e-18;
    }
}

static void
parameters_are_recovered_within_their_errors(void **state)
{
    TT_UNUSED(state);
    const double truth[4] = {1.73, 310, 0.7, 0.41};
    double squares = 0;
    enum { SEEDS = 20 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        tt_rng rng;
        tti_fit fit;
        tt_rng_init(&rng, seed, TT_RNG_TEST, 1);
        fill(truth, 60, 0.1, 0.5, &rng);
        data.y[17] += seed % 3 == 0 ? 0.9 : 0; // some have an outlier
        tti_curve_fit_points(&stretched, &data, data.count, &fit);
        assert_true(fit.ok);
        for (int k = 0; k < 4; k++) {
            const double z = (fit.curve.p[k] - truth[k]) / sqrt(fit.curve.covariance[k][k]);
            if (fabs(z) > 3)
                fail_msg("seed %d, p[%d] is %g s.d. off", (int)seed, k, z);
            squares += z * z;
        }
        double sd;
        const double ahead = tti_curve_predict(&stretched, &fit, 1800, &sd);
        assert_true(fabs(ahead - stretched_loss(truth, 1800)) < 3 * sd && sd < 0.05);
    }
    // errors that are told much too large would pass as well
    assert_in_range((long)(100 * sqrt(squares / SEEDS / 4)), 40, 140);
}

// What can be told at all: noise-free points.
static void
an_exact_law_is_found_exactly(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tti_fit fit;
    const double truth[4] = {2.385, 410, 0.63, 0.517};
    tt_rng_init(&rng, 1, TT_RNG_TEST, 0);
    fill(truth, 64, 0, 0.6, &rng);
    for (uint32_t i = 0; i < data.count; i++)
        data.variance[i] = 1e-8;
    tti_curve_fit_points(&stretched, &data, data.count, &fit);
    assert_true(fit.ok);
    for (int k = 0; k < 4; k++) // blocks are means over 25, points are not: 1 % of a bent curve
        assert_true(fabs(fit.curve.p[k] / truth[k] - 1) < 0.01);
    assert_true(fabs(stretched.floor(fit.curve.p) - 0.517) < 0.005);
}

static void
inverse_is_that_of_the_closed_form(void **state)
{
    TT_UNUSED(state);
    tti_fit fit = {.ok = 1, .noise_factor = 1, .curve = {.p = {1.9, 3.1e-3}, .origin = 40}};
    const double now = 560, target = 0.35, x = now - 40;
    fit.curve.covariance[0][0] = 1e-4;
    fit.curve.covariance[1][1] = 1e-9;
    tti_left left;
    tti_curve_inverse(&decay, &fit, now, target, &left);
    const double end = log(1.9 / 0.15) / 3.1e-3, k = end - x;
    assert_true(left.ok && left.unreachable == 0);
    assert_true(fabs(left.log_mean - log(k)) < 1e-9);
    // d k / d a = 1 / (a b), d k / d b = -end / b
    const double sd = sqrt(1e-4 / pow(1.9 * 3.1e-3, 2) + 1e-9 * pow(end / 3.1e-3, 2)) / k;
    assert_true(fabs(left.log_sd / sd - 1) < 1e-4); // of the differences
    tti_curve_inverse(&decay, &fit, now, 0.19, &left);
    assert_true(left.ok && left.unreachable == 1);
    tti_curve_inverse(&decay, &fit, 5000, target, &left); // long passed: half a per cent of the way
    assert_true(fabs(left.log_mean - log(0.005 * 4960)) < 1e-9);
}

// The floor near the target: the odds are those of its error, 4 to 1 for the reachable side.
static void
doubt_about_the_floor_is_doubt_about_reaching(void **state)
{
    TT_UNUSED(state);
    tti_fit fit = {.ok = 1, .noise_factor = 1, .curve = {.p = {1.2, 300, 0.8, 0.4}}};
    tti_left left, far;
    fit.curve.covariance[3][3] = 0.02 * 0.02;
    tti_curve_inverse(&stretched, &fit, 2000, 0.4 + 0.02 * 0.5, &left);
    const double under = tti_normal_cdf(0.5);
    assert_true(fabs(left.unreachable - (1 - under) / (4 * under + 1 - under)) < 1e-4);
    assert_true(isfinite(left.log_mean) && left.log_sd > 0.1 && left.log_sd <= 3);
    tti_curve_inverse(&stretched, &fit, 2000, 0.5, &far);
    assert_true(far.unreachable < 1e-6 && far.log_mean < left.log_mean);
    tti_curve_inverse(&stretched, &fit, 2000, 0.2, &far);
    assert_true(far.unreachable > 0.999);
}

// The error of a floor counts once: five quantiles of it have sqrt(0.767) of its s.d.
static void
the_error_of_the_floor_counts_once(void **state)
{
    TT_UNUSED(state);
    tti_fit fit = {.ok = 1, .noise_factor = 1, .curve = {.p = {1.2, 300, 0.8, 0.4}}};
    tti_left left;
    const double target = 0.55, now = 200, floor_sd = 1e-3;
    fit.curve.covariance[3][3] = floor_sd * floor_sd;
    tti_curve_inverse(&stretched, &fit, now, target, &left);
    const double end = 300 * pow(log(1.2 / 0.15), 1 / 0.8);
    // d loss / d clock where it meets the target
    const double fall = 0.15 * 0.8 / 300 * pow(end / 300, -0.2);
    assert_true(fabs(left.log_mean - log(end - now)) < 1e-4);
    assert_true(fabs(left.log_sd * fall * (end - now) / floor_sd / sqrt(0.767) - 1) < 0.01);
}

// A history that begins late, as of a job that goes on without what it knew.
static void
the_clock_begins_with_the_history(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tti_fit early, late;
    tti_left a, b;
    double sd[2];
    const double truth[4] = {1.4, 500, 0.8, 0.3}, shift = 0x1p22;
    tt_rng_init(&rng, 6, TT_RNG_TEST, 4);
    fill(truth, 50, 0.05, 0.4, &rng);
    tti_curve_fit_points(&stretched, &data, data.count, &early);
    for (uint32_t i = 0; i < data.count; i++)
        data.x[i] += shift;
    tti_curve_fit_points(&stretched, &data, data.count, &late);
    assert_true(early.ok && late.ok);
    assert_memory_equal(early.curve.p, late.curve.p, sizeof early.curve.p);
    assert_true(tti_curve_predict(&stretched, &early, 1500, &sd[0]) ==
                tti_curve_predict(&stretched, &late, 1500 + shift, &sd[1]));
    assert_true(sd[0] == sd[1]);
    tti_curve_inverse(&stretched, &early, 1250, 0.4, &a);
    tti_curve_inverse(&stretched, &late, 1250 + shift, 0.4, &b);
    assert_true(a.log_mean == b.log_mean && a.log_sd == b.log_sd);
}

// --- in the mix

typedef struct outcome {
    double weight; // of the plug-in
    double error;  // |log of the foretold iterations left over the true ones|
} outcome;

// 3000 pushes of a stretched exponential, which takes 12,000 to its target.
static outcome
train(uint64_t seed, int with)
{
    static const tt_curve *const curves[] = {&stretched};
    const double truth[4] = {2.1, 900, 0.45, 0.1},
                 target = 0.1 + 2.1 * exp(-pow(12000 / 900.0, 0.45));
    const tt_est_options options = {.target_loss = target,
                                    .budget_iterations = INFINITY,
                                    .curves = curves,
                                    .curve_count = with ? 1 : 0};
    tt_estimator *est;
    tt_est_remaining left;
    tt_est_window window;
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 5);
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    tt_estimator_begin(est, 1, 0, 4, NULL, 0);
    for (uint32_t i = 0; i < 3000; i++) {
        const double mean = stretched_loss(truth, i + 1.0);
        const tt_est_sample sample = {.sequence = i,
                                      .worker = i % 4,
                                      .examples = 32,
                                      .loss = mean * (1 + 0.03 * tt_rng_normal(&rng)),
                                      .time_s = 1e-3 * i,
                                      .cycle_s = 4e-3};
        tt_estimator_add(est, &sample);
        if (i % 100 == 99) // as a job asks: the weights learn from each block
            tt_estimator_remaining(est, &left);
    }
    tt_estimator_end(est, 1, &window);
    tt_estimator_remaining(est, &left);
    tt_est_family_state families[TT_EST_FAMILIES_MAX];
    const uint32_t count = tt_estimator_families(est, families, TT_EST_FAMILIES_MAX);
    assert_int_equal(count, TTI_FAMILIES + (with ? 1 : 0));
    outcome out = {0, fabs(left.log_iterations - log(9000))};
    if (with) {
        assert_string_equal(families[count - 1].name, "stretched");
        out.weight = families[count - 1].weight;
    }
    tt_estimator_close(est);
    return out;
}

static void
a_family_that_is_the_truth_gets_the_weight_and_helps(void **state)
{
    TT_UNUSED(state);
    double with = 0, without = 0, weight = 0;
    enum { SEEDS = 12 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const outcome own = train(seed, 1);
        with += own.error / SEEDS;
        weight += own.weight / SEEDS;
        without += train(seed, 0).error / SEEDS;
    }
    print_message("weight of the truth: %.2f\n", weight);
    assert_true(weight > 0.4); // of twelve families
    if (!(with < 0.7 * without))
        fail_msg("error of log iterations left %.3f with the family, %.3f without", with, without);
}

// --- families that misbehave

static void
a_family_without_numbers_is_left_out(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    const double truth[4] = {1.4, 500, 0.8, 0.3};
    tt_curve curve = decay;
    tti_fit fit;
    tt_rng_init(&rng, 3, TT_RNG_TEST, 2);
    fill(truth, 40, 0.05, 0.4, &rng);
    for (int kind = 0; kind < 5; kind++) {
        curve.loss = kind == 0   ? not_a_number
                     : kind == 1 ? breaks_off
                     : kind == 2 ? explodes
                                 : decay_loss;
        curve.guess = kind == 3 ? refuses : kind == 4 ? guesses_nonsense : decay_guess;
        curve.floor = kind == 0 ? NULL : decay_floor;
        memset(&fit, 0xff, sizeof fit);
        tti_curve_fit_points(&curve, &data, data.count, &fit);
        assert_int_equal(fit.ok, 0);
        tti_left left;
        tti_curve_inverse(&curve, &fit, 1000, 0.4, &left);
        assert_int_equal(left.ok, 0);
    }
    for (uint32_t count = 0; count < 6;
         count++) { // too few points for four numbers and their errors
        tti_curve_fit_points(&stretched, &data, count, &fit);
        assert_int_equal(fit.ok, 0);
    }
}

// A fit that was made, asked where the curve has no value, must not reach the weights.
static void
silence_in_the_mix_is_no_harm(void **state)
{
    TT_UNUSED(state);
    static tti_mix mix;
    static tti_series history;
    tti_families families;
    tt_curve curve = decay;
    uint32_t fitted = 0;
    curve.loss = has_a_hole;
    curve.floor = NULL;
    tti_families_init(&families);
    assert_int_equal(tti_families_add(&families, &curve, "here", NULL), TT_OK);
    assert_int_equal(tti_families_add(&families, &stretched, "here", NULL), TT_OK);
    tti_mix_reset(&mix, &families);
    tti_series_reset(&history);
    tti_mixture left;
    for (int i = 0; i < 30; i++) {
        const double clock = 25.0 * i + 12.5, mean = 0.3 + exp(-3e-3 * clock);
        const tti_block block = {clock, clock, 25, mean + 1e-3 * (i % 3), 1e-4, 1e-4, 25};
        (void)tti_series_append(&history, &block);
        tti_mix_sync(&mix, &families, &history, 0.35);
        double total = 0;
        fitted += clock < 300 && mix.fits[TTI_FAMILIES].ok;
        for (uint32_t f = 0; f < families.count; f++)
            total += mix.weight[f];
        assert_true(fabs(total - 1) < 1e-12);
        tti_mix_left(&mix, &families, clock, 0.35, &(tti_swings){0}, &left);
        assert_true(left.unreachable >= 0 && left.unreachable <= 1);
    }
    assert_true(fitted > 5);
    assert_int_equal(mix.fits[TTI_FAMILIES].ok, 0);
    assert_int_equal(mix.fits[TTI_FAMILIES + 1].ok, 1);
}

// Degenerate data: whatever is answered is a number in range.
static void
a_family_survives_degenerate_data(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    const double truth[4] = {1.4, 500, 0.8, 0.3};
    const tt_curve *const curves[] = {&stretched, &decay};
    tt_rng_init(&rng, 4, TT_RNG_TEST, 3);
    for (int kind = 0; kind < 6; kind++)
        for (uint32_t count = 4; count <= 40; count += 6) {
            fill(truth, count, kind == 0 ? 0 : 0.05, 0.4, &rng);
            for (uint32_t i = 0; i < count; i++) {
                data.y[i] = kind == 1 ? 0.7 : data.y[i];    // constant
                data.y[i] += kind == 2 ? 0.1 * i : 0;       // rising
                data.y[i] -= kind == 3 ? 3 + 0.01 * i : 0;  // negative
                data.y[i] *= kind == 4 ? exp(-4.0 * i) : 1; // down to underflow
                data.x[i] += kind == 5 ? 1e9 : 0;           // a long job
                data.variance[i] = fmax(data.variance[i], 1e-12);
            }
            for (size_t c = 0; c < TT_COUNT_OF(curves); c++) {
                tti_fit fit;
                tti_left left;
                double sd;
                tti_curve_fit_points(curves[c], &data, count, &fit);
                if (!fit.ok)
                    continue;
                assert_true(isfinite(tti_curve_predict(curves[c], &fit, data.x[count - 1], &sd)));
                assert_true(isfinite(sd) && fit.noise_factor > 0);
                for (double target = -4; target < 4; target += 0.37) {
                    tti_curve_inverse(curves[c], &fit, data.x[count - 1], target, &left);
                    if (!left.ok)
                        continue;
                    assert_true(left.log_mean >= 0 && left.log_mean <= log(TTI_ITERATIONS_MAX));
                    assert_true(left.log_sd >= 0 && left.log_sd <= 3);
                    assert_true(left.unreachable >= 0 && left.unreachable <= 1);
                }
            }
        }
}

// --- in the estimator

static void
expect_refusal(tt_curve curve, tt_status status, const char *says)
{
    const tt_curve *const curves[] = {&stretched, &curve};
    const tt_est_options options = {.target_loss = 0.3,
                                    .budget_iterations = INFINITY,
                                    .curves = curves,
                                    .curve_count = TT_COUNT_OF(curves)};
    tt_estimator *est;
    tt_error err = {0};
    assert_int_equal(tt_estimator_open(&options, &est, &err), status);
    assert_null(est);
    if (strstr(err.what, says) == NULL)
        fail_msg("says '%s', not '%s'", err.what, says);
    assert_true(err.where[0] != '\0' && err.advice[0] != '\0');
}

#define REFUSED(status_, says_, change_)                                                           \
    do {                                                                                           \
        tt_curve curve = decay;                                                                    \
        change_;                                                                                   \
        expect_refusal(curve, status_, says_);                                                     \
    } while (0)

static void
descriptions_that_break_the_rules_are_refused(void **state)
{
    TT_UNUSED(state);
    REFUSED(TT_INVALID, "has no name", curve.name = NULL);
    REFUSED(TT_INVALID, "[a-z][a-z0-9_]*", curve.name = "");
    REFUSED(TT_INVALID, "[a-z][a-z0-9_]*", curve.name = "2fast");
    REFUSED(TT_INVALID, "[a-z][a-z0-9_]*", curve.name = "my-curve");
    REFUSED(TT_INVALID, "40 characters", curve.name = "a23456789_123456789_123456789_123456789_1");
    REFUSED(TT_INVALID, "no help", curve.help = NULL);
    REFUSED(TT_INVALID, "one line", curve.help = "two\nlines");
    REFUSED(TT_INVALID, "1 to 6", curve.parameters = 0);
    REFUSED(TT_INVALID, "1 to 6", curve.parameters = 7);
    REFUSED(TT_INVALID, "at most 10", curve.prior = 0);
    REFUSED(TT_INVALID, "at most 10", curve.prior = 10.5);
    REFUSED(TT_INVALID, "at most 10", curve.prior = NAN);
    REFUSED(TT_INVALID, "needs both", curve.guess = NULL);
    REFUSED(TT_INVALID, "needs both", curve.loss = NULL);
    REFUSED(TT_EXISTS, "'stretched' exists already", curve.name = "stretched");
    REFUSED(TT_EXISTS, "'slaq' exists already (built in)", curve.name = "slaq");
}

static void
opening_with_families_has_bounds(void **state)
{
    TT_UNUSED(state);
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    tt_curve own[6];
    const tt_curve *list[6];
    for (int c = 0; c < 6; c++) {
        own[c] = decay;
        own[c].name = names[c];
        list[c] = &own[c];
    }
    tt_est_options options = {
        .target_loss = 0.3, .budget_iterations = INFINITY, .curves = list, .curve_count = 6};
    tt_estimator *est;
    tt_error err = {0};
    assert_int_equal(tt_estimator_open(&options, &est, &err), TT_RANGE);
    options.curve_count = TT_EST_CURVES_MAX;
    for (uint64_t nth = 1;; nth++) {
        tt_mem_fail_nth(nth);
        const tt_status status = tt_estimator_open(&options, &est, &err);
        if (tt_mem_fail_pending())
            break;
        assert_int_equal(status, TT_NOMEM);
        assert_null(est);
    }
    tt_mem_fail_nth(0);
    tt_est_family_state families[TT_EST_FAMILIES_MAX];
    assert_int_equal(tt_estimator_families(est, families, 9), 9);
    assert_int_equal(tt_estimator_families(est, families, 99), TT_EST_FAMILIES_MAX);
    assert_string_equal(families[TTI_FAMILIES].name, "a");
    tt_estimator_close(est);
}

static tt_estimator *
open_with(const tt_curve *a, const tt_curve *b)
{
    const tt_curve *const curves[] = {a, b};
    const tt_est_options options = {.target_loss = 0.3,
                                    .budget_iterations = INFINITY,
                                    .curves = curves,
                                    .curve_count = a == NULL   ? 0
                                                   : b == NULL ? 1
                                                               : 2};
    tt_estimator *est;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    return est;
}

// Fits and weights are laid down by place: only the same families in the same order take them up.
static void
what_was_learned_with_other_families_is_refused(void **state)
{
    TT_UNUSED(state);
    tt_archive saved = {0}, in;
    tt_estimator *est = open_with(&stretched, &decay);
    tt_estimator_begin(est, 1, 0, 1, NULL, 0);
    for (uint32_t i = 0; i < 2000; i++) {
        const tt_est_sample sample = {.sequence = i,
                                      .examples = 32,
                                      .loss = 0.25 + 0.7 * exp(-6e-4 * i),
                                      .time_s = 1e-3 * i,
                                      .cycle_s = 1e-3};
        tt_estimator_add(est, &sample);
    }
    tt_est_window window;
    tt_estimator_end(est, 1, &window);
    tt_est_remaining before, after;
    tt_estimator_remaining(est, &before);
    tt_estimator_save(est, &saved);
    tt_estimator *const others[] = {open_with(NULL, NULL), open_with(&stretched, NULL),
                                    open_with(&decay, &stretched)};
    for (size_t i = 0; i < TT_COUNT_OF(others); i++) {
        tt_archive_read(&in, saved.bytes, saved.count);
        assert_int_equal(tt_estimator_load(others[i], &in), TT_CORRUPT);
        assert_int_equal(tt_estimator_iterations(others[i]), 0);
        tt_estimator_close(others[i]);
    }
    tt_estimator *same = open_with(&stretched, &decay);
    tt_archive_read(&in, saved.bytes, saved.count);
    assert_int_equal(tt_estimator_load(same, &in), TT_OK);
    tt_estimator_remaining(same, &after);
    assert_true(before.log_iterations == after.log_iterations);
    assert_true(before.log_iterations_sd == after.log_iterations_sd);
    tt_archive_fini(&saved);
    tt_estimator_close(est);
    tt_estimator_close(same);
}

int
main(void)
{
    tti_curve_prepare(); // the tests below fit before any estimator is opened
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_recovered_within_their_errors),
        cmocka_unit_test(an_exact_law_is_found_exactly),
        cmocka_unit_test(inverse_is_that_of_the_closed_form),
        cmocka_unit_test(doubt_about_the_floor_is_doubt_about_reaching),
        cmocka_unit_test(the_error_of_the_floor_counts_once),
        cmocka_unit_test(the_clock_begins_with_the_history),
        cmocka_unit_test(a_family_that_is_the_truth_gets_the_weight_and_helps),
        cmocka_unit_test(a_family_without_numbers_is_left_out),
        cmocka_unit_test(silence_in_the_mix_is_no_harm),
        cmocka_unit_test(a_family_survives_degenerate_data),
        cmocka_unit_test(descriptions_that_break_the_rules_are_refused),
        cmocka_unit_test(opening_with_families_has_bounds),
        cmocka_unit_test(what_was_learned_with_other_families_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
