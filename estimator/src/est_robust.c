#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

static void
swap(double *a, double *b)
{
    const double t = *a;
    *a = *b;
    *b = t;
}

// Hoare's quickselect with the median of three: afterwards x[k] is in its sorted place.
static double
select_nth(double *x, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x[middle] < x[low])
            swap(&x[middle], &x[low]);
        if (x[high] < x[low])
            swap(&x[high], &x[low]);
        if (x[high] < x[middle])
            swap(&x[high], &x[middle]);
        const double pivot = x[middle];
        size_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot)
                i++;
            while (x[j] > pivot)
                j--;
            if (i > j)
                break;
            swap(&x[i], &x[j]);
            i++;
            if (j == 0)
                break;
            j--;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return x[k];
    }
    return x[k];
}

double
tti_median(double *x, size_t n)
{
    TT_ASSERT(n > 0);
    const double upper = select_nth(x, n, n / 2);
    if (n % 2 == 1)
        return upper;
    double lower = x[0];
    for (size_t i = 1; i < n / 2; i++)
        lower = x[i] > lower ? x[i] : lower;
    return 0.5 * (lower + upper);
}

double
tti_mad(const double *x, size_t n, double center, double *scratch)
{
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(x[i] - center);
    return tti_median(scratch, n);
}

void
tti_winsor_bounds(const double *x, size_t n, double *low, double *high)
{
    enum { MOST = 4096 };
    TT_ASSERT(n > 0 && n <= MOST);
    double scratch[MOST];
    memcpy(scratch, x, n * sizeof *x);
    const double center = tti_median(scratch, n);
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(x[i] - center);
    const size_t kept = n - (n * 8 + 99) / 100;
    double reach = INFINITY;
    if (kept >= 3) {
        (void)select_nth(scratch, n, kept - 1); // the smallest `kept` deviations come first
        double sum = 0;
        for (size_t i = 0; i < kept; i++)
            sum += scratch[i];
        reach = fmax(10 * sum / (double)kept, 5 * scratch[kept - 1]);
    }
    *low = center - reach;
    *high = center + reach;
}

double
tti_winsorise(double *x, size_t n, double low, double high)
{
    double mean = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = tti_clamp(x[i], low, high);
        mean += (x[i] - mean) / (double)(i + 1);
    }
    return mean;
}

static int
weighted_line(const double *x, const double *y, const double *w, size_t n, tti_line *line)
{
    double sum_w = 0, sum_x = 0, sum_y = 0;
    for (size_t i = 0; i < n; i++) {
        sum_w += w[i];
        sum_x += w[i] * x[i];
        sum_y += w[i] * y[i];
    }
    if (!(sum_w > 0))
        return 0;
    const double x_mean = sum_x / sum_w, y_mean = sum_y / sum_w;
    double sum_xx = 0, sum_xy = 0;
    for (size_t i = 0; i < n; i++) {
        sum_xx += w[i] * (x[i] - x_mean) * (x[i] - x_mean);
        sum_xy += w[i] * (x[i] - x_mean) * (y[i] - y_mean);
    }
    if (!(sum_xx > 1e-20 * sum_w * x_mean * x_mean)) // nothing but rounding
        return 0;
    line->x_mean = x_mean;
    line->intercept = y_mean;
    line->slope = sum_xy / sum_xx;
    line->sum_xx = sum_xx;
    return 1;
}

// Residuals times sqrt(w) into r; returns their robust scale.
static double
weighted_residuals(
    const double *x, const double *y, const double *w, size_t n, const tti_line *line, double *r)
{
    double scratch[TTI_LINE_POINTS_MAX];
    for (size_t i = 0; i < n; i++)
        r[i] = sqrt(w[i]) * (y[i] - line->intercept - line->slope * (x[i] - line->x_mean));
    return 1.4826 * tti_mad(r, n, 0, scratch);
}

static double
huber_slope_se(
    const double *r, const double *y, const double *w, size_t n, double cut, double sum_xx)
{
    double psi_squares = 0, psi_slopes = 0, y_weighted = 0, sum_w = 0;
    for (size_t i = 0; i < n; i++) {
        const double psi = tti_clamp(r[i], -cut, cut);
        psi_squares += psi * psi;
        psi_slopes += fabs(r[i]) <= cut ? 1 : 0;
        y_weighted += w[i] * y[i];
        sum_w += w[i];
    }
    const double count = (double)n;
    const double least = (1e-12 + 1e-9 * fabs(y_weighted / sum_w)) / sqrt(sum_xx);
    if (!(psi_slopes > 0))
        return least;
    const double se =
        sqrt(psi_squares * count * count / ((count - 2) * psi_slopes * psi_slopes * sum_xx));
    return fmax(se, least);
}

int
tti_huber_line(const double *x, const double *y, const double *w, size_t n, tti_line *out)
{
    TT_ASSERT(n <= TTI_LINE_POINTS_MAX);
    memset(out, 0, sizeof *out);
    if (n < 3 || !weighted_line(x, y, w, n, out))
        return 0;
    out->points = (uint32_t)n;
    double sum_xx = out->sum_xx;
    double r[TTI_LINE_POINTS_MAX], robust[TTI_LINE_POINTS_MAX];
    double cut = INFINITY;
    for (int pass = 0; pass < 3; pass++) {
        out->scale = weighted_residuals(x, y, w, n, out, r);
        if (!(out->scale > 0))
            break;
        cut = 1.5 * out->scale;
        for (size_t i = 0; i < n; i++)
            robust[i] = w[i] * (fabs(r[i]) > cut ? cut / fabs(r[i]) : 1);
        if (!weighted_line(x, y, robust, n, out))
            break;
    }
    // Sxx of the formula is that of the prior weights: the loss of efficiency through the cut is in
    // the other factors.
    out->sum_xx = sum_xx;
    out->scale = weighted_residuals(x, y, w, n, out, r);
    out->slope_se = huber_slope_se(r, y, w, n, cut, sum_xx);
    return 1;
}

double
tti_normal_cdf(double z)
{
    return 0.5 * erfc(-z * 0.70710678118654752440);
}

double
tti_normal_quantile(double p)
{
    // Abramowitz and Stegun 26.2.23 as a start (error 4.5e-4), then Newton on the cdf.
    const double tail = p < 0.5 ? p : 1 - p;
    const double t = sqrt(-2 * log(fmax(tail, 1e-300)));
    double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    for (int i = 0; i < 3; i++) {
        const double density = 0.39894228040143267794 * exp(-0.5 * z * z);
        if (!(density > 1e-290))
            break;
        z += (tti_normal_cdf(-z) - tail) / density;
    }
    return p < 0.5 ? -z : z;
}

double
tti_student4_log_density(double deviation, double scale)
{
    const double z = deviation / scale;
    // Gamma(5/2) / (sqrt(4 pi) Gamma(2)) = 3/8
    return log(0.375) - log(scale) - 2.5 * log1p(0.25 * z * z);
}

double
tti_clamp(double x, double low, double high)
{
    return x < low ? low : (x > high ? high : x);
}
