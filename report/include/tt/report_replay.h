// A run's tuning done again, offline, by other versions and options of the tuner
// (tt/tuner_replay.h says what that can tell and what not).
#ifndef TT_REPORT_REPLAY_H
#define TT_REPORT_REPLAY_H

#include "tt/core_status.h"
#include "tt/tuner.h"

// A tuner to compare.
typedef struct tt_replay_variant {
    const char *name; // as the user wrote it
    int enabled;
    tt_tuner_model model;
    uint32_t initial_settings, window; // 0: its own choice
    double guard;                      // 0: its own
    unsigned without;                  // bits of tt_tuner_rule
} tt_replay_variant;

// Replays `run` (a run directory or its run.db) with each variant and `seeds` seeds, and prints a
// line of each beside what was recorded, what the start setting throughout would have taken, and
// the fastest measured one. json: one object instead (docs/report.md).
//
// errors   as tt_report_text; TT_INVALID the run measured fewer than two settings
TT_NODISCARD tt_status tt_report_replay(const char *run,
                                        const tt_replay_variant *variants,
                                        uint32_t variant_count,
                                        uint32_t seeds,
                                        int json,
                                        FILE *out,
                                        tt_error *err);

#endif
