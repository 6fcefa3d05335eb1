// The logarithm of some iterations k as families together know it: a mixture of normals.
#ifndef TT_EST_MIXTURE_H
#define TT_EST_MIXTURE_H

#include "tt/estimator.h"

typedef struct tti_mixture {
    uint32_t count;
    double weight[TT_EST_FAMILIES_MAX], mean[TT_EST_FAMILIES_MAX], sd[TT_EST_FAMILIES_MAX];
    double unreachable; // weight of what says the target cannot be reached
} tti_mixture;

void tti_mixture_moments(const tti_mixture *mixture, double *mean, double *sd);
// Quantile p of log k + N(shift, extra_sd^2).
double tti_mixture_quantile(const tti_mixture *mixture, double p, double shift, double extra_sd);
// Where log_k came out in the mixture that foretold it, as a standard normal would have it
// (probability integral transform), within -3.1 to 3.1: its square is 1 in the mean if intervals
// are as wide as they should be.
double tti_mixture_score(const tti_mixture *mixture, double log_k);
// Makes it wider about its median, which stays, by this factor.
void tti_mixture_stretch(tti_mixture *mixture, double by);

#endif
