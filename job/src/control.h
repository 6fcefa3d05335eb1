// What the master and a node that does not share its memory tell each other: orders and reports.
// Both say how things stand rather than what has changed, so that a lost one does no harm: the next
// says the same. What may not be lost (rows, records, ends of moves) is numbered from the beginning
// and said again until the other side has heard it.
#ifndef TTI_CONTROL_H
#define TTI_CONTROL_H

#include "board.h"

// Master -> node. Behind it: rows, then the newest generation if the node does not know it.
typedef struct tti_order {
    uint64_t number; // of the orders to this node; older ones than the last heard are ignored
    uint32_t stop, pause, stop_servers, discard;
    uint32_t round_limit, gate, hold_round, rest_call;
    uint64_t records_heard, ends_heard; // of those reported
    uint64_t report_heard;              // number of the last report
    uint32_t lease, dry;
    uint64_t row_first;
    tti_again again; // in this lease
    uint32_t row_count;
    uint32_t has_generation;
    uint64_t generation; // the order is of no use to who does not know this one
} tti_order;

// What a node's server has to say: of a partition, that a move or restore has ended here, or that
// its backup has a copy; of a worker that is dead, the last batch that is in (tt_ps_hooks).
typedef enum tti_end_kind { TTI_END_MOVE, TTI_END_BACKED, TTI_END_BATCH } tti_end_kind;
typedef struct tti_end {
    uint32_t kind;
    uint32_t partition, generation;
    uint32_t worker;
    tt_ps_batch batch;
} tti_end;

// Node -> master. Behind it: records, then losses of their rows, then ends.
typedef struct tti_report {
    uint64_t number, order; // of the last order heard
    uint64_t looked_ns;     // when its records were taken, on the master's clock
    uint64_t adopted_generation;
    uint32_t generation; // newest known
    uint32_t working, resting, finished, left, ended;
    uint32_t clock, round_begun, gate, round_lost;
    uint32_t news; // it is to be answered
    uint64_t wait_max_ns;
    tti_counts counts;
    uint32_t lease, lease_closed, unit;
    uint32_t record_count, end_count, loss_count;
    uint64_t received, wanted; // rows
    uint64_t record_first, end_first;
} tti_report;

// A generation as bytes: setting and view.
void tti_generation_write(const tti_generation *generation, tt_archive *out);
// errors TT_CORRUPT, TT_NOMEM
TT_NODISCARD tt_status tti_generation_read(tt_archive *in, tti_generation **out);
// Whether it is of this job: it deals out the job's nodes, partitions and slices, and gives each of
// its knobs a number.
int tti_generation_fits(const tt_job *job, const tti_generation *generation);

// As a frame's payload. rows[order->row_count], records, losses and ends likewise. generation: NULL
// unless order->has_generation. Faults are in the archive's status.
void tti_order_write(const tti_order *order,
                     const uint32_t *rows,
                     const tti_generation *generation,
                     tt_archive *out);
void tti_report_write(const tti_report *report,
                      const tti_record *records,
                      const float *losses,
                      const tti_end *ends,
                      tt_archive *out);

// The parts of a payload; the arrays may lie at any address and are to be copied.
typedef struct tti_order_parts {
    tti_order order;
    const void *rows;
    tti_generation *generation; // the caller's; NULL: none came
} tti_order_parts;
typedef struct tti_report_parts {
    tti_report report;
    const void *records, *losses, *ends;
} tti_report_parts;

// Whether what was read is of this job: its rows are rows of the data, its generation fits.
int tti_order_fits(const tt_job *job, const tti_order_parts *parts);
// errors TT_CORRUPT; TT_NOMEM
TT_NODISCARD tt_status tti_order_read(const void *bytes, size_t count, tti_order_parts *out);
TT_NODISCARD tt_status tti_report_read(const void *bytes, size_t count, tti_report_parts *out);

#endif
