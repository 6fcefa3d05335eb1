// Built-in knobs about how parameters and gradients travel.
#include "builtin_number.h"

TTI_BUILTIN(
    bf16_transfer,
    tti_builtin_prepare,
    .help = "parameters and gradients travel as bfloat16: half the bytes, 8 bits of mantissa",
    .unit = "",
    .kind = TT_KNOB_BOOL,
    .changes_statistics = TT_KNOB_LOSSY,
    .max = 1,
    .default_value = 0)

TTI_BUILTIN(chunk_bytes,
            tti_builtin_prepare,
            .help = "size of the pieces in which messages travel",
            .unit = "bytes",
            .kind = TT_KNOB_INT,
            .scale = TT_KNOB_LOG2,
            .grid = TT_KNOB_POWERS_OF_TWO,
            .min = 4096,
            .max = 1048576,
            .default_value = 65536)

TTI_BUILTIN(spin,
            tti_builtin_prepare,
            .help = "pauses a node waits awake for a message before it sleeps",
            .unit = "pauses",
            .kind = TT_KNOB_INT,
            .scale = TT_KNOB_LOG2,
            .min = 0,
            .max = 4096,
            .default_value = 100)

TTI_BUILTIN(in_flight,
            tti_builtin_prepare,
            .help = "requests a worker keeps under way to the servers at once",
            .unit = "requests",
            .kind = TT_KNOB_INT,
            .scale = TT_KNOB_LOG2,
            .min = 1,
            .max = 16,
            .default_value = 4)

TTI_BUILTIN(prefetch,
            tti_builtin_prepare,
            .help = "batches of training data made ready ahead of their use",
            .unit = "batches",
            .kind = TT_KNOB_INT,
            .min = 0,
            .max = 8,
            .default_value = 1)

static const char *const compression_names[] = {"none", "lz4", NULL};

TTI_BUILTIN(compression,
            tti_builtin_prepare,
            .help = "packing of what goes from host to host",
            .unit = "",
            .kind = TT_KNOB_ENUM,
            .max = 1,
            .values = compression_names,
            .default_value = 0)
