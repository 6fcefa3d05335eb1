// The losses of the rows of a worker's batches, behind its records (records.h), from the worker to
// the agent beside it, which sends them to the master. A record says how many of them are its own.
#ifndef TTI_LOSS_RING_H
#define TTI_LOSS_RING_H

#include "tt/core.h"

typedef struct tti_loss_ring {
    _Alignas(64) uint64_t written; // by the worker; release
    _Alignas(64) uint64_t read;    // by the agent; release
    uint32_t capacity;
    float *slots; // [capacity]
} tti_loss_ring;

// Room for the losses of one node's rows, of node_count. errors TT_NOMEM
TT_NODISCARD tt_status tti_loss_ring_open(tti_loss_ring *ring, uint32_t node_count);
void tti_loss_ring_forget(tti_loss_ring *ring);
// Never blocks; all of them or, where there is no room, none: then 0. thread: the worker's
int tti_loss_ring_put(tti_loss_ring *ring, const float *losses, uint32_t count);
// The next `count`, that were put. thread: the agent's
void tti_loss_ring_take(tti_loss_ring *ring, float *out, uint32_t count);
// Does without the next `count`. thread: the agent's
void tti_loss_ring_skip(tti_loss_ring *ring, uint32_t count);
void tti_loss_ring_close(tti_loss_ring *ring);

#endif
