// What the master has given out and what it has heard: rows and who has them, iterations that
// count, moves that have ended, the generation in force. Whatever changes it is an entry of the
// journal, if there is one, before anybody else is told; a successor reads the last base and does
// the entries again (journal.h). Apart from that it knows of the nodes only what they tell anew.
//
// Only where nodes do not share the master's memory. Thread: the master's.
#ifndef TTI_BOOKS_H
#define TTI_BOOKS_H

#include "control.h"
#include "journal.h"
#include "left.h"

struct tti_runtime;

// One node, under its present attempt.
typedef struct tti_book {
    tti_account account;
    uint64_t records_heard, ends_heard;
} tti_book;

typedef struct tti_books {
    tti_book *nodes; // [node_count]
    tti_left *left;  // [node_count]
    // What the dead have left is in doubt until every node knows this generation.
    uint32_t doubt_generation;
    uint32_t *batch;          // rows on their way to an account
    tti_journal *journal;     // NULL: nobody succeeds this master. Borrowed
    uint32_t gate, rest_call; // of the board, as last entered
    uint32_t masters;         // which master of the job this is, from 1
    uint64_t job_begin_ns;    // of a successor: when the job's clock was 0
    int is_replaying;         // what the one before has entered
} tti_books;

TT_NODISCARD tt_status tti_books_open(struct tti_runtime *rt, tt_error *err);
void tti_books_close(struct tti_runtime *rt);

// ---- rows --------------------------------------------------------------------------------------

// `unit` rows of the job's work for node n, which has room for them; returns how many there were.
uint32_t tti_books_take(struct tti_runtime *rt, uint32_t n, uint32_t unit);
// The worker has retired: what it gives back nobody else counts.
void tti_books_take_back(struct tti_runtime *rt, uint32_t n);
// Node n has died, of which the newest generation tells: what it had is in doubt until all know it.
// False: it had rows although some that it left before are still in doubt, or begun.
int tti_books_bury(struct tti_runtime *rt, uint32_t n);
// They do.
void tti_books_settle(struct tti_runtime *rt);
// Node n, which has room for it and nothing of the kind, is to do again the batch that worker
// `whose` had begun when it died.
void tti_books_take_again(struct tti_runtime *rt, uint32_t n, uint32_t whose);
// Rows that were granted and not trained, the next ones last.
uint64_t tti_books_untrained_count(const struct tti_runtime *rt);
void tti_books_save_untrained(const struct tti_runtime *rt, tt_archive *out);

// ---- what was heard ----------------------------------------------------------------------------

// A record. Under BSP it counts; else its rows are trained, and it counts when its turn comes
// (tti_work_count).
void tti_books_hear_record(struct tti_runtime *rt, uint32_t n, const tti_record *record);
void tti_books_hear_end(struct tti_runtime *rt, uint32_t n, const tti_end *end);
// tti_work_count_slice_before
void tti_books_count_rounds(struct tti_runtime *rt, uint32_t slice, uint32_t round);

// All are to go back to the last checkpoint (tti_membership.must_go_back).
void tti_books_go_back(struct tti_runtime *rt);
// What happens now no successor could do: there is none until everything is saved again.
void tti_books_give_up(struct tti_runtime *rt);

// ---- what is in force --------------------------------------------------------------------------

// The newest generation, which was published just now.
void tti_books_enter_generation(struct tti_runtime *rt);
// Gate and call to rest, if they have changed. Before they are told.
void tti_books_enter_board(struct tti_runtime *rt);

// ---- successors --------------------------------------------------------------------------------

// The newest generation (tti_generation_read), then everything else; every record heard has been
// counted.
void tti_books_save(struct tti_runtime *rt, uint64_t job_begin_ns, tt_archive *out);
// What is behind the generation, and all entries since. Of a runtime whose books were just opened,
// under that generation.
// errors TT_CORRUPT, TT_NOMEM
TT_NODISCARD tt_status tti_books_load(struct tti_runtime *rt, tt_archive *in, tt_error *err);

#endif
