// What dead workers have left behind (ASP, SSP): rows they were given and had not said they had
// trained. First it is in doubt which of them are in: servers that know of the death tell the last
// batch of the dead that they have seen (ps: server_batches.c). All before it are trained; it alone
// may be in at some partitions and not at others, and is done again under its name, as one batch,
// by whoever gets it; all after it are for anybody.
//
// Part of the master's books (books.h). Thread: the master's.
#ifndef TTI_LEFT_H
#define TTI_LEFT_H

#include "lease.h"

struct tti_runtime;

typedef enum tti_left_state { TTI_LEFT_NOTHING, TTI_LEFT_IN_DOUBT, TTI_LEFT_BEGUN } tti_left_state;

// By one node's last process; it does not come back before there is nothing left.
typedef struct tti_left {
    tti_left_state state;
    uint32_t attempt; // which process
    uint32_t holder;  // BEGUN: the node whose account it is in, dead or alive; TTI_NO_HOLDER: none
    uint32_t count;
    uint64_t first; // where rows[0] stands among all that the process was given
    uint32_t *rows; // [count]
    // IN_DOUBT: the last batch that is in, as far as was heard, rows 0: none. BEGUN: this one.
    tt_ps_batch batch;
    // IN_DOUBT: of another, what it was given to do again; `at` as `first`. rows 0: nothing.
    tti_again again;
} tti_left;

#define TTI_NO_HOLDER UINT32_MAX

// Node n's process is dead; its account is to be begun anew. False: nothing of ours, for what was
// left before is not settled.
int tti_left_leave(struct tti_runtime *rt, uint32_t n, uint32_t attempt);
// A server that knows of worker's death says so.
void tti_left_hear(struct tti_runtime *rt, uint32_t worker, const tt_ps_batch *batch);
// All who are there have said so: nothing is in doubt any more.
void tti_left_settle(struct tti_runtime *rt);
// A worker whose begun batch nobody has, or node_count.
uint32_t tti_left_find_begun(const struct tti_runtime *rt);
// What worker `whose` had begun goes to node n, which has room for it and nothing of the kind.
void tti_left_grant(struct tti_runtime *rt, uint32_t n, uint32_t whose);
// The last of node n's rows were trained: it may have done another's batch.
void tti_left_trained(struct tti_runtime *rt, uint32_t n);
// Node n gives back its rows, that batch among them. Its account is to be begun anew.
void tti_left_take_back(struct tti_runtime *rt, uint32_t n);
// Whether anything is left; in doubt. By anybody.
int tti_left_some(const struct tti_runtime *rt);
int tti_left_doubts(const struct tti_runtime *rt);
// Rows that are in no account.
uint64_t tti_left_count(const struct tti_runtime *rt);
void tti_left_save_rows(const struct tti_runtime *rt, tt_archive *out);

// All of it as bytes. Faults are in the archive's status.
void tti_left_save(const struct tti_runtime *rt, tt_archive *out);
void tti_left_load(struct tti_runtime *rt, tt_archive *in);
void tti_left_close(struct tti_runtime *rt);

#endif
