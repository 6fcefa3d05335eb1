// How much the loss bends, and how that grows. Curvature follows the course of training: where the
// logistic or the squared loss bends less and less or as ever, a hinge loss bends more the more
// examples come to lie at the margin, and what it bears now it will not bear for the rest of the
// job.
#ifndef TT_EST_BEND_H
#define TT_EST_BEND_H

#include <stdint.h>

enum { TTI_BEND_LAST = 9, TTI_BEND_NOTES = 9 };

// Without pointers: it is archived. All zero: nothing is known.
typedef struct tti_bend {
    double last[TTI_BEND_LAST]; // measurements, a ring
    uint64_t count;             // of all
    // The median of those, noted each time the job is a fifth longer: logarithms, a ring.
    double log_iterations[TTI_BEND_NOTES], log_curvature[TTI_BEND_NOTES];
    uint32_t notes; // ever
} tti_bend;

// iterations: that the job has done, > 0. What is no positive number is not heard.
void tti_bend_add(tti_bend *bend, double curvature, double iterations);
// Median of the last measurements; NAN: none.
double tti_bend_now(const tti_bend *bend);
// The same when the job has done twice its iterations, should it go on growing as it did; NAN:
// none.
double tti_bend_ahead(const tti_bend *bend);

#endif
