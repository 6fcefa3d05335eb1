// Server-side optimisers: SGD with schedules, AdaGrad, plain addition, polynomial-decay averaging.
#include "optimizer.h"
#include <math.h>

uint32_t
tt_ps_state_count(const tt_ps_table *table)
{
    return (uint32_t)(table->optimizer == TT_PS_ADAGRAD) + (uint32_t)(table->averaging != 0);
}

double
tt_ps_learning_rate(const tt_ps_table *table, uint64_t iteration)
{
    double slow_down = 1.0 + table->decay * (double)iteration;
    switch (table->schedule) {
    case TT_PS_INVERSE:
        return table->learning_rate / slow_down;
    case TT_PS_INVERSE_SQRT:
        return table->learning_rate / sqrt(slow_down);
    case TT_PS_CONSTANT:
        break;
    }
    return table->learning_rate;
}

double
tti_average_total(uint64_t steps)
{
    double triangle = 0.5 * (double)steps * ((double)steps + 1.0);
    return triangle * triangle; // sum of cubes
}

tti_step
tti_step_at(const tt_ps_table *table, uint64_t steps, uint64_t iteration)
{
    return (tti_step){.kind = table->optimizer,
                      .learning_rate = (float)tt_ps_learning_rate(table, iteration),
                      .epsilon = (float)table->epsilon,
                      .average_weight = (float)tti_average_total(steps),
                      .averaging = table->averaging};
}

// Change of one weight; *s is its AdaGrad sum.
static inline float
change(const tti_step *step, float g, float *s)
{
    if (step->kind == TT_PS_ADD)
        return g;
    if (step->kind == TT_PS_SGD)
        return -step->learning_rate * g;
    *s += g * g;
    return -step->learning_rate * g / (sqrtf(*s) + step->epsilon);
}

void
tti_step_apply(const tti_step *step,
               const tt_vec_ops *ops,
               float *w,
               float *s,
               float *u,
               const float *g,
               size_t n)
{
    if (!step->averaging && n >= 8) {
        if (step->kind == TT_PS_ADD)
            ops->add(g, w, n);
        else if (step->kind == TT_PS_SGD)
            ops->sgd_step(w, g, n, step->learning_rate);
        else
            ops->adagrad_step(w, s, g, n, step->learning_rate, step->epsilon);
        return;
    }
    float no_state = 0;
    for (size_t i = 0; i < n; i++) {
        float delta = change(step, g[i], s != NULL ? &s[i] : &no_state);
        w[i] += delta;
        if (u != NULL)
            u[i] += step->average_weight * delta;
    }
}

void
tti_step_apply_racy(const tti_step *step, float *w, float *s, float *u, const float *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = s != NULL ? TT_RACY_LOAD(&s[i]) : 0;
        float delta = change(step, g[i], &sum);
        if (s != NULL)
            TT_RACY_STORE(&s[i], sum);
        TT_RACY_STORE(&w[i], TT_RACY_LOAD(&w[i]) + delta);
        if (u != NULL)
            TT_RACY_STORE(&u[i], TT_RACY_LOAD(&u[i]) + step->average_weight * delta);
    }
}

// ---- cutting a table into partitions ----------------------------------------------------------

uint32_t
tt_ps_partition_of(const tt_ps_table *table, uint64_t key)
{
    if (table->kind == TT_PS_DENSE) {
        TT_DASSERT(key < table->rows);
        return (uint32_t)(key * table->partition_count / table->rows);
    }
    // The finaliser of splitmix64 spreads neighbouring keys; its high bits choose the partition,
    // its low bits the slot.
    uint64_t x = key + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    return (uint32_t)(((x >> 32) * table->partition_count) >> 32);
}

uint64_t
tt_ps_partition_first(const tt_ps_table *table, uint32_t partition)
{
    // The least key with key * count / rows >= partition.
    return (partition * table->rows + table->partition_count - 1) / table->partition_count;
}

uint32_t
tt_ps_partition_count_for(uint64_t rows, uint32_t servers_max)
{
    uint64_t by_size = rows / 16 > 0 ? rows / 16 : 1;
    return (uint32_t)TT_MIN((uint64_t)TT_MIN(4 * servers_max, 1024), by_size);
}
