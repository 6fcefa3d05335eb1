// A single-producer single-consumer ring of contiguous records in memory.
//
// Positions are absolute; offset = position mod capacity. A record that does not fit before the end
// (or before the producer's own, earlier wrap limit) is preceded by a wrap mark that skips to
// offset 0. The wrap limit keeps the ring's working set as small as the chunk size allows, so that
// it stays in cache.
#ifndef TTI_RING_H
#define TTI_RING_H

#include "tt/core.h"

enum { TTI_RING_FIRST = 1, TTI_RING_LAST = 2 }; // the record begins its message; ends it

// What both ends see.
typedef struct tti_ring_ends {
    _Alignas(64) uint64_t write; // producer's, published by release; acquired in tti_ring_peek
    uint32_t starved;           // producer waits for room; set by it (seq), cleared by the consumer
    _Alignas(64) uint64_t read; // consumer's, published by release; acquired in tti_ring_reserve
} tti_ring_ends;

// What one process holds of a ring; of two processes, each uses its own part.
typedef struct tti_ring {
    tti_ring_ends *ends;
    uint8_t *bytes;
    uint32_t capacity;
    // producer
    _Alignas(64) uint64_t write_private; // includes records not yet published
    uint64_t read_seen;                  // last look at `ends->read`
    uint32_t wrap_limit;                 // wraps no later than here
    // consumer
    _Alignas(64) uint64_t read;
    uint64_t write_seen; // last look at `ends->write`
} tti_ring;

// Goes on where the ends are, which may be somebody's who is gone: what he had not published never
// was, and of a message of several records the first or the last may be missing.
void tti_ring_open(tti_ring *ring, tti_ring_ends *ends, uint8_t *bytes, uint32_t capacity);
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
