// my_curve: an example, the stretched exponential: loss = floor + a exp(-(clock / b)^c). Copy the
// directory, rename, and write down your own form. The rules are in tt/curve.h.
#include "tt/curve.h"
#include <math.h>

enum { A, B, C, FLOOR, COUNT };

static double
my_loss(const double *p, double clock)
{
    if (!(p[A] > 0 && p[B] > 0 && p[C] > 0))
        return NAN; // not of this family: the fit stays away
    return p[FLOOR] + p[A] * exp(-pow(clock / p[B], p[C]));
}

static double
my_floor(const double *p)
{
    return p[FLOOR];
}

static int
my_guess(const double *clock, const double *loss, uint32_t count, double target, double *p)
{
    (void)target;
    const double first = loss[0], last = loss[count - 1];
    if (count < 6 || !(last < first))
        return 0;
    p[A] = 1.2 * (first - last);
    p[B] = 0.5 * clock[count - 1];
    p[C] = 1;
    p[FLOOR] = first - p[A];
    return 1;
}

static const tt_curve my_curve = {.struct_size = sizeof(tt_curve), .parameters = COUNT,
    .name = "my_curve", .help = "an example: a stretched exponential down to a floor", .prior = 0.3,
    .guess = my_guess, .loss = my_loss, .floor = my_floor};

TT_CURVE_PLUGIN(&my_curve)
