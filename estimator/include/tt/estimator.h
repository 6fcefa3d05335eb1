// estimator: loss trace -> iterations left and time left, with uncertainty.
//
// A window is a run of consecutive iterations under one setting. The job feeds samples in the order
// the servers applied them; the estimator answers: seconds per iteration, the loss now, the
// statistical rate of a setting relative to the pooled one, iterations left, time left. Everything
// in double; no clock, no randomness: equal samples give equal answers.
//
// Under bulk_synchronous feed one sample a round (several with the same sequence count as one
// iteration).
//
// Caveats: losses are minibatch losses at a stale model; one of them says nothing, blocks of them
// do. Not thread safe: one owner.
#ifndef TT_ESTIMATOR_H
#define TT_ESTIMATOR_H

#include "tt/core.h"
#include "tt/core_archive.h"
#include "tt/curve.h" // the plugin header: tt_curve

enum {
    TT_EST_FEATURES_MAX = 16,
    TT_EST_FAMILIES_MAX = 16,
    TT_EST_CURVES_MAX = 5 // of them from plug-ins
};

typedef enum tt_est_flag {
    TT_EST_FALLBACK = 1 << 0,    // too little to fit: the pooled estimate with a wide variance
    TT_EST_RISING = 1 << 1,      // loss rises under this setting
    TT_EST_DIVERGING = 1 << 2,   // NaN or Inf losses, or rising in two consecutive windows
    TT_EST_PLATEAU = 1 << 3,     // no progress to be seen: time left is infinite
    TT_EST_UNREACHABLE = 1 << 4, // the target lies below the floor the curve can reach
    TT_EST_REACHED =
        1 << 5, // two consecutive blocks at or under the target: ask for a full evaluation
    TT_EST_NO_TARGET = 1 << 6, // remaining iterations come from the budget
    TT_EST_TIME_ONLY = 1 << 7, // window too short for anything but the time per iteration
} tt_est_flag;

// How iterations left are estimated.
typedef enum tt_est_method {
    TT_EST_POOLED = 0, // curve families over the losses of the whole job
    TT_EST_PAPER, // the paper's fit over the last window alone, for comparisons: no interval, and
                  // of the order of a window rather than of what is left (docs/paper-mode.md)
} tt_est_method;

typedef struct tt_est_options {
    double target_loss;       // epsilon; NAN = none (then the budget below rules)
    double budget_iterations; // iterations the job may still take in all, when there is no target;
                              // INFINITY = none
    int bulk_synchronous;     // BSP: an iteration is a round
    // How the target is looked at: every so many iterations; reached when so many looks in a row
    // hold it. 0: when two blocks of losses in a row suggest it.
    double look_every;
    uint32_t looks_held;
    tt_est_method method; // without a target the budget rules, whatever the method
    // Families beside the built-in ones, at most TT_EST_CURVES_MAX, borrowed until close; NULL and
    // 0 for none. tt/estimator_curves.h loads them from files.
    const tt_curve *const *curves;
    uint32_t curve_count;
} tt_est_options;

// One iteration as the servers applied it.
typedef struct tt_est_sample {
    uint64_t generation; // generation in force when the worker pulled
    uint64_t sequence;   // apply order over the whole job
    uint32_t worker;
    uint32_t examples; // batch size, for noise normalisation
    double
        loss; // mean example loss of the batch (plus regulariser when the target is an objective)
    double level;   // the loss over all rows, as well as this batch tells it by comparison with its
                    // rows' losses an epoch ago; NAN or 0: not known, the batch's own stands for it
    double time_s;  // when it was applied, job clock
    double cycle_s; // the worker's time from pull to next pull
    double curvature; // of the loss, where this iteration was; 0: not measured
    double staleness; // iterations applied between its pull and its push; NAN: not known
} tt_est_sample;

// What the estimator says about one window, so far or at its end.
typedef struct tt_est_window {
    uint32_t setting; // id given at begin
    uint32_t kept,
        dropped; // iterations used; dropped: pulled before the generation, invalid, suspended
    uint32_t workers;
    double seconds_per_iteration; // t; NAN under the minimum
    double time_cv;               // coefficient of variation of a worker's cycle
    double time_log_se;           // standard error of log t
    double loss;                  // smoothed current loss
    double mean_loss;             // of all iterations that were used; NAN: none
    double
        noise; // within-window s.d. of the detrended loss, at the base batch size; NAN if unknown
    double slope,
        slope_se; // loss change per iteration (Huber line over blocks), NAN with under 3 blocks
    double duration_s;
    unsigned flags;
    double staleness; // iterations applied between pull and push, mean; NAN: not known
} tt_est_window;

typedef struct tt_est_remaining {
    double log_iterations, log_iterations_sd;
    double iterations_p10, iterations_median,
        iterations_p90; // INFINITY under PLATEAU or UNREACHABLE
    unsigned flags;
} tt_est_remaining;

typedef struct tt_est_eta {
    double seconds_median, seconds_p10, seconds_p90; // INFINITY under PLATEAU or UNREACHABLE
    unsigned flags;
} tt_est_eta;

typedef struct tt_estimator tt_estimator;

// errors TT_INVALID an option, or a family that breaks the rules of tt/curve.h; TT_EXISTS two
// families of one name; TT_RANGE too many of them; TT_NOMEM
TT_NODISCARD tt_status tt_estimator_open(const tt_est_options *options,
                                         tt_estimator **out,
                                         tt_error *err);
// Features (bit i: the i-th) of which more only loses something, as rounding does: an iteration may
// bring less then, never more. None until this is called; a checkpoint does not bring them.
void tt_estimator_lossy(tt_estimator *est, uint32_t features);
// A new window under setting id `setting`. features: encoded knobs that can change statistics, in
// [0, 1] (workers and staleness bound first); workers: pushes in flight at most. First kept sample
// is one pulled at `generation` or later.
void tt_estimator_begin(tt_estimator *est,
                        uint32_t setting,
                        uint64_t generation,
                        uint32_t workers,
                        const double *features,
                        uint32_t feature_count);
void tt_estimator_add(tt_estimator *est, const tt_est_sample *sample);
// What the target is about was evaluated over all rows: `loss`, with the regulariser where that
// counts. As seldom or as often as the job does so; the samples before it are to be added first.
// After some 32 looks what is left is told by the course of the lowest of them, which the swings of
// a loss near the stable limit do not move (est_troughs.h).
void tt_estimator_look(tt_estimator *est, double loss);
// Iterations by which gradients may lag behind the parameters that they are applied to, in the
// mean, before SGD of this step swings ever wider; INFINITY where the curvature was not measured.
// Along the direction in which the loss bends most x(k + 1) = x(k) - step curvature x(k - lag),
// which is stable up to step curvature = 2 sin(pi / (4 lag + 2)), about pi / (2 lag + 1) (Levin and
// May, Theor. Population Biology 1976). For a push that merges m iterations the lag is its
// staleness + (m - 1) / 2. Curvature is the largest eigenvalue of the loss's Hessian, median of the
// last nine measurements. Settings are for some time to come: where it has been growing, what will
// be borne is what counts, when the job has done twice its iterations (est_bend.h).
double tt_estimator_lag_borne(const tt_estimator *est, double step);
// The window as it stands; may be asked at any time (some 30 us: not once a push in a fast job).
void tt_estimator_window(const tt_estimator *est, tt_est_window *out);
// Ends the window: its blocks enter the pooled history. keep_slope 0: an abandoned trial, only its
// time row counts.
void tt_estimator_end(tt_estimator *est, int keep_slope, tt_est_window *out);
// A full window has at least this many kept iterations; time alone needs this many.
uint32_t tt_est_full_window(uint32_t workers); // max(3W, 12)
uint32_t tt_est_time_window(uint32_t workers); // max(W + 4, 12)
// Statistical rate of a setting relative to the pooled one: mean and s.d. of log r.
void tt_estimator_log_rate(const tt_estimator *est,
                           uint32_t setting,
                           const double *features,
                           uint32_t feature_count,
                           double *mean,
                           double *sd);
// Whether TT_EST_REACHED is among the flags of what is left: cheap, for after each push.
int tt_estimator_reached(const tt_estimator *est);
// Iterations left from now at rate 1 (the pooled clock).
void tt_estimator_remaining(const tt_estimator *est, tt_est_remaining *out);
// The same by the course of the losses, whatever looks found: sooner than it comes where the loss
// swings, which breaks what it promises. Others than the pooled method have one answer only.
void tt_estimator_left_by_losses(const tt_estimator *est, tt_est_remaining *out);
// Time left under a setting with log t ~ N(log_t, log_t_sd^2) and log r ~ N(log_r, log_r_sd^2).
void tt_estimator_eta(const tt_estimator *est,
                      double log_t,
                      double log_t_sd,
                      double log_r,
                      double log_r_sd,
                      tt_est_eta *out);
// Stage of the job c = clamp((log l0 - log l)/(log l0 - log eps), 0, 1.2); without a target the
// share of the budget used.
double tt_estimator_stage(const tt_estimator *est);
// Smoothed loss now; NAN before the first block.
double tt_estimator_loss(const tt_estimator *est);
// What that is when the target is met: as much above the target as looks found less than the
// minibatches said. NAN without a target.
double tt_estimator_target_level(const tt_estimator *est);
// The line through the losses from iteration `since` on; false with too few of them.
typedef struct tt_est_trend {
    double slope, slope_se; // of the loss per iteration
    double gap;             // from the line's end to the target; NAN without one
} tt_est_trend;
int tt_estimator_trend(const tt_estimator *est, double since, tt_est_trend *out);
// Loss of the last iteration that had one, as it was; NAN before any. One minibatch: only the
// paper's tuner wants it.
double tt_estimator_last_loss(const tt_estimator *est);
uint64_t tt_estimator_iterations(const tt_estimator *est);
tt_est_method tt_estimator_method(const tt_estimator *est);
const char *tt_est_method_name(tt_est_method method); // "pooled", "paper"
// Weight and last prediction of each curve family, built-in ones first, for reports. Returns the
// number written: no more than TT_EST_FAMILIES_MAX.
typedef struct tt_est_family_state {
    const char *name;
    double weight, log_iterations, log_iterations_sd, floor;
} tt_est_family_state;
uint32_t
tt_estimator_families(const tt_estimator *est, tt_est_family_state *out, uint32_t capacity);
void tt_estimator_close(tt_estimator *est);

// Appended after the first contract.

// t also needs the kept iterations of the window to span this long; under it seconds_per_iteration
// is NAN, so a window should not be ended sooner.
#define TT_EST_TIME_SECONDS_MIN 0.05

// The paper's own estimator, for benches and `estimator: paper`: one window of losses under a
// setting, k = (A/eps) log(B/eps).
typedef struct tt_est_paper {
    double scale, bound; // A and B
    double iterations;   // left after the window, clamped to [1, 1e9]; the fallback when
                         // TT_EST_FALLBACK is set
    uint32_t outliers;   // points left out by the studentised residual rule
    unsigned flags;      // TT_EST_FALLBACK: no usable fit; TT_EST_REACHED: loss_before <= target
} tt_est_paper;
// losses[0..count) in apply order, loss_before: the iteration just before the window, target > 0,
// kappa in {1, 2, 10}; fallback: iterations to answer when the fit is of no use (the pooled
// estimate), bound: B, or 0 for equation (5). source  arXiv 1810.02935, Section IV; equations (2)
// to (5) as reconstructed in docs
void tt_est_paper_fit(const double *losses,
                      uint32_t count,
                      double loss_before,
                      double target,
                      double kappa,
                      double bound,
                      double fallback,
                      tt_est_paper *out);

// All that was learned, for a checkpoint, and back into an estimator just opened (whose options,
// method included, it keeps). The window that was open ends. Memory images: only this build reads
// them, and only with families of the same names in the same order. errors TT_CORRUPT, also of
// another build or other families: the estimator stays as it was opened
void tt_estimator_save(const tt_estimator *est, tt_archive *out);
TT_NODISCARD tt_status tt_estimator_load(tt_estimator *est, tt_archive *in);

#endif
