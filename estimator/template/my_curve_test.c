// Goal: the family keeps the promises of tt/curve.h, and its guess is near enough to begin at.
// Method: points of known parameters, without trimtab; the guessed curve must be closer to them
// than a constant is.
#include "tt/curve.h"
#include <math.h>
#include <stdio.h>

const tt_curve_plugin *tt_curve_plugin_abi1(void); // linked in, not loaded

#define CHECK(x) ((x) ? (void)0 : (void)(failures++, fprintf(stderr, "fails: %s\n", #x)))

enum { POINTS = 40 };

int
main(void)
{
    const tt_curve *curve = tt_curve_plugin_abi1()->curves[0];
    const double truth[TT_CURVE_PARAMETERS_MAX] = {1.7, 900, 0.6, 0.31};
    double clock[POINTS], loss[POINTS], p[TT_CURVE_PARAMETERS_MAX], mean = 0, guessed = 0, flat = 0;
    int failures = 0;
    for (uint32_t i = 0; i < POINTS; i++) {
        clock[i] = 12.5 + 25.0 * i;
        loss[i] = curve->loss(truth, clock[i]);
        mean += loss[i] / POINTS;
    }
    CHECK(fabs(loss[0] - (0.31 + 1.7 * exp(-pow(12.5 / 900, 0.6)))) < 1e-12); // worked out by hand
    CHECK(curve->loss(truth, 1e10) >= curve->floor(truth) && curve->floor(truth) == 0.31);
    CHECK(!curve->guess(clock, loss, 2, NAN, p));
    CHECK(curve->guess(clock, loss, POINTS, 0.4, p));
    for (uint32_t i = 0; i < POINTS; i++) {
        guessed += pow(curve->loss(p, clock[i]) - loss[i], 2);
        flat += pow(mean - loss[i], 2);
    }
    CHECK(guessed < flat);
    p[1] = -1;
    CHECK(!isfinite(curve->loss(p, 100)));
    return failures > 0;
}
