// Private to report: a run store in memory, and what is computed from it.
#ifndef TTI_REPORT_MODEL_H
#define TTI_REPORT_MODEL_H

#include "tt/core_lock.h"
#include "tt/core_mem.h"
#include "tt/core_store.h"
#include "tt/knobs.h"
#include "tt/report.h"

enum { TTI_CURVE_BINS = 120, TTI_KNOBS_MAX = 256, TTI_PHASES = 5 };

typedef struct tti_metric {
    const char *name;
    double value;
} tti_metric;

typedef struct tti_setting {
    int64_t id;
    double *values;                // [knob_count], NAN = not known
    int64_t windows, abandoned;    // windows under it, and how many of them were broken off
    int64_t measured, kept;        // how many of them have a time an iteration; iterations of these
    double trial_ratio;            // its time over the best known one's when it was tried; NAN
    double seconds;                // spent under it, transitions not counted
    double seconds_per_iteration;  // mean over its windows, weighted by kept iterations; NAN
    double log_se;                 // standard error of its logarithm; NAN
    double sum_time, sum_variance; // accumulators: kept x t; kept x cv^2
    int64_t kept_with_cv;
} tti_setting;

typedef struct tti_move_kind {
    const char *kind, *method; // "setting", "model", ...; "on demand", ...
    int64_t count, partitions, bytes;
    double lost_s, duration_s, longest_duration_s, longest_wait_s;
    double checkpoint_s, restart_s, model_s, data_s; // sums
} tti_move_kind;

typedef struct tti_event_row {
    double time_s;
    const char *level, *text;
} tti_event_row;

typedef struct tti_array {
    void *items;
    size_t count, capacity;
} tti_array;

typedef struct tti_report {
    tt_arena arena;
    const char *source; // as given by the caller
    int has_run;
    tt_store_run run;
    int64_t updated_at;
    tti_array metrics;                 // tti_metric
    tti_array knobs;                   // tt_store_knob
    tti_array settings;                // tti_setting, by id
    tti_array windows;                 // tt_store_window
    tti_array moves;                   // tt_store_reconfiguration
    tti_array move_kinds;              // tti_move_kind
    tti_array proposals;               // tt_store_proposal
    tti_array events;                  // tti_event_row
    tti_array progress;                // tt_store_progress
    tti_array validations;             // tt_store_validation
    tti_array etas;                    // tt_store_eta
    double curve_loss[TTI_CURVE_BINS]; // mean minibatch loss by time, NAN = none
    double curve_end_s;                // of the last bin; NAN = no samples
    int64_t sampled_iterations, not_finite;
    int has_validations, has_etas; // the store has the table
    // computed
    double phase_s[TTI_PHASES]; // by tt_store_phase; transition: time in it
    double elapsed_s;           // train_seconds, or the last time known; NAN
    int64_t iterations;         // -1 = not known
    int64_t current_setting;    // final_setting, or that of the last window; -1
    double lost_moving_s;       // NAN = not known
    double lost_exploring_s;
    double window_variance; // of the logarithm of a window's time about its setting's; 0: not known
} tti_report;

#define TTI_AT(array, type, index) (&((type *)(array).items)[index])

// Reads everything in one snapshot. Release with tti_report_fini, also after a failure.
TT_NODISCARD tt_status tti_report_load(tti_report *report, const char *run, tt_error *err);
void tti_report_fini(tti_report *report);
// The evaluation of the validation rows that counts: that of the model saved, while running the
// newest; NULL: none.
const tt_store_validation *tti_report_validation(const tti_report *report);
// The one with the lowest loss; NULL: none.
const tt_store_validation *tti_report_best_validation(const tti_report *report);
const tti_setting *tti_report_setting(const tti_report *report, int64_t id); // NULL
// The loss at the end, or the newest one measured while the run goes on; NaN: none yet.
double tti_report_last_loss(const tti_report *report);

// ---- verdict
// -------------------------------------------------------------------------------------

typedef enum tti_basis {
    TTI_BASIS_NONE,       // nothing to compare
    TTI_BASIS_MEASURED,   // the untuned job was run
    TTI_BASIS_START_RATE, // the start setting's own rate, for as many iterations
} tti_basis;

typedef enum tti_worth { TTI_WORTH_UNKNOWN, TTI_WORTH_YES, TTI_WORTH_NO, TTI_WORTH_EVEN } tti_worth;

typedef struct tti_verdict {
    tti_basis basis;
    tti_worth worth;
    int in_progress;
    double tuned_s, untuned_s;
    double untuned_low_s, untuned_high_s; // two standard errors; NAN when measured or not known
    double saved_s, speedup;
    const char *why_none; // a sentence, when basis is NONE
} tti_verdict;

void tti_report_judge(const tti_report *report, tti_verdict *out);

// ---- words
// ---------------------------------------------------------------------------------------

// All return `out`.
// "850 us", "11 ms", "31.4 s", "2:05 min", "1:02:05 h"; "?" for NAN.
char *tti_format_time(double seconds, char *out, size_t size);
// The place on the clock: "31.4 s", "2:05".
char *tti_format_clock(double seconds, char *out, size_t size);
// "71,300"
char *tti_format_count(double count, char *out, size_t size);
// ---- measurements and knobs (report_measure.c)

// Whether a window measured its setting: not between two settings, and long enough for a time.
int tti_is_measured(const tt_store_window *window);
// Sorts them, ascending, and returns the middle one (of an even number the upper); NAN of none.
double tti_report_median(double *values, size_t count);
// Variance of the logarithm of a window's time, of all settings together, by windows of one setting
// that followed each other: what cycles within windows say nothing of, and a setting's own windows
// little where they are few. By the median, for a machine that changed for good is no noise. 0:
// there are not enough.
TT_NODISCARD tt_status tti_report_window_variance(const tti_report *report, double *variance);
tt_knob_kind tti_report_knob_kind(const tt_store_knob *knob);
// A knob of the store as one of a search space; `out` points to `description`.
void tti_report_space_knob(const tt_store_knob *knob, tt_knob *description, tt_space_knob *out);

// ---- words

// Whether a word of the store (NULL: not known) is `other`.
int tti_is(const char *word, const char *other);
// Appends to the text in `out`, as far as there is room.
void tti_append(char *out, size_t size, const char *format, ...) TT_PRINTF(3, 4);
// A knob's value with its unit: "256 KiB", "on", "avx2", "3 threads". plain: as one writes it in a
// job file: "256KiB", "on", "3".
char *tti_format_value(const tt_store_knob *knob, double value, int plain, char *out, size_t size);
// "servers 2 -> 1, chunk_bytes 64 KiB -> 256 KiB": where `to` differs from `from`; without `from`
// the values of the knobs that are not fixed. "" when nothing differs.
char *tti_format_difference(const tti_report *report,
                            const tti_setting *from,
                            const tti_setting *to,
                            char *out,
                            size_t size);

// ---- printing
// ------------------------------------------------------------------------------------

typedef struct tti_printer {
    FILE *out;
    const tti_report *report;
    tti_verdict verdict;
    tt_report_options options;
} tti_printer;

typedef enum tti_style { TTI_PLAIN, TTI_BOLD, TTI_GREEN, TTI_YELLOW, TTI_RED, TTI_DIM } tti_style;

void tti_print_heading(const tti_printer *p, const char *text);
void tti_print_styled(const tti_printer *p, tti_style style, const char *text);
// Words folded at the width; following lines begin with `indent` spaces. `column`: where the first
// word starts.
void tti_print_folded(const tti_printer *p, int column, int indent, const char *text);
void tti_print_head(const tti_printer *p);  // what it was and how it ended
void tti_print_worth(const tti_printer *p); // whether tuning was worth it, and its price
void tti_print_verdict(const tti_printer *p);
void tti_print_settings(const tti_printer *p);
void tti_print_decisions(const tti_printer *p);
void tti_print_moves(const tti_printer *p);
void tti_print_curve(const tti_printer *p);
void tti_print_next(const tti_printer *p);

#endif
