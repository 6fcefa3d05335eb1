// From rows to lines of text, for whatever layout the rows have.
#ifndef TTI_PREDICT_ROWS_H
#define TTI_PREDICT_ROWS_H

#include "data_internal.h"
#include "model_internal.h"
#include "tt/workloads_predict.h"
#include "whole_file.h"

enum { TTI_LABEL_BYTES = 32 };

typedef struct tti_predictor {
    const tt_predict_spec *spec;
    const tt_vec_ops *ops;
    char label[TTI_CLASSES_MAX][TTI_LABEL_BYTES]; // with nothing behind it
    size_t label_bytes[TTI_CLASSES_MAX];
    size_t line_bytes_max;
    tti_whole_file file; // when there is an output path
    tt_predict_result *result;
} tti_predictor;

// What one thread at a time works in; zeroed to begin with, kept from block to block.
typedef struct tti_predicted {
    tt_status status; // TT_NOMEM: there was no memory for the lines
    char *text;
    size_t text_bytes, text_capacity;
    uint64_t *row_begin;
    size_t row_capacity;
    float *scores;    // [chunk][width]
    float *workspace; // dense: [features][width]
} tti_predicted;

TT_NODISCARD tt_status tti_predictor_open(const tt_predict_spec *spec,
                                          tti_predictor *out,
                                          tt_predict_result *result,
                                          tt_error *err);
// Keeps the file that was written, if all went well; closes it in any case.
TT_NODISCARD tt_status tti_predictor_close(tti_predictor *self, tt_status status, tt_error *err);

// The lines of sparse rows with these lengths, or of dense ones; status in `out`.
void tti_predict_sparse(const tti_predictor *self,
                        const uint32_t *row_length,
                        size_t row_count,
                        const uint32_t *index,
                        const float *value,
                        tti_predicted *out);
void tti_predict_dense(const tti_predictor *self,
                       const uint8_t *bytes,
                       size_t row_count,
                       tti_predicted *out);
TT_NODISCARD tt_status tti_predicted_write(tti_predictor *self,
                                           const tti_predicted *lines,
                                           tt_error *err);
void tti_predicted_free(tti_predicted *lines);

// predict_dense.c: items of IDX files.
TT_NODISCARD tt_status tti_predict_idx(tti_predictor *self, tt_error *err);

#endif
