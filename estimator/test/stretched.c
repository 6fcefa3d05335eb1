// A plugin with two families, as an author would write it: the stretched exponential, and a
// straight line without a floor.
#include "tt/curve.h"
#include <math.h>

static double
stretched_loss(const double *p, double clock)
{
    if (!(p[0] > 0 && p[1] > 0 && p[2] > 0))
        return NAN;
    return p[3] + p[0] * exp(-pow(clock / p[1], p[2]));
}

static double
stretched_floor(const double *p)
{
    return p[3];
}

static int
stretched_guess(const double *clock, const double *loss, uint32_t count, double target, double *p)
{
    const double fall = loss[0] - loss[count - 1];
    (void)target;
    if (count < 6 || !(fall > 0))
        return 0;
    p[0] = 1.2 * fall;
    p[1] = 0.5 * clock[count - 1];
    p[2] = 1;
    p[3] = loss[0] - p[0];
    return 1;
}

static double
straight_loss(const double *p, double clock)
{
    return p[0] - p[1] * clock;
}

static int
straight_guess(const double *clock, const double *loss, uint32_t count, double target, double *p)
{
    (void)target;
    p[0] = loss[0];
    p[1] = (loss[0] - loss[count - 1]) / clock[count - 1];
    return 1;
}

static const tt_curve stretched = {.struct_size = sizeof(tt_curve),
                                   .parameters = 4,
                                   .name = "stretched",
                                   .help = "floor + a exp(-(clock / b)^c)",
                                   .prior = 1,
                                   .guess = stretched_guess,
                                   .loss = stretched_loss,
                                   .floor = stretched_floor};
static const tt_curve straight = {.struct_size = sizeof(tt_curve),
                                  .parameters = 2,
                                  .name = "straight",
                                  .help = "a straight line",
                                  .prior = 0.1,
                                  .guess = straight_guess,
                                  .loss = straight_loss};

TT_CURVE_PLUGIN(&stretched, &straight)
