// Measurement records: a ring from one worker to whoever reads its measurements.
#ifndef TTI_RECORDS_H
#define TTI_RECORDS_H

#include "tt/core.h"

// What one iteration measured; fixed size, written by its worker, read by the master.
typedef struct tti_record {
    uint64_t sequence;   // apply order over the job; under BSP the round
    uint64_t generation; // adopted when it pulled
    uint64_t done_ns, cycle_ns;
    uint32_t worker, examples;
    float loss;      // NAN: not measured, for another process did it
    float staleness; // iterations applied between its pull and its push; NAN: not known
    uint32_t slice;  // BSP
    float curvature; // of the loss around the parameters it pulled; 0: not measured
    float level;     // loss over all rows (row_losses.h); NAN: not known
    uint32_t losses; // how many losses of rows belong to it (loss_ring.h): `examples`, or 0
} tti_record;

typedef struct tti_record_ring {
    _Alignas(64) uint64_t written; // by the worker; release
    uint64_t lost;                 // found no room
    _Alignas(64) uint64_t read;    // by the reader; release
    uint32_t capacity;
    tti_record slots[]; // [capacity]
} tti_record_ring;

typedef struct tti_records {
    tti_record_ring *ring;
    int is_borrowed; // the memory is somebody else's
} tti_records;

// Room for one node's, of node_count. errors TT_NOMEM
TT_NODISCARD tt_status tti_records_open(tti_records *records, uint32_t node_count);
// The same in memory of tti_records_bytes(node_count) bytes, zeroed and aligned to 64, which others
// may see.
void tti_records_place(tti_records *records, void *memory, uint32_t node_count);
size_t tti_records_bytes(uint32_t node_count);
// As if it were new.
void tti_records_forget(tti_records *records);
// Never blocks; what finds no room is counted. thread: the worker's
void tti_records_put(tti_records *records, const tti_record *record);
// Records there is room for. thread: the worker's
uint32_t tti_records_room(const tti_records *records);
// Returns how many. thread: the reader's
uint32_t tti_records_take(tti_records *records, tti_record *out, uint32_t capacity);
void tti_records_close(tti_records *records);
// Of a ring that a process has left which writes no more: record number `n`, counted from its
// beginning, if it was put there and nothing since in its place. False: it was not, or cannot be
// had. thread: anybody's
int tti_records_left(const tti_record_ring *ring, uint32_t node_count, uint64_t n, tti_record *out);

#endif
