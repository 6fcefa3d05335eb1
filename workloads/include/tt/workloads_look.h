// What a data file holds, told by the beginning of its content and not by its name: for `trimtab
// init`, which proposes a job for it.
//
// Caveats: a guess from the first few MiB (4,000 lines at most). What follows may differ; reading
// the whole with tt_dataset_open is the proof.
#ifndef TT_WORKLOADS_LOOK_H
#define TT_WORKLOADS_LOOK_H

#include "tt/workloads_data.h"

typedef enum tt_look_kind {
    TT_LOOK_LIBSVM,
    TT_LOOK_CSV,
    TT_LOOK_IDX_ITEMS,
    TT_LOOK_IDX_LABELS,
    TT_LOOK_UNREAD // something that is not read, see what and advice
} tt_look_kind;

enum { TT_LOOK_DISTINCT_MAX = 512, TT_LOOK_SAMPLES = 3, TT_LOOK_NAME_BYTES = 64 };

// One column of CSV text, over the lines that were looked at.
typedef struct tt_look_column {
    char name[TT_LOOK_NAME_BYTES]; // by the header, "" without one; cut when longer
    uint32_t values, missing;      // values + missing = lines
    uint32_t numbers, wholes;      // of values: numbers; whole numbers
    uint32_t distinct;             // values, counted up to TT_LOOK_DISTINCT_MAX
    int increasing;                // numbers that grow from each line to the next
    double min, max;               // of numbers
    char sample[TT_LOOK_SAMPLES][24];
    uint32_t sample_count; // the first distinct values
} tt_look_column;

typedef struct tt_look {
    tt_look_kind kind;
    const char *format;      // as data.format says it: "libsvm", "csv", "idx"; NULL: unread
    const char *compression; // "plain", "gzip", "xz", "zstd"
    const char *what;        // "LIBSVM text", "a Parquet file", ...
    const char *advice;      // unread: what to do
    uint32_t lines;          // looked at, header and blank lines left out
    // CSV
    char delimiter;
    int header;
    uint32_t column_count;
    tt_look_column *column;
} tt_look;

// errors   as tt_dataset_open for files that cannot be read; TT_INVALID an empty file. What is
//          readable but no known format is no error: TT_LOOK_UNREAD
// owns     *out: release with tt_look_close; NULL on failure
TT_NODISCARD tt_status tt_data_look(const char *path, tt_look **out, tt_error *err);
void tt_look_close(tt_look *look);

typedef enum tt_look_label {
    TT_LOOK_LABEL_CLASSES,    // numbers that tell classes
    TT_LOOK_LABEL_TEXT,       // text: not read as a label
    TT_LOOK_LABEL_REGRESSION, // a real-valued target: no model here
    TT_LOOK_LABEL_NONE        // no column looks like one
} tt_look_label;

// Which column of CSV text is the label: the one wanted (by name or number from 1), else one with a
// usual name, else the first column if it tells classes, else the last. Sets *column from 0 unless
// NONE.
// errors   TT_INVALID there is no column `wanted`
TT_NODISCARD tt_status tt_look_choose_label(
    const tt_look *look, const char *wanted, uint32_t *column, tt_look_label *out, tt_error *err);

typedef enum tt_look_use { TT_LOOK_NUMERIC, TT_LOOK_CATEGORICAL, TT_LOOK_IGNORE } tt_look_use;
// What a column that is not the label is good for: numbers are numeric, text is categorical; text
// that is never the same twice, numbers that only count the rows, and columns without two different
// values tell nothing.
tt_look_use tt_look_column_use(const tt_look *look, uint32_t column);

#endif
