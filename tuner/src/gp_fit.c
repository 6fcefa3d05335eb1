// MAP hyperparameters, the factor of the covariance matrix, and new rows.
#include "gp_internal.h"
#include "tuner_boxmin.h"
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

_Static_assert((int)TTI_GP_THETA_MAX <= (int)TTI_BOXMIN_DIMS_MAX, "the fit's unknowns must fit");

enum { EVALUATIONS_DEFAULT = 90 };

void
tti_gp_standardize(tt_gp *gp)
{
    double mean = 0, squares = 0, magnitude = 0;
    for (uint32_t i = 0; i < gp->rows; i++)
        mean += gp->y[i] / gp->rows;
    for (uint32_t i = 0; i < gp->rows; i++) {
        squares += (gp->y[i] - mean) * (gp->y[i] - mean);
        magnitude = fmax(magnitude, fabs(gp->y[i]));
    }
    double prior = gp->options.scale_rows, freedom = gp->rows - 1 + prior;
    gp->y_mean = mean;
    if (isinf(prior)) {
        gp->y_scale = gp->options.scale;
        return;
    }
    squares += prior * gp->options.scale * gp->options.scale;
    double scale = freedom > 0 ? sqrt(squares / freedom) : 0;
    // A constant y (to rounding) has no scale; any will do, and 1 keeps units readable.
    gp->y_scale = scale > 1e-12 * magnitude && scale > 1e-300 ? scale : 1;
}

tt_status
tti_gp_factor(double *matrix, double *copy, uint32_t n, uint32_t ld)
{
    static const double ladder[] = {0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4};
    double mean = 0;
    for (uint32_t i = 0; i < n; i++) {
        mean += matrix[(size_t)i * ld + i] / n;
        memcpy(copy + (size_t)i * ld, matrix + (size_t)i * ld, (i + 1) * sizeof *copy);
    }
    for (size_t step = 0; step < TT_COUNT_OF(ladder); step++) {
        for (uint32_t i = 0; i < n && step > 0; i++) {
            memcpy(matrix + (size_t)i * ld, copy + (size_t)i * ld, (i + 1) * sizeof *copy);
            matrix[(size_t)i * ld + i] += ladder[step] * mean;
        }
        // Row-major lower is column-major upper: K = U' U with U = L'.
        if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (int)n, matrix, (int)ld) == 0 &&
            isfinite(matrix[(size_t)(n - 1) * ld + n - 1]))
            return TT_OK;
    }
    return TT_NUMERIC;
}

static void
solve_alpha(tt_gp *gp)
{
    for (uint32_t i = 0; i < gp->rows; i++)
        gp->alpha[i] = (gp->y[i] - gp->y_mean) / gp->y_scale;
    LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'U', (int)gp->rows, 1, gp->chol, (int)gp->capacity,
                        gp->alpha, (int)gp->rows);
}

// Covariances of row i with rows 0 .. i, noise on the diagonal.
static void
covariance_row(const tt_gp *gp, const tti_gp_scales *s, uint32_t i, double *out)
{
    uint32_t dims = gp->options.dims;
    const double *x = gp->x + (size_t)i * dims;
    for (uint32_t j = 0; j < i; j++)
        out[j] = tti_gp_kernel(gp, s, x, gp->stage[i], gp->x + (size_t)j * dims, gp->stage[j]);
    out[i] = tti_gp_kernel_self(s) + tti_gp_trend(gp, s, x, x) +
             gp->noise[i] / (gp->y_scale * gp->y_scale) + s->noise / gp->repeats[i];
}

static tt_status
factor_all(tt_gp *gp, tt_error *err)
{
    tti_gp_scales scales;
    double *copy = tti_gp_scratch(gp, (size_t)gp->rows * gp->capacity);
    if (copy == NULL)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for %u rows", gp->rows);
    tti_gp_scales_set(gp, &gp->params, &scales);
    for (uint32_t i = 0; i < gp->rows; i++)
        covariance_row(gp, &scales, i, gp->chol + (size_t)i * gp->capacity);
    tt_status status = tti_gp_factor(gp->chol, copy, gp->rows, gp->capacity);
    if (status != TT_OK)
        return tt_error_set(err, status, "tuner", "leave out rows that are far out of scale",
                            "the covariance matrix of %u rows is not positive definite", gp->rows);
    gp->factored = gp->rows;
    gp->stale = 0;
    solve_alpha(gp);
    return TT_OK;
}

// Appends one row to the factor: l = L^-1 k, last = sqrt(k_ii - |l|^2). 0 when rounding leaves no
// positive remainder.
static int
border(tt_gp *gp, const tti_gp_scales *scales, uint32_t i)
{
    double *row = gp->chol + (size_t)i * gp->capacity;
    covariance_row(gp, scales, i, row);
    if (i > 0)
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)i, gp->chol,
                    (int)gp->capacity, row, 1);
    double rest = row[i];
    for (uint32_t j = 0; j < i; j++)
        rest -= row[j] * row[j];
    if (!(rest > 1e-12 * row[i]))
        return 0;
    row[i] = sqrt(rest);
    return 1;
}

tt_status
tt_gp_update(tt_gp *gp, tt_error *err)
{
    if (gp->rows == 0 || !gp->fitted)
        return tt_error_set(err, TT_INVALID, "tuner", NULL, "a process must be fitted first");
    if (gp->stale)
        return factor_all(gp, err);
    tti_gp_scales scales;
    tti_gp_scales_set(gp, &gp->params, &scales);
    while (gp->factored < gp->rows) {
        if (!border(gp, &scales, gp->factored))
            return factor_all(gp, err);
        gp->factored++;
    }
    solve_alpha(gp);
    return TT_OK;
}

// |L^-1 z|^2 / 2 + n log scale, without what does not depend on y.
double
tt_gp_log_density(const tt_gp *gp, const double *y)
{
    uint32_t n = gp->factored;
    double *z = tt_mem_alloc((size_t)TT_MAX(n, 1u) * sizeof *z);
    double mean = 0, squares = 0, density = (double)NAN;
    for (uint32_t i = 0; i < n; i++)
        mean += y[i] / n;
    for (uint32_t i = 0; i < n; i++)
        squares += (y[i] - mean) * (y[i] - mean);
    double scale = n > 1 ? sqrt(squares / (n - 1)) : 1;
    if (z != NULL && n > 0 && scale > 0) {
        for (uint32_t i = 0; i < n; i++)
            z[i] = (y[i] - mean) / scale;
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, gp->chol,
                    (int)gp->capacity, z, 1);
        density = -0.5 * cblas_ddot((int)n, z, 1, z, 1) - n * log(scale);
    }
    tt_mem_free(z);
    return density;
}

// One descent; keeps the better of it and *best.
static void
descend(tti_gp_objective *o,
        const tti_gp_layout *layout,
        uint32_t evaluations,
        double *theta,
        double *best,
        double *best_value)
{
    tti_boxmin_problem problem = {.n = layout->count,
                                  .lower = layout->lower,
                                  .upper = layout->upper,
                                  .function = tti_gp_objective_value,
                                  .self = o,
                                  .evaluations_max = evaluations,
                                  .gradient_tolerance = 1e-3,
                                  .step_max = 2};
    double value = tti_boxmin(&problem, theta, NULL);
    if (value < *best_value) {
        *best_value = value;
        memcpy(best, theta, layout->count * sizeof *best);
    }
}

static void
find_map(tt_gp *gp, tti_gp_objective *o, uint32_t evaluations)
{
    tti_gp_layout layout;
    tti_gp_layout_set(gp, &layout);
    double theta[TTI_GP_THETA_MAX], best[TTI_GP_THETA_MAX], value = INFINITY;
    // The starts share half of the evaluations; the rest goes to the best of them.
    uint32_t each = TT_MAX(evaluations / (gp->fitted ? 6 : 4), 1u);
    memcpy(best, layout.mean, sizeof best);
    if (gp->fitted) {
        tti_gp_pack(&layout, gp->options.dims, &gp->params, theta);
        descend(o, &layout, each, theta, best, &value);
    }
    if (evaluations >= 20 || !gp->fitted) {
        memcpy(theta, layout.mean, sizeof theta);
        theta[layout.noise] = log(1e-2);
        descend(o, &layout, each, theta, best, &value);
    }
    if (evaluations >= 20) {
        tt_rng rng;
        tt_rng_init(&rng, gp->options.seed, TT_RNG_TUNER, gp->fits);
        for (uint32_t j = 0; j < layout.count; j++)
            theta[j] = layout.mean[j] + layout.sd[j] * tt_rng_normal(&rng);
        descend(o, &layout, each, theta, best, &value);
    }
    memcpy(theta, best, sizeof theta);
    descend(o, &layout, TT_MAX(evaluations / 2, 1u), theta, best, &value);
    tti_gp_unpack(&layout, gp->options.dims, best, &gp->params);
    gp->log_posterior = -value;
}

tt_status
tt_gp_fit(tt_gp *gp, uint32_t evaluations, tt_error *err)
{
    if (gp->rows == 0)
        return tt_error_set(err, TT_INVALID, "tuner", NULL, "there is no row to fit");
    tti_gp_objective *objective;
    TT_TRY(tti_gp_objective_open(gp, &objective, err));
    find_map(gp, objective, evaluations > 0 ? evaluations : EVALUATIONS_DEFAULT);
    tti_gp_objective_close(objective);
    gp->fitted = 1;
    gp->fits++;
    return factor_all(gp, err);
}

void
tt_gp_start_at(tt_gp *gp, const tt_gp_params *params)
{
    TT_ASSERT(gp->factored == 0);
    gp->params = *params;
    gp->fitted = 1;
}

tt_status
tt_gp_set_params(tt_gp *gp, const tt_gp_params *params, tt_error *err)
{
    tti_gp_objective *objective;
    tti_gp_layout layout;
    double theta[TTI_GP_THETA_MAX], gradient[TTI_GP_THETA_MAX];
    if (gp->rows == 0)
        return tt_error_set(err, TT_INVALID, "tuner", NULL, "there is no row to fit");
    TT_TRY(tti_gp_objective_open(gp, &objective, err));
    tti_gp_layout_set(gp, &layout);
    tti_gp_pack(&layout, gp->options.dims, params, theta);
    gp->log_posterior = -tti_gp_objective_value(objective, theta, gradient);
    tti_gp_objective_close(objective);
    gp->params = *params;
    gp->fitted = 1;
    return factor_all(gp, err);
}
