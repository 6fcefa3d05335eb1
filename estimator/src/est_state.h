// The estimator's state, shared by est_window.c (samples to blocks) and estimator.c (answers).
#ifndef TT_EST_STATE_H
#define TT_EST_STATE_H

#include "est_bend.h"
#include "est_blocks.h"
#include "est_cycles.h"
#include "est_looks.h"
#include "est_mix.h"
#include "est_noise.h"
#include "est_plateau.h"
#include "est_rate.h"
#include "est_swing.h"
#include "est_troughs.h"
#include "tt/estimator.h"

enum { TTI_RECENT_LOSSES = 4096, TTI_RECENT_OWN = 100 };

// The window in the making.
typedef struct tti_window {
    int open;
    uint32_t kept, dropped, invalid;
    uint32_t invalid_row; // consecutive invalid losses
    uint32_t blocks_closed;
    int invalid_burst; // three invalid losses in a row were seen
    double examples;   // summed over kept samples
    double losses;     // summed over kept samples
    double staleness;  // summed over those of them that have one
    uint32_t stale;    // how many these are
    double start_s;    // where its wall time begins
    double first_kept_s, last_kept_s;
    tti_detrend detrend;
    tti_series blocks;
    tti_series_mark mark; // of the history, at begin
    double clock_mark;    // progress clock at begin
} tti_window;

// Consecutive windows of one setting.
typedef struct tti_run {
    int alive;
    uint32_t setting, workers;
    uint64_t generation;
    double features[TT_EST_FEATURES_MAX];
    uint32_t feature_count;
    double log_rate,
        penalty; // assumed for the clock; frozen while the run lasts. penalty: nu's part
    double level, level_spread, level_n; // loss just before it; NAN if unknown
    double history_losses;               // how much the snapshot knew
    uint32_t windows, rising_windows;    // that ended
    tti_series blocks;
    tti_mix_snapshot foretold; // the pooled curve when the run began
    int have_evidence;
    double evidence, evidence_variance; // of theta' u
} tti_run;

typedef enum tti_answer_kind {
    TTI_ANSWER_BUDGET,   // `budget` iterations, whatever the loss does
    TTI_ANSWER_REACHED,  // none, with probability `confidence`
    TTI_ANSWER_NEVER,    // plateau or unreachable
    TTI_ANSWER_CURVE,    // the mixture
    TTI_ANSWER_FALLBACK, // nothing is known yet
} tti_answer_kind;

// Iterations left.
typedef struct tti_answer {
    tti_answer_kind kind;
    unsigned flags;
    double budget, confidence;
    tti_mixture mixture; // of CURVE, FALLBACK and, if it has one, NEVER
} tti_answer;

// How iterations left are estimated when there is a target; a const table a method.
typedef struct tti_method {
    const char *name;
    void (*begin)(tt_estimator *est); // a window was opened
    void (*end)(tt_estimator *est);   // it ends and counts
    void (*answer)(const tt_estimator *est, tti_answer *out);
    int (*reached)(const tt_estimator *est); // TT_EST_REACHED of the answer
} tti_method;

extern const tti_method tti_method_pooled; // estimator.c: the curve families over the whole job
extern const tti_method tti_method_paper;  // est_paper.c

// State of the paper's method.
typedef struct tti_paper {
    double loss_before; // of the iteration just before the window
    int fitted;
    tt_est_paper fit;
    uint64_t at_iterations; // when it was fitted
} tti_paper;

// The last answer: a decision of the tuner asks for it several times.
typedef struct tti_told {
    int known;
    uint64_t changes; // of the estimator, when it was told
    tti_answer answer;
} tti_told;

// What rates are predicted from until the estimator changes: a decision of the tuner asks for
// hundreds.
typedef struct tti_rate_now {
    int known;
    uint64_t changes; // of the estimator, when it was made
    tti_rate rate;    // with the evidence of the running run
    double theta[TT_EST_FEATURES_MAX];
    uint32_t noise_width; // features from here on are 0 in all windows of the noise
} tti_rate_now;

struct tt_estimator {
    tt_est_options options;
    tti_families families;
    const tti_method *method;
    tti_paper paper;
    uint64_t samples, first_sequence, last_sequence, span; // see count_iteration
    uint64_t iterations;
    double clock_base, position_base; // clock = base + exp(log_rate) (position - position_base)
    double last_time_s;
    double base_examples;
    double first_loss; // l_0: mean of the first block
    // the open block
    double losses[TTI_BLOCK_LOSSES], own[TTI_BLOCK_LOSSES], positions[TTI_BLOCK_LOSSES];
    uint32_t filled, flushed; // flushed: already counted in the window's detrended s.d.
    double block_start;       // clock at the end of the block before
    uint32_t under_row;       // consecutive full blocks at or under the target
    double *recent;           // ring of the last valid losses
    uint32_t recent_next, recent_count;
    // Of the batches' own, whose spread is that of the data: the measure of what is no noise.
    double recent_own[TTI_RECENT_OWN];
    uint64_t own_count; // of all
    tti_bend bend;
    tti_cycles cycles;
    tti_window window;
    tti_run run;
    tti_noise noise;
    tti_swing swing;
    tti_looks looks;
    tti_troughs troughs;
    double lag; // by which gradients lag, in iterations: mean of the newest
    uint32_t lag_samples;
    tti_rate rate;
    tti_series history;
    uint64_t changes; // calls that change it
    // own allocations: answers fit lazily behind a const estimator
    tti_mix *mix;     // of the history
    tti_mix *low_mix; // of the troughs
    tti_plateau *plateau;
    tti_told *told; // with the looks, and by the losses alone
    tti_rate_now *rate_now;
};

double tti_clock_at(const tt_estimator *est, double position);
double tti_clock_now(const tt_estimator *est);
// Mean of the last max(25, 3W) valid losses, winsorised, with the variance of one and their number.
// NAN with under 25.
double tti_recent_loss(const tt_estimator *est, double *variance, double *n);
// Huber line of block means on raw iterations.
typedef struct tti_course {
    double slope;
    double se;     // at least what the noise within blocks implies: three points often look exact
    double own_se; // at least what the spread of the batches' own losses implies
    double own_sd; // that spread
    double span;   // iterations from the first block to the last
} tti_course;

// 0 with under three blocks: all NAN.
int tti_series_line(const tti_series *series, tti_course *out);
// Brings the fits up to date with the history.
void tti_refresh(const tt_estimator *est);
// The rate model with the evidence of the running run.
void tti_current_rate(const tt_estimator *est, tti_rate *out);

#endif
