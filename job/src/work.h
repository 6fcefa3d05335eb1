// What there is to train and what was trained: rows handed out to workers (ASP, SSP), rows that
// came back untrained, iterations and examples that count.
//
// Threads: any worker, and the master, unless a function says otherwise.
#ifndef TTI_WORK_H
#define TTI_WORK_H

#include "row_losses.h"
#include "tt/core.h"
#include "tt/ps.h"
#include "tt/workloads.h"
#include <pthread.h>

// Rounds of one slice: `next` - 1 - i was counted if bit i of `counted` is set. Acknowledgements
// may come late, so that the round after is counted before.
typedef struct tti_slice_count {
    uint32_t next;
    uint64_t counted;
} tti_slice_count;

int tti_slice_has(const tti_slice_count *count, uint32_t round);
void tti_slice_mark(tti_slice_count *count, uint32_t round);

typedef struct tti_work {
    tt_ledger *ledger;
    uint64_t example_limit;    // ASP, SSP: workers end when so many were taken; relaxed
    uint64_t applied;          // iterations, BSP: slices, applied so far; relaxed add
    uint64_t examples_trained; // relaxed add
    // BSP: which rounds of a slice are among `applied`, where anything may be done again [master]
    tti_slice_count slice_counts[TT_PS_SLICES_MAX];
    tti_row_losses row_losses;
    // rows that were taken by nodes which then became servers, or died, to be trained by others
    pthread_mutex_t lock;
    uint32_t *orphans; // guarded by lock
    size_t orphan_count, orphan_capacity;
    uint32_t orphans_there; // relaxed hint
} tti_work;

// reserved_rows: how many rows nodes can hold at a time. errors TT_NOMEM, TT_INVALID
TT_NODISCARD tt_status tti_work_open(const tt_shards *shards,
                                     uint32_t node_count,
                                     size_t reserved_rows,
                                     tti_work *out,
                                     tt_error *err);
void tti_work_close(tti_work *work);
// rows[0..count) for `node`, those that came back first; returns how many: fewer at the limit.
uint32_t tti_work_take(tti_work *work, uint32_t node, uint32_t count, uint32_t *rows);
// Rows that were taken and will not be trained by who took them.
void tti_work_return(tti_work *work, const uint32_t *rows, size_t count);
// An iteration of so many merged ones was applied; returns how many were before.
uint64_t tti_work_count(tti_work *work, uint32_t merged, uint32_t examples);
// BSP: counts a slice of a round of so many examples, unless it was counted before: by a worker
// that died since, or by the same before it went back. Returns how many were before. [master]
uint64_t tti_work_count_slice(tti_work *work, uint32_t slice, uint32_t round, uint32_t examples);
// The same of all rounds before this one, which are over. [master]
void tti_work_count_slice_before(tti_work *work, uint32_t slice, uint32_t round, uint32_t examples);
// All slices stand before this round.
void tti_work_begin_at_round(tti_work *work, uint32_t round);

#endif
