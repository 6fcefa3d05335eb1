// All allocation goes through here, so that a test can fail the n-th one. Arenas are named by their
// lifespan.
#ifndef TT_CORE_MEM_H
#define TT_CORE_MEM_H

#include "tt/core_status.h"
#include <stdint.h>

// NULL on failure; never for size 0. Memory from tt_mem_* is released with tt_mem_free (NULL is
// fine). thread [any]
TT_NODISCARD void *tt_mem_alloc(size_t size);
TT_NODISCARD void *tt_mem_zalloc(size_t count, size_t size);
TT_NODISCARD void *tt_mem_realloc(void *old, size_t size);
// 64-byte aligned and zeroed, for vectors; released with tt_mem_free.
TT_NODISCARD void *tt_mem_zalloc_vector(size_t count, size_t size);
TT_NODISCARD char *tt_mem_strdup(const char *text);
void tt_mem_free(void *memory);

// Tests: the n-th allocation from now (1 = the next) fails; 0 turns this off. tt_mem_fail_pending
// says whether it still waits.
void tt_mem_fail_nth(uint64_t n);
int tt_mem_fail_pending(void);

// Makes room for one more element: *items grows by doubling when count == *capacity.
TT_NODISCARD tt_status tt_mem_grow(void **items, size_t *capacity, size_t count, size_t item_size);

// A bump allocator. Reset keeps the memory, fini gives it back; a zeroed arena is empty and valid.
typedef struct tt_arena {
    struct tt_arena_block *first, *current;
    size_t block_bytes;
} tt_arena;

void tt_arena_init(tt_arena *arena, size_t block_bytes);
// 16-byte aligned, zeroed; NULL when memory is short. Lives until reset or fini.
TT_NODISCARD void *tt_arena_alloc(tt_arena *arena, size_t size);
TT_NODISCARD char *tt_arena_strdup(tt_arena *arena, const char *text);
void tt_arena_reset(tt_arena *arena);
void tt_arena_fini(tt_arena *arena);

#endif
