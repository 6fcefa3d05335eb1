// Early stopping: counting evaluations without improvement.
#include "early_stopping.h"
#include <math.h>

void
tti_early_stopping_init(tti_early_stopping *state)
{
    *state = (tti_early_stopping){.best_loss = INFINITY, .reference_loss = INFINITY};
}

int
tti_early_stopping_note(
    tti_early_stopping *state, double loss, double min_delta, uint64_t iteration, double epoch)
{
    state->evaluations++;
    state->without_improvement++;
    if (!isfinite(loss))
        return 0;
    if (loss < state->reference_loss - min_delta) {
        state->reference_loss = loss;
        state->without_improvement = 0;
    }
    if (!(loss < state->best_loss))
        return 0;
    state->best_loss = loss;
    state->best_evaluation = state->evaluations;
    state->best_iteration = iteration;
    state->best_epoch = epoch;
    return 1;
}

int
tti_early_stopping_over(const tti_early_stopping *state, int64_t patience)
{
    return patience > 0 && (int64_t)state->without_improvement >= patience;
}
