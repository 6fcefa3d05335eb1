// What the built-in knobs have in common: each sets the number of its own name in the host's
// extension "tt.runtime/1" when it is committed, and nothing else. Written against tt/knob.h alone;
// only memory comes from core, so that tests can refuse it.
#ifndef TTI_BUILTIN_NUMBER_H
#define TTI_BUILTIN_NUMBER_H

#include "tt/knob.h"

// An instance for `knob`; NULL when memory is short.
void *tti_builtin_open(const tt_knob *knob, const tt_knob_host *host);
int tti_builtin_prepare(void *self, double value, char *reason, size_t reason_size);
void tti_builtin_commit(void *self);
void tti_builtin_rollback(void *self);
void tti_builtin_close(void *self);

// Defines the knob tti_knob_NAME; further fields of the description follow as initialisers.
#define TTI_BUILTIN(name, prepare_, ...)                                                           \
    static void *open_##name(const tt_knob_host *host)                                             \
    {                                                                                              \
        return tti_builtin_open(&tti_knob_##name, host);                                           \
    }                                                                                              \
    const tt_knob tti_knob_##name = {.struct_size = sizeof(tt_knob),                               \
                                     .id = #name,                                                  \
                                     .open = open_##name,                                          \
                                     .prepare = prepare_,                                          \
                                     .commit = tti_builtin_commit,                                 \
                                     .rollback = tti_builtin_rollback,                             \
                                     .close = tti_builtin_close,                                   \
                                     __VA_ARGS__};

extern const tt_knob tti_knob_servers, tti_knob_compute_threads, tti_knob_kernel, tti_knob_pinning,
    tti_knob_bf16_transfer, tti_knob_chunk_bytes, tti_knob_spin, tti_knob_in_flight,
    tti_knob_prefetch, tti_knob_push_aggregation, tti_knob_staleness, tti_knob_compression;

#endif
