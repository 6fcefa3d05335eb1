// report: what a run did, from its run store alone. Text for a terminal, JSON for programs
// (docs/report.md). A run may be finished, failed, still going, or empty.
//
// Caveats: `run` is a run directory or its run.db. Nothing of the world is read besides it, except
// the time of day to say how old the last word of a running run is (see tt_report_options.now_at).
// thread [any], one store connection per call
#ifndef TT_REPORT_H
#define TT_REPORT_H

#include "tt/core_status.h"
#include <stdint.h>

typedef struct tt_report_options {
    int color;      // 1: ANSI colours
    int utf8;       // 1: block characters in the loss curve; 0: ASCII
    int width;      // columns; 0 = 100; at least 60 are used
    int all;        // 1: every setting, decision and event, not only the last ones
    int64_t now_at; // seconds since 1970 for "last heard of"; 0 = the clock
} tt_report_options;

// Colour and width as the stream and the environment ask for: colour only on a terminal and without
// NO_COLOR; UTF-8 by LC_ALL, LC_CTYPE, LANG; width of the terminal.
void tt_report_options_detect(FILE *out, tt_report_options *options);

// errors   TT_NOTFOUND no such run; TT_INVALID not a run; TT_UNSUPPORTED a newer schema; TT_CORRUPT
//          damaged; TT_IO also when `out` cannot be written; TT_NOMEM. Nothing is printed before
//          the store was read as a whole.
TT_NODISCARD tt_status tt_report_text(const char *run,
                                      FILE *out,
                                      const tt_report_options *options,
                                      tt_error *err);
// The story of the tuning, in sentences: whether it was worth it, whether to trust the setting, how
// the tuner came to it and why it stopped, which knobs mattered, what was never tried. errors as
// tt_report_text
TT_NODISCARD tt_status tt_report_explain(const char *run,
                                         FILE *out,
                                         const tt_report_options *options,
                                         tt_error *err);
// The same as one JSON object (docs/report.md). errors as tt_report_json
TT_NODISCARD tt_status tt_report_explain_json(const char *run, FILE *out, tt_error *err);
// One JSON object and a newline; keys in docs/report.md.
TT_NODISCARD tt_status tt_report_json(const char *run, FILE *out, tt_error *err);

// Several runs, a line each in the order given: started, status, time, loss, what tuning was worth;
// or one JSON list. A run that cannot be read says so in its line. errors   TT_IO when `out` cannot
// be written
TT_NODISCARD tt_status
tt_report_list(const char *const *runs, size_t count, int json, FILE *out, tt_error *err);
// Two runs side by side, and which was faster to the loss that both reached. errors as
// tt_report_text
TT_NODISCARD tt_status tt_report_compare(const char *const runs[2], FILE *out, tt_error *err);

#endif
