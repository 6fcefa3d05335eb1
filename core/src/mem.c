// Allocation with an injectable failure, and arenas.
#include "tt/atomic.h"
#include "tt/core_mem.h"
#include <stdlib.h>
#include <string.h>

static uint64_t fail_countdown; // 0 = off; any thread (relaxed)

static int
should_fail(void)
{
    if (tt_load_relaxed(&fail_countdown) == 0)
        return 0;
    return tt_add_relaxed(&fail_countdown, (uint64_t)-1) == 1;
}

void
tt_mem_fail_nth(uint64_t n)
{
    tt_store_relaxed(&fail_countdown, n);
}

int
tt_mem_fail_pending(void)
{
    return tt_load_relaxed(&fail_countdown) != 0;
}

void *
tt_mem_alloc(size_t size)
{
    return should_fail() ? NULL : malloc(size > 0 ? size : 1);
}

void *
tt_mem_zalloc(size_t count, size_t size)
{
    return should_fail() ? NULL : calloc(count > 0 ? count : 1, size > 0 ? size : 1);
}

void *
tt_mem_realloc(void *old, size_t size)
{
    return should_fail() ? NULL : realloc(old, size > 0 ? size : 1);
}

void *
tt_mem_zalloc_vector(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - 128 || should_fail())
        return NULL;
    bytes = (bytes + 127) & ~(size_t)63;
    void *memory = aligned_alloc(64, bytes);
    return memory != NULL ? memset(memory, 0, bytes) : NULL;
}

char *
tt_mem_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = tt_mem_alloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

void
tt_mem_free(void *memory)
{
    free(memory);
}

tt_status
tt_mem_grow(void **items, size_t *capacity, size_t count, size_t item_size)
{
    if (count < *capacity)
        return TT_OK;
    size_t wanted = *capacity > 0 ? 2 * *capacity : 16;
    void *grown = tt_mem_realloc(*items, wanted * item_size);
    if (grown == NULL)
        return TT_NOMEM;
    *items = grown;
    *capacity = wanted;
    return TT_OK;
}

struct tt_arena_block {
    struct tt_arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

void
tt_arena_init(tt_arena *arena, size_t block_bytes)
{
    *arena = (tt_arena){.block_bytes = block_bytes};
}

static struct tt_arena_block *
next_block(tt_arena *arena, size_t size)
{
    // After a reset the chain behind `current` is empty blocks: use one that is large enough.
    struct tt_arena_block **link = arena->current != NULL ? &arena->current->next : &arena->first;
    if (*link != NULL && (*link)->size >= size)
        return *link;
    size_t block_size = TT_MAX(size, arena->block_bytes > 0 ? arena->block_bytes : 4096);
    struct tt_arena_block *block = tt_mem_alloc(sizeof *block + block_size);
    if (block == NULL)
        return NULL;
    block->size = block_size;
    block->used = 0;
    block->next = *link;
    *link = block;
    return block;
}

void *
tt_arena_alloc(tt_arena *arena, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (arena->current == NULL || arena->current->size - arena->current->used < size) {
        struct tt_arena_block *block = next_block(arena, size);
        if (block == NULL)
            return NULL;
        arena->current = block;
    }
    void *memory = arena->current->bytes + arena->current->used;
    arena->current->used += size;
    return memset(memory, 0, size);
}

char *
tt_arena_strdup(tt_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = tt_arena_alloc(arena, size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

void
tt_arena_reset(tt_arena *arena)
{
    for (struct tt_arena_block *block = arena->first; block != NULL; block = block->next)
        block->used = 0;
    arena->current = arena->first;
}

void
tt_arena_fini(tt_arena *arena)
{
    for (struct tt_arena_block *block = arena->first; block != NULL;) {
        struct tt_arena_block *next = block->next;
        tt_mem_free(block);
        block = next;
    }
    arena->first = arena->current = NULL;
}
