// Expected improvement in forms that survive the tails.
#include "tt/tuner_search.h"
#include <gsl/gsl_sf_erf.h>
#include <math.h>

static const double half_log_2pi = 0.91893853320467274178;

double
tt_ei_phi(double z)
{
    return 0.5 * erfc(-z * M_SQRT1_2);
}

static double
density(double z)
{
    return exp(-0.5 * z * z - half_log_2pi);
}

// Phi(z) / phi(z) for z <= 0: the inverse of the hazard at -z.
static double
mills(double z)
{
    return 1 / gsl_sf_hazard(-z);
}

// 1 + z sqrt(pi/2) erfcx(-z/sqrt 2) = 1 - x Q(x)/phi(x) at x = -z, which GSL's hazard phi(x)/Q(x)
// gives; its terms cancel to 1/x^2, so that the asymptotic series q - 3 q^2 + 15 q^3 - 105 q^4, q =
// 1/x^2, takes over beyond 200.
double
tt_ei_log_h(double z)
{
    if (z >= -1)
        return log(density(z) + z * tt_ei_phi(z));
    if (!isfinite(z))
        return z; // -INFINITY, or NAN
    double tail, q = 1 / (z * z);
    if (z < -200)
        tail = q * (1 - q * (3 - q * (15 - 105 * q)));
    else
        tail = 1 + z * mills(z);
    return -0.5 * z * z - half_log_2pi + log(tail);
}

static void
derivatives(double *a, double value_a, double *b, double value_b)
{
    if (a != NULL)
        *a = value_a;
    if (b != NULL)
        *b = value_b;
}

double
tt_ei_log(double mean, double sd, double best, double *d_mean, double *d_sd)
{
    double gain = best - mean;
    if (!(sd > 0)) {
        derivatives(d_mean, gain > 0 ? -1 / gain : 0, d_sd, 0);
        return gain > 0 ? log(gain) : -INFINITY;
    }
    double z = gain / sd, log_h = tt_ei_log_h(z);
    if (d_mean != NULL || d_sd != NULL) {
        // d h/d z = Phi; EI = sd h(z), so that d EI/d mean = -Phi and d EI/d sd = phi.
        double phi = exp(-0.5 * z * z - half_log_2pi - log_h);
        double cdf = z < -1 ? phi * mills(z) : tt_ei_phi(z) * exp(-log_h);
        derivatives(d_mean, -cdf / sd, d_sd, phi / sd);
    }
    return log(sd) + log_h;
}

// mills(d) - mills(d - sd) for d < -1. Far out both are near 1/|d| and their difference is taken
// term by term from mills(-x) = 1/x - 1/x^3 + 3/x^5 - 15/x^7 + ... (Abramowitz & Stegun 26.2.12).
static double
mills_difference(double d, double sd)
{
    if (d > -50)
        return mills(d) - mills(d - sd);
    double a = -1 / d, b = 1 / (sd - d), ab = a * b, a2 = a * a, b2 = b * b;
    double third = a2 + ab + b2;                               // (a^3 - b^3) / (a - b)
    double fifth = a2 * a2 + b2 * b2 + ab * third;             // (a^5 - b^5) / (a - b)
    double seventh = a2 * a2 * a2 + b2 * b2 * b2 + ab * fifth; // (a^7 - b^7) / (a - b)
    return sd * ab * (1 - third + 3 * fifth - 15 * seventh);
}

double
tt_ei_told(double var, double noise_var, double *d_var)
{
    const double all = var + noise_var;
    if (d_var != NULL)
        *d_var = var > 0 ? (0.5 * var + noise_var) / (all * sqrt(all)) : 0;
    return var > 0 ? var / sqrt(all) : 0;
}

double
tt_ei_log_saved(double mean, double sd, double *d_mean, double *d_sd)
{
    if (!(sd > 0)) {
        double saved = -expm1(mean);
        derivatives(d_mean, saved > 0 ? -exp(mean) / saved : 0, d_sd, 0);
        return saved > 0 ? log(saved) : -INFINITY;
    }
    double d = -mean / sd, log_density = -0.5 * d * d - half_log_2pi, value;
    // log of exp(mean + sd^2/2) Phi(d - sd) = phi(d) mills(d - sd)
    double log_paid =
        d > sd ? mean + 0.5 * sd * sd + log(tt_ei_phi(d - sd)) : log_density + log(mills(d - sd));
    if (sd * fmax(1, fabs(d)) < 1e-4)
        value = log(sd) + tt_ei_log_h(d);
    else if (d < -1)
        value = log_density + log(mills_difference(d, sd));
    else
        value = log(tt_ei_phi(d) - exp(log_paid));
    if (d_mean != NULL || d_sd != NULL)
        derivatives(d_mean, -exp(log_paid - value), d_sd,
                    exp(log_density - value) - sd * exp(log_paid - value));
    return value;
}
