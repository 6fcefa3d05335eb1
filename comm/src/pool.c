// Memory that the processes of one mesh of rings see: see tt/comm_pool.h.
#include "pool.h"
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, BUSY_MS = 20, COPIES_MAX = 3 };

// A ticket counts in steps of 4; the lower bits say where it is. A guard is odd while what it is
// for changes, or is not there; its upper half counts beginnings.
enum { FREE = 0, LENT = 1, READ = 2, STEP = 4 };
#define BEGINNING (UINT64_C(1) << 32)

typedef struct part {
    _Alignas(64) uint64_t ticket[TT_POOL_WORDS]; // owner and borrower, by compare and swap
    _Alignas(64) uint64_t guard[TT_POOL_WORDS];  // written by the owner, read by any
    _Alignas(PAGE) uint8_t bytes[TT_POOL_BYTES];
} part;

static part *
part_of(const tt_pool *pool, uint32_t end)
{
    return (part *)(void *)(pool->parts + (size_t)end * sizeof(part));
}

size_t
tti_pool_part_bytes(void)
{
    return sizeof(part);
}

void
tti_pool_init(tt_pool *pool, uint8_t *parts, uint32_t end_count, uint32_t end)
{
    *pool = (tt_pool){.parts = parts, .end_count = end_count, .end = end};
}

void
tti_pool_fini(tt_pool *pool)
{
    tt_mem_free(pool->pieces);
    *pool = (tt_pool){0};
}

// ---- what an earlier process has left ----------------------------------------------------------

static int
recall_word(uint64_t *word)
{
    uint64_t seen = tt_load_acquire(word); // released in tt_pool_return
    while (seen % STEP == LENT)
        if (tt_cas_acq_rel(word, &seen, seen - LENT + STEP))
            return 1;
    return seen % STEP == FREE;
}

static int
recall_all(part *own)
{
    int busy = 0;
    for (uint32_t i = 0; i < TT_POOL_WORDS; i++)
        if (tt_load_relaxed(&own->ticket[i]) % STEP != FREE)
            busy |= !recall_word(&own->ticket[i]);
    return !busy;
}

static void
open_part(tt_pool *pool)
{
    part *own = part_of(pool, pool->end);
    pool->opened = 1;
    for (int i = 0; !recall_all(own); i++) {
        if (i == BUSY_MS) {
            pool->closed = 1; // its reader was stopped, or died: what he reads stays as it is
            return;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (uint32_t i = 0; i < TT_POOL_WORDS; i++)
        if (own->guard[i] != 0)
            tt_store_relaxed(&own->guard[i], own->guard[i] | 1);
    tt_fence_seq(); // before anything in it changes
    (void)madvise(own->bytes, sizeof own->bytes, MADV_REMOVE);
}

// ---- memory ------------------------------------------------------------------------------------

// Where `size` bytes fit first; piece_count when nowhere.
static size_t
find_gap(const tt_pool *pool, size_t size, size_t *begin)
{
    *begin = 0;
    for (size_t i = 0; i < pool->piece_count; i++) {
        if (pool->pieces[i].begin - *begin >= size)
            return i;
        *begin = pool->pieces[i].end;
    }
    return pool->piece_count;
}

void *
tt_pool_take(tt_pool *pool, size_t size)
{
    if (!pool->opened)
        open_part(pool);
    if (pool->closed || size == 0 || size > TT_POOL_BYTES)
        return NULL;
    size_t begin, bytes = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    size_t at = find_gap(pool, bytes, &begin);
    if (bytes > TT_POOL_BYTES - begin ||
        tt_mem_grow((void **)&pool->pieces, &pool->piece_capacity, pool->piece_count,
                    sizeof *pool->pieces) != TT_OK)
        return NULL;
    tti_pool_piece *piece = &pool->pieces[at];
    memmove(piece + 1, piece, (pool->piece_count - at) * sizeof *piece);
    *piece = (tti_pool_piece){begin, begin + bytes};
    pool->piece_count++;
    return part_of(pool, pool->end)->bytes + begin;
}

// The piece that this lies in, or piece_count.
static size_t
piece_of(const tt_pool *pool, const void *bytes, size_t size)
{
    const uint8_t *first = part_of(pool, pool->end)->bytes, *wanted = bytes;
    if (wanted < first || wanted >= first + TT_POOL_BYTES)
        return pool->piece_count;
    size_t begin = (size_t)(wanted - first), i = 0;
    while (i < pool->piece_count && (begin < pool->pieces[i].begin || begin >= pool->pieces[i].end))
        i++;
    return i < pool->piece_count && size <= pool->pieces[i].end - begin ? i : pool->piece_count;
}

void
tt_pool_give_back(tt_pool *pool, void *memory)
{
    if (memory == NULL)
        return;
    size_t at = piece_of(pool, memory, 1);
    TT_ASSERT(at < pool->piece_count);
    tti_pool_piece *piece = &pool->pieces[at];
    (void)madvise(memory, piece->end - piece->begin, MADV_REMOVE);
    pool->piece_count--;
    memmove(piece, piece + 1, (pool->piece_count - at) * sizeof *piece);
}

int
tt_pool_find(const tt_pool *pool, const void *bytes, size_t size, uint64_t *offset)
{
    if (piece_of(pool, bytes, size) == pool->piece_count)
        return 0;
    *offset = (uint64_t)((const uint8_t *)bytes - part_of(pool, pool->end)->bytes);
    return 1;
}

const void *
tt_pool_see(const tt_pool *pool, uint32_t end, uint64_t offset, uint64_t size)
{
    if (end >= pool->end_count || offset > TT_POOL_BYTES || size > TT_POOL_BYTES - offset)
        return NULL;
    return part_of(pool, end)->bytes + offset;
}

// ---- tickets -----------------------------------------------------------------------------------

uint64_t
tt_pool_lend(tt_pool *pool, uint32_t index)
{
    uint64_t *word = &part_of(pool, pool->end)->ticket[index];
    uint64_t ticket = (tt_load_relaxed(word) / STEP + 1) * STEP + LENT;
    // Plainly: who has returned it by a message need not have come to tt_pool_return yet, and does
    // nothing there when it finds another number.
    tt_store_release(word, ticket); // acquired in tt_pool_borrow
    return ticket;
}

int
tt_pool_borrow(tt_pool *pool, uint32_t end, uint32_t index, uint64_t ticket)
{
    if (end >= pool->end_count || index >= TT_POOL_WORDS || ticket % STEP != LENT)
        return 0;
    return tt_cas_acq_rel(&part_of(pool, end)->ticket[index], &ticket, ticket - LENT + READ);
}

void
tt_pool_return(tt_pool *pool, uint32_t end, uint32_t index, uint64_t ticket)
{
    uint64_t read = ticket - LENT + READ;
    (void)tt_cas_acq_rel(&part_of(pool, end)->ticket[index], &read, ticket - LENT + STEP);
}

int
tt_pool_recall(tt_pool *pool, uint32_t index, uint64_t ticket)
{
    uint64_t *word = &part_of(pool, pool->end)->ticket[index], seen = ticket;
    return tt_cas_acq_rel(word, &seen, ticket - LENT + STEP) || seen != ticket - LENT + READ;
}

// ---- guards ------------------------------------------------------------------------------------

static void
store_guard(tt_pool *pool, uint32_t index, uint64_t value)
{
    tt_store_release(&part_of(pool, pool->end)->guard[index], value); // acquired in tt_pool_copy
    tt_fence_seq();                                                   // and before what follows
}

uint64_t
tt_pool_guard(const tt_pool *pool, uint32_t index)
{
    return tt_load_relaxed(&part_of(pool, pool->end)->guard[index]);
}

void
tt_pool_guard_begin(tt_pool *pool, uint32_t index)
{
    store_guard(pool, index, (tt_pool_guard(pool, index) / BEGINNING + 1) * BEGINNING);
}

void
tt_pool_guard_change(tt_pool *pool, uint32_t index)
{
    store_guard(pool, index, tt_pool_guard(pool, index) | 1);
}

void
tt_pool_guard_changed(tt_pool *pool, uint32_t index)
{
    tt_store_release(&part_of(pool, pool->end)->guard[index], tt_pool_guard(pool, index) + 1);
}

void
tt_pool_guard_end(tt_pool *pool, uint32_t index)
{
    tt_pool_guard_change(pool, index);
}

int
tt_pool_copy(const tt_pool *pool,
             uint32_t end,
             uint32_t guard,
             uint64_t value,
             uint64_t offset,
             size_t size,
             int newer,
             void *to)
{
    const void *from = tt_pool_see(pool, end, offset, size);
    if (from == NULL || guard >= TT_POOL_WORDS)
        return 0;
    const uint64_t *word = &part_of(pool, end)->guard[guard];
    for (int i = 0; i < COPIES_MAX; i++) {
        uint64_t before = tt_load_acquire(word);
        if (before % 2 != 0 || before / BEGINNING != value / BEGINNING ||
            (before != value && !newer))
            return 0;
        memcpy(to, from, size);
        tt_fence_seq();
        if (tt_load_relaxed(word) == before)
            return 1;
    }
    return 0;
}
