// Linear models: loss and gradient on batches of rows, and evaluation on whole data sets.
//
// A model knows no network and no optimiser: it is handed parameters and adds to a gradient. Kinds:
// logistic_regression, linear_svm (hinge), softmax_regression; all with L2 regularisation.
//
// Parameters are a table of tt_model_rows() x tt_model_width() floats, row-major: one row per
// feature, then one for the bias when there is one; width is 1 for the binary models and the number
// of classes for softmax. Training starts at zero. The whole objective is
//     mean over examples of loss + l2/2 |w|^2        (w without the bias)
//
// A worker either pulls the whole table or, with sparse data and a large table, only the rows its
// batch touches ("keyed"): parameters and gradient then have the shape of the batch, one row per
// key.
//
// Caveats: binary models take the class with the larger label as +1. Indices of sparse data are
// below 2^31. A model lends from its training data: close it before tt_dataset_close.
#ifndef TT_WORKLOADS_MODEL_H
#define TT_WORKLOADS_MODEL_H

#include "tt/core_vec.h"
#include "tt/workloads_data.h"

typedef struct tt_model tt_model;                 // read-only after open, shared by all threads
typedef struct tt_batch tt_batch;                 // one filler at a time, then many readers
typedef struct tt_model_scratch tt_model_scratch; // one thread at a time

enum { TT_MODEL_PULL_AUTO, TT_MODEL_PULL_WHOLE, TT_MODEL_PULL_KEYED };

// Zero means default except for `kind`.
typedef struct tt_model_config {
    const char *kind;
    double l2;           // >= 0
    int bias;            // 1: a constant feature 1 that is not regularised
    int pull;            // TT_MODEL_PULL_*; auto: keyed when the data are sparse and the table has
                         // more than 4 * batch_hint * (mean nonzeros of a row) rows
    uint32_t batch_hint; // rows of a typical batch, for auto; 0 = 64
    int trained;         // 1: only to evaluate and to predict, and the data may be a shape without
                         // rows (tt_dataset_shape_open)
} tt_model_config;

// Opens a model for `train`, which is lent until tt_model_close.
// errors   TT_INVALID unknown kind (did you mean), a binary kind on other than two classes,
// real-valued
//          targets, negative l2, keyed on dense data; TT_RANGE a table of 2^31 floats or more;
//          TT_NOMEM
// thread   [control]
TT_NODISCARD tt_status tt_model_open(const tt_model_config *config,
                                     const tt_dataset *train,
                                     tt_model **out,
                                     tt_error *err);
// What training needs of the data besides, which the first batch takes otherwise: before processes
// are forked that are to share it. errors TT_NOMEM. thread any
TT_NODISCARD tt_status tt_model_prepare(const tt_model *model, tt_error *err);
void tt_model_close(tt_model *model);

const char *tt_model_kind(const tt_model *model);
uint32_t tt_model_rows(const tt_model *model);
uint32_t tt_model_width(const tt_model *model);
int tt_model_keyed(const tt_model *model);
// The name of kind `index` for listings, NULL past the last one.
const char *tt_model_kind_name(size_t index);

// Room for batches of up to max_rows rows of `data` (the training data, or others of the same shape
// and layout; lent until tt_batch_free). All memory is taken here.
// errors   TT_INVALID data of another layout, or with more features; TT_NOMEM
TT_NODISCARD tt_status tt_batch_alloc(const tt_model *model,
                                      const tt_dataset *data,
                                      uint32_t max_rows,
                                      tt_batch **out);
// One more like `beside`, which may be freed before it. They share what filling needs (keyed: two
// bits and more a feature): none of them may be filled, allocated or freed while another one is.
TT_NODISCARD tt_status tt_batch_alloc_beside(const tt_batch *beside, tt_batch **out);
void tt_batch_free(tt_batch *batch);
// Makes the batch consist of rows[0 .. count) of its data, count <= max_rows; a row may appear more
// than once. Copies `rows`; never allocates. Keyed: computes the keys and the index of each nonzero
// among them. thread [worker]
void tt_batch_fill(tt_batch *batch, const uint32_t *rows, uint32_t count);

uint32_t tt_batch_rows(const tt_batch *batch);
// Stored entries of the batch's rows (dense: rows * features), for cost models.
uint64_t tt_batch_nonzeros(const tt_batch *batch);
// Keyed: the table rows this batch touches, ascending, each once, the bias row last; valid until
// the next fill. Not keyed: NULL, and *count is tt_model_rows().
const uint32_t *tt_batch_keys(const tt_batch *batch, uint32_t *count);
// No batch of this size has more keys: size of pull buffers (rows of tt_model_width() floats). Not
// keyed: tt_model_rows().
uint32_t tt_batch_key_capacity(const tt_batch *batch);

// Working memory of one thread for parts of up to max_rows rows. errors TT_NOMEM
TT_NODISCARD tt_status tt_model_scratch_alloc(const tt_model *model,
                                              uint32_t max_rows,
                                              tt_model_scratch **out);
void tt_model_scratch_free(tt_model_scratch *scratch);

// Returns the sum of losses of rows [row_begin, row_end) of the batch, without regularisation, and
// adds scale times its derivative to `gradient` (scale = 1 / batch rows for the mean).
//
// shapes   params, gradient: keyed [key count][width] in the order of tt_batch_keys; else
//          [tt_model_rows()][width]; each: [batch rows], the range's part of it becomes the loss of
//          each row; NULL: not wanted
// thread   [worker]; several threads may work on disjoint ranges of one batch, each with its own
//          gradient and scratch
double tt_model_loss_gradient(const tt_model *model,
                              const tt_vec_ops *ops,
                              const tt_batch *batch,
                              uint32_t row_begin,
                              uint32_t row_end,
                              float scale,
                              const float *params,
                              float *gradient,
                              float *each,
                              tt_model_scratch *scratch);

// Curvature of the batch's mean loss around params, without the regulariser: the most that the
// gradient turns along one direction,
//     max over |v| = 1 of |g(w + d v) - g(w - d v)| / (2 d)
// which for small d is the largest eigenvalue of the Hessian, and where the loss has kinks (hinge)
// what it amounts to on the scale of d. Power iteration from the batch's gradient: 8 gradients'
// work, a little below the true one. 0: the loss is flat or not finite there.
//
// shapes   params, gradient as above; work: 3 times as many floats
// units    distance: of parameters, Euclidean, > 0
// thread   [worker]
double tt_model_curvature(const tt_model *model,
                          const tt_vec_ops *ops,
                          const tt_batch *batch,
                          const float *params,
                          const float *gradient,
                          double distance,
                          float *work,
                          tt_model_scratch *scratch);

// Adds the regulariser's gradient, once per batch, in the scale of the mean example loss.
//   whole:  g_j += l2 w_j
//   keyed:  g_j += l2 w_j count_j / (batch f_j)
// where count_j rows of this batch and the share f_j of all training rows have feature j. Its
// expectation over batches is l2 w_j, as E[count_j] = batch f_j: the lazy form that touches only
// the keys at hand (the weighting d_j of Hogwild, Niu et al. 2011, section 2, sparse SVM). The bias
// row is left out.
void tt_model_regularise(const tt_model *model,
                         const tt_batch *batch,
                         const float *params,
                         float *gradient);

typedef struct tt_model_metrics {
    uint64_t rows;
    double loss;      // mean example loss
    double objective; // loss + l2/2 |w|^2
    double accuracy;  // share of rows whose class is predicted
    double auc;       // area under the ROC curve, ties counted half; NaN when not binary or when a
                      // class is missing
    int finite;       // 0: the loss or a parameter is not finite
} tt_model_metrics;

// Mean loss on `data` of the best constant answer to the training rows: the classes' shares
// (hinge: the larger class). What a model must beat to have learnt anything.
double tt_model_prior_loss(const tt_model *model, const tt_dataset *train, const tt_dataset *data);

// Evaluates params (the whole table) on `data` with up to `threads` threads. Deterministic whatever
// their number: fixed chunks, summed in order. Sparse data may have features the model has not seen
// (they weigh nothing); labels are matched by the value in the file.
// errors   TT_INVALID other layout, other width of dense data, or a label the training data has
// not;
//          TT_NOMEM; threads that cannot be started
// thread   [control]; allocates
TT_NODISCARD tt_status tt_model_evaluate(const tt_model *model,
                                         const tt_dataset *data,
                                         const float *params,
                                         int threads,
                                         tt_model_metrics *out,
                                         tt_error *err);
// The same without the area under the curve (NaN), for which all rows must be sorted, by the
// calling thread alone.
TT_NODISCARD tt_status tt_model_evaluate_loss(const tt_model *model,
                                              const tt_dataset *data,
                                              const float *params,
                                              tt_model_metrics *out,
                                              tt_error *err);
// l2/2 |w|^2 without the bias: objective less loss.
double tt_model_regulariser(const tt_model *model, const float *params);

#endif
