// The paper's curve, k = (A / e) log(B / e): arXiv 1810.02935, Section IV, after Niu, Recht, Re and
// Wright 2011; and the paper's own estimator over one window.
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
    "hogwild",    1, hogwild_fit, hogwild_predict, hogwild_inverse, hogwild_log_predictive,
    hogwild_floor};

// --- the paper's estimator

// A = sum j z / sum z^2 over the points not dropped.
static double
paper_scale(const double *z, const unsigned char *drop, uint32_t count)
{
    double jz = 0, zz = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (drop[i])
            continue;
        jz += (i + 1.0) * z[i];
        zz += z[i] * z[i];
    }
    return jz / zz;
}

// Drops points whose externally studentised residual passes 3, never below half of them. Returns
// how many this pass dropped.
static uint32_t
paper_drop(const double *z, double scale, unsigned char *drop, uint32_t count, uint32_t dropped)
{
    double zz = 0, squares = 0;
    const double kept = (double)(count - dropped);
    for (uint32_t i = 0; i < count; i++) {
        if (drop[i])
            continue;
        const double r = i + 1.0 - scale * z[i];
        zz += z[i] * z[i];
        squares += r * r;
    }
    uint32_t now = 0;
    for (uint32_t i = 0; i < count && kept > 3; i++) {
        if (drop[i] || 2 * (dropped + now + 1) > count)
            continue;
        const double r = i + 1.0 - scale * z[i], stay = 1 - z[i] * z[i] / zz;
        if (!(stay > 1e-9))
            continue;
        // s_(j)^2; a millionth of the window's length is as good as exact
        const double others = fmax((squares - r * r / stay) / (kept - 2), 1e-12 * kept * kept);
        if (r * r > 9 * others * stay) {
            drop[i] = 1;
            now++;
        }
    }
    return now;
}

void
tt_est_paper_fit(const double *losses,
                 uint32_t count,
                 double loss_before,
                 double target,
                 double kappa,
                 double bound,
                 double fallback,
                 tt_est_paper *out)
{
    enum { MOST = 4096 };
    *out = (tt_est_paper){NAN, bound, fallback, 0, TT_EST_FALLBACK};
    if (loss_before <= target)
        out->flags |= TT_EST_REACHED;
    const uint32_t n = TT_MIN(count, (uint32_t)MOST);
    double z[MOST], loss_max = 0;
    unsigned char drop[MOST];
    uint32_t invalid = 0, dropped = 0;
    for (uint32_t i = 0; i < n; i++) {
        drop[i] = !isfinite(losses[i]) || losses[i] <= 0;
        invalid += drop[i];
        loss_max = drop[i] ? loss_max : fmax(loss_max, losses[i]);
    }
    if (!(target > 0) || !isfinite(loss_before) || n - invalid < 3)
        return;
    // an injected bound still may not lie under a loss: a log would turn negative
    out->bound = bound > 0 ? fmax(bound, (1 + 1e-3) * fmax(loss_max < bound ? 0 : loss_max, target))
                           : tti_hogwild_bound(loss_before, loss_max, target, kappa);
    for (uint32_t i = 0; i < n; i++) {
        z[i] = drop[i] ? 0 : tti_hogwild_z(losses[i], out->bound);
        TT_ASSERT(drop[i] || z[i] > 0);
    }
    double scale = paper_scale(z, drop, n);
    for (int pass = 0; pass < 2 && isfinite(scale); pass++) {
        const uint32_t now = paper_drop(z, scale, drop, n, invalid + dropped);
        if (now == 0)
            break;
        dropped += now;
        scale = paper_scale(z, drop, n);
    }
    out->outliers = dropped;
    if (!isfinite(scale) || scale <= 0)
        return;
    out->flags &= ~(unsigned)TT_EST_FALLBACK;
    out->scale = scale;
    out->iterations =
        tti_clamp(scale * tti_hogwild_z(target, out->bound) - (double)count, 1, TTI_ITERATIONS_MAX);
}
