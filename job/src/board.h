// What lies between the master of a job and its nodes. The master writes on the board and nodes
// read it; each node writes its standing and the master reads that. Nodes that are threads share
// the master's own board.
//
// Threads: fields are written by one side and read by the other with the order named beside each.
#ifndef TTI_BOARD_H
#define TTI_BOARD_H

#include "job_internal.h"
#include "records.h"
#include "work.h"

// One published state of the job. Immutable; freed when every node has adopted a later one.
typedef struct tti_generation {
    tt_ps_view *view;
    tt_setting setting;
    struct tti_generation *previous;
} tti_generation;

typedef struct tti_board {
    // set before any node is there
    const tt_job *job;
    tt_clock clock;
    uint32_t node_count;
    tt_mesh *mesh;      // messages; its last end is the master's
    tt_ps_store *store; // in place
    tti_work *work;
    uint64_t retry_ns; // a request without an answer for so long is sent again
    // A partition's move has ended here (tt_ps_hooks).
    void (*retired)(void *self, uint32_t partition, uint32_t generation);
    void *self; // of retired

    const tti_generation *current; // release; acquired by nodes
    // raised by the master: release; acquired by nodes
    int stop, pause, stop_servers;
    int interrupt;        // stop or pause, for waits inside the store
    int discard;          // what is trained from here on is not wanted
    tt_event resume;      // the end of a pause, or stop
    uint32_t round_limit; // BSP; relaxed
    // BSP: odd while the master chooses the round of a new generation; nobody begins a round then
    // (seq)
    uint32_t gate;
    uint32_t hold_round; // BSP: workers rest before they begin it; release
    uint32_t rest_call;  // number of the pause or hold asked for; after it; release
    // The last checkpoint, while partitions are restored from it. [nodes and master, in turns]
    const tt_ps_state *checkpoint;
    tt_event bell; // for the master: something is worth a look
} tti_board;

// How a node stands, as the master sees it.
typedef struct tti_standing {
    uint64_t adopted_generation; // release; acquired by the master
    uint32_t working_seen;       // it acts as a worker; release
    uint32_t resting;            // for which call to rest, 0: for none; release
    int finished;                // worker has reached a limit; release
    int left;                    // the thread has ended its work; release
    uint32_t clock_seen;         // iterations done (SSP), relaxed
    // BSP: stored (seq) before the gate is looked at; read by the master (seq)
    uint32_t round_begun;
    // BSP: some parameters it needs are of a round that nobody keeps any more; release
    int round_lost;
    uint64_t batches_ready, batches_waited, iterations; // relaxed
    uint64_t wait_max_ns; // longest on a moving partition since last asked, relaxed
    tti_records records;
} tti_standing;

#endif
