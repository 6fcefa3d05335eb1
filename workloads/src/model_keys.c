// Two ways to the sorted distinct keys, both linear in the entries.
//
// Up to BITMAP_FEATURES_MAX features: a two-level bitmap. Marking costs two ors an entry, reading
// the set bits in order gives the sorted keys, and the place of a key is the count of marked bits
// before its word plus a population count; a summary bit per word keeps reading and clearing
// proportional to the words touched. Beyond, the bitmap would no longer fit the cache: radix sort
// of (key, entry) pairs.
#include "model_keys.h"
#include "radix_sort.h"

enum { BITMAP_FEATURES_MAX = 1 << 24 };

typedef struct marked_word {
    uint64_t bits;
    uint64_t before; // marked bits in the words before
} marked_word;

struct tti_keys {
    uint32_t users;
    size_t entries_max;
    int key_bits;
    marked_word *words;   // bitmap: [features / 64 + 1], all clear between calls
    uint64_t *summary;    // bitmap: a bit per word
    size_t summary_count; // words of summary
    uint64_t *pairs;      // radix: [2][entries_max], key << 32 | entry
};

tt_status
tti_keys_alloc(uint32_t features, size_t entries_max, tti_keys **out)
{
    *out = NULL;
    tti_keys *self = tt_mem_zalloc(1, sizeof *self);
    if (self == NULL)
        return TT_NOMEM;
    self->users = 1;
    self->entries_max = entries_max;
    while (self->key_bits < 32 && features >> self->key_bits != 0)
        self->key_bits++;
    int failed;
    if (features <= BITMAP_FEATURES_MAX) {
        const size_t words = features / 64 + 1;
        self->summary_count = words / 64 + 1;
        self->words = tt_mem_zalloc_vector(words, sizeof *self->words);
        self->summary = tt_mem_zalloc(self->summary_count, sizeof *self->summary);
        failed = self->words == NULL || self->summary == NULL;
    } else {
        self->pairs = tt_mem_zalloc(entries_max, 2 * sizeof *self->pairs);
        failed = self->pairs == NULL;
    }
    if (failed) {
        tti_keys_free(self);
        return TT_NOMEM;
    }
    *out = self;
    return TT_OK;
}

tti_keys *
tti_keys_share(tti_keys *self)
{
    self->users++;
    return self;
}

void
tti_keys_free(tti_keys *self)
{
    if (self == NULL || --self->users > 0)
        return;
    tt_mem_free(self->words);
    tt_mem_free(self->summary);
    tt_mem_free(self->pairs);
    tt_mem_free(self);
}

static void
mark(tti_keys *self, const uint32_t *index, size_t n)
{
    marked_word *words = self->words;
    uint64_t *summary = self->summary;
    for (size_t i = 0; i < n; i++) {
        const uint32_t x = index[i];
        words[x >> 6].bits |= UINT64_C(1) << (x & 63);
        summary[x >> 12] |= UINT64_C(1) << ((x >> 6) & 63);
    }
}

static uint32_t
read_marks(tti_keys *self, uint32_t *keys)
{
    uint32_t count = 0;
    for (size_t s = 0; s < self->summary_count; s++)
        for (uint64_t left = self->summary[s]; left != 0; left &= left - 1) {
            const uint32_t w = (uint32_t)(s * 64) + (uint32_t)__builtin_ctzll(left);
            self->words[w].before = count;
            for (uint64_t bits = self->words[w].bits; bits != 0; bits &= bits - 1)
                keys[count++] = w * 64 + (uint32_t)__builtin_ctzll(bits);
        }
    return count;
}

static inline __attribute__((always_inline)) void
place_body(const marked_word *words, uint32_t *index, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t x = index[i];
        const uint64_t lower = words[x >> 6].bits & ((UINT64_C(1) << (x & 63)) - 1);
        index[i] = (uint32_t)(words[x >> 6].before + (uint64_t)__builtin_popcountll(lower));
    }
}

#if defined(__x86_64__)
__attribute__((target("popcnt"))) static void
place_with_popcnt(const marked_word *words, uint32_t *index, size_t n)
{
    place_body(words, index, n);
}
#endif

static void
place(const marked_word *words, uint32_t *index, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        place_with_popcnt(words, index, n);
        return;
    }
#endif
    place_body(words, index, n);
}

static void
clear_marks(tti_keys *self)
{
    for (size_t s = 0; s < self->summary_count; s++) {
        for (uint64_t left = self->summary[s]; left != 0; left &= left - 1)
            self->words[s * 64 + (size_t)__builtin_ctzll(left)].bits = 0;
        self->summary[s] = 0;
    }
}

static uint32_t
assign_by_sorting(tti_keys *self, uint32_t *index, size_t n, uint32_t *keys)
{
    uint64_t *pairs = self->pairs;
    for (size_t i = 0; i < n; i++)
        pairs[i] = (uint64_t)index[i] << 32 | i;
    pairs = tti_radix_sort(pairs, self->pairs + self->entries_max, n, 32, self->key_bits);
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = (uint32_t)(pairs[i] >> 32);
        if (count == 0 || keys[count - 1] != key)
            keys[count++] = key;
        index[(uint32_t)pairs[i]] = count - 1;
    }
    return count;
}

uint32_t
tti_keys_assign(tti_keys *self, uint32_t *index, size_t n, uint32_t *keys)
{
    TT_ASSERT(n <= self->entries_max && n <= UINT32_MAX);
    if (self->pairs != NULL)
        return assign_by_sorting(self, index, n, keys);
    mark(self, index, n);
    const uint32_t count = read_marks(self, keys);
    place(self->words, index, n);
    clear_marks(self);
    return count;
}
