// What the files of this folder share.
#ifndef TTI_KNOBS_INTERNAL_H
#define TTI_KNOBS_INTERNAL_H

#include "tt/knobs.h"

// Checks a description against the rules of tt/knob.h and fills in what the author may leave out:
// unit "" for NULL, the range of bool and enum. `where` is the plugin's path for messages.
// errors TT_INVALID
TT_NODISCARD tt_status tti_knob_check(tt_knob *knob, const char *where, tt_error *err);

// The built-in knobs, as a plugin would present them.
const tt_knob_plugin *tti_knob_builtins(void);

// TT_OK when `value` is in the knob's range and on its grid; TT_RANGE with a message otherwise.
TT_NODISCARD tt_status tti_space_check(const tt_space_knob *knob,
                                       double value,
                                       const char *where,
                                       tt_error *err);

#endif
