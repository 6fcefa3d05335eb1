#include "est_family.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

// Within-block variances are smoothed over nine neighbours: one of 25 losses is known to 30 %.
void
tti_history_data(const tti_series *history, double target, tti_curve_data *out)
{
    enum { REACH = 4 };
    const uint32_t count = history->count;
    out->count = count;
    out->target = target;
    for (uint32_t i = 0; i < count; i++) {
        const tti_block *b = &history->blocks[i];
        const uint32_t from = i > REACH ? i - REACH : 0, to = TT_MIN(i + REACH, count - 1);
        double sum = 0, n = 0;
        for (uint32_t j = from; j <= to; j++) {
            sum += history->blocks[j].n * history->blocks[j].variance;
            n += history->blocks[j].n;
        }
        const double least = 1e-12 + 1e-9 * fabs(b->mean);
        out->x[i] = b->clock;
        out->width[i] = b->width;
        out->y[i] = b->mean;
        out->variance[i] = sum / n / b->n + least * least;
    }
}

double
tti_log_iterations(double k)
{
    return isnan(k) ? log(TTI_ITERATIONS_MAX) : log(tti_clamp(k, 1, TTI_ITERATIONS_MAX));
}

double
tti_default_log_predictive(
    const tti_family *family, const tti_fit *fit, double clock, double y, double variance)
{
    double sd = 0;
    const double mean = tti_family_predict(family, fit, clock, &sd);
    const double scale = sqrt(sd * sd + fit->noise_factor * variance);
    return tti_student4_log_density(y - mean, fmax(scale, 1e-12 + 1e-9 * fabs(y)));
}

double
tti_residual_factor(const double *r, uint32_t n, uint32_t parameters, double *h)
{
    double scratch[TTI_CURVE_POINTS];
    TT_ASSERT(n <= TTI_CURVE_POINTS && n >= parameters);
    const double cut = 1.5 * 1.4826 * tti_mad(r, n, 0, scratch);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        h[i] = cut > 0 && fabs(r[i]) > cut ? cut / fabs(r[i]) : 1;
        sum += h[i] * r[i] * r[i] / 0.866;
    }
    const double freedom = (double)(n - parameters), pseudo = fmin(3, 9 / (freedom + 1));
    return (pseudo + sum) / (pseudo + freedom);
}

double
tti_spread_factor(const double *r, const double *h, uint32_t n, uint32_t parameters, double factor)
{
    enum { ROW = 4 };
    static const double PRIOR = 0.3;
    const double rows = (double)n / ROW, freedom = rows - parameters;
    if (freedom < 0.5)
        return factor;
    double sum = 0;
    for (uint32_t i = 0; i + ROW <= n; i++) {
        double row = 0;
        for (uint32_t j = i; j < i + ROW; j++)
            row += h[j] * r[j];
        sum += row * row / ROW / 0.866;
    }
    const double seen = sum / (double)(n - ROW + 1) * rows / freedom;
    return (PRIOR * factor + freedom * seen) / (PRIOR + freedom);
}

void
tti_trust_weights(const tti_curve_data *data, const double *x, uint32_t count, double *out)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double share = x[i] / x[count - 1];
        out[i] = share * sqrt(share);
        sum += out[i];
        squares += out[i] * out[i];
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] *= sum / squares / data->variance[i];
}

int
tti_invert3(const double a[3][3], double out[3][3])
{
    double l[3][3] = {{0}}, inverse[3][3] = {{0}};
    for (int j = 0; j < 3; j++) {
        double d = a[j][j];
        for (int k = 0; k < j; k++)
            d -= l[j][k] * l[j][k];
        if (!(d > 1e-12 * a[j][j]) || !isfinite(d)) {
            if (a[j][j] != 0)
                return 0;
            d = INFINITY; // an absent parameter
        }
        l[j][j] = sqrt(d);
        for (int i = j + 1; i < 3; i++) {
            double s = a[i][j];
            for (int k = 0; k < j; k++)
                s -= l[i][k] * l[j][k];
            l[i][j] = isinf(d) ? 0 : s / l[j][j];
        }
    }
    for (int j = 0; j < 3; j++)
        for (int i = j; i < 3; i++) {
            double s = i == j ? 1 : 0;
            for (int k = j; k < i; k++)
                s -= l[i][k] * inverse[k][j];
            inverse[i][j] = isinf(l[i][i]) ? 0 : s / l[i][i];
        }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            out[i][j] = 0;
            for (int k = 0; k < 3; k++)
                out[i][j] += inverse[k][i] * inverse[k][j];
        }
    return 1;
}

double
tti_floor_least(const tti_curve_data *data, uint32_t count)
{
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        low = fmin(low, data->y[i]);
        high = fmax(high, data->y[i]);
    }
    return low > 0 ? 0 : low - fmax(high - low, 1e-9);
}
