// A single-producer single-consumer ring of contiguous records in memory.
//
// Positions are absolute; offset = position mod capacity. A record that does not fit before the end
// (or before the producer's own, earlier wrap limit) is preceded by a wrap mark that skips to
// offset 0. The wrap limit keeps the ring's working set as small as the chunk size allows, so that
// it stays in cache.
#ifndef TTI_RING_H
#define TTI_RING_H

#include "tt/core.h"

enum { TTI_RING_LAST = 1 }; // the record ends its message

typedef struct tti_ring {
    _Alignas(64) uint64_t write; // producer's, published by release; acquired in tti_ring_peek
    uint64_t write_private;      // producer: includes records not yet published
    uint64_t read_seen;          // producer's last look at `read`
    uint32_t wrap_limit;         // producer: wraps no later than here
    uint32_t starved;           // producer waits for room; set by it (seq), cleared by the consumer
    _Alignas(64) uint64_t read; // consumer's, published by release; acquired in tti_ring_reserve
    uint64_t write_seen;        // consumer's last look at `write`
    uint8_t *bytes;             // set before threads start
    uint32_t capacity;
} tti_ring;

TT_NODISCARD tt_status tti_ring_init(tti_ring *ring, uint32_t capacity);
void tti_ring_fini(tti_ring *ring);
// Room for one record of `size` bytes, 16-byte aligned, or NULL when the ring is full.
void *tti_ring_reserve(tti_ring *ring, uint32_t size);
// Completes the reserved record.
void tti_ring_commit(tti_ring *ring, uint32_t size, uint32_t flags);
// Makes all completed records visible.
void tti_ring_publish(tti_ring *ring);
// The oldest record, or NULL. Valid until tti_ring_pop.
const void *tti_ring_peek(tti_ring *ring, uint32_t *size, uint32_t *flags);
void tti_ring_pop(tti_ring *ring);

#endif
