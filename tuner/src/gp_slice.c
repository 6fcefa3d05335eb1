// Posterior of the process at one stage, for many points, with gradients.
//
//     a_i  = s_x^2 + s_xc^2 k(c, c_i)      b_i = s_c^2 k(c, c_i) + the constant's variance
//     k_i  = M(x, x_i) a_i + b_i + t(x, x_i), t the trend
//     mean = k' alpha                      var = K(x, x) - |L^-1 k|^2
//
// and for f(x) - f(ref), both at the same stage,
//
//     var  = 2 K(x, x) - 2 K(x, ref) - |L^-1 (k - k_ref)|^2
#include "gp_internal.h"
#include <cblas.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 64, LINES = 8 };

struct tt_gp_slice {
    const tt_gp *gp;
    tti_gp_scales scales;
    uint32_t n;
    double stage;
    double *a, *b, *offset; // n; offset: the stage's share of r^2 under "product"
    double *k_ref;          // n: covariances with the reference, 0 without one
    double *k;              // n x BLOCK
    double *features;       // n x width of the trend
    double *columns;        // dims x n: the rows' coordinates, each together
    double *r, *decay;      // n: scaled distances, e^-r
    double *lines;          // LINES x n: covariances of some points
    double *solved, *slope; // n, for gradients
    double reference[TT_GP_DIMS_MAX];
    double features_ref[TTI_GP_FEATURES_MAX]; // of the trend, 0 without a reference
    int has_reference;
    double mean_ref;
};

// Adds the trend's covariances of up to LINES points with the rows to k, count x n.
static void
add_trend(const tt_gp_slice *s, const double *x, uint32_t count, double *k)
{
    const int width = (int)tti_gp_trend_width(s->gp), n = (int)s->n;
    double features[LINES * TTI_GP_FEATURES_MAX];
    if (width == 0)
        return;
    for (uint32_t p = 0; p < count; p++)
        tti_gp_trend_features(s->gp, x + (size_t)p * s->gp->options.dims,
                              features + (size_t)p * (size_t)width);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, n, width, s->scales.trend,
                features, width, s->features, width, 1, k, n);
}

// tti_gp_distance2 to all rows, dimension by dimension, which a compiler makes vectors of.
static void
distances2(const tt_gp_slice *s, const double *x, double *restrict r2)
{
    const tt_gp *gp = s->gp;
    memset(r2, 0, s->n * sizeof *r2);
    for (uint32_t d = 0; d < gp->options.dims; d++) {
        const double at = x[d], weight = s->scales.weight[d];
        const double *restrict column = s->columns + (size_t)d * s->n;
        if (gp->options.kind[d] == TT_GP_MISMATCH)
            for (uint32_t i = 0; i < s->n; i++)
                r2[i] += at != column[i] ? weight : 0;
        else
            for (uint32_t i = 0; i < s->n; i++)
                r2[i] += weight * (at - column[i]) * (at - column[i]);
    }
}

// Covariances of x with the rows, without the trend: tti_gp_matern in three steps, of which the
// first and the last are vectors.
static void
stationary(const tt_gp_slice *s, const double *x, double *restrict k)
{
    const double *restrict a = s->a, *restrict b = s->b, *restrict offset = s->offset;
    double *restrict r = s->r, *restrict decay = s->decay;
    distances2(s, x, r);
    for (uint32_t i = 0; i < s->n; i++)
        r[i] = sqrt(5 * (r[i] + offset[i]));
    for (uint32_t i = 0; i < s->n; i++)
        decay[i] = exp(-r[i]);
    for (uint32_t i = 0; i < s->n; i++)
        k[i] = a[i] * ((1 + r[i] + r[i] * r[i] / 3) * decay[i]) + b[i];
}

// Covariances of up to LINES points with the rows to k, count x n.
static void
covariances(const tt_gp_slice *s, const double *x, uint32_t count, double *k)
{
    for (uint32_t p = 0; p < count; p++)
        stationary(s, x + (size_t)p * s->gp->options.dims, k + (size_t)p * s->n);
    add_trend(s, x, count, k);
}

static void
prepare(tt_gp_slice *s)
{
    const tt_gp *gp = s->gp;
    for (uint32_t i = 0; i < s->n; i++) {
        double c = s->stage - gp->stage[i], c2 = s->scales.stage_weight * c * c;
        if (gp->options.model == TT_GP_SUM) {
            double k = tti_gp_matern(c2);
            s->a[i] = s->scales.signal + s->scales.cross * k;
            s->b[i] = s->scales.stage * k;
        } else {
            s->a[i] = s->scales.signal;
            s->offset[i] = c2;
        }
        s->b[i] += s->scales.constant;
    }
}

tt_status
tt_gp_slice_open(
    const tt_gp *gp, double stage, const double *reference, tt_gp_slice **out, tt_error *err)
{
    *out = NULL;
    if (!gp->fitted || gp->factored == 0)
        return tt_error_set(err, TT_INVALID, "tuner", NULL, "a process must be fitted first");
    const uint32_t n = gp->factored, dims = gp->options.dims;
    tt_gp_slice *s = tt_mem_zalloc(1, sizeof *s);
    const uint32_t width = tti_gp_trend_width(gp);
    double *numbers =
        tt_mem_zalloc_vector((size_t)n * (8 + LINES + BLOCK + width + dims), sizeof *numbers);
    if (s == NULL || numbers == NULL) {
        tt_mem_free(s);
        tt_mem_free(numbers);
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for a posterior of %u rows",
                            n);
    }
    *s = (tt_gp_slice){.gp = gp, .n = n, .stage = stage, .a = numbers};
    s->b = s->a + n;
    s->offset = s->b + n;
    s->k_ref = s->offset + n;
    s->solved = s->k_ref + n;
    s->slope = s->solved + n;
    s->k = s->slope + n;
    s->features = s->k + (size_t)n * BLOCK;
    s->columns = s->features + (size_t)n * width;
    s->r = s->columns + (size_t)n * dims;
    s->decay = s->r + n;
    s->lines = s->decay + n;
    for (uint32_t i = 0; i < n; i++) {
        const double *row = gp->x + (size_t)i * dims;
        tti_gp_trend_features(gp, row, s->features + (size_t)i * width);
        for (uint32_t d = 0; d < dims; d++)
            s->columns[(size_t)d * n + i] = row[d];
    }
    tti_gp_scales_set(gp, &gp->params, &s->scales);
    prepare(s);
    if (reference != NULL) {
        memcpy(s->reference, reference, dims * sizeof *reference);
        s->has_reference = 1;
        tti_gp_trend_features(gp, s->reference, s->features_ref);
        covariances(s, s->reference, 1, s->k_ref);
        s->mean_ref = cblas_ddot((int)n, s->k_ref, 1, gp->alpha, 1);
    }
    *out = s;
    return TT_OK;
}

void
tt_gp_slice_close(tt_gp_slice *slice)
{
    if (slice != NULL)
        tt_mem_free(slice->a);
    tt_mem_free(slice);
}

static double
square(double x)
{
    return x * x;
}

// Prior variance of what is asked: of f(x), or of f(x) - f(reference).
static double
prior_variance(const tt_gp_slice *s, const double *x, double *matern)
{
    double features[TTI_GP_FEATURES_MAX], trend = 0;
    tti_gp_trend_features(s->gp, x, features);
    for (uint32_t f = 0; f < tti_gp_trend_width(s->gp); f++)
        trend += s->scales.trend * square(features[f] - s->features_ref[f]);
    if (!s->has_reference)
        return tti_gp_kernel_self(&s->scales) + trend;
    double r2 = tti_gp_distance2(s->gp, &s->scales, x, s->reference);
    double m = tti_gp_matern(r2);
    if (matern != NULL)
        *matern = r2;
    // What both share (the stage alone) cancels.
    return 2 * (s->scales.signal + s->scales.cross) * (1 - m) + trend;
}

static double
floor_variance(const tt_gp_slice *s, double variance)
{
    return fmax(variance, 1e-12 * s->scales.signal);
}

// Covariances of the points with the rows, a row's together, to s->k.
static void
fill_block(tt_gp_slice *s, const double *x, uint32_t count)
{
    const size_t dims = s->gp->options.dims, n = s->n;
    for (uint32_t from = 0; from < count; from += LINES) {
        const uint32_t lines = TT_MIN(count - from, (uint32_t)LINES);
        covariances(s, x + from * dims, lines, s->lines);
        for (size_t i = 0; i < n; i++)
            for (uint32_t p = 0; p < lines; p++)
                s->k[i * BLOCK + from + p] = s->lines[p * n + i];
    }
}

// Covariances of the points with the rows (less those of the reference) to s->k, and their means.
static void
mean_block(tt_gp_slice *s, const double *x, uint32_t count, double *mean)
{
    const tt_gp *gp = s->gp;
    double sum[BLOCK] = {0};
    fill_block(s, x, count);
    for (uint32_t i = 0; i < s->n; i++) {
        double *restrict k = s->k + (size_t)i * BLOCK;
        const double alpha = gp->alpha[i], ref = s->k_ref[i];
        for (uint32_t p = 0; p < count; p++) {
            sum[p] += k[p] * alpha;
            k[p] -= ref;
        }
    }
    double scale = gp->y_scale, offset = s->has_reference ? -s->mean_ref * scale : gp->y_mean;
    for (uint32_t p = 0; p < count; p++)
        mean[p] = offset + scale * sum[p];
}

// After mean_block.
static void
variance_block(tt_gp_slice *s, const double *x, uint32_t count, double *var)
{
    const tt_gp *gp = s->gp;
    if (count == 1) // the other one copies the whole triangle first
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)s->n, gp->chol,
                    (int)gp->capacity, s->k, BLOCK);
    else
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)s->n,
                    (int)count, 1, gp->chol, (int)gp->capacity, s->k, BLOCK);
    double sum[BLOCK] = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        const double *restrict k = s->k + (size_t)i * BLOCK;
        for (uint32_t p = 0; p < count; p++)
            sum[p] += k[p] * k[p];
    }
    for (uint32_t p = 0; p < count; p++) {
        const double prior = prior_variance(s, x + (size_t)p * gp->options.dims, NULL);
        var[p] = gp->y_scale * gp->y_scale * floor_variance(s, prior - sum[p]);
    }
}

void
tt_gp_slice_eval(tt_gp_slice *slice, const double *x, uint32_t count, double *mean, double *var)
{
    size_t dims = slice->gp->options.dims;
    for (uint32_t at = 0; at < count; at += BLOCK) {
        const uint32_t n = TT_MIN(count - at, (uint32_t)BLOCK);
        mean_block(slice, x + at * dims, n, mean + at);
        if (var != NULL)
            variance_block(slice, x + at * dims, n, var + at);
    }
}

double
tt_gp_slice_mean(tt_gp_slice *slice, const double *x)
{
    tt_gp_slice *s = slice;
    const tt_gp *gp = s->gp;
    covariances(s, x, 1, s->k);
    double mean = cblas_ddot((int)s->n, s->k, 1, gp->alpha, 1);
    return (s->has_reference ? -s->mean_ref * gp->y_scale : gp->y_mean) + gp->y_scale * mean;
}

// Adds what the trend adds to the gradients; s->solved holds K^-1 (k - k_ref).
static void
add_trend_gradient(const tt_gp_slice *s, const double *x, double *mean_grad, double *var_grad)
{
    const tt_gp *gp = s->gp;
    const int width = (int)tti_gp_trend_width(gp);
    const double mean_unit = gp->y_scale * s->scales.trend, var_unit = gp->y_scale * mean_unit;
    double by_mean[TTI_GP_FEATURES_MAX], by_var[TTI_GP_FEATURES_MAX];
    if (width == 0)
        return;
    tti_gp_trend_features(gp, x, by_var);
    cblas_daxpy(width, -1, s->features_ref, 1, by_var, 1);
    cblas_dgemv(CblasRowMajor, CblasTrans, (int)s->n, width, -2, s->features, width, s->solved, 1,
                2, by_var, 1);
    cblas_dgemv(CblasRowMajor, CblasTrans, (int)s->n, width, 1, s->features, width, gp->alpha, 1, 0,
                by_mean, 1);
    for (uint32_t d = 0, at = 0; d < gp->options.dims; d++) {
        if (gp->options.kind[d] != TT_GP_LINE)
            continue;
        mean_grad[d] += mean_unit * tti_gp_trend_slope(x[d], by_mean + at);
        var_grad[d] += var_unit * tti_gp_trend_slope(x[d], by_var + at);
        at += 2;
    }
}

//     d mean    = sum_i alpha_i dk_i
//     d var     = d prior - 2 sum_i w_i dk_i,            w = K^-1 (k - k_ref)
//     dk_i/dx_d = - a_i slope(r_i^2) (x_d - x_id) / l_d^2,  slope = (5/3)(1 + sqrt5 r) e^(-sqrt5 r)
//
// and what the trend, inner products of features, adds to them.
void
tt_gp_slice_gradient(tt_gp_slice *slice,
                     const double *x,
                     double *mean,
                     double *var,
                     double *mean_grad,
                     double *var_grad)
{
    tt_gp_slice *s = slice;
    const tt_gp *gp = s->gp;
    uint32_t dims = gp->options.dims;
    *mean = 0;
    memset(s->k, 0, s->n * sizeof *s->k);
    add_trend(s, x, 1, s->k);
    for (uint32_t i = 0; i < s->n; i++) {
        double r2 = tti_gp_distance2(gp, &s->scales, x, gp->x + (size_t)i * dims) + s->offset[i];
        double k = s->a[i] * tti_gp_matern(r2) + s->b[i] + s->k[i];
        s->slope[i] = s->a[i] * tti_gp_matern_slope(r2);
        *mean += k * gp->alpha[i];
        s->k[i] = s->solved[i] = k - s->k_ref[i];
    }
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)s->n, gp->chol,
                (int)gp->capacity, s->solved, 1);
    double squares = cblas_ddot((int)s->n, s->solved, 1, s->solved, 1), ref_r2 = 0;
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasTrans, CblasNonUnit, (int)s->n, gp->chol,
                (int)gp->capacity, s->solved, 1);
    double prior = prior_variance(s, x, &ref_r2), scale = gp->y_scale;
    double ref_slope = s->has_reference
                           ? 2 * (s->scales.signal + s->scales.cross) * tti_gp_matern_slope(ref_r2)
                           : 0;
    for (uint32_t d = 0; d < dims; d++) {
        double dm = 0, dv = 0, w = s->scales.weight[d];
        if (gp->options.kind[d] == TT_GP_LINE) {
            for (uint32_t i = 0; i < s->n; i++) {
                double dk = -s->slope[i] * w * (x[d] - gp->x[(size_t)i * dims + d]);
                dm += gp->alpha[i] * dk;
                dv -= 2 * s->solved[i] * dk;
            }
            if (s->has_reference)
                dv += ref_slope * w * (x[d] - s->reference[d]);
        }
        mean_grad[d] = scale * dm;
        var_grad[d] = scale * scale * dv;
    }
    add_trend_gradient(s, x, mean_grad, var_grad);
    *mean = (s->has_reference ? -s->mean_ref * scale : gp->y_mean) + scale * *mean;
    *var = scale * scale * floor_variance(s, prior - squares);
}

void
tt_gp_predict(const tt_gp *gp, const double *x, double stage, double *mean, double *var)
{
    tt_gp_slice *slice = NULL;
    *mean = gp->y_mean;
    *var = INFINITY;
    if (tt_gp_slice_open(gp, stage, NULL, &slice, NULL) != TT_OK)
        return;
    tt_gp_slice_eval(slice, x, 1, mean, var);
    tt_gp_slice_close(slice);
}
