// The course comes to z above the target (below it: z < 0) after k(z) iterations. A look finds the
// target held with chance P(z), so many in a row, as far as they know nothing of each other, with
// P(z)^row: by k(z) it was met with probability 1 - exp(-H),
//
//     H(z) = integral over k of P(z)^row / every
//
// A course that ends above the last z goes on with its last chance.
#include "est_passage.h"
#include "est_robust.h"
#include "tt/core.h"
#include <gsl/gsl_sf_gamma.h>
#include <math.h>

enum { STEPS = 20 };
// About a mean z goes down from FROM s.d. in equal steps.
static const double FROM = 3, STEP = 0.25;
// A swing is an excess, a sum of squares, and goes further up than down: that of a gamma
// distribution with this shape, whose skewness is 1 (seen: 0.3 to 3; docs/rationale.md).
static const double SHAPE = 4;
// Above a foot z goes down from it, each step by this factor, to that multiple of the mean swing.
// There it is one square.
static const double FACTOR = 1.6, DEEPEST = 4, SHAPE_ABOVE = 0.5;

typedef struct passage {
    double k[STEPS + 1], log_sd[STEPS + 1]; // log_sd: of k
    double chance[STEPS + 1];               // an iteration, before k
    int steps;                              // that the course comes to
    int ends;                               // above the next one
} passage;

// z, whose steps are numbered from the first that matters; halves are between two of them.
static double
height_of(const tti_swings *swings, double step)
{
    if (swings->above > 0)
        return step < 0.5 ? 0 : -DEEPEST * swings->above * pow(FACTOR, step - STEPS);
    return (FROM - step * STEP) * swings->sd;
}

// Of a look that finds the target held.
static double
chance_at(const tti_swings *swings, double z)
{
    if (swings->above > 0)
        return z < 0 ? gsl_sf_gamma_inc_P(SHAPE_ABOVE, -z * SHAPE_ABOVE / swings->above) : 0;
    const double x = SHAPE - z / swings->sd * sqrt(SHAPE);
    return x > 0 ? gsl_sf_gamma_inc_P(SHAPE, x) : 0;
}

// Iterations until H is `hazard`.
static double
passed_after(const passage *p, double hazard)
{
    for (int i = 1; i <= p->steps; i++) {
        const double more = (p->k[i] - p->k[i - 1]) * p->chance[i];
        if (more >= hazard && p->chance[i] > 0)
            return p->k[i - 1] + hazard / p->chance[i];
        hazard -= more;
    }
    const double next = p->chance[TT_MIN(p->steps + 1, STEPS)];
    return p->ends && next > 0 ? p->k[p->steps] + hazard / next : p->k[p->steps];
}

// As of the first step that the course comes to later than k; of a course that is a mean, the last
// step's, the widest.
static double
log_sd_at(const passage *p, const tti_swings *swings, double k)
{
    int i = swings->above > 0 ? 0 : p->steps;
    while (i < p->steps && p->k[i] < k)
        i++;
    return p->log_sd[i];
}

void
tti_passage_meet(const tti_family *family,
                 const tti_fit *fit,
                 double now,
                 double target,
                 const tti_swings *swings,
                 tti_left *out)
{
    passage p = {.steps = -1};
    tti_left left = *out;
    for (int i = 0; i <= STEPS; i++) {
        const double held = chance_at(swings, height_of(swings, i - 0.5));
        p.chance[i] = pow(held, swings->row) / swings->every;
        if (p.ends)
            continue;
        tti_family_inverse(family, fit, now, target + height_of(swings, i), &left);
        p.ends = !left.ok || left.unreachable > 0.5;
        if (p.ends)
            continue;
        p.k[i] = fmax(exp(left.log_mean), i > 0 ? p.k[i - 1] : 0);
        p.steps = i;
        p.log_sd[i] = left.log_sd;
    }
    if (p.steps < 0)
        return; // even that is out of reach
    if (swings->sd > 0)
        out->unreachable = 0;
    out->log_mean = tti_log_iterations(passed_after(&p, log(2)));
    const double early = tti_log_iterations(passed_after(&p, -log(0.9)));
    const double late = tti_log_iterations(passed_after(&p, -log(0.1)));
    out->log_sd = hypot(log_sd_at(&p, swings, exp(out->log_mean)), (late - early) / 2.563);
}
