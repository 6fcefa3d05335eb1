// Gaussian process over settings and the stage of the job: the tuner's model of log seconds per
// iteration, and of any other function of a setting. Hyperparameters are the maximum of their
// posterior (MAP); everything in double.
//
// Kernel "sum":  K = s_x^2 M(x,x') + s_c^2 k(c,c') + s_xc^2 M(x,x') k(c,c')
// with M Matern 5/2 with one length scale a dimension, k Matern 5/2 in the stage c; "time" has s_c
// = s_xc = 0; "product" takes c as one more dimension of M. A trend over the range of each knob can
// be added (gp_trend.c). To each row its own noise variance is added, and a common one that is
// learned.
//
// Caveats: the cost of a fit grows with the cube of the rows (about 0.1 ms an evaluation at 50
// rows, 20 ms at 500). Not thread safe. Opening a process turns GSL's error handler off and
// OpenBLAS to one thread, for the whole process.
#ifndef TT_TUNER_GP_H
#define TT_TUNER_GP_H

#include "tt/core.h"
#include "tt/core_archive.h"

enum { TT_GP_DIMS_MAX = 32 };

typedef enum tt_gp_model { TT_GP_SUM = 0, TT_GP_TIME, TT_GP_PRODUCT } tt_gp_model;

typedef enum tt_gp_kind {
    TT_GP_LINE = 0, // distance = difference of coordinates
    TT_GP_MISMATCH, // distance = 1 when the coordinates differ (enum, bool)
} tt_gp_kind;

typedef struct tt_gp_options {
    tt_gp_model model;
    uint32_t dims; // 1 .. TT_GP_DIMS_MAX
    tt_gp_kind kind[TT_GP_DIMS_MAX];
    uint64_t seed; // of the random start of the fit
    // Prior knowledge of the spread of y: worth `scale_rows` rows of s.d. `scale`; 0 rows = none,
    // INFINITY: y is in units of `scale`, whatever the rows say.
    double scale, scale_rows;
    // Priors of the hyperparameters (natural logs) where they differ from the online tuner's; 0 =
    // as there: signal N(0, 0.8), noise N(log 2e-3, 2) and at least 1e-6.
    double signal_sd, noise_mean, noise_sd, noise_min;
    // The same of the length scales of TT_GP_LINE: the median in three dimensions, which power of
    // their number it grows with, and the s.d. of the logarithm; 0: 0.6, 1/2 and 0.8.
    double length_median, length_growth, length_sd;
    double mismatch_median; // of TT_GP_MISMATCH, with the root and 0.8; 0: 0.6
    // Variance of an unknown constant that is added to the function, in units of standardised y; 0:
    // far from all rows the function is at the mean of y, wherever the rows lie.
    double mean_var;
    // Prior N(mean, sd) of the log variance of a linear and quadratic trend of each TT_GP_LINE, in
    // units of standardised y; sd 0: no trend.
    double trend_mean, trend_sd;
} tt_gp_options;

// Hyperparameters, all natural logs; variances are of standardised y.
typedef struct tt_gp_params {
    double length[TT_GP_DIMS_MAX];
    double stage_length; // l_c (sum, product)
    double signal;       // s_x^2
    double stage, cross; // s_c^2, s_xc^2 (sum)
    double noise;        // s_n^2
    double trend;        // of all lines together, at a point drawn from [0, 1]^dims
} tt_gp_params;

typedef struct tt_gp tt_gp;

TT_NODISCARD tt_status tt_gp_open(const tt_gp_options *options, tt_gp **out, tt_error *err);
void tt_gp_close(tt_gp *gp);
// As if closed and opened with the same options but for the seed; keeps its memory.
void tt_gp_restart(tt_gp *gp, uint64_t seed);

// A row: what was seen at a point.
typedef struct tt_gp_row {
    double stage, y;
    double noise_var; // of y's own noise, in units of y^2
    double repeats; // measurements that y is the mean of: the common noise is divided by it; 0 = 1
} tt_gp_row;

// Adds a row at x (dims coordinates, usually in [0, 1]). Points are taken as they are: who tells
// and asks only of points on the grids of ints has a function that is constant between them.
//
// errors   TT_INVALID a number is NaN or infinite, or negative where it must not be: the row is
//          refused and nothing changes; TT_NOMEM
TT_NODISCARD tt_status tt_gp_add(tt_gp *gp, const double *x, const tt_gp_row *row, tt_error *err);
// Replaces what was seen at the point of row `index` (measured again). errors as tt_gp_add.
TT_NODISCARD tt_status tt_gp_replace(tt_gp *gp,
                                     uint32_t index,
                                     const tt_gp_row *row,
                                     tt_error *err);
uint32_t tt_gp_rows(const tt_gp *gp);
// All rows so far were seen when everything was different by about `shift`: adds it to their y, and
// `extra_var` to the variance of their noise; each counts as one measurement from now on. Fit
// again.
void tt_gp_shift(tt_gp *gp, double shift, double extra_var);

// Finds the hyperparameters again, then factors. Starts: the last optimum, the prior mean with
// noise 1e-2, one draw from the prior. evaluations: of the posterior, at most about so many; 0
// = 90.
//
// errors   TT_NOMEM; TT_INVALID there is no row; TT_NUMERIC the kernel matrix defied every jitter
//          (never seen)
TT_NODISCARD tt_status tt_gp_fit(tt_gp *gp, uint32_t evaluations, tt_error *err);
// Draws the hyperparameters from their posterior: `steps` steps of a Markov chain from those in
// force, then factors. seed: of this draw, besides the process's own. errors as tt_gp_fit
TT_NODISCARD tt_status tt_gp_sample(tt_gp *gp, uint32_t steps, uint64_t seed, tt_error *err);
// Brings the factor up to date with rows added since, keeping hyperparameters and standardisation:
// a bordered row each, or a new factor where a row was replaced. errors as tt_gp_fit.
TT_NODISCARD tt_status tt_gp_update(tt_gp *gp, tt_error *err);
void tt_gp_get_params(const tt_gp *gp, tt_gp_params *out);
// The common noise of one measurement: its variance, in units of y^2. 0 before the first fit.
double tt_gp_noise_var(const tt_gp *gp);
// Where the first fit starts, in place of what is likely: an optimum known of earlier rows. Nothing
// can be asked before that fit.
void tt_gp_start_at(tt_gp *gp, const tt_gp_params *params);
// Sets them by hand and factors. errors as tt_gp_fit.
TT_NODISCARD tt_status tt_gp_set_params(tt_gp *gp, const tt_gp_params *params, tt_error *err);
// Rows and hyperparameters as bytes, and back into a process just opened with the same options (the
// factor is made anew). errors as tt_gp_add and tt_gp_fit; TT_CORRUPT
void tt_gp_save(const tt_gp *gp, tt_archive *out);
TT_NODISCARD tt_status tt_gp_load(tt_gp *gp, tt_archive *in, tt_error *err);
// Log posterior density of the hyperparameters in force, up to a constant; NAN before the first
// fit.
double tt_gp_log_posterior(const tt_gp *gp);

// Log density of other values (one a row) in place of y, at the hyperparameters in force, each
// standardised in its own way: what tells how well a transformation of y suits the process. NAN
// before the first fit.
double tt_gp_log_density(const tt_gp *gp, const double *y);

// Posterior of the latent function (without noise) at one point, in units of y.
void tt_gp_predict(const tt_gp *gp, const double *x, double stage, double *mean, double *var);

// The posterior at one stage, made for many points: of f(x), or with a reference of f(x) -
// f(reference), from the joint posterior. Valid until the process changes.
typedef struct tt_gp_slice tt_gp_slice;
// errors   TT_NOMEM, TT_INVALID not fitted
TT_NODISCARD tt_status tt_gp_slice_open(
    const tt_gp *gp, double stage, const double *reference, tt_gp_slice **out, tt_error *err);
// shapes   x count x dims, row-major; mean, var: count; var NULL: the means alone, which cost much
//          less
void
tt_gp_slice_eval(tt_gp_slice *slice, const double *x, uint32_t count, double *mean, double *var);
// The mean of one point alone, which costs much less.
double tt_gp_slice_mean(tt_gp_slice *slice, const double *x);
// With the gradients in x (dims each; 0 for mismatch dimensions).
void tt_gp_slice_gradient(tt_gp_slice *slice,
                          const double *x,
                          double *mean,
                          double *var,
                          double *mean_grad,
                          double *var_grad);
void tt_gp_slice_close(tt_gp_slice *slice);

#endif
