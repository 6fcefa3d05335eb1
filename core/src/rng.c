// Philox 4x32-10.
#include "tt/core_rng.h"
#include <math.h>

void
tt_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0],
             k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void
tt_rng_init(tt_rng *rng, uint64_t seed, tt_rng_role role, uint64_t rank)
{
    *rng = (tt_rng){.key = {(uint32_t)seed, (uint32_t)(seed >> 32) ^ ((uint32_t)role << 24)},
                    .counter = {0, 0, (uint32_t)rank, (uint32_t)(rank >> 32)}};
}

uint32_t
tt_rng_u32(tt_rng *rng)
{
    if (rng->left == 0) {
        tt_rng_philox(rng->counter, rng->key, rng->block);
        rng->left = 4;
        if (++rng->counter[0] == 0)
            rng->counter[1]++;
    }
    return rng->block[4 - rng->left--];
}

uint64_t
tt_rng_u64(tt_rng *rng)
{
    uint64_t low = tt_rng_u32(rng);
    return low | (uint64_t)tt_rng_u32(rng) << 32;
}

double
tt_rng_uniform(tt_rng *rng)
{
    return (double)(tt_rng_u64(rng) >> 11) * 0x1p-53;
}

uint64_t
tt_rng_below(tt_rng *rng, uint64_t bound)
{
    // Rejects the uneven tail; the loop ends with probability 1, each round with probability > 1/2.
    uint64_t threshold = (0 - bound) % bound;
    for (;;) {
        uint64_t draw = tt_rng_u64(rng);
        if (draw >= threshold)
            return draw % bound;
    }
}

double
tt_rng_normal(tt_rng *rng)
{
    double u = 1.0 - tt_rng_uniform(rng), v = tt_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586477 * v);
}

void
tt_rng_shuffle_u32(tt_rng *rng, uint32_t *items, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        // 32-bit multiply-shift: the bias is below count / 2^32, far under what a shuffle can show.
        size_t j = (size_t)(((uint64_t)tt_rng_u32(rng) * i) >> 32);
        uint32_t swap = items[i - 1];
        items[i - 1] = items[j];
        items[j] = swap;
    }
}
