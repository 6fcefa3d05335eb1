// Blocks of losses laid end to end, and bounded series of them.
#ifndef TT_EST_BLOCKS_H
#define TT_EST_BLOCKS_H

#include <stdint.h>

enum {
    TTI_BLOCK_LOSSES = 25, // a smaller block is partial and weighs n / 25
    TTI_SERIES_BLOCKS = 64 // a series that reaches this is merged pairwise
};

// Some consecutive losses, seen as one point.
typedef struct tti_block {
    double clock;    // mean position on the progress clock (iterations at rate 1)
    double position; // mean raw iteration count
    double width;    // clock the block spans
    double mean;     // of the winsorised losses
    double variance; // of one loss about its block's mean
    double spread;   // the same of the batches' own losses: where levels are known far more
    double n;        // losses
} tti_block;

// Blocks of one nominal size in order, the last one still filling. When `blocks` is full all
// neighbours are merged and the nominal size doubles: a job of any length has 64 to 128 blocks, and
// appending is O(1) amortised.
typedef struct tti_series {
    tti_block blocks[TTI_SERIES_BLOCKS];
    tti_block pending; // n == 0: nothing
    uint32_t count;
    uint32_t doublings;
    double nominal; // losses a block of this series holds at least
} tti_series;

// What tti_series_restore needs to forget later blocks.
typedef struct tti_series_mark {
    uint32_t count, doublings;
    tti_block pending;
} tti_series_mark;

void tti_series_reset(tti_series *series);
tti_block tti_block_merge(const tti_block *a, const tti_block *b);
// A block smaller than the nominal size waits in `pending` for its successors. Returns 1 when a
// block was completed.
int tti_series_append(tti_series *series, const tti_block *block);
// Closes `pending` as a partial block (if it holds anything).
void tti_series_close(tti_series *series);
tti_series_mark tti_series_remember(const tti_series *series);
// Forgets what came after the mark (a block merged across it is forgotten too).
void tti_series_restore(tti_series *series, const tti_series_mark *mark);
// All blocks and, when it holds at least one full block of 25 or nothing else is there, the pending
// one, copied to out[TTI_SERIES_BLOCKS + 1]. Returns the number.
uint32_t tti_series_view(const tti_series *series, tti_block *out);

#endif
