// What the sources of the models share.
#ifndef TTI_MODEL_INTERNAL_H
#define TTI_MODEL_INTERNAL_H

#include "model_keys.h"
#include "model_shares.h"
#include "tt/workloads_model.h"

// A kind of model is its loss on a block of scores.
typedef struct tti_model_kind {
    const char *name;
    int binary; // one score a row and labels as signs
    // scores [n][width] are replaced by scale * dloss/dscore; returns the sum of losses. sign [n]
    // for binary kinds, label [n] for the others. each [n]: the loss of each row, or NULL.
    double (*loss)(const tt_vec_ops *ops,
                   float *scores,
                   const float *sign,
                   const uint16_t *label,
                   float scale,
                   float *each,
                   size_t n,
                   size_t width);
} tti_model_kind;

// NULL when there is no kind of this name.
const tti_model_kind *tti_model_kind_find(const char *name);

struct tt_model {
    const tti_model_kind *kind;
    const tt_dataset *train;
    double l2;
    int bias, keyed;
    uint32_t features, rows, width; // rows = features + bias
    tti_shares *shares;             // keyed with l2; counted with the first batch. Else NULL
};

struct tt_batch {
    const tt_model *model;
    const tt_dataset *data;
    uint32_t max_rows, row_count;
    uint32_t *rows;  // [max_rows] rows of data
    float *sign;     // binary kinds: [max_rows]
    uint16_t *label; // other kinds: [max_rows]
    uint64_t nonzeros;
    // keyed only: the rows copied, with indices among the keys
    uint64_t *begin;    // [max_rows + 1]
    uint32_t *index;    // [entries_max]
    float *value;       // [entries_max]; NULL when every value is 1
    uint32_t *keys;     // [key_max]
    uint32_t *key_rows; // with l2: rows of the batch that have the key, [key_max]
    uint32_t key_count, key_max;
    uint64_t entries_max;
    tti_keys *assigner; // of the batches allocated beside each other
};

// Rows are worked on in blocks, so that a block's entries are still in the first cache (sparse) or
// the second (dense) when they are read for the second time, and scratch is small.
enum { TTI_BLOCK_SPARSE = 128, TTI_BLOCK_DENSE = 256 };

struct tt_model_scratch {
    float *scores;    // [block][width]
    float *workspace; // dense: [features][width]; else NULL
    uint32_t block_rows;
};

// scores [n][width] += the bias row at params[bias_row]; nothing without a bias.
void tti_model_add_bias(
    const tt_model *model, const float *params, uint32_t bias_row, float *scores, size_t n);

// The class with the highest score; binary: class 1 where the score is positive.
size_t tti_model_choose(const float *scores, size_t width);

#endif
