// Measurement records: a ring from one worker to the master. Never blocks; what finds no room is
// counted.
#include "runtime.h"

tt_status
tti_records_open(tti_records *records)
{
    *records = (tti_records){0};
    records->slots = tt_mem_zalloc(TTI_RECORDS, sizeof *records->slots);
    return records->slots != NULL ? TT_OK : TT_NOMEM;
}

void
tti_records_put(tti_records *records, const tti_record *record)
{
    uint64_t read = tt_load_acquire(&records->read); // released in tti_records_take
    if (records->written - read >= TTI_RECORDS) {
        records->lost++;
        return;
    }
    records->slots[records->written % TTI_RECORDS] = *record;
    tt_store_release(&records->written, records->written + 1); // acquired in tti_records_take
}

uint32_t
tti_records_take(tti_records *records, tti_record *out, uint32_t capacity)
{
    uint64_t written = tt_load_acquire(&records->written); // released in tti_records_put
    uint32_t count = (uint32_t)TT_MIN(written - records->read, capacity);
    for (uint32_t i = 0; i < count; i++)
        out[i] = records->slots[(records->read + i) % TTI_RECORDS];
    tt_store_release(&records->read, records->read + count); // acquired in tti_records_put
    return count;
}
