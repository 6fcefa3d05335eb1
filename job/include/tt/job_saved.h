// A trained model in use: evaluating and predicting with the file that a run saved, without the
// data it was trained on (docs/model-file.md).
#ifndef TT_JOB_SAVED_H
#define TT_JOB_SAVED_H

#include "tt/core_status.h"
#include <stdint.h>

typedef struct tt_job_metric {
    const char *name;
    double value;
} tt_job_metric;

// A model as its file tells it, and ready to be used.
typedef struct tt_job_model tt_job_model;

// errors   TT_NOTFOUND, TT_IO; TT_INVALID not a model of trimtab; TT_UNSUPPORTED another version of
//          the format; TT_CORRUPT damaged; TT_NOMEM
// owns     `*out`: release with tt_job_model_close; NULL on failure
TT_NODISCARD tt_status tt_job_model_open(const char *path, tt_job_model **out, tt_error *err);
void tt_job_model_close(tt_job_model *model);
const char *tt_job_model_kind(const tt_job_model *model);
uint32_t tt_job_model_features(const tt_job_model *model);

// What to use a model on.
typedef struct tt_job_use {
    // One data set: the rows of the files follow one another. tt_data_standard_input is one too
    const char *const *files;
    size_t file_count;         // at least 1
    const char *const *labels; // idx, to evaluate: as many files of labels, in the same order
    size_t label_count;
    const char *format; // NULL: that of the training data
    int threads;        // 0: one a processor. Results do not depend on it
} tt_job_use;

// What the model could not make use of: features, or columns, that the training data had not.
typedef struct tt_job_unknown {
    uint64_t entries, rows; // entries of such features, and how many rows have some
    uint32_t columns;
    char names[120]; // of the first columns
} tt_job_unknown;

typedef struct tt_job_evaluation {
    uint64_t rows;
    tt_job_metric metric[4]; // those that a run prints for its test data, and equal to them
    uint32_t metric_count;
    double objective; // loss + l2/2 |w|^2 with the l2 of the training
    tt_job_unknown unknown;
} tt_job_evaluation;

// errors   TT_INVALID data of another kind or shape, a label that the training data had not; those
//          of reading
TT_NODISCARD tt_status tt_job_model_evaluate(const tt_job_model *model,
                                             const tt_job_use *use,
                                             tt_job_evaluation *out,
                                             tt_error *err);

typedef enum tt_job_prediction {
    TT_JOB_PREDICT_LABEL,
    TT_JOB_PREDICT_PROBABILITIES,
    TT_JOB_PREDICT_SCORES
} tt_job_prediction;

// Writes one line a row to `output_path` (NULL: standard output). Labels in the data are not looked
// at and may be missing. errors as tt_predict
TT_NODISCARD tt_status tt_job_model_predict(const tt_job_model *model,
                                            const tt_job_use *use,
                                            tt_job_prediction what,
                                            const char *output_path,
                                            uint64_t *rows,
                                            tt_job_unknown *unknown,
                                            tt_error *err);

#endif
