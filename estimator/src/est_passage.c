// The course comes to z s.d. above the target after k(z) iterations. A look finds the target held
// with chance P(z), so many in a row, as far as they know nothing of each other, with P(z)^row: by
// k(z) it was met with probability 1 - exp(-H),
//
//     H(z) = integral over k of P(z)^row / every
//
// A course that ends above the target goes on with its last chance.
#include "est_passage.h"
#include "est_robust.h"
#include "tt/core.h"
#include <gsl/gsl_sf_gamma.h>
#include <math.h>

enum { STEPS = 20 };
static const double FROM = 3, STEP = 0.25;
// A swing is an excess, a sum of squares, and goes further up than down: that of a gamma
// distribution with this shape, whose skewness is 1 (seen: 0.3 to 3; docs/rationale.md).
static const double SHAPE = 4;

typedef struct passage {
    double k[STEPS + 1], chance[STEPS + 1]; // chance: an iteration, before k
    int steps;                              // that the course comes to
    int ends;                               // above the next one
} passage;

// Of a swing that reaches z s.d. below the course.
static double
chance_of(double z)
{
    const double x = SHAPE - z * sqrt(SHAPE);
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
        const double z = FROM - i * STEP;
        p.chance[i] = pow(chance_of(z + 0.5 * STEP), swings->row) / swings->every;
        if (p.ends)
            continue;
        tti_family_inverse(family, fit, now, target + z * swings->sd, &left);
        p.ends = !left.ok || left.unreachable > 0.5;
        if (p.ends)
            continue;
        p.k[i] = fmax(exp(left.log_mean), i > 0 ? p.k[i - 1] : 0);
        p.steps = i;
        out->log_sd = left.log_sd;
    }
    if (p.steps < 0)
        return; // even that is out of reach
    out->unreachable = 0;
    out->log_mean = tti_log_iterations(passed_after(&p, log(2)));
    const double early = tti_log_iterations(passed_after(&p, -log(0.9)));
    const double late = tti_log_iterations(passed_after(&p, -log(0.1)));
    out->log_sd = hypot(out->log_sd, (late - early) / 2.563);
}
