// locallin: a Huber line over the newest blocks, for curves no other family follows. hwonly: no
// statistics at all, the baseline every family must beat; it never enters the mix.
#include "est_family.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

// p = {loss at x_mean, fall per clock, x_mean, clock seen}; covariance of the first two.
static void
local_fit(const tti_curve_data *data, uint32_t count, tti_fit *out)
{
    memset(out, 0, sizeof *out);
    if (count < 3)
        return;
    const uint32_t window = TT_MIN(count, TT_MAX(6u, TT_MIN(count / 4, 24u)));
    const uint32_t first = count - window;
    double w[TTI_CURVE_POINTS], r[TTI_CURVE_POINTS], h[TTI_CURVE_POINTS], sum_w = 0;
    for (uint32_t i = 0; i < window; i++) {
        w[i] = 1 / data->variance[first + i];
        sum_w += w[i];
    }
    tti_line line;
    if (!tti_huber_line(&data->x[first], &data->y[first], w, window, &line))
        return;
    for (uint32_t i = 0; i < window; i++)
        r[i] = sqrt(w[i]) * (data->y[first + i] - line.intercept -
                             line.slope * (data->x[first + i] - line.x_mean));
    out->noise_factor = tti_residual_factor(r, window, 2, h);
    out->p[0] = line.intercept;
    out->p[1] = -line.slope;
    out->p[2] = line.x_mean;
    out->covariance[0][0] = out->noise_factor / sum_w;
    out->covariance[1][1] = fmax(line.slope_se * line.slope_se, out->noise_factor / line.sum_xx);
    out->p[3] = data->x[count - 1] - data->x[first];
    out->ok = 1;
}

static double
local_predict(const tti_fit *fit, double clock, double *sd)
{
    const double d = clock - fit->p[2];
    *sd = sqrt(fit->covariance[0][0] + d * d * fit->covariance[1][1]);
    return fit->p[0] - fit->p[1] * d;
}

// The fall must be seen (2 s.e.) to be believed; a fall of the wrong sign votes "unreachable" with
// its probability.
static void
local_inverse(const tti_fit *fit, double now, double target, tti_left *out)
{
    *out = (tti_left){.ok = fit->ok, .log_mean = log(TTI_ITERATIONS_MAX), .log_sd = 2};
    double sd;
    const double se = sqrt(fit->covariance[1][1]), fall = fmax(fit->p[1], 0.5 * se);
    const double gap = local_predict(fit, now, &sd) - target;
    if (!(fall > 0))
        return;
    const double left = fmax(gap / fall, 0.005 * now), relative = se / fall;
    const double level = sd / fmax(fabs(gap), sd + 1e-300);
    out->unreachable = tti_normal_cdf(-fit->p[1] / fmax(se, 1e-300));
    out->log_mean = tti_log_iterations(left);
    // a line is to be trusted about as far ahead as it was seen
    const double reach = 0.5 * log1p(left / fmax(fit->p[3], 1));
    out->log_sd = fmin(sqrt(relative * relative + level * level + reach * reach), 2);
}

static double
local_log_predictive(const tti_fit *fit, double clock, double y, double variance)
{
    return tti_default_log_predictive(&tti_family_locallin, fit, clock, y, variance);
}

static double
no_floor(const tti_fit *fit)
{
    TT_UNUSED(fit);
    return NAN;
}

const tti_family tti_family_locallin = {
    "locallin", 0.1, local_fit, local_predict, local_inverse, local_log_predictive, no_floor, NULL};

static void
constant_fit(const tti_curve_data *data, uint32_t count, tti_fit *out)
{
    memset(out, 0, sizeof *out);
    if (count == 0)
        return;
    out->p[0] = data->y[count - 1];
    out->covariance[0][0] = data->variance[count - 1];
    out->noise_factor = 1;
    out->ok = 1;
}

static double
constant_predict(const tti_fit *fit, double clock, double *sd)
{
    TT_UNUSED(clock);
    *sd = sqrt(fit->covariance[0][0]);
    return fit->p[0];
}

// k = const: settings then differ by their seconds per iteration alone.
static void
constant_inverse(const tti_fit *fit, double now, double target, tti_left *out)
{
    TT_UNUSED(now);
    TT_UNUSED(target);
    *out = (tti_left){.ok = fit->ok, .log_mean = 0, .log_sd = 0, .unreachable = 0};
}

static double
constant_log_predictive(const tti_fit *fit, double clock, double y, double variance)
{
    return tti_default_log_predictive(&tti_family_hwonly, fit, clock, y, variance);
}

const tti_family tti_family_hwonly = {
    "hwonly", 0,   constant_fit, constant_predict, constant_inverse, constant_log_predictive,
    no_floor, NULL};
