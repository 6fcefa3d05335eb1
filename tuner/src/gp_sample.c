// Hyperparameters drawn from their posterior by elliptical slice sampling: their prior is normal,
// so that a step needs no width and is never refused.
//
// source   Murray, Adams & MacKay, "Elliptical slice sampling", AISTATS 2010, figure 2
#include "gp_internal.h"
#include <math.h>
#include <string.h>

enum { SHRINKS_MAX = 30 };

typedef struct chain {
    tti_gp_objective *objective;
    tti_gp_layout layout;
    tt_rng rng;
    double theta[TTI_GP_THETA_MAX], likelihood; // log
} chain;

// Log likelihood: the log posterior without its prior. -INFINITY outside the box.
static double
likelihood_at(const chain *c, const double *theta)
{
    const tti_gp_layout *l = &c->layout;
    double gradient[TTI_GP_THETA_MAX], prior = 0;
    for (uint32_t j = 0; j < l->count; j++) {
        if (!(theta[j] >= l->lower[j] && theta[j] <= l->upper[j]))
            return -INFINITY;
        double off = (theta[j] - l->mean[j]) / l->sd[j];
        prior += 0.5 * off * off;
    }
    return prior - tti_gp_objective_value(c->objective, theta, gradient);
}

static void
step(chain *c)
{
    const tti_gp_layout *l = &c->layout;
    double aside[TTI_GP_THETA_MAX], theta[TTI_GP_THETA_MAX];
    for (uint32_t j = 0; j < l->count; j++)
        aside[j] = l->sd[j] * tt_rng_normal(&c->rng);
    double height = c->likelihood + log(fmax(tt_rng_uniform(&c->rng), 1e-300));
    double angle = 2 * M_PI * tt_rng_uniform(&c->rng), low = angle - 2 * M_PI, high = angle;
    for (int i = 0; i < SHRINKS_MAX; i++) {
        for (uint32_t j = 0; j < l->count; j++)
            theta[j] = l->mean[j] + (c->theta[j] - l->mean[j]) * cos(angle) + aside[j] * sin(angle);
        double likelihood = likelihood_at(c, theta);
        if (likelihood > height) {
            memcpy(c->theta, theta, sizeof theta);
            c->likelihood = likelihood;
            return;
        }
        if (angle < 0)
            low = angle;
        else
            high = angle;
        angle = low + (high - low) * tt_rng_uniform(&c->rng);
    }
}

tt_status
tt_gp_sample(tt_gp *gp, uint32_t steps, uint64_t seed, tt_error *err)
{
    chain c = {.likelihood = 0};
    if (gp->rows == 0 || !gp->fitted)
        return tt_error_set(err, TT_INVALID, "tuner", NULL, "a process must be fitted first");
    TT_TRY(tti_gp_objective_open(gp, &c.objective, err));
    tti_gp_layout_set(gp, &c.layout);
    tti_gp_pack(&c.layout, gp->options.dims, &gp->params, c.theta);
    tt_rng_init(&c.rng, gp->options.seed, TT_RNG_TUNER, seed);
    c.likelihood = likelihood_at(&c, c.theta);
    for (uint32_t i = 0; i < steps && isfinite(c.likelihood); i++)
        step(&c);
    tt_gp_params params;
    tti_gp_unpack(&c.layout, gp->options.dims, c.theta, &params);
    tti_gp_objective_close(c.objective);
    return tt_gp_set_params(gp, &params, err);
}
