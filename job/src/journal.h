// What a master leaves to its successor, in memory that outlives its process: a base, which is all
// that it knew at one moment, and the entries of what has changed since. Whoever maps it after the
// master was killed, at whatever instruction, finds a whole base and whole entries.
//
// Caveats: memory images of this build's structs; it survives the process, not the machine.
// Thread: the master's.
#ifndef TTI_JOURNAL_H
#define TTI_JOURNAL_H

#include "tt/comm.h"
#include "tt/core.h"

enum { TTI_JOURNAL_PIECES_MAX = 16 };

typedef struct tti_journal {
    int descriptor; // -1: there is none
    struct tti_journal_head *head;
    uint8_t *entries; // of the two halves
} tti_journal;

// A new, empty one. errors TT_NOMEM
TT_NODISCARD tt_status tti_journal_open(tti_journal *out, tt_error *err);
// The one that another process has left; takes the descriptor. errors TT_CORRUPT, TT_NOMEM
TT_NODISCARD tt_status tti_journal_map(int descriptor, tti_journal *out, tt_error *err);
void tti_journal_close(tti_journal *journal);

// A new base, in pieces; the entries before it are forgotten. When it fails the old ones stay.
// errors TT_NOMEM
TT_NODISCARD tt_status tti_journal_begin(tti_journal *journal,
                                         const tt_span *pieces,
                                         uint32_t count,
                                         tt_error *err);
// One more entry of at most 2^24 bytes; after it returns nothing can undo it.
void tti_journal_add(tti_journal *journal, const tt_span *pieces, uint32_t count);
// What follows cannot be entered: it is of no use until the next base.
void tti_journal_give_up(tti_journal *journal);
// There is a base, and every entry since.
int tti_journal_is_whole(const tti_journal *journal);
// Half of the room for entries is used.
int tti_journal_is_long(const tti_journal *journal);

// The base, which the caller frees (tt_mem_free), and the entries behind it; both are of one
// moment. errors TT_NOTFOUND nothing was begun, or entries are missing; TT_NOMEM
TT_NODISCARD tt_status tti_journal_read(const tti_journal *journal,
                                        uint8_t **base,
                                        size_t *size,
                                        tt_error *err);
// The entry at *cursor, which it moves on; 0 is the first. NULL: there is none.
const void *tti_journal_next(const tti_journal *journal, size_t *cursor, size_t *size);
// How many masters have had it, this one included.
uint32_t tti_journal_succeed(tti_journal *journal);

#endif
