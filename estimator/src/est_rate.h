// Statistical rate of a setting: log r = -eta max(0, nu - d) + theta' u (estimator-math, section
// 4).
#ifndef TT_EST_RATE_H
#define TT_EST_RATE_H

#include "tt/estimator.h"

// theta ~ N(mean, covariance); before any evidence N(0, 0.05^2 I). Of a lossy feature (bit i of
// `lossy`: the i-th) theta <= 0, which mean and covariance know nothing of.
typedef struct tti_rate {
    double mean[TT_EST_FEATURES_MAX];
    double covariance[TT_EST_FEATURES_MAX][TT_EST_FEATURES_MAX];
    uint32_t lossy;
} tti_rate;

void tti_rate_init(tti_rate *rate);
// Mean and s.d. of log r at features u under noise ratio nu; mean clamped to [log 0.2, log 5]. The
// mean is that of the most probable theta that lossy features allow; the s.d. is not narrowed.
void tti_rate_predict(const tti_rate *rate, const double *u, double nu, double *mean, double *sd);
// The same in two steps, for many u: the theta that lossy features allow (TT_EST_FEATURES_MAX), and
// what it says.
void tti_rate_allowed(const tti_rate *rate, double *theta);
void tti_rate_predict_allowed(const tti_rate *rate,
                              const double *theta,
                              const double *u,
                              double nu,
                              double *mean,
                              double *sd);
// Bayesian update with one slope: theta' u observed as `value` with variance `variance`.
void tti_rate_update(tti_rate *rate, const double *u, double value, double variance);

#endif
