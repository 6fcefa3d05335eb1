// The built-in knobs in the order in which people see them, presented as a plugin's.
#include "builtin_number.h"
#include "knobs_internal.h"

static const tt_knob *const list[] = {
    &tti_knob_servers,       &tti_knob_compute_threads,  &tti_knob_kernel,    &tti_knob_pinning,
    &tti_knob_bf16_transfer, &tti_knob_chunk_bytes,      &tti_knob_spin,      &tti_knob_in_flight,
    &tti_knob_prefetch,      &tti_knob_push_aggregation, &tti_knob_staleness, &tti_knob_compression,
};

const tt_knob_plugin *
tti_knob_builtins(void)
{
    static const tt_knob_plugin plugin = {.struct_size = sizeof plugin,
                                          .abi_major = TT_KNOB_ABI_MAJOR,
                                          .abi_minor = TT_KNOB_ABI_MINOR,
                                          .knob_size = sizeof(tt_knob),
                                          .host_size = sizeof(tt_knob_host),
                                          .runtime_size = sizeof(tt_knob_runtime),
                                          .knob_count = TT_COUNT_OF(list),
                                          .knobs = list};
    return &plugin;
}
