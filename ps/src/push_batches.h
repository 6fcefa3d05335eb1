// Which batch of which worker a push is a part of (ASP, SSP).
#ifndef TTI_PUSH_BATCHES_H
#define TTI_PUSH_BATCHES_H

#include "tt/ps.h"

// What a push ends with when its frame has TT_FRAME_BATCH.
typedef struct tti_push_batch {
    tt_ps_batch batch;
    uint32_t worker; // who was given it first
    uint32_t unused;
} tti_push_batch;
_Static_assert(sizeof(tti_push_batch) == 24, "the wire format is fixed");

// a comes after b, of the same worker.
static inline int
tti_batch_is_after(const tt_ps_batch *a, const tt_ps_batch *b)
{
    return a->attempt != b->attempt ? a->attempt > b->attempt : a->end > b->end;
}

#endif
