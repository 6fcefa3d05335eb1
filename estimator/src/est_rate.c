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

// The features that are not 0; returns their number.
static int
list_used(const double *u, int *used)
{
    int count = 0;
    for (int i = 0; i < FEATURES; i++)
        if (u[i] != 0)
            used[count++] = i;
    return count;
}

static double
row_times(const tti_rate *rate, int i, const double *u, const int *used, int count)
{
    double sum = 0;
    for (int k = 0; k < count; k++)
        sum += rate->covariance[i][used[k]] * u[used[k]];
    return sum;
}

// u' covariance u.
static double
spread(const tti_rate *rate, const double *u)
{
    int used[FEATURES];
    const int count = list_used(u, used);
    double total = 0;
    for (int k = 0; k < count; k++)
        total += u[used[k]] * row_times(rate, used[k], u, used, count);
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
tti_rate_allowed(const tti_rate *rate, double *theta)
{
    tti_rate allowed = *rate;
    for (int at = most_above(&allowed); at >= 0; at = most_above(&allowed))
        hold_at_zero(&allowed, at);
    memcpy(theta, allowed.mean, sizeof allowed.mean);
}

void
tti_rate_predict_allowed(
    const tti_rate *rate, const double *theta, const double *u, double nu, double *mean, double *sd)
{
    const double eta = 0.5, d = 0.3;
    *sd = sqrt(spread(rate, u));
    *mean = -eta * fmax(0, nu - d);
    for (int i = 0; i < FEATURES; i++)
        *mean += theta[i] * u[i];
    *mean = tti_clamp(*mean, log(0.2), log(5));
}

void
tti_rate_predict(const tti_rate *rate, const double *u, double nu, double *mean, double *sd)
{
    double theta[FEATURES];
    tti_rate_allowed(rate, theta);
    tti_rate_predict_allowed(rate, theta, u, nu, mean, sd);
}

void
tti_rate_update(tti_rate *rate, const double *u, double value, double variance)
{
    TT_ASSERT(variance > 0);
    double gain[FEATURES]; // covariance u
    int used[FEATURES];
    const int count = list_used(u, used);
    for (int i = 0; i < FEATURES; i++)
        gain[i] = row_times(rate, i, u, used, count);
    const double known = spread(rate, u);
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
