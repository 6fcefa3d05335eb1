// Shared by the files of trimtab tune.
#ifndef TTI_TUNE_H
#define TTI_TUNE_H

#include "tt/knobs_file.h"
#include "tt/tuner_minimizer.h"
#include <jansson.h>

// ---- settings as JSON (tune_json.c) ----------------------------------------------------------

// {knob: value}: ints and reals as numbers, bools as true and false, enums by name.
json_t *tti_tune_setting_json(const tt_space *space, const tt_setting *setting);
// Back. errors TT_INVALID, saying which knob and what was expected: one is missing or unknown, or
// its value is not of its kind, in its range, on its grid
TT_NODISCARD tt_status tti_tune_setting_read(const tt_space *space,
                                             const json_t *object,
                                             tt_setting *out,
                                             tt_error *err);
// A finite double as JSON, null otherwise.
json_t *tti_tune_number(double value);

// ---- the log (tune_log.c) --------------------------------------------------------------------

typedef struct tti_tune_log tti_tune_log;

// Opens or makes the log at `path` and does to `minimizer` what it says was done. A last line that
// was cut off while it was written is taken away. *events: lines taken over.
//
// errors   TT_BUSY another process has it; TT_INVALID it belongs to another space, seed or number
//          of initial settings; TT_CORRUPT a line in its middle is damaged; TT_IO, TT_NOMEM
// owns     *out until tti_tune_log_close
TT_NODISCARD tt_status tti_tune_log_open(const char *path,
                                         const tt_space_file *space,
                                         const tt_minimizer_options *options,
                                         tt_minimizer *minimizer,
                                         tti_tune_log **out,
                                         uint32_t *events,
                                         tt_error *err);
// Writes an event and waits until it is on the disk. NULL log: nothing. errors TT_IO, TT_NOMEM
TT_NODISCARD tt_status tti_tune_log_asked(tti_tune_log *log,
                                          const tt_minimizer_proposal *proposal,
                                          tt_error *err);
TT_NODISCARD tt_status tti_tune_log_told(tti_tune_log *log,
                                         uint64_t id,
                                         const tt_setting *setting,
                                         const tt_minimizer_result *result,
                                         tt_error *err);
void tti_tune_log_close(tti_tune_log *log);

#endif
