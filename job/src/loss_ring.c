#include "loss_ring.h"
#include <string.h>

tt_status
tti_loss_ring_open(tti_loss_ring *ring, uint32_t node_count)
{
    enum { MAX = 1 << 18, MIN = 1 << 12, TOTAL = 1 << 24 };
    *ring = (tti_loss_ring){.capacity = MAX};
    while (ring->capacity > MIN && (uint64_t)ring->capacity * node_count > TOTAL)
        ring->capacity /= 2;
    ring->slots = tt_mem_zalloc(ring->capacity, sizeof *ring->slots);
    return ring->slots != NULL ? TT_OK : TT_NOMEM;
}

void
tti_loss_ring_forget(tti_loss_ring *ring)
{
    tt_store_relaxed(&ring->written, (uint64_t)0);
    tt_store_relaxed(&ring->read, (uint64_t)0);
}

int
tti_loss_ring_put(tti_loss_ring *ring, const float *losses, uint32_t count)
{
    uint64_t read = tt_load_acquire(&ring->read); // released in tti_loss_ring_take
    if (ring->written - read + count > ring->capacity)
        return 0;
    for (uint32_t done = 0; done < count;) {
        uint64_t at = (ring->written + done) % ring->capacity;
        uint32_t part = (uint32_t)TT_MIN(ring->capacity - at, (uint64_t)(count - done));
        memcpy(ring->slots + at, losses + done, part * sizeof *losses);
        done += part;
    }
    tt_store_release(&ring->written, ring->written + count); // acquired in tti_loss_ring_take
    return 1;
}

void
tti_loss_ring_take(tti_loss_ring *ring, float *out, uint32_t count)
{
    uint64_t written = tt_load_acquire(&ring->written); // released in tti_loss_ring_put
    TT_ASSERT(written - ring->read >= count);
    for (uint32_t i = 0; i < count; i++)
        out[i] = ring->slots[(ring->read + i) % ring->capacity];
    tti_loss_ring_skip(ring, count);
}

void
tti_loss_ring_skip(tti_loss_ring *ring, uint32_t count)
{
    tt_store_release(&ring->read, ring->read + count); // acquired in tti_loss_ring_put
}

void
tti_loss_ring_close(tti_loss_ring *ring)
{
    tt_mem_free(ring->slots);
    *ring = (tti_loss_ring){0};
}
