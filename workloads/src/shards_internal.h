// The inside of tt_shards, shared with the ledger.
#ifndef TTI_SHARDS_INTERNAL_H
#define TTI_SHARDS_INTERNAL_H

#include "tt/workloads_shards.h"

struct tt_shards {
    uint64_t seed;
    uint64_t row_count;
    uint32_t shard_count;
    uint32_t largest; // rows of the largest shard
    uint32_t *row;    // the permuted rows, [row_count]
};

// First position of `shard` in the permutation: the first row_count % shard_count shards have one
// row more than the others. shard may be shard_count.
static inline uint64_t
tti_shard_begin(const tt_shards *shards, uint32_t shard)
{
    uint64_t base = shards->row_count / shards->shard_count,
             extra = shards->row_count % shards->shard_count;
    return base * shard + TT_MIN((uint64_t)shard, extra);
}

#endif
