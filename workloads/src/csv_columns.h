// CSV text: its fields, and what each of its columns is.
#ifndef TTI_CSV_COLUMNS_H
#define TTI_CSV_COLUMNS_H

#include "text_block.h"

typedef enum tti_csv_kind {
    TTI_CSV_IGNORED,
    TTI_CSV_LABEL,
    TTI_CSV_NUMERIC,
    TTI_CSV_CATEGORICAL
} tti_csv_kind;

typedef struct tti_csv_column {
    char *name; // by the header, or NULL
    tti_csv_kind kind;
    uint32_t feature; // numeric
    uint32_t seed;    // categorical: the column's number from 1 in the training data
} tti_csv_column;

struct tt_csv_columns {
    uint32_t count;
    tti_csv_column *column;
    char delimiter;
    int header, log_numeric;
    uint32_t numeric_count, hash_bits;
    uint32_t width; // features
    // test data by name: columns that the training data have not, and the first names of them
    uint32_t unknown_count;
    char unknown_names[120];
};

typedef struct tti_csv_field {
    char *begin;
    size_t size;
    int quoted;
} tti_csv_field;

// The field at p; quoted ones are unquoted where they stand. Returns the delimiter or newline
// behind it; NULL: a quote is wrong, at field->begin: not closed, or (quoted) with text behind it.
char *tti_csv_take(char *p, char delimiter, tti_csv_field *field);
// Tab, comma, semicolon or bar: what the line, which ends in '\n', has most of.
char tti_csv_guess_delimiter(const char *line);
int tti_csv_missing(const tti_csv_field *field);
// Whether the whole field is one finite decimal number.
int tti_csv_number(const tti_csv_field *field, double *value);

// What the columns are, from the specification and the first lines of the data, or for test data
// from the training data's columns. Close it on failure too.
TT_NODISCARD tt_status tti_csv_columns_plan(const tt_data_spec *spec,
                                            const tti_text_block *block,
                                            struct tt_csv_columns *out,
                                            tt_error *err);
// Whether the file at `path`, which begins with `block`, has the columns planned from the first
// file: by name and order where they have headers, else by number.
// errors   TT_INVALID they differ; TT_SYNTAX, TT_NOMEM
TT_NODISCARD tt_status tti_csv_columns_check(const tt_data_spec *spec,
                                             const char *path,
                                             const tti_text_block *block,
                                             const struct tt_csv_columns *planned,
                                             tt_error *err);
// What tt_csv_layout_of told, back again. Close it on failure too.
TT_NODISCARD tt_status tti_csv_columns_restore(const tt_csv_layout *layout,
                                               const char *where,
                                               struct tt_csv_columns *out,
                                               tt_error *err);
// Parses a block; its `format` is a struct tt_csv_columns.
void tti_csv_parse(tti_text_block *block);

#endif
