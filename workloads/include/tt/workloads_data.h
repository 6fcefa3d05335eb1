// A data set in memory: rows of features with a label each.
#ifndef TT_WORKLOADS_DATA_H
#define TT_WORKLOADS_DATA_H

#include "tt/core.h"

typedef enum tt_data_layout {
    TT_DATA_SPARSE,   // CSR: row_begin, index, value
    TT_DATA_DENSE_U8, // bytes[row_count][feature_count], a feature is byte * scale
    TT_DATA_DENSE_F32 // floats[row_count][feature_count]
} tt_data_layout;

// Read-only once loaded, shared by all threads. Owned by whoever opened it; release with
// tt_dataset_close.
typedef struct tt_dataset {
    tt_data_layout layout;
    uint64_t row_count;
    uint32_t feature_count;  // indices are below this
    uint64_t nonzero_count;  // sparse: stored entries; dense: row_count * feature_count
    uint32_t class_count;    // distinct labels (0 when labels are real-valued targets)
    double class_label[256]; // the label as written in the file, ascending, for class 0 ..
                             // class_count - 1 (class_count <= 256)
    uint16_t *label;         // class index per row, [row_count]
    uint64_t *row_begin;     // sparse, [row_count + 1]
    uint32_t *index;         // sparse, 0-based, increasing within a row, [nonzero_count]
    float *value;            // sparse, [nonzero_count]; NULL when every value is 1
    uint8_t *bytes;          // dense u8
    float *floats;           // dense f32
    float scale;             // dense u8
    // with tt_data_spec.ignore_unknown: entries of features that `like` has not, and their rows
    uint64_t unknown_entries, unknown_rows;
    // csv only
    struct tt_csv_columns *columns; // what each column is; test data is read by it
    uint64_t category_count;        // distinct values of categorical columns
    uint64_t category_collisions;   // those that share their feature with an earlier one
} tt_dataset;

// Release; NULL is fine. thread [any], once nobody reads the data any more.
void tt_dataset_close(tt_dataset *data);

// How columns of CSV text become features. Columns are named by their header or by their number
// from 1; several are separated by commas, numbers may be ranges ("2-14,age"). Numeric columns are
// the first features, in file order; an empty field, NA, NaN, null or ? has no value (that is
// zero). A categorical field is hashed: feature = numeric columns + MurmurHash3_x86_32(field, seed:
// number of its column from 1) mod 2^hash_bits, of value 1 (values add up where two fields of a row
// collide); an empty field is none. Zeros are the defaults.
typedef struct tt_csv_spec {
    const char *label; // default the first column
    // Default: by content (numeric when all of the first rows are). With one of them given, columns
    // that neither names are ignored.
    const char *numeric, *categorical;
    const char *ignore;
    char delimiter; // 0: tab, comma, semicolon or bar, whichever the first line has most of
    enum { TT_CSV_HEADER_AUTO, TT_CSV_HEADER_YES, TT_CSV_HEADER_NO } header;
    uint32_t hash_bits; // 0: 18
    int log_numeric;    // sign(x) log(1 + |x|) instead of x
} tt_csv_spec;

enum { TT_CSV_HASH_BITS = 18, TT_CSV_HASH_BITS_MAX = 30 };

// What to read. Zeros are the defaults.
typedef struct tt_data_spec {
    const char *format; // a name of tt_data_format_name: "libsvm", "csv" or "idx"
    const char *path;   // plain, gzip, xz or zstd, told by the first bytes and not by the name
    const char *labels; // idx: the file of labels; NULL for other formats
    // Several files instead of `path` (and `labels`): their rows follow one another in this order.
    // CSV headers must agree; idx files are paired with their labels by order. NULL: one file
    const char *const *paths, *const *label_paths;
    size_t path_count, label_path_count;
    const tt_csv_spec *csv; // csv: NULL for the defaults. Borrowed for the call
    uint32_t feature_count; // 0 = from the data; else indices beyond it are errors
    int threads;            // parsers; 0 = as many as processors. The result does not depend on it
    const tt_dataset *like; // for a test set: classes and width are those of the training set,
                            // NULL for training data. Borrowed for the call
    int ignore_unknown;     // with `like`, sparse: features beyond its width are left out and
                            // counted (0: the first one is an error)
} tt_data_spec;

// A path for tt_data_spec, told by its address and not by its text: standard input.
extern const char tt_data_standard_input[];

// Reads a whole data set. A value is the decimal rounded to double, then to float. Without `like`,
// the classes are the distinct labels in ascending order, at least 2 and at most 256 of them.
//
// errors   the first one in the order of files and lines, whatever the number of threads, with its
// place
//          ("file:line:column" for text, "file: byte offset" for IDX and compressed data):
//          TT_SYNTAX malformed; TT_RANGE an index, value or label out of range; TT_INVALID the data
//          cannot be trained on (no rows, one label value, the wrong format name); TT_NOTFOUND,
//          TT_IO the file cannot be read; TT_CORRUPT compressed data damaged or truncated;
//          TT_UNSUPPORTED a compression that is not read; TT_NOMEM
// owns     `*out` belongs to the caller, release with tt_dataset_close; NULL on failure
// memory   at peak the final arrays plus a few MiB a thread (and the longest line)
// thread   [control]; starts `threads - 1` threads and joins them
TT_NODISCARD tt_status tt_dataset_open(const tt_data_spec *spec, tt_dataset **out, tt_error *err);

// Moves rows out of `data`, in their order, into a data set of its own with the same classes and
// width: row i goes when the first draw of stream (seed, TT_RNG_VALIDATION, i) is below `share`, so
// that neither threads nor the number of files change which rows they are, and rows that are added
// behind do not either. Both may end without rows.
// errors   TT_NOMEM, `data` is as it was
// owns     *out as tt_dataset_open
TT_NODISCARD tt_status
tt_dataset_split(tt_dataset *data, double share, uint64_t seed, tt_dataset **out, tt_error *err);

// Columns of CSV test data that the training data have not, by the headers of both; *names: the
// first of them, "" when there are none, owned by `data`.
uint32_t tt_dataset_unknown_columns(const tt_dataset *data, const char **names);

// ---- Shapes: what data look like, without the data ----

// The columns of CSV text as they were resolved from the training data, so that other files are
// read the same way. In `spec`, columns are numbers and ranges of the training file, and those that
// it does not name are ignored.
typedef struct tt_csv_layout {
    tt_csv_spec spec;
    uint32_t column_count;
    const char **names; // [column_count] by the header of the training file; NULL: it had none
} tt_csv_layout;

// owns     `*out` belongs to the caller, release with tt_csv_layout_free; NULL on failure
// errors   TT_INVALID `data` is not CSV; TT_NOMEM
TT_NODISCARD tt_status tt_csv_layout_of(const tt_dataset *data, tt_csv_layout **out);
void tt_csv_layout_free(tt_csv_layout *layout);

typedef struct tt_data_shape {
    tt_data_layout layout;
    uint32_t feature_count;    // csv: as the columns say, and checked
    uint32_t class_count;      // at least 2
    const double *class_label; // [class_count], ascending
    float scale;               // dense u8
    const tt_csv_layout *csv;  // NULL: not CSV
} tt_data_shape;

// A data set without rows, for tt_data_spec.like and for models that are not trained any more
// (tt_model_config.trained). Everything is copied. `where` is the place that an error names.
// errors   TT_INVALID what cannot be the shape of data; TT_NOMEM
// owns     `*out` belongs to the caller, release with tt_dataset_close; NULL on failure
TT_NODISCARD tt_status tt_dataset_shape_open(const tt_data_shape *shape,
                                             const char *where,
                                             tt_dataset **out,
                                             tt_error *err);

// The formats by name, for messages and help; NULL when `format_index` is past the last.
const char *tt_data_format_name(size_t format_index);

#endif
