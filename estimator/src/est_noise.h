// The noise ratio nu: a cheap alarm for staleness (estimator-math, section 4).
#ifndef TT_EST_NOISE_H
#define TT_EST_NOISE_H

#include "tt/estimator.h"

enum { TTI_NOISE_WINDOWS = 20, TTI_NOISE_WINDOWS_PER_SETTING = 5 };

// s.d. of losses about a straight line, in segments so that the bend of a long window stays out.
typedef struct tti_detrend {
    double segment;   // losses a segment holds
    double n, x0, y0; // the segment being filled, relative to its first loss
    double sx, sy, sxx, sxy, syy;
    double squares, freedom; // of the closed segments
    double losses;
} tti_detrend;

void tti_detrend_reset(tti_detrend *detrend, uint32_t workers);
void tti_detrend_add(tti_detrend *detrend, double position, double loss);
// NAN with under 8 losses.
double tti_detrend_sd(const tti_detrend *detrend);

typedef struct tti_noise_window {
    uint32_t setting;
    double log_sd, log_loss, n; // log_loss is NAN for losses <= 0
    double features[TT_EST_FEATURES_MAX];
} tti_noise_window;

// The last 20 windows, at most 5 of one setting: otherwise a settled setting would become its own
// reference and its staleness invisible.
typedef struct tti_noise {
    tti_noise_window windows[TTI_NOISE_WINDOWS];
    double excess[TTI_NOISE_WINDOWS]; // log(sd / reference sd)
    uint32_t count;
} tti_noise;

// features: TT_EST_FEATURES_MAX values, the unused ones 0.
void tti_noise_add(
    tti_noise *noise, uint32_t setting, double sd, double loss, double n, const double *features);
// nu at these features: the windows' excess, smoothed with a Gaussian kernel of 0.15 over the
// features, and 0 unless above 3 standard errors (1 / sqrt(2 n)). From `width` on features are 0,
// here and in all windows; TT_EST_FEATURES_MAX where that is not known.
double tti_noise_ratio(const tti_noise *noise, const double *features, uint32_t width);
// From where on features are 0 in all windows.
uint32_t tti_noise_width(const tti_noise *noise);

#endif
