// Shared by the files of the Gaussian process.
#ifndef TTI_GP_INTERNAL_H
#define TTI_GP_INTERNAL_H

#include "tt/tuner_gp.h"

// dims + stage length, signal, noise, stage, cross, trend
enum { TTI_GP_THETA_MAX = TT_GP_DIMS_MAX + 6, TTI_GP_FEATURES_MAX = 2 * TT_GP_DIMS_MAX };

struct tt_gp {
    tt_gp_options options;
    uint32_t rows, capacity;
    double *x;                           // rows x dims
    double *stage, *y, *noise, *repeats; // rows, as told
    double y_mean, y_scale;              // standardisation in force
    tt_gp_params params;                 // in force
    int fitted;
    uint32_t trend_lines; // dimensions that have a trend
    uint32_t fits;        // so far, position in the stream of random starts
    uint32_t factored;    // leading rows contained in chol
    int stale;            // a factored row was replaced
    double *chol;         // rows x rows lower triangle, row-major with leading dimension `capacity`
    double *alpha;        // K^-1 (y - mean)/scale
    double log_posterior;
    double *scratch; // tti_gp_scratch
    size_t scratch_size;
};

// At least `count` doubles for what is computed next, not zeroed; they are the process's own and
// are valid until the next call. Kept from one fit to the next, for pages that are returned and
// asked for again are dear on a virtual machine. NULL: no memory.
double *tti_gp_scratch(tt_gp *gp, size_t count);

// Matern 5/2 of the squared scaled distance, and -2 dM/d(log l) summed over dimensions divided by
// r^2: the factor by which a dimension's share of r^2 enters the derivative in its log length.
double tti_gp_matern(double r2);
double tti_gp_matern_slope(double r2);

// Hyperparameters ready for use: inverse squared lengths and variances, no logs.
typedef struct tti_gp_scales {
    double weight[TT_GP_DIMS_MAX];
    double stage_weight, signal, stage, cross, noise, constant;
    double trend; // of each line
} tti_gp_scales;
void tti_gp_scales_set(const tt_gp *gp, const tt_gp_params *params, tti_gp_scales *out);
// Squared scaled distance of two points of settings, without the stage.
double
tti_gp_distance2(const tt_gp *gp, const tti_gp_scales *scales, const double *a, const double *b);
// Covariance of two latent values.
double tti_gp_kernel(const tt_gp *gp,
                     const tti_gp_scales *scales,
                     const double *a,
                     double stage_a,
                     const double *b,
                     double stage_b);
// Of a value with itself, without the trend.
double tti_gp_kernel_self(const tti_gp_scales *scales);

// What the trend adds to the covariance of two points; 0 without one.
double tti_gp_trend(const tt_gp *gp, const tti_gp_scales *scales, const double *a, const double *b);
// The features whose inner product, times scales.trend, that is: two for each line in their order,
// none without a trend.
uint32_t tti_gp_trend_width(const tt_gp *gp);
void tti_gp_trend_features(const tt_gp *gp, const double *x, double *out);
// d/dx of what two weights make of the two features of the line at x.
double tti_gp_trend_slope(double x, const double *weights);

// The hyperparameters as one vector of unknowns, with their normal priors and their box.
typedef struct tti_gp_layout {
    uint32_t count;
    int stage_length, signal, noise, stage, cross, trend; // positions, -1 = not there
    double mean[TTI_GP_THETA_MAX], sd[TTI_GP_THETA_MAX], lower[TTI_GP_THETA_MAX],
        upper[TTI_GP_THETA_MAX];
} tti_gp_layout;
void tti_gp_layout_set(const tt_gp *gp, tti_gp_layout *out);
void
tti_gp_pack(const tti_gp_layout *layout, uint32_t dims, const tt_gp_params *params, double *theta);
void tti_gp_unpack(const tti_gp_layout *layout,
                   uint32_t dims,
                   const double *theta,
                   tt_gp_params *params);

// Workspace of the log posterior over all rows, in the process's scratch; standardises y anew.
typedef struct tti_gp_objective tti_gp_objective;
TT_NODISCARD tt_status tti_gp_objective_open(tt_gp *gp, tti_gp_objective **out, tt_error *err);
// Minus the log posterior density at theta (up to a constant) and its gradient; INFINITY where the
// matrix cannot be factored.
double tti_gp_objective_value(void *objective, const double *theta, double *gradient);
void tti_gp_objective_close(tti_gp_objective *objective);

// dpotrf of the n x n matrix whose lower triangle `matrix` holds (row-major, leading dimension ld),
// climbing the jitter ladder 1e-10 .. 1e-4 of the mean diagonal; `copy` (n x ld) keeps the original
// meanwhile. errors TT_NUMERIC
TT_NODISCARD tt_status tti_gp_factor(double *matrix, double *copy, uint32_t n, uint32_t ld);
// Mean and spread of y for standardisation.
void tti_gp_standardize(tt_gp *gp);

#endif
