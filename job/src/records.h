// Measurement records: a ring from one worker to whoever reads its measurements.
#ifndef TTI_RECORDS_H
#define TTI_RECORDS_H

#include "tt/core.h"

// What one iteration measured; fixed size, written by its worker, read by the master.
typedef struct tti_record {
    uint64_t sequence;   // apply order over the job; under BSP the round
    uint64_t generation; // adopted when it pulled
    uint64_t done_ns, cycle_ns;
    uint64_t pulled_ns; // when it began to pull
    uint32_t worker, examples;
    float loss;      // NAN: not measured, for another process did it
    float staleness; // iterations applied between its pull and its push
    uint32_t slice;  // BSP
} tti_record;

typedef struct tti_records {
    _Alignas(64) uint64_t written; // by the worker; release
    uint64_t lost;                 // found no room
    _Alignas(64) uint64_t read;    // by the reader; release
    tti_record *slots;             // [capacity]
    uint32_t capacity;
} tti_records;

// Room for one node's, of node_count. errors TT_NOMEM
TT_NODISCARD tt_status tti_records_open(tti_records *records, uint32_t node_count);
// Never blocks; what finds no room is counted. thread: the worker's
void tti_records_put(tti_records *records, const tti_record *record);
// Records there is room for. thread: the worker's
uint32_t tti_records_room(const tti_records *records);
// Returns how many. thread: the reader's
uint32_t tti_records_take(tti_records *records, tti_record *out, uint32_t capacity);
void tti_records_close(tti_records *records);

#endif
