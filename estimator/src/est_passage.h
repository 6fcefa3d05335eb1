// When a loss that swings about its course, or above it, meets the target: at the first swing that
// is found below it.
#ifndef TT_EST_PASSAGE_H
#define TT_EST_PASSAGE_H

#include "est_family.h"

typedef struct tti_swings {
    double sd;    // about the course, if that is their mean; 0: none
    double above; // in the mean, of a course that is their foot; 0: it is not
    double every; // iterations between two chances of looks that hold the target
    uint32_t row; // so many of them in a row must hold it
} tti_swings;

// Turns the iterations that `out` says are left until the course of the fit is at the target into
// those until looks find it there; what is not to be reached by the course may be by a swing.
void tti_passage_meet(const tti_family *family,
                      const tti_fit *fit,
                      double now,
                      double target,
                      const tti_swings *swings,
                      tti_left *out);

#endif
