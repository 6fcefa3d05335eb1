// The Yeo-Johnson power of the height above the least value.
#include "output_warp.h"
#include <math.h>

static const double LAMBDA_TINY = 1e-6;

void
tti_warp_suit(tti_warp *warp, const double *ascending, uint32_t count, double share)
{
    double least = ascending[0], range = ascending[count - 1] - least;
    double height = ascending[(uint32_t)(share * (count - 1) + 0.5)] - least;
    warp->center = least;
    warp->scale = height > 1e-12 * range ? height : range;
    if (!(warp->scale > 0) || !isfinite(warp->scale))
        warp->scale = 1;
}

// (x^l - 1) / l
static double
power(double x, double lambda)
{
    return fabs(lambda) < LAMBDA_TINY ? log(x) : expm1(lambda * log(x)) / lambda;
}

static double
power_inverse(double z, double lambda)
{
    if (fabs(lambda) < LAMBDA_TINY)
        return exp(z);
    double base = 1 + lambda * z;
    if (base <= 0)
        return lambda > 0 ? 0 : INFINITY;
    return exp(log(base) / lambda);
}

double
tti_warp_forward(const tti_warp *warp, double y)
{
    double x = (y - warp->center) / warp->scale;
    return x >= 0 ? power(1 + x, warp->lambda) : -power(1 - x, 2 - warp->lambda);
}

double
tti_warp_inverse(const tti_warp *warp, double z)
{
    double x =
        z >= 0 ? power_inverse(z, warp->lambda) - 1 : 1 - power_inverse(-z, 2 - warp->lambda);
    return warp->center + warp->scale * x;
}

double
tti_warp_log_slope(const tti_warp *warp, double y)
{
    double x = (y - warp->center) / warp->scale;
    return (x >= 0 ? warp->lambda - 1 : 1 - warp->lambda) * log1p(fabs(x)) - log(warp->scale);
}
