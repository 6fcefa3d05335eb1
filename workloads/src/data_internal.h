// What the readers of data files share.
#ifndef TTI_DATA_INTERNAL_H
#define TTI_DATA_INTERNAL_H

#include "tt/workloads_data.h"
#include <stdint.h>

// The largest width of a data set: 1-based indices up to it fit a signed 32-bit integer with one to
// spare.
#define TTI_FEATURES_MAX 2147483646u
#define TTI_CLASSES_MAX  256u

// One file format. open: `spec` is checked for format and paths only, and `paths` is set whether
// there is one or more; *out is an empty data set to fill, closed by the caller whatever happens.
typedef struct tti_reader {
    const char *name;
    tt_status (*open)(const tt_data_spec *spec, tt_dataset *out, tt_error *err);
} tti_reader;

tt_status tti_libsvm_open(const tt_data_spec *spec, tt_dataset *out, tt_error *err);
tt_status tti_csv_open(const tt_data_spec *spec, tt_dataset *out, tt_error *err);
void tti_csv_columns_close(struct tt_csv_columns *columns);
tt_status tti_idx_open(const tt_data_spec *spec, tt_dataset *out, tt_error *err);

// Parser threads for a spec's or a generator's `threads`.
int tti_thread_count(int threads);

// Writes "path:suffix" ("path" when the suffix is "") into a place of tt_error's size. A path that
// is too long loses its front, never the suffix.
enum { TTI_PLACE_SIZE = 320 };
void tti_place(char place[TTI_PLACE_SIZE], const char *path, const char *suffix_format, ...)
    TT_PRINTF(3, 4);

// "first" or "first and 3 more files": what is wrong with all files together.
void tti_place_of_all(char place[TTI_PLACE_SIZE], const char *const *paths, size_t path_count);

// A label of test data that the training data have not: the first one, and how often.
typedef struct tti_unknown_label {
    char place[TTI_PLACE_SIZE]; // of the first row that has it; "": there is none
    double label;
    uint64_t rows, other_rows; // with this label, with other such labels
} tti_unknown_label;
// `rows` more rows have such a label; place and label of the first are set by then.
void tti_unknown_label_add(tti_unknown_label *unknown, double label, uint64_t rows);
// cut_short: not all rows were read.
tt_status tti_unknown_label_report(const tti_unknown_label *unknown, int cut_short, tt_error *err);

// Class index of a label in an ascending table, or -1. [any]
int tti_class_of(const tt_dataset *classes, double label);

#endif
