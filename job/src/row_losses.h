// The loss of every training row when it was last trained on, and with it the loss over all rows
// from one batch: the batch's rows are compared with themselves an epoch ago, so that what is
// special about them cancels out (the control variate of SVRG, Johnson and Zhang, NIPS 2013, and
// SAGA, Defazio, Bach and Lacoste-Julien, NIPS 2014, applied to the loss instead of the gradient).
//
//     level = mean over the batch of (loss now - loss last time + L(last time))
//
// L(t): the loss over all rows as it was at t (loss_course.h); over the batch's rows that have been
// trained on. A batch's rows are of one shard, and were all last trained on at about one time: with
// the mean of an epoch in place of L, the level of a loss that falls is too low where an epoch
// begins and too high where it ends, by as much as the loss fell in the one before. Off by what the
// change of the parameters since then did to the batch's rows more than to others: on a9a a
// thirtieth of the spread of the batches' own means after 2,000 iterations.
//
// Threads: any worker, and the master.
#ifndef TTI_ROW_LOSSES_H
#define TTI_ROW_LOSSES_H

#include "loss_course.h"
#include "tt/core.h"

typedef struct tti_row_losses {
    uint64_t *last; // [rows], float and piece it is of; NaN: not trained on yet; relaxed
    uint32_t rows;
    uint64_t examples; // noted so far; relaxed add
    uint64_t known;    // rows that have a loss; relaxed add
    uint64_t pieces;   // sum of what those losses are of; relaxed add
    uint64_t sum;      // of all last losses, the bits of a double; relaxed
    uint64_t trained;  // of all losses that were noted, likewise
    tti_loss_course course;
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
