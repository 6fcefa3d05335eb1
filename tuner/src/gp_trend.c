// A trend: what a function does over the whole range of its knobs, rather than near what is known.
//
//     f(x) = ... + sum_d b_d sqrt(6) u_d + c_d sqrt(90) q_d,    u_d = x_d - 1/2,  q_d = u_d^2 -
//     1/12
//
// over the knobs that are lines, b and c independent and normal. u and q are orthogonal over [0,
// 1], and half of the variance of a point drawn there comes from each. As a covariance: the inner
// product of the features phi = (sqrt(6) u_1, sqrt(90) q_1, ...) of two points.
//
// source   Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), section 2.7
#include "gp_internal.h"
#include <cblas.h>
#include <math.h>

static const double LINEAR = 6, QUADRATIC = 90, MEAN_SQUARE = 1.0 / 12;

uint32_t
tti_gp_trend_width(const tt_gp *gp)
{
    return 2 * gp->trend_lines;
}

void
tti_gp_trend_features(const tt_gp *gp, const double *x, double *out)
{
    for (uint32_t d = 0; d < gp->options.dims && gp->trend_lines > 0; d++) {
        if (gp->options.kind[d] != TT_GP_LINE)
            continue;
        const double u = x[d] - 0.5;
        *out++ = sqrt(LINEAR) * u;
        *out++ = sqrt(QUADRATIC) * (u * u - MEAN_SQUARE);
    }
}

double
tti_gp_trend_slope(double x, const double *weights)
{
    return sqrt(LINEAR) * weights[0] + sqrt(QUADRATIC) * 2 * (x - 0.5) * weights[1];
}

double
tti_gp_trend(const tt_gp *gp, const tti_gp_scales *scales, const double *a, const double *b)
{
    double of_a[TTI_GP_FEATURES_MAX], of_b[TTI_GP_FEATURES_MAX];
    if (gp->trend_lines == 0)
        return 0;
    tti_gp_trend_features(gp, a, of_a);
    tti_gp_trend_features(gp, b, of_b);
    return scales->trend * cblas_ddot((int)tti_gp_trend_width(gp), of_a, 1, of_b, 1);
}
