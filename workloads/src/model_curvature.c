// The largest curvature of a batch's loss: how far its gradient turns when one goes along it.
#include "model_internal.h"
#include <math.h>
#include <string.h>

// The gradient of a batch lies mostly along what all its rows have in common, and so does the
// direction that bends most: few steps will do.
enum { POWER_STEPS = 4 };

typedef struct probe {
    const tt_model *model;
    const tt_vec_ops *ops;
    const tt_batch *batch;
    tt_model_scratch *scratch;
    const float *params;
    float *direction, *moved, *turn; // [floats]
    size_t floats;
} probe;

// turn += sign * gradient at params + sign * distance * direction.
static void
add_gradient(const probe *p, float sign, double distance)
{
    const uint32_t rows = tt_batch_rows(p->batch);
    memcpy(p->moved, p->params, p->floats * sizeof(float));
    p->ops->axpy(sign * (float)distance, p->direction, p->moved, p->floats);
    (void)tt_model_loss_gradient(p->model, p->ops, p->batch, 0, rows, sign / (float)rows, p->moved,
                                 p->turn, NULL, p->scratch);
}

// The direction of `turn`; returns its length.
static double
follow(const probe *p)
{
    const double length = sqrt(p->ops->sum_squares(p->turn, p->floats));
    if (!(length > 0) || !isfinite(length))
        return 0;
    memcpy(p->direction, p->turn, p->floats * sizeof(float));
    p->ops->scale((float)(1 / length), p->direction, p->floats);
    return length;
}

double
tt_model_curvature(const tt_model *model,
                   const tt_vec_ops *ops,
                   const tt_batch *batch,
                   const float *params,
                   const float *gradient,
                   double distance,
                   float *work,
                   tt_model_scratch *scratch)
{
    uint32_t keys;
    (void)tt_batch_keys(batch, &keys);
    const size_t floats = (size_t)keys * model->width;
    const probe p = {model, ops, batch, scratch, params, work, work + floats, work + 2 * floats,
                     floats};
    if (tt_batch_rows(batch) == 0 || !(distance > 0) || !isfinite(ops->sum_squares(params, floats)))
        return 0;
    memcpy(p.turn, gradient, floats * sizeof(float));
    if (!(follow(&p) > 0))
        return 0;
    double curvature = 0;
    for (int step = 0; step < POWER_STEPS; step++) {
        memset(p.turn, 0, floats * sizeof(float));
        add_gradient(&p, 1, distance);
        add_gradient(&p, -1, distance);
        curvature = follow(&p) / (2 * distance);
        if (!(curvature > 0))
            return 0;
    }
    return curvature;
}
