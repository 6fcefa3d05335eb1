// The paper's curve, k = (A / e) log(B / e): arXiv 1810.02935, Section IV, after Niu, Recht, Re and
// Wright 2011. (The paper's own estimator over one window is in est_paper.c.)
#include "est_family.h"
#include "est_robust.h"
#include "tt/core.h"
#include "tt/estimator.h"
#include <math.h>
#include <string.h>

double
tti_lambert_w0(double x)
{
    if (!(x > 0))
        return 0;
    const double log_x = log(x);
    double w = x < 3 ? x / (1 + x) : log_x - log(log_x);
    for (int i = 0; i < 20; i++) {
        // Newton on w + log w = log x: concave, quadratic from either side.
        const double step = w * (log_x - log(w) - w) / (1 + w);
        const double next = fmax(w + step, 0.1 * w);
        const int done = fabs(next - w) <= 1e-12 * w; // the step after would be below rounding
        w = next;
        if (done)
            break;
    }
    return w;
}

double
tti_hogwild_bound(double loss, double loss_max, double target, double kappa)
{
    const double delta = 1e-3;
    return fmax(kappa * loss, (1 + delta) * fmax(loss_max, target));
}

double
tti_hogwild_z(double e, double bound)
{
    const double clamped = fmax(e, 1e-9 * bound);
    return log(bound / clamped) / clamped;
}

static double
excess_at(double k, double scale, double bound)
{
    if (k <= 1e-9 * scale / bound)
        return bound;
    return scale * tti_lambert_w0(k * bound / scale) / k;
}

static double
hogwild_predict(const tti_fit *fit, double clock, double *sd)
{
    const double a = fit->p[0], b = fit->p[1], e = excess_at(clock, a, b);
    const double lead = log(b / e);
    // k = A z(e) at fixed k: de/dA = e log(B/e) / (A (log(B/e) + 1))
    *sd = e * lead / (a * (lead + 1)) * sqrt(fit->covariance[0][0]);
    return fit->p[2] + e;
}

// z on j through the origin: j is exact and z noisy, so this direction does not attenuate. The
// noise of z is that of the loss times |dz/de| = (log(B/e) + 1)/e^2, taken at the fitted curve.
void
tti_hogwild_fit_bound(
    const tti_curve_data *data, uint32_t count, double bound, double floor, tti_fit *out)
{
    memset(out, 0, sizeof *out);
    out->p[1] = bound;
    out->p[2] = floor;
    if (count < 2)
        return;
    double r[TTI_CURVE_POINTS], h[TTI_CURVE_POINTS], inverse_scale = 0, information = 0;
    for (uint32_t i = 0; i < count; i++)
        h[i] = 1;
    for (int pass = 0; pass < 4; pass++) {
        double jz = 0, jj = 0;
        for (uint32_t i = 0; i < count; i++) {
            const double raw = data->y[i] - floor;
            const double e = tti_clamp(pass ? excess_at(data->x[i], 1 / inverse_scale, bound) : raw,
                                       1e-9 * bound, bound);
            const double steep = (log(bound / e) + 1) / (e * e);
            const double w = h[i] / (data->variance[i] * steep * steep);
            // beyond the linear range of z the tangent at the curve stands in for it
            const double z = pass ? tti_hogwild_z(e, bound) - steep * (raw - e)
                                  : tti_hogwild_z(fmin(raw, bound), bound);
            jz += w * data->x[i] * z;
            jj += w * data->x[i] * data->x[i];
        }
        if (!(jj > 0) || !(jz > 0) || !isfinite(jz))
            return;
        inverse_scale = jz / jj;
        information = jj;
        for (uint32_t i = 0; i < count; i++)
            r[i] = (data->y[i] - floor - excess_at(data->x[i], 1 / inverse_scale, bound)) /
                   sqrt(data->variance[i]);
        out->noise_factor = tti_residual_factor(r, count, 1, h);
    }
    const double a = 1 / inverse_scale;
    out->p[0] = a;
    out->covariance[0][0] = out->noise_factor / information * a * a * a * a;
    out->ok = isfinite(a) && isfinite(out->covariance[0][0]);
}

static double
misfit(const tti_curve_data *data, uint32_t count, const tti_fit *fit)
{
    double sum = 0, sd;
    for (uint32_t i = 0; i < count; i++) {
        const double d = data->y[i] - hogwild_predict(fit, data->x[i], &sd);
        sum += fmin(d * d / data->variance[i], 1e6);
    }
    return sum;
}

static void
hogwild_fit(const tti_curve_data *data, uint32_t count, tti_fit *out)
{
    memset(out, 0, sizeof *out);
    if (count < 3)
        return;
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        low = fmin(low, data->y[i]);
        high = fmax(high, data->y[i]);
    }
    // losses at or below 0 (shifted or regularised): the floor moves under the lowest
    const double floor = low > 0 ? 0 : low - 0.02 * fmax(high - low, 1e-9);
    const double target = isfinite(data->target) ? data->target - floor : 0;
    static const double kappa[3] = {1, 2, 10};
    double least = INFINITY;
    for (int i = 0; i < 3; i++) {
        tti_fit fit;
        const double bound = tti_hogwild_bound(data->y[0] - floor, high - floor, target, kappa[i]);
        tti_hogwild_fit_bound(data, count, bound, floor, &fit);
        const double squares = fit.ok ? misfit(data, count, &fit) : INFINITY;
        if (squares < least) {
            least = squares;
            *out = fit;
        }
    }
}

static void
hogwild_inverse(const tti_fit *fit, double now, double target, tti_left *out)
{
    *out = (tti_left){.ok = fit->ok, .log_mean = log(TTI_ITERATIONS_MAX), .log_sd = 2};
    const double a = fit->p[0], bound = fit->p[1], e = target - fit->p[2];
    if (!(e > 0)) {
        out->unreachable = 1;
        return;
    }
    const double end = a * tti_hogwild_z(fmin(e, bound), bound);
    const double left = fmax(end - now, 0.005 * now);
    out->log_mean = tti_log_iterations(left);
    // d log(end - now) / dA = end / (A (end - now))
    out->log_sd = fmin(end / fmax(left, 1) * sqrt(fit->covariance[0][0]) / a, 3);
}

static double
hogwild_log_predictive(const tti_fit *fit, double clock, double y, double variance)
{
    return tti_default_log_predictive(&tti_family_hogwild, fit, clock, y, variance);
}

static double
hogwild_floor(const tti_fit *fit)
{
    return fit->p[2];
}

const tti_family tti_family_hogwild = {
    "hogwild",     1,   hogwild_fit, hogwild_predict, hogwild_inverse, hogwild_log_predictive,
    hogwild_floor, NULL};
