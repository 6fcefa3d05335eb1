// Measurement records: a ring from one worker to the master.
#include "records.h"

// Records there is room for: of a node, and about so many of all together (12 MB).
enum { RECORDS_MAX = 8192, RECORDS_MIN = 1024, RECORDS_TOTAL = 1 << 18 };

// Many nodes iterate more slowly each, for they share processors or wait for servers.
static uint32_t
capacity_for(uint32_t node_count)
{
    uint32_t capacity = RECORDS_MAX;
    while (capacity > RECORDS_MIN && (uint64_t)capacity * node_count > RECORDS_TOTAL)
        capacity /= 2;
    return capacity;
}

size_t
tti_records_bytes(uint32_t node_count)
{
    return sizeof(tti_record_ring) + capacity_for(node_count) * sizeof(tti_record);
}

void
tti_records_place(tti_records *records, void *memory, uint32_t node_count)
{
    *records = (tti_records){.ring = memory, .is_borrowed = 1};
    records->ring->capacity = capacity_for(node_count);
}

tt_status
tti_records_open(tti_records *records, uint32_t node_count)
{
    void *memory = tt_mem_zalloc_vector(1, tti_records_bytes(node_count));
    *records = (tti_records){0};
    if (memory == NULL)
        return TT_NOMEM;
    tti_records_place(records, memory, node_count);
    records->is_borrowed = 0;
    return TT_OK;
}

void
tti_records_forget(tti_records *records)
{
    tti_record_ring *ring = records->ring;
    tt_store_relaxed(&ring->written, (uint64_t)0);
    tt_store_relaxed(&ring->read, (uint64_t)0);
    ring->lost = 0;
}

uint32_t
tti_records_room(const tti_records *records)
{
    const tti_record_ring *ring = records->ring;
    uint64_t read = tt_load_acquire(&ring->read); // released in tti_records_take
    return ring->capacity - (uint32_t)(ring->written - read);
}

void
tti_records_put(tti_records *records, const tti_record *record)
{
    tti_record_ring *ring = records->ring;
    uint64_t read = tt_load_acquire(&ring->read); // released in tti_records_take
    if (ring->written - read >= ring->capacity) {
        ring->lost++;
        return;
    }
    ring->slots[ring->written % ring->capacity] = *record;
    tt_store_release(&ring->written, ring->written + 1); // acquired in tti_records_take
}

uint32_t
tti_records_take(tti_records *records, tti_record *out, uint32_t capacity)
{
    tti_record_ring *ring = records->ring;
    uint64_t written = tt_load_acquire(&ring->written); // released in tti_records_put
    uint32_t count = (uint32_t)TT_MIN(written - ring->read, capacity);
    for (uint32_t i = 0; i < count; i++)
        out[i] = ring->slots[(ring->read + i) % ring->capacity];
    tt_store_release(&ring->read, ring->read + count); // acquired in tti_records_put
    return count;
}

void
tti_records_close(tti_records *records)
{
    if (!records->is_borrowed)
        tt_mem_free(records->ring);
    *records = (tti_records){0};
}

int
tti_records_left(const tti_record_ring *ring, uint32_t node_count, uint64_t n, tti_record *out)
{
    uint64_t written = tt_load_acquire(&ring->written); // released in tti_records_put
    if (ring->capacity != capacity_for(node_count) || n >= written || written - n > ring->capacity)
        return 0;
    *out = ring->slots[n % ring->capacity];
    return 1;
}
