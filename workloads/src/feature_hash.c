// Hashing of categories; the set of those that were seen.
#include "feature_hash.h"
#include <string.h>

static uint32_t
rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t
scramble(uint32_t word)
{
    return rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u;
}

uint32_t
tti_murmur32(const void *bytes, size_t size, uint32_t seed)
{
    const unsigned char *p = bytes;
    uint32_t hash = seed, word;
    size_t left = size;
    for (; left >= 4; left -= 4, p += 4) {
        memcpy(&word, p, sizeof word);
        hash = rotate(hash ^ scramble(word), 13) * 5 + 0xe6546b64u;
    }
    word = 0;
    for (size_t i = left; i > 0; i--)
        word = word << 8 | p[i - 1];
    hash ^= scramble(word) ^ (uint32_t)size;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

uint64_t
tti_category_token(const void *bytes, size_t size, uint32_t seed)
{
    return (uint64_t)tti_murmur32(bytes, size, seed ^ 0x9747b28cu) << 32 |
           tti_murmur32(bytes, size, seed);
}

// ---- distinct categories ----------------------------------------------------------------------

struct tti_category_set {
    uint64_t *slots; // open addressing, linear probing; 0 is empty
    uint64_t mask, count, features_used;
    uint32_t feature_mask;
    uint64_t *used; // a bit a feature
};

tt_status
tti_category_set_open(uint32_t bits, tti_category_set **out)
{
    tti_category_set *set = *out = tt_mem_zalloc(1, sizeof *set);
    if (set == NULL)
        return TT_NOMEM;
    set->feature_mask = (uint32_t)(((uint64_t)1 << bits) - 1);
    set->mask = 1023;
    set->slots = tt_mem_zalloc(set->mask + 1, sizeof *set->slots);
    set->used = tt_mem_zalloc(((size_t)set->feature_mask >> 6) + 1, sizeof *set->used);
    if (set->slots != NULL && set->used != NULL)
        return TT_OK;
    tti_category_set_close(set);
    *out = NULL;
    return TT_NOMEM;
}

static uint64_t *
slot_of(uint64_t *slots, uint64_t mask, uint64_t token)
{
    uint64_t at = (token ^ token >> 29) & mask;
    while (slots[at] != 0 && slots[at] != token)
        at = (at + 1) & mask;
    return &slots[at];
}

static tt_status
grow(tti_category_set *set)
{
    uint64_t mask = 2 * set->mask + 1;
    uint64_t *slots = tt_mem_zalloc(mask + 1, sizeof *slots);
    if (slots == NULL)
        return TT_NOMEM;
    for (uint64_t i = 0; i <= set->mask; i++)
        if (set->slots[i] != 0)
            *slot_of(slots, mask, set->slots[i]) = set->slots[i];
    tt_mem_free(set->slots);
    set->slots = slots;
    set->mask = mask;
    return TT_OK;
}

tt_status
tti_category_set_add(tti_category_set *set, uint64_t token)
{
    uint64_t key = token != 0 ? token : 1; // one in 2^64 is counted with another
    uint64_t *slot = slot_of(set->slots, set->mask, key);
    if (*slot == key)
        return TT_OK;
    if (2 * (set->count + 1) > set->mask) {
        TT_TRY(grow(set));
        slot = slot_of(set->slots, set->mask, key);
    }
    *slot = key;
    set->count++;
    uint32_t feature = (uint32_t)token & set->feature_mask;
    uint64_t bit = (uint64_t)1 << (feature & 63);
    set->features_used += (set->used[feature >> 6] & bit) == 0;
    set->used[feature >> 6] |= bit;
    return TT_OK;
}

uint64_t
tti_category_set_count(const tti_category_set *set)
{
    return set->count;
}

uint64_t
tti_category_set_collisions(const tti_category_set *set)
{
    return set->count - set->features_used;
}

void
tti_category_set_close(tti_category_set *set)
{
    if (set == NULL)
        return;
    tt_mem_free(set->slots);
    tt_mem_free(set->used);
    tt_mem_free(set);
}
