// The families weighed by how well they foretold, and what they say together (estimator-math,
// section 6: selection).
#ifndef TT_EST_MIX_H
#define TT_EST_MIX_H

#include "est_family.h"
#include "est_mixture.h"
#include "est_passage.h"

enum { TTI_MIX_OLDER = 16 };

// All families at one moment, to be asked later.
typedef struct tti_mix_snapshot {
    int ok;
    tti_fit fits[TT_EST_FAMILIES_MAX];
    double weight[TT_EST_FAMILIES_MAX];
} tti_mix_snapshot;

// Without pointers: it is archived.
typedef struct tti_mix {
    tti_fit fits[TT_EST_FAMILIES_MAX]; // on the first `blocks` points
    uint32_t blocks, doublings;
    tti_fit older[TTI_MIX_OLDER][TT_EST_FAMILIES_MAX]; // fits that knew less, 6 % apart; a ring
    uint32_t older_blocks[TTI_MIX_OLDER];              // 0: none
    double older_weight[TTI_MIX_OLDER][TT_EST_FAMILIES_MAX];
    double older_clock[TTI_MIX_OLDER]; // when they were made
    uint32_t older_next;
    double score[TT_EST_FAMILIES_MAX], weight[TT_EST_FAMILIES_MAX];
    // What was foretold when half of the way was gone: log(time it took / time foretold), the
    // running mean of its square.
    double error_squares[TT_EST_FAMILIES_MAX];
    // Square of the normal score of the time it took in the mixture that was told then, less 1: its
    // running mean.
    double score_squares_over;
    uint32_t scored; // blocks ever scored
} tti_mix;

// Every call about one mix is handed the same families.
void tti_mix_reset(tti_mix *mix, const tti_families *families);
// Whether there are other points than at the last call of tti_mix_learn: `count` of them, merged
// pairwise so often.
int tti_mix_is_behind(tti_mix *mix, uint32_t count, uint32_t doublings);
// Scores and fits what `data` gained since the last call: at most four fits of each family, over at
// most 128 points. With fewer than before (an abandoned trial) all are fitted anew.
void tti_mix_learn(tti_mix *mix, const tti_families *families, const tti_curve_data *data);
// Likewise, what the history gained.
void
tti_mix_sync(tti_mix *mix, const tti_families *families, const tti_series *history, double target);
// What a family learned last; NULL: nothing.
const tti_fit *
tti_mix_fit(const tti_mix *mix, const tti_families *families, const tti_family *family);
void tti_mix_snapshot_take(const tti_mix *mix, tti_mix_snapshot *out);
// Mean loss change per raw iteration that the snapshot foretells for these blocks (the slope of a
// line with weights n through its predictions), and the families' disagreement about it. 0: no
// idea.
int tti_mix_slope(const tti_mix_snapshot *snapshot,
                  const tti_families *families,
                  const tti_block *blocks,
                  uint32_t count,
                  double *slope,
                  double *disagreement);

// From clock `now` until the loss, which swings about its course, is found at `target`. count is 0
// when no family has an answer.
void tti_mix_left(const tti_mix *mix,
                  const tti_families *families,
                  double now,
                  double target,
                  const tti_swings *swings,
                  tti_mixture *out);

#endif
