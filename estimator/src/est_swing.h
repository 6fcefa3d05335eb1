// How far the loss swings about its course: by steps near the stable limit, or by delays, it does
// so far beyond what the noise of its measurement explains. The target is then met in a swing,
// sooner than the course gets there.
#ifndef TT_EST_SWING_H
#define TT_EST_SWING_H

#include "est_blocks.h"
#include <stdint.h>

enum { TTI_SWING_BLOCKS = 64 };

// Without pointers: it is archived. All zero: nothing is known.
typedef struct tti_swing {
    double mean[TTI_SWING_BLOCKS], noise[TTI_SWING_BLOCKS]; // of the newest full blocks, a ring;
                                                            // noise: variance of the mean
    double jitter[TTI_SWING_BLOCKS]; // swing that the noise implies: tti_swing_sd
    uint32_t count;                  // ever, of this setting
    double excess[3];                // the last measurements: variance of blocks' means
    uint32_t measured;
} tti_swing;

// Another setting is in force, which may swing otherwise: what was measured stands until it is
// measured anew.
void tti_swing_restart(tti_swing *swing);
// A block of TTI_BLOCK_LOSSES; examples: of a batch.
void tti_swing_add(tti_swing *swing, const tti_block *block, double examples);
// S.d. of a block's mean about the course: what is seen of it beyond noise, in the quietest of the
// last three measurements; or, where levels are told from all rows (their variance is far below the
// batches' spread), what their variance implies, if that is more. Steps move the parameters, and
// with them the losses of a batch's rows, in proportion to the noise of their gradients: examples x
// variance / 4 was within 2x of the swing measured on logistic regression (docs/rationale.md).
double tti_swing_sd(const tti_swing *swing);

#endif
