// Robust statistics on short arrays: order statistics, winsorised means, a Huber line, and the few
// distribution functions the rest of the folder needs. Pure functions, no allocation.
#ifndef TT_EST_ROBUST_H
#define TT_EST_ROBUST_H

#include <stddef.h>
#include <stdint.h>

enum { TTI_LINE_POINTS_MAX = 256 };

// Median (mean of the middle two for even n); reorders x[0..n). n >= 1.
double tti_median(double *x, size_t n);
// Median absolute deviation from `center`; scratch holds n doubles. Multiply by 1.4826 for a normal
// standard deviation.
double tti_mad(const double *x, size_t n, double center, double *scratch);
// Bounds for wild values: median +- max(10 d, 5 m), where of the absolute deviations without the
// largest 8 % d is the mean and m the largest. Ordinary skewed losses (an exponential's tail, three
// quarters of them zero under hinge) lie inside, so their mean keeps its meaning; one value of 1e6
// does not. About 100 values are wanted, 25 will do; n <= 4096.
void tti_winsor_bounds(const double *x, size_t n, double *low, double *high);
// Pulls x[0..n) into [low, high]; returns the mean after it.
double tti_winsorise(double *x, size_t n, double low, double high);

// y = intercept + slope (x - x_mean).
typedef struct tti_line {
    double intercept, slope, x_mean;
    double slope_se; // Huber's, see tti_huber_line
    double scale;    // 1.4826 MAD of the weighted residuals
    double sum_xx;   // weighted sum of squares of x about x_mean
    uint32_t points;
} tti_line;

// Huber line of y on x with prior weights w (all > 0): three passes of iteratively reweighted least
// squares, cut 1.5 * 1.4826 MAD;
//   se = sqrt(sum psi^2 n^2 / ((n - 2) (sum psi')^2 Sxx)), at least (1e-12 + 1e-9 |y|) / sqrt(Sxx).
// Returns 0 when there are under 3 points or x does not vary (*out is zeroed then), else 1.
// n <= TTI_LINE_POINTS_MAX.
// source  Huber, Robust Statistics, section 7.6 (covariance of the regression M-estimate)
int tti_huber_line(const double *x, const double *y, const double *w, size_t n, tti_line *out);

double tti_normal_cdf(double z);
// Inverse of tti_normal_cdf for p in (0, 1).
double tti_normal_quantile(double p);
// log density of location + scale * T, T Student with 4 degrees of freedom, at `location +
// deviation`.
double tti_student4_log_density(double deviation, double scale);
double tti_clamp(double x, double low, double high);

#endif
