// Log posterior of the hyperparameters and its gradient, with a = K^-1 y:
//
//     log p     = - y' a / 2 - log |K| / 2 - sum_j ((theta_j - mean_j) / sd_j)^2 / 2
//     d log p_j = tr((a a' - K^-1) dK_j) / 2 - (theta_j - mean_j) / sd_j^2
//
// source   Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), eq. 5.8 and 5.9
#include "gp_internal.h"
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

struct tti_gp_objective {
    tt_gp *gp;
    tti_gp_layout layout;
    uint32_t n, dims; // rows; dimensions of M, with the stage under "product"
    size_t pairs;     // n (n - 1) / 2, row i > column j
    double *squares;  // dims x pairs: squared differences (1 or 0 where kinds mismatch)
    double *stage2;   // pairs: squared differences of the stage
    double *distance; // pairs
    double *matern, *matern_slope, *stage_matern, *stage_slope; // pairs
    double *trend, *trend_own; // pairs, n: covariances under a trend of variance 1; not set without
    double *matrix, *copy;     // n x n
    double *z, *alpha, *noise; // n, standardised
    double *features;          // n x width of the trend
};

static void
fill_trend(tti_gp_objective *o)
{
    const tt_gp *gp = o->gp;
    const size_t n = o->n, width = tti_gp_trend_width(gp);
    size_t at = 0;
    if (width == 0)
        return;
    for (size_t i = 0; i < n; i++)
        tti_gp_trend_features(gp, gp->x + i * gp->options.dims, o->features + i * width);
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)n, (int)width, 1, o->features,
                (int)width, 0, o->copy, (int)n);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            o->trend[at++] = o->copy[i * n + j];
        o->trend_own[i] = o->copy[i * n + i];
    }
}

// Squared differences of each value from those before it, or 1 and 0 where they must be equal.
static void
fill_column(const double *restrict value, uint32_t n, tt_gp_kind kind, double *restrict out)
{
    for (uint32_t i = 0; i < n; out += i, i++)
        for (uint32_t j = 0; j < i; j++) {
            const double difference = value[i] - value[j];
            out[j] = kind == TT_GP_MISMATCH ? (double)(difference != 0) : difference * difference;
        }
}

static void
fill_squares(tti_gp_objective *o)
{
    const tt_gp *gp = o->gp;
    uint32_t dims = gp->options.dims;
    for (uint32_t d = 0; d < dims; d++) {
        double *column = o->alpha; // not in use yet
        for (uint32_t i = 0; i < o->n; i++)
            column[i] = gp->x[(size_t)i * dims + d];
        fill_column(column, o->n, gp->options.kind[d], o->squares + d * o->pairs);
    }
    fill_column(gp->stage, o->n, TT_GP_LINE, o->stage2);
    if (o->dims > dims && o->pairs > 0)
        memcpy(o->squares + dims * o->pairs, o->stage2, o->pairs * sizeof *o->stage2);
}

tt_status
tti_gp_objective_open(tt_gp *gp, tti_gp_objective **out, tt_error *err)
{
    *out = NULL;
    size_t n = gp->rows, pairs = n * (n - 1) / 2;
    uint32_t dims = gp->options.dims + (gp->options.model == TT_GP_PRODUCT ? 1 : 0);
    tti_gp_objective *o = tt_mem_zalloc(1, sizeof *o);
    // What is read of it is written first; what the model has no use for costs nothing.
    double *numbers =
        tti_gp_scratch(gp, pairs * (dims + 7) + n * (2 * n + 4 + tti_gp_trend_width(gp)));
    if (o == NULL || numbers == NULL) {
        tt_mem_free(o);
        return tt_error_set(err, TT_NOMEM, "tuner", NULL,
                            "no memory to fit a Gaussian process of %zu rows", n);
    }
    *o = (tti_gp_objective){.gp = gp, .n = gp->rows, .dims = dims, .pairs = pairs};
    o->squares = numbers;
    o->stage2 = o->squares + pairs * dims;
    o->distance = o->stage2 + pairs;
    o->matern = o->distance + pairs;
    o->matern_slope = o->matern + pairs;
    o->stage_matern = o->matern_slope + pairs;
    o->stage_slope = o->stage_matern + pairs;
    o->trend = o->stage_slope + pairs;
    o->matrix = o->trend + pairs;
    o->copy = o->matrix + n * n;
    o->z = o->copy + n * n;
    o->alpha = o->z + n;
    o->noise = o->alpha + n;
    o->trend_own = o->noise + n;
    o->features = o->trend_own + n;
    tti_gp_layout_set(gp, &o->layout);
    tti_gp_standardize(gp);
    for (size_t i = 0; i < n; i++) {
        o->z[i] = (gp->y[i] - gp->y_mean) / gp->y_scale;
        o->noise[i] = gp->noise[i] / (gp->y_scale * gp->y_scale);
    }
    fill_squares(o);
    fill_trend(o);
    *out = o;
    return TT_OK;
}

void
tti_gp_objective_close(tti_gp_objective *objective)
{
    tt_mem_free(objective);
}

// All pairwise covariances, their slopes, and the matrix itself.
static void
fill_matrix(tti_gp_objective *o, const tti_gp_scales *scales, const double *weight)
{
    int sum = o->gp->options.model == TT_GP_SUM;
    if (o->pairs > 0)
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)o->dims, (int)o->pairs, 1, o->squares,
                    (int)o->pairs, weight, 1, 0, o->distance, 1);
    size_t at = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        for (uint32_t j = 0; j < i; j++, at++) {
            double r = sqrt(5 * o->distance[at]), e = exp(-r);
            double m = (1 + r + r * r / 3) * e, value = scales->signal * m + scales->constant;
            o->matern[at] = m;
            o->matern_slope[at] = (5.0 / 3.0) * (1 + r) * e;
            if (sum) {
                double c = sqrt(5 * scales->stage_weight * o->stage2[at]), f = exp(-c);
                double k = (1 + c + c * c / 3) * f;
                o->stage_matern[at] = k;
                o->stage_slope[at] = (5.0 / 3.0) * (1 + c) * f;
                value += scales->stage * k + scales->cross * m * k;
            }
            if (scales->trend > 0)
                value += scales->trend * o->trend[at];
            o->matrix[(size_t)i * o->n + j] = value;
        }
        double own = tti_gp_kernel_self(scales) + o->noise[i] + scales->noise / o->gp->repeats[i];
        if (scales->trend > 0)
            own += scales->trend * o->trend_own[i];
        o->matrix[(size_t)i * o->n + i] = own;
    }
}

// Adds tr((a a' - K^-1) dK/d theta_j)/2 to gradient; matrix holds K^-1 (lower triangle).
// o->distance is overwritten.
static void
add_traces(tti_gp_objective *o, const tti_gp_scales *s, const double *weight, double *gradient)
{
    const tti_gp_layout *l = &o->layout;
    int sum = o->gp->options.model == TT_GP_SUM;
    double signal = 0, stage = 0, cross = 0, stage_length = 0, trend = 0, trace = 0, noise = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        for (uint32_t j = 0; j < i; j++, at++) {
            double a = o->alpha[i] * o->alpha[j] - o->matrix[(size_t)i * o->n + j];
            double m = o->matern[at], k = sum ? o->stage_matern[at] : 0;
            signal += a * m;
            stage += a * k;
            cross += a * m * k;
            o->distance[at] = a * (s->signal + s->cross * k) * o->matern_slope[at];
            if (sum)
                stage_length += a * o->stage_slope[at] * o->stage2[at] * (s->stage + s->cross * m);
            if (l->trend >= 0)
                trend += a * o->trend[at];
        }
        double own = o->alpha[i] * o->alpha[i] - o->matrix[(size_t)i * o->n + i];
        trace += own;
        noise += own / o->gp->repeats[i];
        if (l->trend >= 0)
            trend += own / 2 * o->trend_own[i];
    }
    double length[TT_GP_DIMS_MAX + 1] = {0};
    if (o->pairs > 0)
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)o->dims, (int)o->pairs, 1, o->squares,
                    (int)o->pairs, o->distance, 1, 0, length, 1);
    for (uint32_t d = 0; d < o->dims; d++) // under "product" the last one is the stage's length
        gradient[d] += weight[d] * length[d];
    gradient[l->signal] += s->signal * (signal + trace / 2);
    gradient[l->noise] += s->noise * noise / 2;
    if (sum) {
        gradient[l->stage_length] += s->stage_weight * stage_length;
        gradient[l->stage] += s->stage * (stage + trace / 2);
        gradient[l->cross] += s->cross * (cross + trace / 2);
    }
    if (l->trend >= 0)
        gradient[l->trend] += s->trend * trend;
}

double
tti_gp_objective_value(void *objective, const double *theta, double *gradient)
{
    tti_gp_objective *o = objective;
    const tti_gp_layout *l = &o->layout;
    int n = (int)o->n;
    tt_gp_params params;
    tti_gp_scales scales;
    double weight[TT_GP_DIMS_MAX + 1];
    tti_gp_unpack(l, o->gp->options.dims, theta, &params);
    tti_gp_scales_set(o->gp, &params, &scales);
    memcpy(weight, scales.weight, o->gp->options.dims * sizeof *weight);
    if (o->dims > o->gp->options.dims)
        weight[o->gp->options.dims] = scales.stage_weight;
    fill_matrix(o, &scales, weight);
    if (tti_gp_factor(o->matrix, o->copy, o->n, o->n) != TT_OK)
        return INFINITY;
    double value = 0;
    memcpy(o->alpha, o->z, o->n * sizeof *o->z);
    LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'U', n, 1, o->matrix, n, o->alpha, n);
    for (uint32_t i = 0; i < o->n; i++)
        value += 0.5 * o->z[i] * o->alpha[i] + log(o->matrix[(size_t)i * o->n + i]);
    if (LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'U', n, o->matrix, n) != 0)
        return INFINITY;
    memset(gradient, 0, l->count * sizeof *gradient);
    add_traces(o, &scales, weight, gradient);
    for (uint32_t j = 0; j < l->count; j++) {
        double off = (theta[j] - l->mean[j]) / l->sd[j];
        value += 0.5 * off * off;
        gradient[j] = -gradient[j] + off / l->sd[j];
    }
    return isfinite(value) ? value : INFINITY;
}
