// A data set in memory: rows of features with a label each.
#ifndef TT_WORKLOADS_DATA_H
#define TT_WORKLOADS_DATA_H

#include "tt/core.h"

typedef enum tt_data_layout {
    TT_DATA_SPARSE,   // CSR: row_begin, index, value
    TT_DATA_DENSE_U8, // bytes[row_count][feature_count], a feature is byte * scale
    TT_DATA_DENSE_F32 // floats[row_count][feature_count]
} tt_data_layout;

// Read-only once loaded, shared by all threads. Owned by whoever opened it; release with tt_dataset_close.
typedef struct tt_dataset {
    tt_data_layout layout;
    uint64_t row_count;
    uint32_t feature_count; // indices are below this
    uint64_t nonzero_count; // sparse: stored entries; dense: row_count * feature_count
    uint32_t class_count;   // distinct labels (0 when labels are real-valued targets)
    double class_label[256];// the label as written in the file, ascending, for class 0 .. class_count - 1 (class_count <= 256)
    uint16_t *label;        // class index per row, [row_count]
    uint64_t *row_begin;    // sparse, [row_count + 1]
    uint32_t *index;        // sparse, 0-based, increasing within a row, [nonzero_count]
    float *value;           // sparse, [nonzero_count]; NULL when every value is 1
    uint8_t *bytes;         // dense u8
    float *floats;          // dense f32
    float scale;            // dense u8
} tt_dataset;

void tt_dataset_close(tt_dataset *data);

#endif
