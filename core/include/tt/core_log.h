// A levelled log for people, on standard error. Programs read the run store, not the log.
#ifndef TT_CORE_LOG_H
#define TT_CORE_LOG_H

#include "tt/core_status.h"

typedef enum tt_log_level { TT_LOG_ERROR, TT_LOG_WARN, TT_LOG_INFO, TT_LOG_DEBUG } tt_log_level;

// Process-wide; set before threads start. Default TT_LOG_INFO.
void tt_log_set_level(tt_log_level level);
tt_log_level tt_log_get_level(void);
// Where lines go instead of standard error; `self` is handed back. NULL restores the default. Set
// before threads start.
void tt_log_set_sink(void (*sink)(void *self, tt_log_level level, const char *line), void *self);
// One call, one line (no newline in the text). thread [any], takes a lock: not for the push and
// pull path.
void tt_log(tt_log_level level, const char *format, ...) TT_PRINTF(2, 3);

#endif
