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

tt_status
tti_records_open(tti_records *records, uint32_t node_count)
{
    *records = (tti_records){.capacity = capacity_for(node_count)};
    records->slots = tt_mem_zalloc(records->capacity, sizeof *records->slots);
    return records->slots != NULL ? TT_OK : TT_NOMEM;
}

uint32_t
tti_records_room(const tti_records *records)
{
    uint64_t read = tt_load_acquire(&records->read); // released in tti_records_take
    return records->capacity - (uint32_t)(records->written - read);
}

void
tti_records_put(tti_records *records, const tti_record *record)
{
    uint64_t read = tt_load_acquire(&records->read); // released in tti_records_take
    if (records->written - read >= records->capacity) {
        records->lost++;
        return;
    }
    records->slots[records->written % records->capacity] = *record;
    tt_store_release(&records->written, records->written + 1); // acquired in tti_records_take
}

uint32_t
tti_records_take(tti_records *records, tti_record *out, uint32_t capacity)
{
    uint64_t written = tt_load_acquire(&records->written); // released in tti_records_put
    uint32_t count = (uint32_t)TT_MIN(written - records->read, capacity);
    for (uint32_t i = 0; i < count; i++)
        out[i] = records->slots[(records->read + i) % records->capacity];
    tt_store_release(&records->read, records->read + count); // acquired in tti_records_put
    return count;
}

void
tti_records_close(tti_records *records)
{
    tt_mem_free(records->slots);
    records->slots = NULL;
}
