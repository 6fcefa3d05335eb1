// Minimum of a smooth function in a box: projected L-BFGS.
#ifndef TTI_TUNER_BOXMIN_H
#define TTI_TUNER_BOXMIN_H

#include "tt/core.h"

enum { TTI_BOXMIN_DIMS_MAX = 40 };

// Value at x and gradient (n numbers). INFINITY: outside the domain, the step is shortened.
typedef double (*tti_boxmin_function)(void *self, const double *x, double *gradient);

typedef struct tti_boxmin_problem {
    uint32_t n; // at most TTI_BOXMIN_DIMS_MAX
    const double *lower, *upper;
    tti_boxmin_function function;
    void *self;
    uint32_t evaluations_max;
    double gradient_tolerance; // largest component of the projected gradient at which it stops
    double step_max;           // largest change of a coordinate in one step; 0 = the box
} tti_boxmin_problem;

// Descends from x (clamped into the box), leaves the best point in x and returns its value,
// INFINITY when even the first was outside the domain. source: Byrd, Lu, Nocedal, Zhu, SIAM J. Sci.
// Comput. 16 (1995), with a plain projection in place of the generalised Cauchy point.
double tti_boxmin(const tti_boxmin_problem *problem, double *x, uint32_t *evaluations);

#endif
