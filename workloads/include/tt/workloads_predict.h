// Predictions of a linear model for the rows of files, one line a row, in their order.
//
// Caveats: block by block: memory does not grow with the files, and output may lag behind input by
// some blocks of half a MiB. Blank lines and comments are no rows. Labels are not looked at and may
// be missing.
#ifndef TT_WORKLOADS_PREDICT_H
#define TT_WORKLOADS_PREDICT_H

#include "tt/workloads_data.h"
#include "tt/workloads_model.h"

typedef enum tt_predict_columns {
    TT_PREDICT_LABEL,         // the label of the class, as the training data had it
    TT_PREDICT_PROBABILITIES, // behind it the probability of each class, in ascending order
    TT_PREDICT_SCORES         // behind it the decision values w x + b: one, or one a class
} tt_predict_columns;

typedef struct tt_predict_spec {
    const tt_model *model;  // opened with `like`
    const float *params;    // the whole table
    const tt_dataset *like; // the shape of the training data
    const char *format;     // as in tt_data_spec
    // One or more, read one after the other as in tt_data_spec; also tt_data_standard_input
    const char *const *paths;
    size_t path_count;
    const char *output_path; // NULL: standard output. Appears complete or not at all
    tt_predict_columns columns;
    int threads; // 0 = as many as processors. The result does not depend on it
} tt_predict_spec;

typedef struct tt_predict_result {
    uint64_t rows;
    // of features (csv with a header: columns) that the model has not; they weigh nothing
    uint64_t unknown_entries, unknown_rows;
    uint32_t unknown_columns;
    char unknown_names[120]; // the first of those columns
} tt_predict_result;

// errors   as tt_dataset_open (labels apart); TT_INVALID also probabilities of a model that has
//          none; TT_IO also the output. What stands before a malformed row has been written to
//          standard output by then
// thread   [control]; starts `threads - 1` threads and joins them
TT_NODISCARD tt_status tt_predict(const tt_predict_spec *spec,
                                  tt_predict_result *result,
                                  tt_error *err);

#endif
