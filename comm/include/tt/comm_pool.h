// comm_pool: memory that all processes on one mesh of rings see, so that what one has to say to
// another need not be copied into a ring: a message then says where it lies.
//
// Each end has a part of its own, which it alone writes; who reads another's is kept from reading
// what is being changed, in one of two ways:
//
// - a ticket, for what is lent once and taken once (a worker's gradients). The owner lends; the one
//   it tells borrows, reads, and returns. Before the owner changes what he lent he is told by the
//   borrower that it was read, or recalls it. Nobody can borrow what was recalled; what somebody is
//   just reading cannot be recalled, and must stay as it is.
// - a guard, for what many read again and again (a server's parameters). The owner counts the guard
//   up before and after each change; who reads compares it before and after, and throws away what
//   he read when it differs (a sequence lock).
//
// Caveats: guards are for readers in other processes, for the thread sanitizer rightly calls such
// reading a race. There are TT_POOL_WORDS tickets and guards an end, and TT_POOL_BYTES of memory;
// who gets no more of them sends copies. Nothing here survives the mesh.
#ifndef TT_COMM_POOL_H
#define TT_COMM_POOL_H

#include "tt/core.h"

enum { TT_POOL_WORDS = 4096, TT_POOL_BYTES = 1 << 30 };

// One end's view of the memory: its own part, and those of the others to read. It lives in the
// mesh. thread: the node's
typedef struct tt_pool tt_pool;

// ---- memory ------------------------------------------------------------------------------------

// `size` bytes of this end's part, 4096-byte aligned and zeroed, or NULL. The first call of a
// process makes what an earlier one of this end has left unusable: nothing can be borrowed of it,
// and what was read under a guard is thrown away. While somebody still reads what that one had
// lent, this one gets nothing.
TT_NODISCARD void *tt_pool_take(tt_pool *pool, size_t size);
// NULL is fine. The memory goes back to the system.
void tt_pool_give_back(tt_pool *pool, void *memory);
// Whether this lies in one piece of this end's memory that was taken, and at which offset others
// see it.
int tt_pool_find(const tt_pool *pool, const void *bytes, size_t size, uint64_t *offset);
// What `end` calls so many bytes at that offset; NULL when that is no place in its part.
const void *tt_pool_see(const tt_pool *pool, uint32_t end, uint64_t offset, uint64_t size);

// ---- tickets -----------------------------------------------------------------------------------

// Ticket number `index` of this end, which is not lent: the name under which it can be borrowed
// once. Never 0.
uint64_t tt_pool_lend(tt_pool *pool, uint32_t index);
// Whether it is to be had still. If so, it is to be returned.
TT_NODISCARD int tt_pool_borrow(tt_pool *pool, uint32_t end, uint32_t index, uint64_t ticket);
void tt_pool_return(tt_pool *pool, uint32_t end, uint32_t index, uint64_t ticket);
// Owner's: from now on nobody borrows it. False while somebody reads.
TT_NODISCARD int tt_pool_recall(tt_pool *pool, uint32_t index, uint64_t ticket);

// ---- guards ------------------------------------------------------------------------------------

// Owner's: what guard `index` is for begins, changes, has changed, ends. What was read before a
// beginning or after an end is never taken for what comes between.
void tt_pool_guard_begin(tt_pool *pool, uint32_t index);
void tt_pool_guard_change(tt_pool *pool, uint32_t index);
void tt_pool_guard_changed(tt_pool *pool, uint32_t index);
void tt_pool_guard_end(tt_pool *pool, uint32_t index);
uint64_t tt_pool_guard(const tt_pool *pool, uint32_t index);
// Reader's: copies `size` bytes that `guard` of `end` was for when it read `value`, which came with
// the offset. newer: what they were changed to since will do. False when that cannot be had; what
// is in `to` is worth nothing then.
TT_NODISCARD int tt_pool_copy(const tt_pool *pool,
                              uint32_t end,
                              uint32_t guard,
                              uint64_t value,
                              uint64_t offset,
                              size_t size,
                              int newer,
                              void *to);

#endif
