// Plateau: the loss no longer falls, as far as can be told (estimator-math, section 5).
#ifndef TT_EST_PLATEAU_H
#define TT_EST_PLATEAU_H

#include "est_blocks.h"

typedef struct tti_plateau {
    double fall; // s_prev: the last fall per clock that was seen clearly; 0: never
    int now;
} tti_plateau;

// Looks at the slope over the last 3 (12 sigma^2 / s_prev^2)^(1/3) pushes; under 2 s.e. is a
// plateau. Where no fall was ever seen: a plateau once 2 s.e. above the slope would still take 20
// times what was done so far to get to `target` (NAN: no target, never a plateau then).
void tti_plateau_check(tti_plateau *plateau, const tti_series *history, double target);

#endif
