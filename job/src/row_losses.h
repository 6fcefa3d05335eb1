// The loss of every training row when it was last trained on, and with it the loss over all rows
// from one batch: the batch's rows are compared with themselves an epoch ago, so that what is
// special about them cancels out (the control variate of SVRG, Johnson and Zhang, NIPS 2013, and
// SAGA, Defazio, Bach and Lacoste-Julien, NIPS 2014, applied to the loss instead of the gradient).
//
//     level = G + mean over the batch of (loss now - loss last time)
//
// G: mean of the losses last time over all rows, as of the last epoch's end; both over the rows
// that have been trained on. Unbiased whatever the losses last time are, and off by what the change
// of the parameters since then did to the batch's rows more than to others: on a9a a thirtieth of
// the spread of the batches' own means after 2,000 iterations.
//
// Threads: any worker, and the master.
#ifndef TTI_ROW_LOSSES_H
#define TTI_ROW_LOSSES_H

#include "tt/core.h"

typedef struct tti_row_losses {
    uint32_t *last; // [rows], the bits of floats; NaN: not trained on yet; relaxed
    uint32_t rows;
    uint64_t examples; // noted so far; relaxed add
    uint64_t known;    // rows that have a loss; relaxed add
    uint64_t sum;      // of all `last`, the bits of a double; relaxed
    uint64_t base;     // G, likewise; NaN: not known yet
} tti_row_losses;

// errors TT_NOMEM
TT_NODISCARD tt_status tti_row_losses_open(tti_row_losses *all, uint32_t rows);
void tti_row_losses_close(tti_row_losses *all);
// Of a batch that was trained on: its rows and their losses. Returns the level; NAN in the first
// epoch, where less than half of the rows were trained on before, and where a loss is not finite
// (then nothing is noted).
double
tti_row_losses_note(tti_row_losses *all, const uint32_t *rows, const float *losses, uint32_t count);

#endif
