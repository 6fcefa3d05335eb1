// The families weighed by how well they foretold, and what they say together (estimator-math,
// section 6: selection).
#ifndef TT_EST_MIX_H
#define TT_EST_MIX_H

#include "est_family.h"
#include "tt/estimator.h"

enum { TTI_FAMILIES = 7, TTI_MIX_AHEAD = 4 };

// All families at one moment, to be asked later.
typedef struct tti_mix_snapshot {
    int ok;
    tti_fit fits[TTI_FAMILIES];
    double weight[TTI_FAMILIES];
} tti_mix_snapshot;

typedef struct tti_mix {
    tti_fit fits[TTI_FAMILIES]; // on the first `blocks` blocks of the history
    uint32_t blocks, doublings;
    tti_fit older[TTI_MIX_AHEAD][TTI_FAMILIES]; // the latest fits, for four blocks ahead
    uint32_t older_blocks[TTI_MIX_AHEAD];       // 0: none
    uint32_t older_next;
    double score[TTI_FAMILIES], weight[TTI_FAMILIES];
    uint32_t scored; // blocks ever scored
} tti_mix;

const tti_family *tti_mix_family(uint32_t index);
void tti_mix_reset(tti_mix *mix);
// Scores and fits what the history gained since the last call: at most four fits of each family,
// over at most 128 blocks. A history that lost blocks (an abandoned trial) is fitted anew.
void tti_mix_sync(tti_mix *mix, const tti_series *history, double target);
void tti_mix_snapshot_take(const tti_mix *mix, tti_mix_snapshot *out);
// Mean loss change per raw iteration that the snapshot foretells for these blocks (the slope of a
// line with weights n through its predictions), and the families' disagreement about it. 0: no
// idea.
int tti_mix_slope(const tti_mix_snapshot *snapshot,
                  const tti_block *blocks,
                  uint32_t count,
                  double *slope,
                  double *disagreement);

// log k as a mixture of normals.
typedef struct tti_mixture {
    uint32_t count;
    double weight[TTI_FAMILIES], mean[TTI_FAMILIES], sd[TTI_FAMILIES];
    double unreachable; // weight of what says the target cannot be reached
} tti_mixture;

// From clock `now` to `target`. count is 0 when no family has an answer.
void tti_mix_left(const tti_mix *mix, double now, double target, tti_mixture *out);
void tti_mixture_moments(const tti_mixture *mixture, double *mean, double *sd);
// Quantile p of log k + N(shift, extra_sd^2).
double tti_mixture_quantile(const tti_mixture *mixture, double p, double shift, double extra_sd);

#endif
