// Rows leased to a node that does not share the master's memory (ASP, SSP). The master takes rows
// from the job's work ahead of the node, which trains them in the order in which they come; of what
// it has not trained when it retires or dies, the master knows every row.
//
// Both sides count rows from the beginning of a lease: granted, received, taken, and trained, which
// records tell. A lease ends when its worker retires; the next one has the next number.
#ifndef TTI_LEASE_H
#define TTI_LEASE_H

#include "tt/ps.h"

// A batch that somebody who died had begun, to be done again as he would have: the `batch.rows`
// rows from row `at` of a lease on. rows 0: there is none.
typedef struct tti_again {
    uint64_t at;
    tt_ps_batch batch;
    uint32_t worker, unused; // whose it was
} tti_again;

// ---- the node's side ---------------------------------------------------------------------------

// Between the node's thread, which takes rows, and its agent, which puts them there.
typedef struct tti_lease {
    _Alignas(64) uint32_t number; // by the agent; release
    uint32_t dry;                 // there is nothing more to be had now; by the agent; release
    uint64_t received;            // by the agent; release
    _Alignas(64) uint64_t taken;  // by the node; release
    uint32_t unit;                // rows of a batch, by the node; relaxed
    uint32_t ahead;               // batches it wants to have in advance, by the node; relaxed
    uint32_t closed;              // number of the lease that was given back, by the node; release
    tti_again again; // of this lease; by the agent, before the rows are received; relaxed
    uint32_t *rows;  // [capacity], a ring
    uint32_t capacity;
} tti_lease;

// batch_rows: of the largest batch. errors TT_NOMEM
TT_NODISCARD tt_status tti_lease_open(tti_lease *lease, uint32_t batch_rows);
void tti_lease_close(tti_lease *lease);
// rows[0..count) in one piece, or what there is of them when there will be no more, or until
// others' batches begin; or one of these (*again; else rows 0). 0 and *later: they are on their
// way. thread: the node's
uint32_t
tti_lease_take(tti_lease *lease, uint32_t count, uint32_t *rows, int *later, tti_again *again);
// How many of `count` rows make a batch from row `position` of this lease on, rows that were taken:
// fewer where another's begins, or just that (*again). thread: the node's
uint32_t tti_lease_cut(const tti_lease *lease, uint64_t position, uint32_t count, tti_again *again);
// Nothing was granted, taken or given back: of a new process. thread: the agent's, without a node
void tti_lease_forget(tti_lease *lease);
// Fewer than half of what it wants in advance are there. thread: the node's, the agent's
int tti_lease_is_low(const tti_lease *lease);
// The worker retires: what it has not trained goes back. thread: the node's
void tti_lease_give_back(tti_lease *lease);
// What came from the master: `count` rows from row `first` of lease `number` on. What is known is
// skipped; what does not follow on what is there is left for the next time. thread: the agent's
void tti_lease_receive(tti_lease *lease,
                       uint32_t number,
                       uint64_t first,
                       const uint32_t *rows,
                       uint32_t count,
                       int dry,
                       const tti_again *again);
// Rows up to which the node wants to be granted. thread: the agent's
uint64_t tti_lease_wanted(const tti_lease *lease);

// ---- the master's side -------------------------------------------------------------------------

// The account of one node: which rows it has, oldest first.
typedef struct tti_account {
    uint32_t number;           // of the lease
    uint64_t granted, trained; // in this lease
    uint64_t before;           // trained in earlier leases of this process
    tti_again again;           // is among the granted, and not trained
    uint32_t *rows;            // [capacity], a ring
    uint32_t capacity;
} tti_account;

TT_NODISCARD tt_status tti_account_open(tti_account *account, uint32_t batch_rows);
void tti_account_close(tti_account *account);
// How many more rows it can be granted.
uint32_t tti_account_room(const tti_account *account);
void tti_account_grant(tti_account *account, const uint32_t *rows, uint32_t count);
// Granted rows from `first` on that lie in one piece.
uint32_t tti_account_rows(const tti_account *account, uint64_t first, const uint32_t **rows);
// rows[0..count) = those granted from `first` on.
void tti_account_copy(const tti_account *account, uint64_t first, uint32_t *rows, uint32_t count);
// So many more of them were trained.
void tti_account_trained(tti_account *account, uint64_t count);
// Rows that were granted and not trained.
uint64_t tti_account_untrained(const tti_account *account);
// Ends the lease and begins the next one; what was granted and not trained must have been given to
// others before.
void tti_account_next(tti_account *account);

#endif
