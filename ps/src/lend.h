// Values that are not sent: the message says where they lie in memory that both ends see
// (tt/comm_pool.h).
#ifndef TTI_LEND_H
#define TTI_LEND_H

#include "partition.h"

// At 1 KiB no difference could be measured; much shorter than its place, a partition is sent.
enum { TTI_LEND_MIN_BYTES = 256 };

// The payload of a frame with TT_FRAME_LENT. The place is in the sender's part of the pool.
typedef struct tti_place {
    uint64_t offset, size;
    uint64_t mark;  // PUSH: the ticket. PULL_REPLY: what the guard said
    uint32_t index; // of ticket or guard
    uint32_t zero;
} tti_place;
_Static_assert(sizeof(tti_place) == 32, "the wire format is fixed");

// Behind a SEAL with TT_FRAME_LENT: where the arrays of its rows lie in the sender's part of the
// pool, as in tti_partition_array; of those it has not, 0.
typedef struct tti_lent_rows {
    uint64_t offset[TTI_ROW_ARRAYS];
    uint64_t mark;  // what the guard said
    uint32_t guard; // its index
    uint32_t zero;
} tti_lent_rows;
_Static_assert(sizeof(tti_lent_rows) == 56, "the wire format is fixed");

#endif
