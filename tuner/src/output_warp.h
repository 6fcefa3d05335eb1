// A monotone map of the measured values that makes them more like a Gaussian process: the
// Yeo-Johnson power of how far each is above the least of them. Near the least value it is close to
// a straight line, so that a smooth minimum stays one; large values are drawn in as far as their
// tail asks for. (A power of y itself, Box-Cox, makes a cusp of a minimum at 0, and the process
// then takes what it cannot follow for noise.)
//
//     x = (y - center) / scale        z = ((1 + x)^lambda - 1) / lambda          x >= 0
//                                     z = -((1 - x)^(2 - lambda) - 1) / (2 - lambda)    below
//
// source   Yeo & Johnson, Biometrika 87 (2000), eq. 2.1
#ifndef TTI_OUTPUT_WARP_H
#define TTI_OUTPUT_WARP_H

#include "tt/core.h"

typedef struct tti_warp {
    double lambda; // in [-2, 2]; 1 = a straight line
    double center, scale;
} tti_warp;

// Suits center and scale to `count` values in ascending order (count >= 1): the least of them, and
// how far the value at `share` of them is above it.
void tti_warp_suit(tti_warp *warp, const double *ascending, uint32_t count, double share);
double tti_warp_forward(const tti_warp *warp, double y);
// y whose forward is z; the end of the range where there is none.
double tti_warp_inverse(const tti_warp *warp, double z);
// log of d forward / d y.
double tti_warp_log_slope(const tti_warp *warp, double y);

#endif
