// Server-side optimisers: SGD, momentum, AdaGrad, Adam, FTRL-proximal, plain addition; with
// polynomial-decay averaging.
#include "optimizer.h"
#include <math.h>

double
tti_average_total(uint64_t steps)
{
    double triangle = 0.5 * (double)steps * ((double)steps + 1.0);
    return triangle * triangle; // sum of cubes
}

static float *
further(float *array, size_t floats)
{
    return array != NULL ? array + floats : NULL;
}

tti_cells
tti_cells_at(const tti_cells *cells, size_t floats)
{
    return (tti_cells){cells->w + floats, further(cells->first, floats),
                       further(cells->second, floats), further(cells->average, floats)};
}

tti_step
tti_step_at(const tt_ps_table *table, uint64_t steps, uint64_t iteration)
{
    double rate = tt_ps_learning_rate(table, iteration), t = (double)steps + 1;
    tti_step step = {.kind = table->optimizer,
                     .learning_rate = (float)rate,
                     .epsilon = (float)table->epsilon,
                     .average_weight = (float)tti_average_total(steps),
                     .averaging = table->averaging};
    if (table->optimizer == TT_PS_MOMENTUM) {
        step.decay1 = (float)table->momentum;
        step.from_gradient = table->nesterov ? (float)rate : 0;
        step.from_velocity = (float)(table->nesterov ? rate * table->momentum : rate);
    } else if (table->optimizer == TT_PS_ADAM) {
        step.decay1 = (float)table->beta1;
        step.decay2 = (float)table->beta2;
        step.learning_rate = (float)(rate / (1 - pow(table->beta1, t)));
        step.unbias = (float)(1 / sqrt(1 - pow(table->beta2, t)));
    } else if (table->optimizer == TT_PS_FTRL) {
        step.l1 = (float)table->l1;
        step.beta = (float)table->ftrl_beta;
    }
    return step;
}

// ---- one parameter ----------------------------------------------------------------------------

// The state of one parameter in registers.
typedef struct cell {
    float w, first, second;
} cell;

// McMahan et al., KDD 2013, algorithm 1; lambda_2 is the model's l2, in the gradient.
static inline float
ftrl_change(const tti_step *step, cell *c, float g)
{
    float n = c->second + g * g, root = sqrtf(n);
    c->first += g - (root - sqrtf(c->second)) / step->learning_rate * c->w;
    c->second = n;
    float excess = fabsf(c->first) - step->l1;
    float w =
        excess > 0 ? -copysignf(excess, c->first) * step->learning_rate / (step->beta + root) : 0;
    return w - c->w;
}

// Change of the weight; the state takes its step. `kind` is a constant wherever this is inlined.
static inline __attribute__((always_inline)) float
change(tt_ps_optimizer_kind kind, const tti_step *step, cell *c, float g)
{
    switch (kind) {
    case TT_PS_SGD:
        return -step->learning_rate * g;
    case TT_PS_ADAGRAD:
        c->first += g * g;
        return -step->learning_rate * g / (sqrtf(c->first) + step->epsilon);
    case TT_PS_MOMENTUM:
        c->first = step->decay1 * c->first + g;
        return -(step->from_gradient * g + step->from_velocity * c->first);
    case TT_PS_ADAM:
        c->first += (1 - step->decay1) * (g - c->first);
        c->second += (1 - step->decay2) * (g * g - c->second);
        return -step->learning_rate * c->first / (sqrtf(c->second) * step->unbias + step->epsilon);
    case TT_PS_FTRL:
        return ftrl_change(step, c, g);
    case TT_PS_ADD:
        break;
    }
    return g;
}

// ---- many ---------------------------------------------------------------------------------------

static inline __attribute__((always_inline)) void
apply(tt_ps_optimizer_kind kind,
      const tti_step *step,
      const tti_cells *cells,
      const float *g,
      size_t n)
{
    float *w = cells->w, *first = cells->first, *second = cells->second, *average = cells->average;
    int states = kind == TT_PS_ADAM || kind == TT_PS_FTRL          ? 2
                 : kind == TT_PS_ADAGRAD || kind == TT_PS_MOMENTUM ? 1
                                                                   : 0;
    for (size_t i = 0; i < n; i++) {
        cell c = {w[i], states > 0 ? first[i] : 0, states > 1 ? second[i] : 0};
        float delta = change(kind, step, &c, g[i]);
        w[i] += delta;
        if (states > 0)
            first[i] = c.first;
        if (states > 1)
            second[i] = c.second;
        if (average != NULL)
            average[i] += step->average_weight * delta;
    }
}

void
tti_step_apply(
    const tti_step *step, const tt_vec_ops *ops, const tti_cells *cells, const float *g, size_t n)
{
    int wide = !step->averaging && n >= 8; // worth a call of a vector kernel
    switch (step->kind) {
    case TT_PS_ADD:
        if (wide)
            ops->add(g, cells->w, n);
        else
            apply(TT_PS_ADD, step, cells, g, n);
        break;
    case TT_PS_SGD:
        if (wide)
            ops->sgd_step(cells->w, g, n, step->learning_rate);
        else
            apply(TT_PS_SGD, step, cells, g, n);
        break;
    case TT_PS_ADAGRAD:
        if (wide)
            ops->adagrad_step(cells->w, cells->first, g, n, step->learning_rate, step->epsilon);
        else
            apply(TT_PS_ADAGRAD, step, cells, g, n);
        break;
    case TT_PS_MOMENTUM:
        apply(TT_PS_MOMENTUM, step, cells, g, n);
        break;
    case TT_PS_ADAM:
        apply(TT_PS_ADAM, step, cells, g, n);
        break;
    case TT_PS_FTRL:
        apply(TT_PS_FTRL, step, cells, g, n);
        break;
    }
}

static inline __attribute__((always_inline)) void
apply_each(tt_ps_optimizer_kind kind,
           const tti_step *step,
           const tti_cells *cells,
           const uint32_t *indices,
           const float *g,
           uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tti_cells one = tti_cells_at(cells, indices[i]);
        apply(kind, step, &one, &g[i], 1);
    }
}

void
tti_step_apply_each(const tti_step *step,
                    const tti_cells *cells,
                    const uint32_t *indices,
                    const float *g,
                    uint32_t n)
{
    switch (step->kind) {
    case TT_PS_ADD:
        apply_each(TT_PS_ADD, step, cells, indices, g, n);
        break;
    case TT_PS_SGD:
        apply_each(TT_PS_SGD, step, cells, indices, g, n);
        break;
    case TT_PS_ADAGRAD:
        apply_each(TT_PS_ADAGRAD, step, cells, indices, g, n);
        break;
    case TT_PS_MOMENTUM:
        apply_each(TT_PS_MOMENTUM, step, cells, indices, g, n);
        break;
    case TT_PS_ADAM:
        apply_each(TT_PS_ADAM, step, cells, indices, g, n);
        break;
    case TT_PS_FTRL:
        apply_each(TT_PS_FTRL, step, cells, indices, g, n);
        break;
    }
}

void
tti_step_apply_racy(const tti_step *step, const tti_cells *cells, const float *g, size_t n)
{
    float *first = cells->first, *second = cells->second, *average = cells->average;
    for (size_t i = 0; i < n; i++) {
        float before = TT_RACY_LOAD(&cells->w[i]);
        cell c = {before, first != NULL ? TT_RACY_LOAD(&first[i]) : 0,
                  second != NULL ? TT_RACY_LOAD(&second[i]) : 0};
        float delta = change(step->kind, step, &c, g[i]);
        if (first != NULL)
            TT_RACY_STORE(&first[i], c.first);
        if (second != NULL)
            TT_RACY_STORE(&second[i], c.second);
        TT_RACY_STORE(&cells->w[i], TT_RACY_LOAD(&cells->w[i]) + delta);
        if (average != NULL)
            TT_RACY_STORE(&average[i], TT_RACY_LOAD(&average[i]) + step->average_weight * delta);
    }
}
