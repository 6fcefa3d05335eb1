// A node with what is beside it on its host: where nodes do not share the master's memory, its own
// copy of the board and an agent, which speaks with the master for it.
//
// Threads: the agent's, unless said otherwise. Opening and closing: whoever owns the process.
#ifndef TTI_PROCESS_H
#define TTI_PROCESS_H

#include "control.h"
#include "node.h"

struct tti_runtime;

enum { TTI_BACKLOG = 2048 };   // records on their way to the master at a time
enum { TTI_LOSSES = 1 << 16 }; // losses of rows likewise

// What the master has not said that it heard.
typedef struct tti_backlog {
    tti_record *records; // [TTI_BACKLOG]
    // Losses of the rows of those that were never sent. With what is said again they are left out:
    // without some of them the master knows others.
    float *losses; // [TTI_LOSSES]
    uint32_t loss_count;
    uint32_t record_count;
    uint64_t record_first, record_sent; // of those in the backlog; first that was never sent
    pthread_mutex_t lock;               // of the rest, which the node's thread adds to
    tti_end *ends;
    uint32_t end_count, end_capacity;
    uint64_t end_first, end_sent;
    uint64_t wait_max_ns;
} tti_backlog;

typedef struct tti_process {
    const tt_job *job;
    tti_node node;
    tti_board board;
    tti_standing standing;
    tti_lease lease;
    tti_loss_ring losses;
    tti_backlog backlog;
    tt_thread agent;
    tt_pulse pulse;
    int stop_agent; // release
    int is_alone;   // the agent is the main thread of a process of the operating system
    // Ends its node's thread, at once if need be.
    void (*end_node)(struct tti_process *process);
    int begun;              // this attempt's node was opened
    tti_generation *newest; // of those it knows, the board's current
    uint64_t order_heard, reported_ns;
    uint64_t news_number, news_ns; // the last report that is to be answered
    uint64_t report_heard;         // by the master
    tti_report last;               // as it was sent last
    uint64_t report_period_ns;
    tt_archive out;
    tt_mesh_counters before; // what earlier attempts have sent
    struct tti_runtime *rt;  // whose host is simulated here
} tti_process;

// A process of node `index` whose agent speaks through `control`. errors TT_NOMEM
TT_NODISCARD tt_status tti_process_open(tti_process *process,
                                        const tt_job *job,
                                        uint32_t index,
                                        tt_clock clock,
                                        tt_mesh *mesh,
                                        tt_mesh *control,
                                        tt_error *err);
// Its node under the newest generation that it knows.
TT_NODISCARD tt_status tti_process_open_node(tti_process *process, int joins, tt_error *err);
// Takes the generation.
void tti_process_learn(tti_process *process, tti_generation *generation);
void tti_process_close(tti_process *process);

// What an order says to the node. What makes a worker rest is there before the call to rest; the
// generation was learned before all.
void tti_agent_write_board(tti_board *board, const tti_order *order);

// The agent's thread: says that the process lives and what it has done, does what it is told, ends
// the work when the master has given the process up, and begins anew when the master lets it.
void *tti_agent_main(void *process);

#endif
