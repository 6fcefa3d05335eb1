// Built-in knobs about who computes where.
#include "builtin_number.h"

TTI_BUILTIN(servers,
            tti_builtin_prepare,
            .help = "how many nodes hold parameters; the others compute gradients",
            .unit = "",
            .kind = TT_KNOB_INT,
            .effect = TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL,
            .changes_statistics = TT_KNOB_STATISTICS,
            .min = 1,
            .max = 1023,
            .default_value = 1)

TTI_BUILTIN(compute_threads,
            tti_builtin_prepare,
            .help = "threads of one worker that share a batch",
            .unit = "threads",
            .kind = TT_KNOB_INT,
            .scale = TT_KNOB_LOG2,
            .min = 1,
            .max = 4,
            .default_value = 1)

TTI_BUILTIN(pinning,
            tti_builtin_prepare,
            .help = "each node stays on one processor",
            .unit = "",
            .kind = TT_KNOB_BOOL,
            .max = 1,
            .default_value = 0)
