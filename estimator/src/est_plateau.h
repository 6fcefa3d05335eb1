// Plateau: the loss no longer falls, as far as can be told (estimator-math, section 5).
#ifndef TT_EST_PLATEAU_H
#define TT_EST_PLATEAU_H

#include "est_blocks.h"

typedef struct tti_plateau {
    double fall;   // s_prev: the last fall per clock that was seen clearly; 0: never
    int suspected; // the last check found no fall
    int now;       // two checks in a row did
} tti_plateau;

// Looks at the slope over the last 4 (12 sigma^2 / s_prev^2)^(1/3) pushes; under 2 s.e. in two
// consecutive checks is a plateau. (With 3 and one check, 12 % of the questions to still falling
// logistic regressions were answered "never"; with these, 3 %.) Where no fall was ever seen: a
// plateau once 2 s.e. above the slope would still take 20 times what was done so far to get to
// `target` (NAN: no target, never a plateau then).
void tti_plateau_check(tti_plateau *plateau, const tti_series *history, double target);

// The line through the mean losses of the blocks from iteration `since` on: its slope per iteration
// and its value at the last of them. False with fewer than six.
int
tti_trend(const tti_series *history, double since, double *slope, double *slope_se, double *last);

#endif
