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

// The lossy feature whose theta is most clearly above 0; -1: there is none.
static int
most_above(const tti_rate *rate)
{
    int at = -1;
    double most = 0;
    for (int i = 0; i < FEATURES; i++) {
        const double z = rate->mean[i] / sqrt(rate->covariance[i][i]);
        if ((rate->lossy >> i & 1) != 0 && z > most) {
            most = z;
            at = i;
        }
    }
    return at;
}

// theta[at] = 0 is known: what spoke for more speaks for the features that it came with.
static void
hold_at_zero(tti_rate *rate, int at)
{
    double gain[FEATURES];
    const double value = rate->mean[at], variance = rate->covariance[at][at];
    for (int i = 0; i < FEATURES; i++)
        gain[i] = rate->covariance[i][at] / variance;
    for (int i = 0; i < FEATURES; i++) {
        rate->mean[i] -= gain[i] * value;
        for (int j = 0; j < FEATURES; j++)
            rate->covariance[i][j] -= gain[i] * gain[j] * variance;
    }
    rate->mean[at] = 0;
    rate->lossy &= ~(1U << at);
}

void
tti_rate_predict(const tti_rate *rate, const double *u, double nu, double *mean, double *sd)
{
    const double eta = 0.5, d = 0.3;
    double gain[FEATURES];
    *sd = sqrt(spread(rate, u, gain));
    *mean = -eta * fmax(0, nu - d);
    tti_rate allowed = *rate;
    for (int at = most_above(&allowed); at >= 0; at = most_above(&allowed))
        hold_at_zero(&allowed, at);
    for (int i = 0; i < FEATURES; i++)
        *mean += allowed.mean[i] * u[i];
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
