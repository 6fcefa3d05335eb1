// Built-in knobs about what an iteration sees of the others.
#include "builtin_number.h"

TTI_BUILTIN(push_aggregation,
            tti_builtin_prepare,
            .help = "iterations a worker merges before it pushes",
            .unit = "iterations",
            .kind = TT_KNOB_INT,
            .scale = TT_KNOB_LOG2,
            .changes_statistics = TT_KNOB_STATISTICS,
            .min = 1,
            .max = 8,
            .default_value = 1)

// On a log scale: from 0 to 1 is a different algorithm, from 60 to 61 is nothing.
TTI_BUILTIN(staleness,
            tti_builtin_prepare,
            .help = "iterations the fastest worker may be ahead of the slowest (SSP)",
            .unit = "iterations",
            .kind = TT_KNOB_INT,
            .scale = TT_KNOB_LOG2,
            .changes_statistics = TT_KNOB_STATISTICS,
            .min = 0,
            .max = 64,
            .default_value = 4)
