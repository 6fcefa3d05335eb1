// Search spaces written down as files, for knobs that belong to no program of ours (trimtab tune):
//
//     knobs:
//       workers: {kind: int,  range: [1, 24]}                  # scale: log where ratios matter
//       rate:    {kind: real, range: [1e-4, 10], scale: log, start: 0.1}
//       half:    {kind: bool}
//       layout:  {kind: enum, values: [row, col, blocked]}
//     constraints: ["workers <= 16 or half", "layout != row or rate < 1"]
//
// A constraint compares sums of knobs and numbers (2 * workers + 1 < servers), enums with the names
// of their values, takes a bool as it stands, and joins these by not, and, or and parentheses. A
// setting must fulfil all of them.
//
// Caveats: at most TT_KNOBS_MAX knobs and TT_KNOB_VALUES_MAX values of an enum. Names of knobs are
// [A-Za-z_][A-Za-z0-9_]*, and none is not, and, or.
#ifndef TT_KNOBS_FILE_H
#define TT_KNOBS_FILE_H

#include "tt/core_config.h"
#include "tt/knobs.h"

typedef struct tt_space_file tt_space_file;

// Reads what cfg was loaded with. Faults are in the configuration's list, all of them at once.
//
// errors   TT_INVALID there are faults; TT_NOMEM
// owns     *out (NULL on failure) belongs to the caller and uses no part of cfg afterwards
TT_NODISCARD tt_status tt_space_file_read(tt_config *cfg, tt_space_file **out);
// The space, borrowed until close; its accept is the constraints.
const tt_space *tt_space_file_space(const tt_space_file *file);
// Whether any knob says where it starts; the others then start in the middle of their ranges.
int tt_space_file_has_start(const tt_space_file *file);
// Equal for files that mean the same knobs, values, starts and constraints, word by word; comments
// and the order of keys do not matter.
uint64_t tt_space_file_print(const tt_space_file *file);
void tt_space_file_close(tt_space_file *file);

#endif
