// Shared by the files of ask and tell.
#ifndef TTI_MINIMIZER_INTERNAL_H
#define TTI_MINIMIZER_INTERNAL_H

#include "output_warp.h"
#include "tt/tuner_minimizer.h"
#include "tt/tuner_search.h"

enum { TTI_MINIMIZER_SPREAD_MAX = 24 };

// A setting that was told, all its evaluations together.
typedef struct tti_minimizer_row {
    tt_setting setting;
    double y;             // mean of those that did not fail
    double squares;       // sum of the squares of their distances to it
    double noise_var;     // of that mean, as far as it was told
    uint32_t evaluations; // that did not fail; 0: all did
} tti_minimizer_row;

// A proposal. Its id is its place in the list, from 1.
typedef struct tti_minimizer_asked {
    int told;
    tt_setting setting;
} tti_minimizer_asked;

struct tt_minimizer {
    const tt_space *space;
    tt_search_space search;
    tt_minimizer_options options;
    tti_minimizer_row *rows;
    size_t row_count, row_capacity;
    tti_minimizer_asked *asked;
    size_t asked_count, asked_capacity;
    uint32_t evaluations;
    tt_setting spread[TTI_MINIMIZER_SPREAD_MAX]; // what is tried before the model proposes
    uint32_t spread_count;
    tt_minimizer_memory memory;
    tt_gp *gp; // of the model that is open, kept for its memory; NULL before the first
};

// The model of everything told and, at what was asked and not told, of what is expected there.
typedef struct tti_minimizer_model {
    tt_gp_slice *slice; // the posterior of the minimizer's process
    tti_warp warp;
    double best;     // least posterior mean of the measured settings, warped
    uint32_t best_i; // whose it is, an index into the minimizer's rows
} tti_minimizer_model;

// Fits it, beginning with the minimizer's memory, which it updates when `learn`. At least one row
// must have a y. One at a time of a minimizer. errors TT_NOMEM, TT_NUMERIC
TT_NODISCARD tt_status tti_minimizer_model_open(tt_minimizer *minimizer,
                                                int learn,
                                                tti_minimizer_model *out,
                                                tt_error *err);
// Posterior of the warped value of a setting.
void tti_minimizer_expect(const tt_minimizer *minimizer,
                          const tti_minimizer_model *model,
                          const tt_setting *setting,
                          double *mean,
                          double *sd);
// Probability that a setting is better than the best measured one, by what is expected of both.
double tti_minimizer_chance(const tt_minimizer *minimizer,
                            const tti_minimizer_model *model,
                            const tt_setting *setting);
void tti_minimizer_model_close(tti_minimizer_model *model);
// Fills in *out's setting, phase, prediction and reason by the highest expected improvement; leaves
// phase REPEAT when there is nothing new to try. errors TT_NOMEM
TT_NODISCARD tt_status tti_minimizer_improve(tt_minimizer *minimizer,
                                             tti_minimizer_model *model,
                                             tt_minimizer_proposal *out,
                                             tt_error *err);

#endif
