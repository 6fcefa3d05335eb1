// The loss over all rows as it was a while ago, told once it can be told without bias.
//
// An epoch's worth of training is cut into pieces. The mean of all rows' last losses is the loss
// over all of them as it was, in the mean, when they were last trained on, half an epoch ago; where
// every row counts once, what is special about rows cancels out. In the first epoch, of which there
// is no such mean, it is the mean of the losses of what was trained on from half as long after the
// beginning to half as long again: the steep fall of a beginning leaves windows that grow with it
// soon.
//
// Threads: any worker, and the master.
#ifndef TTI_LOSS_COURSE_H
#define TTI_LOSS_COURSE_H

#include "tt/core.h"
#include <pthread.h>

enum { TTI_LOSS_COURSE_PIECES = 64, TTI_LOSS_COURSE_KEPT = 4 * TTI_LOSS_COURSE_PIECES };

// So far: all that the course is made of.
typedef struct tti_loss_course_totals {
    double pieces;  // trained on, in pieces
    double trained; // sum of the losses of all that was trained on
    double last;    // mean of all rows' last losses
    double when;    // mean of when those are of, in pieces, at most `pieces`
} tti_loss_course_totals;

typedef struct tti_loss_course {
    uint64_t loss[TTI_LOSS_COURSE_KEPT]; // of piece i at i % KEPT, the bits of a double; relaxed
    uint64_t told;                       // pieces whose loss is told; release add
    double piece_rows;
    pthread_mutex_t lock; // guards what is below
    tti_loss_course_totals seen;
    double trained[3 * TTI_LOSS_COURSE_PIECES / 2 +
                   1]; // after so many pieces, as long as that is asked
    uint64_t cuts;     // ends of pieces seen
} tti_loss_course;

void tti_loss_course_open(tti_loss_course *course, uint32_t rows);
void tti_loss_course_close(tti_loss_course *course);
// When a piece has ended. Never blocks: where another worker is at it, the next piece's end makes
// up for this one's. Totals that are behind those of another worker are nothing new.
void tti_loss_course_extend(tti_loss_course *course, const tti_loss_course_totals *now);
// In piece i, or in the latest one before it that is told. NAN: none is, or it was too long ago.
double tti_loss_course_at(const tti_loss_course *course, uint64_t piece);

#endif
