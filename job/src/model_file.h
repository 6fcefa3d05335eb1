// The file of a model: tensors "weight" [features][width] and, with a bias, "bias" [width], and in
// words what is needed to use it (docs/model-file.md).
#ifndef TTI_MODEL_FILE_H
#define TTI_MODEL_FILE_H

#include "tt/core_status.h"
#include "tt/workloads.h"
#include <jansson.h>

// What this program writes and reads; a change that an older program would misread raises it.
#define TTI_MODEL_FORMAT_VERSION "1"

// A model that was read from its file.
typedef struct tti_saved_model {
    tt_data_shape shape;
    double class_label[256];
    tt_csv_layout *csv; // NULL: not CSV
    char kind[64], data_format[32];
    int bias;
    double l2;
    uint32_t width;
    float *params; // [features + bias][width]
} tti_saved_model;

// errors   TT_NOTFOUND, TT_IO, TT_INVALID not a model; TT_UNSUPPORTED another version; TT_CORRUPT
//          damaged; TT_NOMEM
// owns     release with tti_saved_model_close, on failure too
TT_NODISCARD tt_status tti_saved_model_open(const char *path, tti_saved_model *out, tt_error *err);
void tti_saved_model_close(tti_saved_model *model);

// CRC-32 of the weights' bytes and then of every key and value of the metadata but its own, each
// with a zero byte behind it.
uint32_t tti_model_checksum(const json_t *metadata, const float *params, size_t bytes);

// model_columns.c: the columns of CSV data as JSON, and back. NULL: no memory, or not such a thing.
json_t *tti_columns_to_json(const tt_csv_layout *layout);
tt_csv_layout *tti_columns_from_json(const json_t *object);

#endif
