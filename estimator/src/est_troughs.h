// The lowest of some looks in a row. Near the stable limit the loss swings: what it has more than
// its slow course is a sum of squares, 1/2 curvature x^2 of the directions that swing, and as these
// swing through nothing twice a period it falls back to that course again and again, however far
// the swings go. The lowest looks lie on it: the course along which the target is met. The mean of
// the losses lies above it by swings that come and go (docs/rationale.md).
#ifndef TT_EST_TROUGHS_H
#define TT_EST_TROUGHS_H

#include "est_family.h"
#include <stdint.h>

enum { TTI_TROUGHS = 32 }; // a list that reaches this is merged pairwise

// Looks in a row, seen as their lowest.
typedef struct tti_trough {
    double clock, loss; // of the lowest: on the progress clock
    double sum;         // of all their losses
    uint32_t looks;     // 0: none
} tti_trough;

// Without pointers: it is archived. All zero: nothing is known.
typedef struct tti_troughs {
    tti_trough list[TTI_TROUGHS], pending;
    uint32_t count, doublings;
    double newest; // clock of the last look
} tti_troughs;

// loss: no number is not heard. clock: one that was set back, as by a loss that rose, stands until
// it is where it was.
void tti_troughs_add(tti_troughs *troughs, double clock, double loss);
// As points of the slow course.
void tti_troughs_data(const tti_troughs *troughs, double target, tti_curve_data *out);
// How far looks are above that course, in the mean over the newest troughs; 0: none are known.
double tti_troughs_above(const tti_troughs *troughs);

#endif
