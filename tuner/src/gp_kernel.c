// Covariance functions, the unknowns of the fit and their priors.
#include "gp_internal.h"
#include <math.h>

double
tti_gp_matern(double r2)
{
    double r = sqrt(5 * r2);
    return (1 + r + r * r / 3) * exp(-r);
}

double
tti_gp_matern_slope(double r2)
{
    double r = sqrt(5 * r2);
    return (5.0 / 3.0) * (1 + r) * exp(-r);
}

void
tti_gp_scales_set(const tt_gp *gp, const tt_gp_params *params, tti_gp_scales *out)
{
    for (uint32_t d = 0; d < gp->options.dims; d++)
        out->weight[d] = exp(-2 * params->length[d]);
    int sum = gp->options.model == TT_GP_SUM;
    out->stage_weight = gp->options.model == TT_GP_TIME ? 0 : exp(-2 * params->stage_length);
    out->signal = exp(params->signal);
    out->stage = sum ? exp(params->stage) : 0;
    out->cross = sum ? exp(params->cross) : 0;
    out->noise = exp(params->noise);
    out->constant = gp->options.mean_var;
    out->trend = gp->trend_lines > 0 ? exp(params->trend) / gp->trend_lines : 0;
}

double
tti_gp_distance2(const tt_gp *gp, const tti_gp_scales *scales, const double *a, const double *b)
{
    double sum = 0;
    for (uint32_t d = 0; d < gp->options.dims; d++) {
        double difference = a[d] - b[d];
        if (gp->options.kind[d] == TT_GP_MISMATCH)
            sum += difference != 0 ? scales->weight[d] : 0;
        else
            sum += scales->weight[d] * difference * difference;
    }
    return sum;
}

double
tti_gp_kernel(const tt_gp *gp,
              const tti_gp_scales *scales,
              const double *a,
              double stage_a,
              const double *b,
              double stage_b)
{
    double r2 = tti_gp_distance2(gp, scales, a, b);
    double c2 = scales->stage_weight * (stage_a - stage_b) * (stage_a - stage_b);
    const double wide = scales->constant + tti_gp_trend(gp, scales, a, b);
    if (gp->options.model != TT_GP_SUM)
        return scales->signal * tti_gp_matern(r2 + c2) + wide;
    double m = tti_gp_matern(r2), k = tti_gp_matern(c2);
    return scales->signal * m + scales->stage * k + scales->cross * m * k + wide;
}

double
tti_gp_kernel_self(const tti_gp_scales *scales)
{
    return scales->signal + scales->stage + scales->cross + scales->constant;
}

static void
unknown(tti_gp_layout *l, double mean, double sd, double lower, double upper)
{
    l->mean[l->count] = mean;
    l->sd[l->count] = sd;
    l->lower[l->count] = lower;
    l->upper[l->count++] = upper;
}

void
tti_gp_layout_set(const tt_gp *gp, tti_gp_layout *out)
{
    *out = (tti_gp_layout){.stage_length = -1, .stage = -1, .cross = -1, .trend = -1};
    const tt_gp_options *o = &gp->options;
    const double dims = fmax(o->dims, 2) / 3, length = log(0.6 * sqrt(dims));
    const double median = o->length_median > 0 ? o->length_median : 0.6;
    const double growth = o->length_growth > 0 ? o->length_growth : 0.5;
    const double line_sd = o->length_sd > 0 ? o->length_sd : 0.8;
    const double line = log(median * pow(dims, growth));
    const double mismatch = o->mismatch_median > 0 ? log(o->mismatch_median * sqrt(dims)) : length;
    const double shortest = log(0.02), longest = log(30);
    for (uint32_t d = 0; d < o->dims; d++)
        if (o->kind[d] == TT_GP_LINE)
            unknown(out, line, line_sd, shortest, longest);
        else
            unknown(out, mismatch, 0.8, shortest, longest);
    if (gp->options.model != TT_GP_TIME) {
        out->stage_length = (int)out->count;
        unknown(out, gp->options.model == TT_GP_SUM ? log(0.7) : length, 0.8, shortest, longest);
    }
    out->signal = (int)out->count;
    unknown(out, 0, o->signal_sd > 0 ? o->signal_sd : 0.8, -4, o->signal_sd > 0 ? 8 : 4);
    out->noise = (int)out->count;
    unknown(out, o->noise_mean < 0 ? o->noise_mean : log(2e-3), o->noise_sd > 0 ? o->noise_sd : 2,
            o->noise_min < 0 ? o->noise_min : log(1e-6), 0);
    if (gp->options.model == TT_GP_SUM) {
        out->stage = (int)out->count;
        unknown(out, log(0.05), 1.5, log(1e-5), 4);
        out->cross = (int)out->count;
        unknown(out, log(0.02), 1.5, log(1e-5), 4);
    }
    if (gp->trend_lines > 0) {
        out->trend = (int)out->count;
        unknown(out, o->trend_mean, o->trend_sd, -12, 8);
    }
}

void
tti_gp_pack(const tti_gp_layout *layout, uint32_t dims, const tt_gp_params *params, double *theta)
{
    for (uint32_t d = 0; d < dims; d++)
        theta[d] = params->length[d];
    if (layout->stage_length >= 0)
        theta[layout->stage_length] = params->stage_length;
    theta[layout->signal] = params->signal;
    theta[layout->noise] = params->noise;
    if (layout->stage >= 0) {
        theta[layout->stage] = params->stage;
        theta[layout->cross] = params->cross;
    }
    if (layout->trend >= 0)
        theta[layout->trend] = params->trend;
}

void
tti_gp_unpack(const tti_gp_layout *layout, uint32_t dims, const double *theta, tt_gp_params *params)
{
    *params = (tt_gp_params){.signal = theta[layout->signal], .noise = theta[layout->noise]};
    for (uint32_t d = 0; d < dims; d++)
        params->length[d] = theta[d];
    if (layout->stage_length >= 0)
        params->stage_length = theta[layout->stage_length];
    if (layout->stage >= 0) {
        params->stage = theta[layout->stage];
        params->cross = theta[layout->cross];
    }
    if (layout->trend >= 0)
        params->trend = theta[layout->trend];
}
