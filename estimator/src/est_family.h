// Curve families: how the loss falls along the progress clock. A built-in family is a const table
// of functions: one source file and one line in est_families.c. One of a plug-in is a tt_curve,
// which est_curve.c fits, asks and inverts.
#ifndef TT_EST_FAMILY_H
#define TT_EST_FAMILY_H

#include "est_blocks.h"
#include "tt/estimator.h"

enum {
    TTI_CURVE_POINTS = TTI_SERIES_BLOCKS + 1,
    TTI_FIT_NODES = 11,
    TTI_FAMILIES = TT_EST_FAMILIES_MAX - TT_EST_CURVES_MAX // built-in ones
};

// Points of the loss's course: y[i] at clock x[i], in the mean over width[i] of the clock. Mean
// losses of the pooled history's blocks, or lowest looks (est_troughs.h).
typedef struct tti_curve_data {
    uint32_t count;
    double x[TTI_CURVE_POINTS];
    double width[TTI_CURVE_POINTS];
    double y[TTI_CURVE_POINTS];
    double variance[TTI_CURVE_POINTS]; // of y[i], > 0
    double target;                     // epsilon, NAN when there is none
} tti_curve_data;

// The history's blocks as points.
void tti_history_data(const tti_series *history, double target, tti_curve_data *out);

// One candidate curve of a posterior: floor ~ N(floor, floor_sd^2) given the shape.
typedef struct tti_fit_node {
    double shape, weight;
    double floor, floor_sd;
    double amplitude, amplitude_per_floor; // amplitude at `floor`, and its change with the floor
} tti_fit_node;

// What a plug-in's family learned.
typedef struct tti_curve_fit {
    double p[TT_CURVE_PARAMETERS_MAX];
    double covariance[TT_CURVE_PARAMETERS_MAX][TT_CURVE_PARAMETERS_MAX];
    double origin; // where its clock begins: the first block's beginning
} tti_curve_fit;

// What a family learned; the meaning of p is the family's own. Without pointers: it is archived.
typedef struct tti_fit {
    int ok;
    double p[4];
    double covariance[3][3]; // of p[0..3)
    double noise_factor;     // residual variance relative to tti_curve_data.variance
    double spread_factor;    // the same of means over several blocks, times their number
    double misfit;           // s.d. of log(time / time foretold), of times as long as the way gone
    double floor_least, floor_most;
    double unit; // of the clock, for families that scale it
    uint32_t node_count;
    union {
        tti_fit_node nodes[TTI_FIT_NODES]; // of built-in families
        tti_curve_fit curve;               // of a plug-in's
    };
} tti_fit;

// Iterations left at rate 1: log k ~ (log_mean, log_sd) given that the target can be reached;
// `unreachable` is the probability that it cannot. ok 0: no answer at all.
typedef struct tti_left {
    int ok;
    double log_mean, log_sd, unreachable;
} tti_left;

typedef struct tti_family {
    const char *name;
    double prior; // weight before any evidence; 0: never in the mix
    // Fits the first `count` points. out->ok stays 0 when they are too few or tell nothing.
    void (*fit)(const tti_curve_data *data, uint32_t count, tti_fit *out);
    // Loss at `clock`, and the s.d. of that value (not of a block's noise).
    double (*predict)(const tti_fit *fit, double clock, double *sd);
    // From clock `now` to `target`.
    void (*inverse)(const tti_fit *fit, double now, double target, tti_left *out);
    // log density of a block mean y at `clock` whose noise variance is `variance`: Student t with 4
    // degrees of freedom.
    double (*log_predictive)(const tti_fit *fit, double clock, double y, double variance);
    // The loss the family thinks cannot be passed; NAN if it has no such notion.
    double (*floor)(const tti_fit *fit);
    // Of a plug-in, without the functions above; NULL for built-in ones.
    const tt_curve *curve;
} tti_family;

extern const tti_family tti_family_hogwild;        // est_hogwild.c
extern const tti_family tti_family_expfloor;       // est_basis.c
extern const tti_family tti_family_sublinear;      // est_basis.c
extern const tti_family tti_family_power;          // est_basis.c
extern const tti_family tti_family_expfloor_late;  // est_basis.c
extern const tti_family tti_family_power_late;     // est_basis.c
extern const tti_family tti_family_sublinear_late; // est_basis.c
extern const tti_family tti_family_steep_late;     // est_basis.c
extern const tti_family tti_family_slaq;           // est_slaq.c
extern const tti_family tti_family_locallin;       // est_local.c
extern const tti_family tti_family_hwonly;         // est_local.c

// --- all families of an estimator, built-in ones first

typedef struct tti_families {
    uint32_t count;
    const tti_family *list[TT_EST_FAMILIES_MAX];
    const char *origin[TT_EST_FAMILIES_MAX]; // "built in", or where a plug-in's came from
    tti_family curves[TT_EST_CURVES_MAX];    // what the list points to for plug-ins: do not copy
} tti_families;

// The built-in families.
void tti_families_init(tti_families *families);
// Checks a description and adds its family; both are borrowed, `origin` too, which is the place for
// messages. errors TT_INVALID, TT_EXISTS, TT_RANGE: nothing was added
TT_NODISCARD tt_status tti_families_add(tti_families *families,
                                        const tt_curve *curve,
                                        const char *origin,
                                        tt_error *err);
// A number that differs where names, their number or their order do.
uint64_t tti_families_print(const tti_families *families);

// The functions of tti_family, whoever brings them.
void
tti_family_fit(const tti_family *family, const tti_curve_data *data, uint32_t count, tti_fit *out);
double tti_family_predict(const tti_family *family, const tti_fit *fit, double clock, double *sd);
void tti_family_inverse(
    const tti_family *family, const tti_fit *fit, double now, double target, tti_left *out);
double tti_family_log_predictive(
    const tti_family *family, const tti_fit *fit, double clock, double y, double variance);
double tti_family_floor(const tti_family *family, const tti_fit *fit);

// --- shared by families

// Smallest and largest k the estimator reports.
#define TTI_ITERATIONS_MAX 1e9
// A priori the floor is this much more likely under the target than above it.
#define TTI_REACHABLE_ODDS 4
// log of k clamped to [1, 1e9].
double tti_log_iterations(double k);
// The log_predictive every family uses so far.
double tti_default_log_predictive(
    const tti_family *family, const tti_fit *fit, double clock, double y, double variance);
// Huber weights of standardised residuals (cut 1.5 * 1.4826 MAD), and
//   factor = (a + sum h r^2 / 0.866) / (a + n - parameters), a = min(3, 9 / (n - parameters + 1)):
// pseudo-residuals of size one keep few blocks from claiming to be noise free, and leave many
// alone: where rows are drawn without replacement, blocks longer than an epoch have a tenth of the
// variance that the spread of their losses implies. 0.866 is what the cut leaves of a normal
// variance.
double tti_residual_factor(const double *r, uint32_t n, uint32_t parameters, double *h);
// The factor for what is common to many blocks, as a curve's parameters are: from means of four
// residuals in a row (Newey and West, Econometrica 1987, with equal weights), drawn towards
// `factor` by a third of a mean. What one block drew too many of the next one lacks, so that means
// of several scatter less than blocks do; where no curve of the family fits they scatter more. With
// too few blocks it is `factor`.
double
tti_spread_factor(const double *r, const double *h, uint32_t n, uint32_t parameters, double factor);
// Weights of points at x[i] after the first block's beginning: trust / variance. Blocks are trusted
// by u = (share of the way gone)^1.5, for no real curve is of its family's form from the first push
// on, and the end is what extrapolates. (Asynchronous logistic regression: median within 2x in
// 25-46 % of jobs without, 44-63 % with; synthetic curves lose nothing.) The u are scaled to sum to
// their effective number (sum u)^2 / sum u^2, lest the posterior be too wide.
void tti_trust_weights(const tti_curve_data *data, const double *x, uint32_t count, double *out);
// Inverse of a symmetric positive 3 x 3 matrix; zero rows and columns stay zero. 0 on failure.
int tti_invert3(const double a[3][3], double out[3][3]);
// Smallest floor a curve may have: 0 for positive losses, else one range under the lowest.
double tti_floor_least(const tti_curve_data *data, uint32_t count);

// --- hogwild, for its tests and the paper's estimator

// Lambert's W, principal branch, for x >= 0.
double tti_lambert_w0(double x);
// Equation (5): max(kappa l, (1 + d) max l, (1 + d) eps), d = 1e-3.
double tti_hogwild_bound(double loss, double loss_max, double target, double kappa);
// z = log(B/e)/e, e clamped at 1e-9 B.
double tti_hogwild_z(double e, double bound);
// One-parameter fit of A with B given; out->p = {A, B, floor}.
void tti_hogwild_fit_bound(
    const tti_curve_data *data, uint32_t count, double bound, double floor, tti_fit *out);

#endif
