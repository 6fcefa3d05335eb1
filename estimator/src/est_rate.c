#include "est_rate.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

enum { FEATURES = TT_EST_FEATURES_MAX };
static const double FAR = 2.5, DEGREES = 4;

void
tti_rate_init(tti_rate *rate)
{
    memset(rate, 0, sizeof *rate);
    for (int i = 0; i < FEATURES; i++)
        rate->covariance[i][i] = 0.05 * 0.05;
}

// out = covariance u; returns u' covariance u.
static double
spread(const tti_rate *rate, const double *u, double *out)
{
    double total = 0;
    for (int i = 0; i < FEATURES; i++) {
        out[i] = 0;
        for (int j = 0; j < FEATURES; j++)
            out[i] += rate->covariance[i][j] * u[j];
        total += u[i] * out[i];
    }
    return fmax(total, 0);
}

void
tti_rate_predict(const tti_rate *rate, const double *u, double nu, double *mean, double *sd)
{
    const double eta = 0.5, d = 0.3;
    double gain[FEATURES];
    *sd = sqrt(spread(rate, u, gain));
    *mean = -eta * fmax(0, nu - d);
    for (int i = 0; i < FEATURES; i++)
        *mean += rate->mean[i] * u[i];
    *mean = tti_clamp(*mean, log(0.2), log(5));
}

void
tti_rate_update(tti_rate *rate, const double *u, double value, double variance)
{
    TT_ASSERT(variance > 0);
    double gain[FEATURES];
    const double known = spread(rate, u, gain);
    double surprise = value;
    for (int i = 0; i < FEATURES; i++)
        surprise -= rate->mean[i] * u[i];
    // What is far from all that is known tells of a wrong forecast rather than of the setting:
    // beyond FAR s.d. it counts about as Student's t has it.
    const double squares = surprise * surprise / (known + variance);
    const double total = known + variance * (1 + fmax(squares - FAR * FAR, 0) / (DEGREES + 1));
    if (!isfinite(surprise) || !isfinite(total))
        return;
    for (int i = 0; i < FEATURES; i++)
        rate->mean[i] += gain[i] / total * surprise;
    for (int i = 0; i < FEATURES; i++)
        for (int j = 0; j < FEATURES; j++)
            rate->covariance[i][j] -= gain[i] * gain[j] / total;
}
