// The pool as the mesh of rings holds it.
#ifndef TTI_POOL_H
#define TTI_POOL_H

#include "tt/comm_pool.h"

// Bytes of one end's part: what stands before its memory, and the memory.
size_t tti_pool_part_bytes(void);

typedef struct tti_pool_piece {
    size_t begin, end; // of the part's memory
} tti_pool_piece;

struct tt_pool {
    uint8_t *parts; // all ends', one behind the other
    uint32_t end_count, end;
    int opened, closed; // this process has begun to use its part; it cannot
    tti_pool_piece *pieces;
    size_t piece_count, piece_capacity; // in order of their places
};

// thread [control]
void tti_pool_init(tt_pool *pool, uint8_t *parts, uint32_t end_count, uint32_t end);
void tti_pool_fini(tt_pool *pool);

#endif
