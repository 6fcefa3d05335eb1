// Optimiser steps on contiguous rows, and what all folders may ask about a table.
#ifndef TTI_OPTIMIZER_H
#define TTI_OPTIMIZER_H

#include "tt/ps.h"

// The numbers of one step, the same for all rows it touches.
typedef struct tti_step {
    tt_ps_optimizer_kind kind;
    float learning_rate;
    float epsilon;
    float average_weight; // C_(t-1), the weight of everything before this step; 0 when averaging is
                          // off
    int averaging;
} tti_step;

// Step number `steps` (0, 1, ...) at `iteration`.
tti_step tti_step_at(const tt_ps_table *table, uint64_t steps, uint64_t iteration);
// C_steps, by which the accumulated average term is divided.
double tti_average_total(uint64_t steps);
// w[n], s[n] (AdaGrad), u[n] (averaging) take one step along g[n].
void tti_step_apply(const tti_step *step,
                    const tt_vec_ops *ops,
                    float *w,
                    float *s,
                    float *u,
                    const float *g,
                    size_t n);
// The same on memory that other threads read and write meanwhile.
void
tti_step_apply_racy(const tti_step *step, float *w, float *s, float *u, const float *g, size_t n);

#endif
