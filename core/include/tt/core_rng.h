// Counter-based random numbers (Philox 4x32-10, Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A stream is named by (job seed, role, rank) and any position of it can be
// reached at once, so that draws do not depend on how many workers take part or in which order they
// run.
#ifndef TT_CORE_RNG_H
#define TT_CORE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef enum tt_rng_role {
    TT_RNG_DATA_ORDER = 1, // row order at load
    TT_RNG_SHARD_ORDER,    // order of rows inside a shard, one stream an (epoch, shard)
    TT_RNG_MODEL_INIT,
    TT_RNG_TUNER,
    TT_RNG_GENERATOR,
    TT_RNG_TEST,
    TT_RNG_SCHEDULE,
    TT_RNG_VALIDATION, // which rows are held out, one stream a row
    TT_RNG_SIMULATION, // of simulated hosts: stragglers, jitter of hosts and network
} tt_rng_role;

typedef struct tt_rng {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4];
    uint32_t left; // unread words of block
} tt_rng;

// The stream (seed, role, rank) at its beginning; deterministic on every machine.
void tt_rng_init(tt_rng *rng, uint64_t seed, tt_rng_role role, uint64_t rank);
uint32_t tt_rng_u32(tt_rng *rng);
uint64_t tt_rng_u64(tt_rng *rng);
// Uniform in [0, 1), 53 bits.
double tt_rng_uniform(tt_rng *rng);
// Unbiased, in [0, bound); bound > 0.
uint64_t tt_rng_below(tt_rng *rng, uint64_t bound);
// Standard normal (Box-Muller; two words a draw, no state carried).
double tt_rng_normal(tt_rng *rng);
// Fisher-Yates on items[0..count).
void tt_rng_shuffle_u32(tt_rng *rng, uint32_t *items, size_t count);
// One Philox block: the function behind everything above, exposed for its known-answer test.
void tt_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
