// The ring: see ring.h.
#include "ring.h"
#include <string.h>

// What stands before each record.
typedef struct record {
    uint32_t size; // of the bytes that follow, or WRAP
    uint32_t flags;
    uint64_t pad;
} record;

#define WRAP UINT32_MAX

static uint32_t
footprint(uint32_t size)
{
    return (uint32_t)sizeof(record) + ((size + 15u) & ~15u);
}

void
tti_ring_open(tti_ring *ring, tti_ring_ends *ends, uint8_t *bytes, uint32_t capacity)
{
    TT_ASSERT(capacity % 64 == 0);
    *ring = (tti_ring){.ends = ends, .bytes = bytes, .capacity = capacity, .wrap_limit = capacity};
    ring->read = ring->read_seen = ring->write_seen = tt_load_acquire(&ends->read);
    ring->write_private = tt_load_acquire(&ends->write);
}

static int
has_room(tti_ring *ring, uint64_t end)
{
    if (end - ring->read_seen <= ring->capacity)
        return 1;
    ring->read_seen = tt_load_acquire(&ring->ends->read); // released in tti_ring_pop
    return end - ring->read_seen <= ring->capacity;
}

void *
tti_ring_reserve(tti_ring *ring, uint32_t size)
{
    uint32_t need = footprint(size);
    TT_ASSERT(need + sizeof(record) <= ring->capacity);
    uint32_t offset = (uint32_t)(ring->write_private % ring->capacity);
    uint32_t limit = TT_MAX(ring->wrap_limit, need);
    if (offset + need > limit && offset != 0) {
        // The rest of the ring is skipped; there is always room for the mark itself, for records
        // are 16-byte multiples.
        uint64_t skip = ring->capacity - offset;
        if (!has_room(ring, ring->write_private + skip + need))
            return NULL;
        ((record *)(void *)(ring->bytes + offset))->size = WRAP;
        ring->write_private += skip;
        offset = 0;
    }
    if (!has_room(ring, ring->write_private + need))
        return NULL;
    return ring->bytes + offset + sizeof(record);
}

void
tti_ring_commit(tti_ring *ring, uint32_t size, uint32_t flags)
{
    record *head = (record *)(void *)(ring->bytes + ring->write_private % ring->capacity);
    head->size = size;
    head->flags = flags;
    ring->write_private += footprint(size);
}

void
tti_ring_publish(tti_ring *ring)
{
    tt_store_release(&ring->ends->write, ring->write_private); // acquired in tti_ring_peek
}

const void *
tti_ring_peek(tti_ring *ring, uint32_t *size, uint32_t *flags)
{
    if (ring->read == ring->write_seen) {
        ring->write_seen = tt_load_acquire(&ring->ends->write); // released in tti_ring_publish
        if (ring->read == ring->write_seen)
            return NULL;
    }
    const record *head = (const record *)(const void *)(ring->bytes + ring->read % ring->capacity);
    if (head->size == WRAP) {
        ring->read += ring->capacity - ring->read % ring->capacity;
        tt_store_release(&ring->ends->read, ring->read);
        TT_ASSERT(ring->read !=
                  ring->write_seen); // a wrap mark is published together with the record behind it
        head = (const record *)(const void *)ring->bytes;
    }
    *size = head->size;
    *flags = head->flags;
    return head + 1;
}

void
tti_ring_pop(tti_ring *ring)
{
    const record *head = (const record *)(const void *)(ring->bytes + ring->read % ring->capacity);
    ring->read += footprint(head->size);
    tt_store_release(&ring->ends->read, ring->read); // acquired in has_room
}
