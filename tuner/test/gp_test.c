// Goal: the Gaussian process computes what its page says, and never dies.
// Method: posterior and log posterior against numpy (gp_reference.h), gradients against central
// differences, a bordered row against a fresh factor, hostile data, allocation failures; what is
// drawn against the prior where nothing is known.
#include "gp_internal.h"
#include "gp_reference.h"
#include "tt/tuner_gp.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void
close_to(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * (fabs(expected) + 1e-3)))
        fail_msg("%.17g is not within %g of %.17g", value, relative, expected);
}

static tt_gp *
open_with_trend(tt_gp_model model, int trend, uint32_t rows)
{
    tt_gp_options options = {.model = model,
                             .dims = GP_DIMS,
                             .kind = {TT_GP_LINE, TT_GP_LINE, TT_GP_MISMATCH},
                             .trend_mean = gp_trend_prior_mean,
                             .trend_sd = trend ? gp_trend_prior_sd : 0};
    tt_gp *gp;
    assert_int_equal(tt_gp_open(&options, &gp, NULL), TT_OK);
    for (uint32_t i = 0; i < rows; i++)
        assert_int_equal(
            tt_gp_add(gp, gp_x[i], &(tt_gp_row){gp_stage[i], gp_y[i], gp_noise[i], 0}, NULL),
            TT_OK);
    return gp;
}

static tt_gp *
open_reference(tt_gp_model model, uint32_t rows)
{
    return open_with_trend(model, 0, rows);
}

static tt_gp_params
reference_params(void)
{
    tt_gp_params params = {.stage_length = gp_log_stage_length,
                           .signal = gp_log_signal,
                           .stage = gp_log_stage,
                           .cross = gp_log_cross,
                           .noise = gp_log_noise,
                           .trend = gp_log_trend};
    memcpy(params.length, gp_log_length, sizeof gp_log_length);
    return params;
}

typedef struct expected {
    tt_gp_model model;
    int trend;
    double log_posterior;
    const double *mean, *var, *delta_mean, *delta_var;
} expected;

static const expected cases[] = {
    {TT_GP_SUM, 0, gp_sum_log_posterior, gp_sum_mean, gp_sum_var, gp_sum_delta_mean,
     gp_sum_delta_var},
    {TT_GP_TIME, 0, gp_time_log_posterior, gp_time_mean, gp_time_var, gp_time_delta_mean,
     gp_time_delta_var},
    {TT_GP_PRODUCT, 0, gp_product_log_posterior, gp_product_mean, gp_product_var,
     gp_product_delta_mean, gp_product_delta_var},
    {TT_GP_SUM, 1, gp_trend_log_posterior, gp_trend_mean, gp_trend_var, gp_trend_delta_mean,
     gp_trend_delta_var},
};

static void
test_posterior(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT_OF(cases); c++) {
        tt_gp *gp = open_with_trend(cases[c].model, cases[c].trend, GP_ROWS);
        tt_gp_params params = reference_params();
        assert_int_equal(tt_gp_set_params(gp, &params, NULL), TT_OK);
        close_to(tt_gp_log_posterior(gp), cases[c].log_posterior, 1e-9);
        double mean[GP_QUERIES], var[GP_QUERIES];
        tt_gp_slice *slice;
        assert_int_equal(tt_gp_slice_open(gp, gp_query_stage, NULL, &slice, NULL), TT_OK);
        tt_gp_slice_eval(slice, &gp_query[0][0], GP_QUERIES, mean, var);
        for (int i = 0; i < GP_QUERIES; i++) {
            double alone;
            close_to(tt_gp_slice_mean(slice, gp_query[i]), mean[i], 1e-12);
            tt_gp_slice_eval(slice, gp_query[i], 1, &alone, NULL);
            assert_memory_equal(&alone, &mean[i], sizeof alone);
        }
        tt_gp_slice_close(slice);
        for (int i = 0; i < GP_QUERIES; i++) {
            close_to(mean[i], cases[c].mean[i], 1e-9);
            close_to(var[i], cases[c].var[i], 1e-9);
            double one_mean, one_var;
            tt_gp_predict(gp, gp_query[i], gp_query_stage, &one_mean, &one_var);
            close_to(one_mean, mean[i], 1e-12);
            close_to(one_var, var[i], 1e-12);
        }
        assert_int_equal(tt_gp_slice_open(gp, gp_query_stage, gp_x[3], &slice, NULL), TT_OK);
        tt_gp_slice_eval(slice, &gp_query[0][0], GP_QUERIES, mean, var);
        for (int i = 0; i < GP_QUERIES; i++) {
            close_to(mean[i], cases[c].delta_mean[i], 1e-9);
            close_to(tt_gp_slice_mean(slice, gp_query[i]), mean[i], 1e-12);
            close_to(var[i], cases[c].delta_var[i], 1e-9);
        }
        // The difference of a point with itself is exactly nothing, up to the floor.
        tt_gp_slice_eval(slice, gp_x[3], 1, mean, var);
        assert_true(fabs(mean[0]) < 1e-10 && var[0] < 1e-10);
        tt_gp_slice_close(slice);
        tt_gp_close(gp);
    }
}

static void
test_point_gradients(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT_OF(cases); c++)
        for (int with_reference = 0; with_reference < 2; with_reference++) {
            tt_gp *gp = open_with_trend(cases[c].model, cases[c].trend, GP_ROWS);
            tt_gp_params params = reference_params();
            assert_int_equal(tt_gp_set_params(gp, &params, NULL), TT_OK);
            tt_gp_slice *slice;
            const double *reference = with_reference ? gp_x[3] : NULL;
            assert_int_equal(tt_gp_slice_open(gp, 0.41, reference, &slice, NULL), TT_OK);
            double x[GP_DIMS], mean, var, dm[GP_DIMS], dv[GP_DIMS], m[2], v[2], h = 1e-6;
            memcpy(x, gp_query[1], sizeof x);
            tt_gp_slice_gradient(slice, x, &mean, &var, dm, dv);
            tt_gp_slice_eval(slice, x, 1, m, v);
            close_to(mean, m[0], 1e-10);
            close_to(var, v[0], 1e-9);
            for (int d = 0; d < 2; d++) {
                for (int side = 0; side < 2; side++) {
                    double moved[GP_DIMS];
                    memcpy(moved, x, sizeof x);
                    moved[d] += side ? h : -h;
                    tt_gp_slice_eval(slice, moved, 1, &m[side], &v[side]);
                }
                // Central differences of values good to 1e-13: 1e-7 at best.
                close_to(dm[d], (m[1] - m[0]) / (2 * h), 1e-5);
                close_to(dv[d], (v[1] - v[0]) / (2 * h), 1e-5);
            }
            assert_true(dm[2] == 0 && dv[2] == 0);
            tt_gp_slice_close(slice);
            tt_gp_close(gp);
        }
}

static void
test_fit_gradient(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT_OF(cases); c++) {
        tt_gp *gp = open_with_trend(cases[c].model, cases[c].trend, GP_ROWS);
        tti_gp_objective *objective;
        tti_gp_layout layout;
        assert_int_equal(tti_gp_objective_open(gp, &objective, NULL), TT_OK);
        tti_gp_layout_set(gp, &layout);
        double theta[TTI_GP_THETA_MAX], gradient[TTI_GP_THETA_MAX], scratch[TTI_GP_THETA_MAX];
        tt_gp_params params = reference_params();
        tti_gp_pack(&layout, GP_DIMS, &params, theta);
        (void)tti_gp_objective_value(objective, theta, gradient);
        for (uint32_t j = 0; j < layout.count; j++) {
            double h = 1e-5, at = theta[j];
            theta[j] = at + h;
            double up = tti_gp_objective_value(objective, theta, scratch);
            theta[j] = at - h;
            double down = tti_gp_objective_value(objective, theta, scratch);
            theta[j] = at;
            close_to(gradient[j], (up - down) / (2 * h), 1e-5);
        }
        tti_gp_objective_close(objective);
        tt_gp_close(gp);
    }
}

// A fit finds the same from an optimum that is only named as from one that is in force.
static void
test_start_of_a_fit(void **state)
{
    (void)state;
    const tt_gp_params params = reference_params();
    tt_gp *named = open_reference(TT_GP_SUM, GP_ROWS), *set = open_reference(TT_GP_SUM, GP_ROWS);
    tt_gp *anew = open_reference(TT_GP_SUM, GP_ROWS);
    tt_gp_slice *slice;
    tt_gp_params found[3];
    tt_gp_start_at(named, &params);
    assert_int_equal(tt_gp_slice_open(named, 0, NULL, &slice, NULL), TT_INVALID);
    assert_int_equal(tt_gp_set_params(set, &params, NULL), TT_OK);
    tt_gp *const all[] = {named, set, anew};
    for (size_t i = 0; i < TT_COUNT_OF(all); i++) {
        assert_int_equal(tt_gp_fit(all[i], 4, NULL), TT_OK);
        tt_gp_get_params(all[i], &found[i]);
    }
    assert_memory_equal(&found[0], &found[1], sizeof found[0]);
    assert_memory_not_equal(&found[0], &found[2], sizeof found[0]);
    for (size_t i = 0; i < TT_COUNT_OF(all); i++)
        tt_gp_close(all[i]);
}

// A process restarted after it knew other rows, and more of them, finds what a new one finds.
static void
test_restart(void **state)
{
    (void)state;
    tt_gp *again = open_with_trend(TT_GP_TIME, 1, GP_ROWS), *anew = NULL;
    tt_gp_options options = again->options;
    double mean[2], var[2];
    assert_int_equal(tt_gp_fit(again, 20, NULL), TT_OK);
    assert_int_equal(tt_gp_replace(again, 1, &(tt_gp_row){.y = 7}, NULL), TT_OK);
    tt_gp_restart(again, 9);
    options.seed = 9;
    assert_int_equal(tt_gp_open(&options, &anew, NULL), TT_OK);
    assert_int_equal(tt_gp_rows(again), 0);
    assert_true(isnan(tt_gp_log_posterior(again)) && tt_gp_noise_var(again) == 0);
    assert_int_equal(tt_gp_fit(again, 20, NULL), TT_INVALID);
    tt_gp *const both[] = {again, anew};
    for (size_t i = 0; i < TT_COUNT_OF(both); i++) {
        for (uint32_t row = 0; row + 3 < GP_ROWS; row++)
            assert_int_equal(
                tt_gp_add(both[i], gp_x[row], &(tt_gp_row){.y = gp_y[row] * gp_y[row]}, NULL),
                TT_OK);
        assert_int_equal(tt_gp_fit(both[i], 20, NULL), TT_OK);
        tt_gp_predict(both[i], gp_query[0], 0, &mean[i], &var[i]);
    }
    assert_true(mean[0] == mean[1] && var[0] == var[1]);
    assert_true(tt_gp_log_posterior(again) == tt_gp_log_posterior(anew));
    tt_gp_close(again);
    tt_gp_close(anew);
}

static void
test_bordered_row(void **state)
{
    (void)state;
    tt_gp *grown = open_reference(TT_GP_SUM, GP_ROWS - 3);
    tt_gp *fresh = open_reference(TT_GP_SUM, GP_ROWS);
    tt_gp_params params = reference_params();
    assert_int_equal(tt_gp_set_params(grown, &params, NULL), TT_OK);
    for (uint32_t i = GP_ROWS - 3; i < GP_ROWS; i++) {
        assert_int_equal(
            tt_gp_add(grown, gp_x[i], &(tt_gp_row){gp_stage[i], gp_y[i], gp_noise[i], 0}, NULL),
            TT_OK);
        assert_int_equal(tt_gp_update(grown, NULL), TT_OK);
    }
    // The same standardisation for both, for it is part of the prior.
    assert_int_equal(tt_gp_set_params(fresh, &params, NULL), TT_OK);
    fresh->y_mean = grown->y_mean;
    fresh->y_scale = grown->y_scale;
    fresh->stale = 1;
    assert_int_equal(tt_gp_update(fresh, NULL), TT_OK);
    for (int i = 0; i < GP_QUERIES; i++) {
        double a, b, va, vb;
        tt_gp_predict(grown, gp_query[i], 0.77, &a, &va);
        tt_gp_predict(fresh, gp_query[i], 0.77, &b, &vb);
        close_to(a, b, 1e-10);
        close_to(va, vb, 1e-9);
    }
    // A row told again: only then does the old factor no longer hold.
    assert_int_equal(
        tt_gp_replace(grown, 4, &(tt_gp_row){0.5, gp_y[4] + 1.3, gp_noise[4], 3}, NULL), TT_OK);
    assert_int_equal(tt_gp_update(grown, NULL), TT_OK);
    double before, after, var;
    tt_gp_predict(fresh, gp_x[4], gp_stage[4], &before, &var);
    tt_gp_predict(grown, gp_x[4], gp_stage[4], &after, &var);
    assert_true(after > before + 0.3);
    tt_gp_close(grown);
    tt_gp_close(fresh);
}

static void
test_fit_improves_and_generalises(void **state)
{
    (void)state;
    tt_gp_options options = {.model = TT_GP_TIME, .dims = 2, .seed = 77};
    tt_gp *gp;
    tt_rng rng;
    tt_rng_init(&rng, 5, TT_RNG_TEST, 0);
    assert_int_equal(tt_gp_open(&options, &gp, NULL), TT_OK);
    for (int i = 0; i < 40; i++) {
        double x[2] = {tt_rng_uniform(&rng), tt_rng_uniform(&rng)};
        double y = sin(6 * x[0]) + 0.02 * tt_rng_normal(&rng); // x[1] does nothing
        assert_int_equal(tt_gp_add(gp, x, &(tt_gp_row){.y = y}, NULL), TT_OK);
    }
    assert_int_equal(tt_gp_fit(gp, 0, NULL), TT_OK);
    tt_gp_params params;
    tt_gp_get_params(gp, &params);
    assert_true(params.length[1] > params.length[0] + 1); // found out
    double worst = 0;
    for (int i = 0; i < 50; i++) {
        double x[2] = {0.05 + 0.9 * tt_rng_uniform(&rng), tt_rng_uniform(&rng)}, mean, var;
        tt_gp_predict(gp, x, 0, &mean, &var);
        worst = fmax(worst, fabs(mean - sin(6 * x[0])));
    }
    assert_true(worst < 0.1); // 5 s.d. of one observation
    double fitted = tt_gp_log_posterior(gp);
    params.length[0] += 0.5;
    assert_int_equal(tt_gp_set_params(gp, &params, NULL), TT_OK);
    assert_true(tt_gp_log_posterior(gp) < fitted);
    tt_gp_close(gp);
}

static void
check_alive(tt_gp *gp, uint32_t dims)
{
    double x[TT_GP_DIMS_MAX], mean, var;
    assert_int_equal(tt_gp_fit(gp, 0, NULL), TT_OK);
    for (uint32_t d = 0; d < dims; d++)
        x[d] = 0.37 + 0.1 * d;
    tt_gp_predict(gp, x, 0.5, &mean, &var);
    assert_true(isfinite(mean) && isfinite(var) && var > 0);
}

static void
test_hostile_rows(void **state)
{
    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        for (size_t c = 0; c < TT_COUNT_OF(cases); c++) {
            tt_gp_options options = {
                .model = cases[c].model, .dims = 3, .seed = 1, .trend_sd = cases[c].trend ? 2 : 0};
            tt_gp *gp;
            tt_rng rng;
            tt_rng_init(&rng, 31, TT_RNG_TEST, (uint64_t)kind);
            assert_int_equal(tt_gp_open(&options, &gp, NULL), TT_OK);
            int rows = kind == 0 ? 1 : 24;
            for (int i = 0; i < rows; i++) {
                double x[3], y = tt_rng_normal(&rng);
                for (int d = 0; d < 3; d++)
                    x[d] = kind == 2 ? 0.4 : tt_rng_uniform(&rng); // 2: all the same point
                y = kind == 1 ? 7.25 : y;                          // 1: constant
                y = kind == 3 ? exp(14 * y) : y;                   // 3: 10^6 and more
                y = kind == 4 ? 1e12 + 1e-3 * y : y;               // 4: near rounding
                y = kind == 5 ? 1e-300 * y : y;                    // 5: tiny
                assert_int_equal(tt_gp_add(gp, x, &(tt_gp_row){.stage = 0.1 * i, .y = y}, NULL),
                                 TT_OK);
            }
            check_alive(gp, 3);
            tt_gp_close(gp);
        }
    }
}

static void
test_refusals(void **state)
{
    (void)state;
    tt_gp *gp = open_reference(TT_GP_SUM, 4);
    tt_error err;
    double x[GP_DIMS] = {0.1, NAN, 0.5}, good[GP_DIMS] = {0.1, 0.2, 0.5};
    assert_int_equal(tt_gp_add(gp, x, &(tt_gp_row){.y = 1}, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "a coordinate"));
    assert_int_equal(tt_gp_add(gp, good, &(tt_gp_row){.y = INFINITY}, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "its value"));
    assert_int_equal(tt_gp_add(gp, good, &(tt_gp_row){.stage = NAN}, &err), TT_INVALID);
    assert_int_equal(tt_gp_add(gp, good, &(tt_gp_row){.noise_var = -1e-9}, &err), TT_INVALID);
    assert_int_equal(tt_gp_replace(gp, 1, &(tt_gp_row){.repeats = NAN}, &err), TT_INVALID);
    assert_int_equal(tt_gp_rows(gp), 4);
    assert_int_equal(tt_gp_update(gp, &err), TT_INVALID); // not fitted
    tt_gp_slice *slice;
    assert_int_equal(tt_gp_slice_open(gp, 0, NULL, &slice, &err), TT_INVALID);
    assert_null(slice);
    tt_gp_close(gp);
    tt_gp_options options = {.dims = 0};
    assert_int_equal(tt_gp_open(&options, &gp, &err), TT_INVALID);
    options.dims = 2;
    assert_int_equal(tt_gp_open(&options, &gp, &err), TT_OK);
    assert_int_equal(tt_gp_fit(gp, 0, &err), TT_INVALID); // no row
    tt_gp_close(gp);
    tt_gp_close(NULL);
}

static void
test_out_of_memory(void **state)
{
    (void)state;
    int finished = 0;
    for (uint64_t n = 1; n < 60 && !finished; n++) {
        tt_gp_options options = {.model = TT_GP_SUM, .dims = GP_DIMS};
        tt_gp *gp = NULL;
        tt_gp_slice *slice = NULL;
        tt_mem_fail_nth(n);
        tt_status status = tt_gp_open(&options, &gp, NULL);
        for (uint32_t i = 0; i < 40 && status == TT_OK; i++) {
            double x[GP_DIMS] = {0.02 * i, 0.5, 0};
            status = tt_gp_add(gp, x, &(tt_gp_row){.y = gp_y[i % GP_ROWS]}, NULL);
        }
        status = status == TT_OK ? tt_gp_fit(gp, 3, NULL) : status;
        status = status == TT_OK ? tt_gp_slice_open(gp, 0, NULL, &slice, NULL) : status;
        finished = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        assert_int_equal(status, finished ? TT_OK : TT_NOMEM);
        tt_gp_slice_close(slice);
        tt_gp_close(gp);
    }
    assert_true(finished);
}

// ---- priors of its own, an unknown constant, other values, drawn hyperparameters
// ------------------

static void
test_unknown_constant(void **state)
{
    TT_UNUSED(state);
    // Many rows at the low end, one at the high end of y: far from all, the process is at their
    // mean without the constant, and with it where each end weighs about the same.
    tt_gp_options options = {.model = TT_GP_TIME, .dims = 1};
    for (int constant = 0; constant < 2; constant++) {
        tt_gp *gp;
        options.mean_var = constant ? 100 : 0;
        assert_int_equal(tt_gp_open(&options, &gp, NULL), TT_OK);
        double x, mean, var, far = 40;
        for (int i = 0; i < 9; i++) {
            x = 1e-3 * i;
            assert_int_equal(tt_gp_add(gp, &x, &(tt_gp_row){.y = 1}, NULL), TT_OK);
        }
        x = 20;
        assert_int_equal(tt_gp_add(gp, &x, &(tt_gp_row){.y = 11}, NULL), TT_OK);
        tt_gp_params params = {.signal = 0, .noise = log(1e-6)}; // length 1
        assert_int_equal(tt_gp_set_params(gp, &params, NULL), TT_OK);
        tt_gp_predict(gp, &far, 0, &mean, &var);
        close_to(mean, constant ? 6 : 2, 0.01);
        // The joint posterior of a difference knows no constant.
        tt_gp_slice *slice;
        assert_int_equal(tt_gp_slice_open(gp, 0, &x, &slice, NULL), TT_OK);
        tt_gp_slice_eval(slice, &x, 1, &mean, &var);
        assert_true(fabs(mean) < 1e-9);
        tt_gp_slice_close(slice);
        tt_gp_close(gp);
    }
}

// What was seen in a quarter of the range tells of the rest where the function has a trend, and
// only as far as a length scale where it has none. A knob of names has no trend.
static void
test_trend_reaches_far(void **state)
{
    TT_UNUSED(state);
    const double far[2] = {0.95, 0}, valley = 3 * (0.95 - 0.7) * (0.95 - 0.7);
    for (int trend = 0; trend < 2; trend++) {
        tt_gp_options options = {.model = TT_GP_TIME,
                                 .dims = 2,
                                 .kind = {TT_GP_LINE, TT_GP_MISMATCH},
                                 .mean_var = 3,
                                 .trend_sd = trend ? 2 : 0};
        tt_gp *gp;
        double mean, var, other;
        assert_int_equal(tt_gp_open(&options, &gp, NULL), TT_OK);
        for (int i = 0; i < 9; i++) {
            const double x[2] = {0.05 + 0.03 * i, 0};
            const double y = 3 * (x[0] - 0.7) * (x[0] - 0.7);
            assert_int_equal(tt_gp_add(gp, x, &(tt_gp_row){.y = y}, NULL), TT_OK);
        }
        tt_gp_params params = {
            .length = {log(0.2), 0}, .signal = log(1e-4), .noise = log(1e-8), .trend = 3};
        assert_int_equal(tt_gp_set_params(gp, &params, NULL), TT_OK);
        tt_gp_predict(gp, far, 0, &mean, &var);
        print_message("%.3f expected of %.3f, s.d. %.3f\n", mean, valley, sqrt(var));
        if (trend)
            assert_true(fabs(mean - valley) < 0.05);
        else
            assert_true(fabs(mean - valley) > 0.3);
        tt_gp_predict(gp, (const double[]){0.95, 1}, 0, &other, &var);
        assert_true(fabs(other - mean) < 0.05);
        tt_gp_close(gp);
    }
}

// Twenty rows that are all alike and differ in the first knob alone. Returns the s.d. of what
// another value of the second knob would bring.
static double
unsure_of_the_other_knob(double scale_rows)
{
    tt_gp_options options = {
        .model = TT_GP_TIME, .dims = 2, .scale = 0.7, .scale_rows = scale_rows, .signal_sd = 0.4};
    tt_gp *gp = NULL;
    double mean, var;
    assert_int_equal(tt_gp_open(&options, &gp, NULL), TT_OK);
    for (int i = 0; i < 20; i++) {
        const double x[2] = {i / 19.0, 0};
        assert_int_equal(
            tt_gp_add(gp, x, &(tt_gp_row){.y = 0.01 * (i % 2), .noise_var = 1e-4}, NULL), TT_OK);
    }
    assert_int_equal(tt_gp_fit(gp, 0, NULL), TT_OK);
    tt_gp_predict(gp, (const double[]){0.5, 1}, 0, &mean, &var);
    tt_gp_close(gp);
    return sqrt(var);
}

static void
test_spread_that_rows_do_not_teach(void **state)
{
    TT_UNUSED(state);
    double fixed = unsure_of_the_other_knob(INFINITY), learned = unsure_of_the_other_knob(2);
    print_message("s.d. along a knob that was never moved: %.3f, learned from the rows %.3f\n",
                  fixed, learned);
    assert_true(fixed > 0.35);
    assert_true(learned < 0.6 * fixed);
}

static void
test_density_of_other_values(void **state)
{
    TT_UNUSED(state);
    tt_gp *gp = open_reference(TT_GP_TIME, GP_ROWS);
    double y[GP_ROWS], rough[GP_ROWS];
    assert_true(isnan(tt_gp_log_density(gp, gp_y)));
    tt_gp_params params = reference_params();
    assert_int_equal(tt_gp_set_params(gp, &params, NULL), TT_OK);
    double own = tt_gp_log_density(gp, gp_y);
    for (int i = 0; i < GP_ROWS; i++) {
        y[i] = 3 - 2.5 * gp_y[i];
        rough[i] = gp_y[(i * 4) % GP_ROWS]; // the same values elsewhere
    }
    // A straight line changes the density by its slope alone.
    close_to(tt_gp_log_density(gp, y), own - GP_ROWS * log(2.5), 1e-9);
    assert_true(tt_gp_log_density(gp, rough) < own - 1);
    tt_gp_close(gp);
}

// One row tells nothing of lengths: what is drawn must have their prior, N(log median, sd), in the
// dimension `d`.
static void
check_length_prior(const tt_gp_options *options, int d, double median, double length_sd)
{
    enum { DRAWS = 3000 };
    tt_gp *gp;
    double x[2] = {0.3, 0.6}, sum = 0, squares = 0;
    assert_int_equal(tt_gp_open(options, &gp, NULL), TT_OK);
    assert_int_equal(tt_gp_sample(gp, 1, 1, NULL), TT_INVALID);
    assert_int_equal(tt_gp_add(gp, x, &(tt_gp_row){.y = 2}, NULL), TT_OK);
    assert_int_equal(tt_gp_fit(gp, 0, NULL), TT_OK);
    for (uint64_t i = 0; i < DRAWS; i++) {
        tt_gp_params params;
        assert_int_equal(tt_gp_sample(gp, 2, i, NULL), TT_OK);
        tt_gp_get_params(gp, &params);
        sum += params.length[d];
        squares += params.length[d] * params.length[d];
    }
    double mean = sum / DRAWS, sd = sqrt(squares / DRAWS - mean * mean);
    assert_true(fabs(mean - log(median)) < 0.1);
    assert_true(fabs(sd - length_sd) < 0.08);
    tt_gp_close(gp);
}

static void
test_drawn_hyperparameters(void **state)
{
    TT_UNUSED(state);
    const double root = sqrt(2.0 / 3);
    tt_gp_options options = {.model = TT_GP_TIME, .dims = 2, .seed = 5};
    check_length_prior(&options, 0, 0.6 * root, 0.8);
    options.kind[1] = TT_GP_MISMATCH;
    options.length_median = 0.3;
    options.length_growth = 1;
    options.length_sd = 0.5;
    check_length_prior(&options, 0, 0.3 * root * root, 0.5);
    check_length_prior(&options, 1, 0.6 * root, 0.8);
    options.mismatch_median = 1.5;
    check_length_prior(&options, 1, 1.5 * root, 0.8);
    // The same seed draws the same.
    tt_gp *one = open_reference(TT_GP_SUM, GP_ROWS), *two = open_reference(TT_GP_SUM, GP_ROWS);
    tt_gp_params a, b;
    assert_int_equal(tt_gp_fit(one, 0, NULL), TT_OK);
    assert_int_equal(tt_gp_fit(two, 0, NULL), TT_OK);
    assert_int_equal(tt_gp_sample(one, 20, 7, NULL), TT_OK);
    assert_int_equal(tt_gp_sample(two, 20, 7, NULL), TT_OK);
    tt_gp_get_params(one, &a);
    tt_gp_get_params(two, &b);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(tt_gp_sample(two, 20, 8, NULL), TT_OK);
    tt_gp_get_params(two, &b);
    assert_memory_not_equal(&a, &b, sizeof a);
    tt_gp_close(one);
    tt_gp_close(two);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posterior),
        cmocka_unit_test(test_point_gradients),
        cmocka_unit_test(test_fit_gradient),
        cmocka_unit_test(test_start_of_a_fit),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_bordered_row),
        cmocka_unit_test(test_fit_improves_and_generalises),
        cmocka_unit_test(test_hostile_rows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_unknown_constant),
        cmocka_unit_test(test_trend_reaches_far),
        cmocka_unit_test(test_spread_that_rows_do_not_teach),
        cmocka_unit_test(test_density_of_other_values),
        cmocka_unit_test(test_drawn_hyperparameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
