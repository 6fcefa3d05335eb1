// The memory of a mesh of rings, which all its ends see: of one process, or of several processes of
// one host, which pass each other its file descriptor.
//
// In it stand a head, a bell for each end, and for each pair of ends a ring: two counters and the
// bytes; where it is shared, each end's part of the pool (pool.h), too. Untouched pages cost
// nothing.
#ifndef TTI_MEMORY_H
#define TTI_MEMORY_H

#include "ring.h"

typedef struct tti_memory {
    uint8_t *base;
    size_t size;
    uint32_t node_count;
    int is_shared;
} tti_memory;

// Of this process alone. errors TT_NOMEM
TT_NODISCARD tt_status tti_memory_open(uint32_t node_count, tti_memory *out);
// To be shared: a file descriptor, which is the caller's. errors TT_NOMEM, TT_IO
TT_NODISCARD tt_status tti_memory_create(uint32_t node_count, int *fd, tt_error *err);
// Maps it; the descriptor may be closed then. errors TT_CORRUPT not the memory of a mesh; TT_NOMEM
TT_NODISCARD tt_status tti_memory_map(int fd, tti_memory *out, tt_error *err);
void tti_memory_close(tti_memory *memory);
tt_event *tti_memory_bell(const tti_memory *memory, uint32_t node);
// The parts of the pool; NULL when the memory is not shared.
uint8_t *tti_memory_pool(const tti_memory *memory);
// Points `ring` to the one that leads from `from` to `to`, where both its ends stand now.
void tti_memory_ring(const tti_memory *memory, uint32_t from, uint32_t to, tti_ring *ring);

#endif
