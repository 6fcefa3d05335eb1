// Early stopping: when the validation loss has not improved for long enough, in the words of Keras
// (patience, min_delta). Plain data: what a job that is resumed has to know of it.
#ifndef TTI_EARLY_STOPPING_H
#define TTI_EARLY_STOPPING_H

#include <stdint.h>

typedef struct tti_early_stopping {
    uint32_t evaluations;         // so far
    uint32_t best_evaluation;     // from 1; 0: none was finite
    uint32_t without_improvement; // in a row
    double best_loss;             // lowest
    double reference_loss; // at the last improvement by more than min_delta: small steps add up
    uint64_t best_iteration;
    double best_epoch;
} tti_early_stopping;

void tti_early_stopping_init(tti_early_stopping *state);
// Notes one evaluation; a loss that is not finite is no improvement. 1: it is the best so far.
int tti_early_stopping_note(
    tti_early_stopping *state, double loss, double min_delta, uint64_t iteration, double epoch);
// Whether patience (0: endless) is over.
int tti_early_stopping_over(const tti_early_stopping *state, int64_t patience);

#endif
