// What lies between the master of a job and its nodes. The master writes on the board and nodes
// read it; each node writes its standing and the master reads that. Nodes that are threads share
// the master's own board; a process has a board and a standing of its own, which its agent and the
// master keep alike (control.h).
//
// Threads: fields are written by one side and read by the other with the order named beside each.
#ifndef TTI_BOARD_H
#define TTI_BOARD_H

#include "job_internal.h"
#include "lease.h"
#include "loss_ring.h"
#include "records.h"
#include "work.h"

// One published state of the job. Immutable; freed when every node has adopted a later one.
typedef struct tti_generation {
    tt_ps_view *view;
    tt_setting setting;
    struct tti_generation *previous;
} tti_generation;

// Frees it and all before it. NULL: nothing.
void tti_generations_free(tti_generation *newest);

typedef struct tti_board {
    // set before any node is there
    const tt_job *job;
    tt_clock clock;
    uint32_t node_count;
    tt_mesh *mesh;         // messages; its last end is the master's
    tt_ps_store *store;    // in place
    tti_work *work;        // of nodes that share the master's memory, else NULL
    tti_lease *lease;      // of the others
    tti_loss_ring *losses; // likewise
    uint64_t retry_ns;     // a request without an answer for so long is sent again
    // A partition's move has ended here (tt_ps_hooks).
    void (*retired)(void *self, uint32_t partition, uint32_t generation);
    // A backup has its copy. Of processes.
    void (*backed)(void *self, uint32_t partition, uint32_t generation);
    // The last batch of a dead worker that is in here. Of processes.
    void (*last_batch)(void *self, uint32_t worker, const tt_ps_batch *batch);
    void *self; // of these

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
    // Something is worth a look, for the master, or for the agent: rung by tti_board_ring.
    tt_event bell;
    tt_mesh *control; // an agent waits at its end of this
    uint32_t end;
} tti_board;

// thread [any]
static inline void
tti_board_ring(tti_board *board)
{
    if (board->control != NULL)
        tt_mesh_wake(board->control, board->end);
    else
        tt_event_signal(&board->bell);
}

// What a node has counted since its process began.
typedef struct tti_counts {
    uint64_t batches_ready, batches_waited, pushes, moving_wait_count;
    uint64_t moving_waits[TT_PS_WAIT_BUCKETS];
    uint64_t carried, drained; // bytes of parameters that came here, by how
    uint64_t frames, bytes, chunks, sleeps;
    uint64_t refused; // connections
} tti_counts;

// How a node stands, as the master sees it.
typedef struct tti_standing {
    uint64_t adopted_generation; // release; acquired by the master
    uint32_t working_seen;       // it acts as a worker; release
    uint32_t resting;            // for which call to rest, 0: for none; release
    int finished;                // worker had nothing left to do, for now at least; release
    int left, ended;             // the thread has ended its work; has ended; release
    uint32_t clock_seen;         // iterations done (SSP), relaxed
    // BSP: stored (seq) before the gate is looked at; read by the master (seq)
    uint32_t round_begun;
    // BSP: some parameters it needs are of a round that nobody keeps any more; release
    int round_lost;
    uint64_t batches_ready, batches_waited, iterations; // relaxed
    uint64_t wait_max_ns; // longest on a moving partition since last asked, relaxed
    uint64_t looked_ns;   // of processes: till then its records are here, master's clock [master]
    uint32_t gate_heard;  // of processes: the gate for which round_begun is true [master]
    int told_all;         // of processes: no record that led to it is still to be heard [master]
    tti_counts counts;    // of processes: as last reported [master]
    tti_records records;
} tti_standing;

#endif
