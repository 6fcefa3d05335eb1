// Optimiser steps on contiguous rows.
#ifndef TTI_OPTIMIZER_H
#define TTI_OPTIMIZER_H

#include "tt/ps.h"

// One stretch of parameters with their optimiser state; what the optimiser has no use for is NULL.
typedef struct tti_cells {
    float *w;
    float *first;   // AdaGrad's sum, momentum's velocity, Adam's first moment, FTRL's z
    float *second;  // Adam's second moment, FTRL's n
    float *average; // averaging
} tti_cells;

enum { TTI_CELL_ARRAYS = 4 };

// Whether the table's rows have the i-th of these arrays.
int tti_cells_wanted(const tt_ps_table *table, int array);
// The cells that begin `floats` further on.
tti_cells tti_cells_at(const tti_cells *cells, size_t floats);

// The numbers of one step, the same for all rows it touches.
typedef struct tti_step {
    tt_ps_optimizer_kind kind;
    float learning_rate; // Adam: with the first moment's bias taken out
    float epsilon;
    float from_gradient; // momentum: shares of the step along g (Nesterov) and along the velocity
    float from_velocity;
    float decay1, decay2; // momentum; Adam's beta1 and beta2
    float unbias;         // Adam: 1 / sqrt(1 - beta2^t)
    float l1, beta;       // FTRL
    float average_weight; // C_(t-1), the weight of everything before this step; 0 when averaging is
                          // off
    int averaging;
} tti_step;

// Step number `steps` (0, 1, ...) at `iteration`.
tti_step tti_step_at(const tt_ps_table *table, uint64_t steps, uint64_t iteration);
// C_steps, by which the accumulated average term is divided.
double tti_average_total(uint64_t steps);
// The cells' first n parameters take one step along g[n].
void tti_step_apply(
    const tti_step *step, const tt_vec_ops *ops, const tti_cells *cells, const float *g, size_t n);
// The same on memory that other threads read and write meanwhile.
// The same on single weights here and there: cells of indices[n], in this order.
void tti_step_apply_each(const tti_step *step,
                         const tti_cells *cells,
                         const uint32_t *indices,
                         const float *g,
                         uint32_t n);
void tti_step_apply_racy(const tti_step *step, const tti_cells *cells, const float *g, size_t n);

#endif
