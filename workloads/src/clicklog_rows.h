// The rows of a generated click log, one at a time, and the truth behind them. Pure functions of
// the spec.
#ifndef TTI_CLICKLOG_ROWS_H
#define TTI_CLICKLOG_ROWS_H

#include "tt/workloads_generate.h"

enum { TTI_FIELDS_MAX = 1024 };

// One field: categories base .. base + width - 1.
typedef struct tti_clicklog_field {
    uint32_t base, width;
    uint32_t stride; // coprime with width: scatters the ranks over the range
    double log_width;
} tti_clicklog_field;

typedef struct tti_clicklog {
    tt_clicklog_spec spec; // with its defaults filled in
    double weight_deviation;
    double intercept;
    tti_clicklog_field field[TTI_FIELDS_MAX];
} tti_clicklog;

typedef struct tti_clicklog_row {
    uint32_t index[TTI_FIELDS_MAX];      // 0-based, increasing, [field_count]
    uint32_t hundredths[TTI_FIELDS_MAX]; // the value times 100, [field_count]
    int label;
    double probability; // of label 1, noise included
} tti_clicklog_row;

// Checks the spec, fills in its defaults, lays out the fields and finds the intercept.
TT_NODISCARD tt_status tti_clicklog_init(tti_clicklog *clicks,
                                         const tt_clicklog_spec *spec,
                                         tt_error *err);
void tti_clicklog_make_row(const tti_clicklog *clicks, uint64_t row_number, tti_clicklog_row *row);

#endif
