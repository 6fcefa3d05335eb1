#include "est_mixture.h"
#include "est_robust.h"
#include <math.h>

void
tti_mixture_moments(const tti_mixture *mixture, double *mean, double *sd)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < mixture->count; i++) {
        const double m = mixture->mean[i], s = mixture->sd[i];
        sum += mixture->weight[i] * m;
        squares += mixture->weight[i] * (s * s + m * m);
    }
    *mean = sum;
    *sd = sqrt(fmax(squares - sum * sum, 0));
}

// P(log k + N(0, extra_sd^2) < x).
static double
below(const tti_mixture *mixture, double x, double extra_sd)
{
    double sum = 0;
    for (uint32_t i = 0; i < mixture->count; i++) {
        const double s = fmax(hypot(mixture->sd[i], extra_sd), 1e-12);
        sum += mixture->weight[i] * tti_normal_cdf((x - mixture->mean[i]) / s);
    }
    return sum;
}

double
tti_mixture_quantile(const tti_mixture *mixture, double p, double shift, double extra_sd)
{
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < mixture->count; i++) {
        const double s = hypot(mixture->sd[i], extra_sd);
        low = fmin(low, mixture->mean[i] - 8 * s);
        high = fmax(high, mixture->mean[i] + 8 * s);
    }
    for (int step = 0; step < 60 && high > low; step++) {
        const double middle = 0.5 * (low + high);
        if (below(mixture, middle, extra_sd) < p)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high) + shift;
}

double
tti_mixture_score(const tti_mixture *mixture, double log_k)
{
    return tti_normal_quantile(tti_clamp(below(mixture, log_k, 0), 0.001, 0.999));
}

void
tti_mixture_stretch(tti_mixture *mixture, double by)
{
    const double median = tti_mixture_quantile(mixture, 0.5, 0, 0);
    for (uint32_t i = 0; i < mixture->count; i++) {
        mixture->mean[i] = median + by * (mixture->mean[i] - median);
        mixture->sd[i] *= by;
    }
}
