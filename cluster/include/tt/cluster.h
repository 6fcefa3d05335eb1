// cluster: where nodes live. This header: simulated hosts, with processors, a virtual clock and a
// virtual network, on which the code of a real job runs unchanged. Beside it: processes of this
// host (tt/cluster_host.h), and who is there (tt/cluster_members.h).
//
// One operating system thread runs everything. What is a thread elsewhere is a fiber here, with a
// stack of its own; while the simulation runs, threads, events and the mesh of frames (tt/core.h,
// tt/comm.h) are the simulation's. Code takes no time by itself: what it would cost is said by
// whoever knows (tt_sim_owe, tt_sim_work) and spent on the fiber's host, where fibers queue for the
// cores. Equal seeds and inputs give equal runs, to the last bit.
//
// Caveats: a fiber gives way only where it waits, works or flushes; a loop that polls without
// waiting stands still for ever.
#ifndef TT_CLUSTER_H
#define TT_CLUSTER_H

#include "tt/cluster_members.h"
#include "tt/comm.h"
#include "tt/core.h"

typedef struct tt_sim tt_sim;

enum { TT_SIM_NOWHERE = UINT32_MAX }; // a host on which nothing costs anything: the master's

typedef struct tt_sim_host {
    double cores; // threads that run at full speed at the same time, > 0
    double speed; // work done in a second, relative to what costs were measured on, > 0
} tt_sim_host;

// What goes wrong, from begin_s to end_s. Messages between two nodes of one host are in memory:
// nothing happens to them, nor to the messages of who is nowhere.
typedef enum tt_sim_fault_kind {
    TT_SIM_DROP,      // a share of the messages is lost
    TT_SIM_DUPLICATE, // comes twice, the second time later by an exponential time of mean `seconds`
    TT_SIM_DELAY,     // comes later by such a time, and what follows behind it
    TT_SIM_REORDER,   // comes later by such a time, and what follows may overtake it
    TT_SIM_CUT_OFF,   // nothing passes between these hosts and the others
    TT_SIM_PAUSE,     // the host stands still; what is sent to it waits
    TT_SIM_SLOW,      // the host is slower by `factor`
    // The host stops, with all that runs and all that is stored there in memory; at end_s it is
    // empty and there again. With `messages` it stops when it has sent or handled so many since
    // begin_s, and is there again (end_s - begin_s) later.
    TT_SIM_CRASH,
    // The host's clock jumps ahead by `seconds`, and gains (factor - 1) seconds a second until
    // end_s; what it is ahead then, it stays.
    TT_SIM_SKEW,
    TT_SIM_NARROW, // the network card of the host carries 1 / `factor` as many bytes a second
} tt_sim_fault_kind;

enum { TT_SIM_ANY = UINT32_MAX };

typedef struct tt_sim_fault {
    tt_sim_fault_kind kind;
    // Messages: hosts that send and receive, or TT_SIM_ANY. Hosts: the first and the last of them,
    // or from TT_SIM_ANY: all.
    uint32_t from, to;
    double share, seconds, factor;
    uint64_t messages;
    double begin_s, end_s;
} tt_sim_fault;

typedef struct tt_sim_options {
    uint32_t host_count;
    const tt_sim_host *hosts; // [host_count], copied
    uint32_t fault_count;
    const tt_sim_fault *faults; // [fault_count], copied
    uint64_t seed;              // of faults and of the jitter of networks
    double pause_s;             // one turn of a spinning wait
    double wake_s;              // from a signal to the first step of a fiber that slept, if a core
                                // of its host is idle
    FILE *trace;                // one line an event, for people; NULL: none. Borrowed
    double signal_s;            // of whoever wakes a sleeper then
    double change_s;            // work of a fiber that slept, if all cores are busy when it wakes
} tt_sim_options;

TT_NODISCARD tt_status tt_sim_open(const tt_sim_options *options, tt_sim **out, tt_error *err);
void tt_sim_close(tt_sim *sim);
// Runs body(argument) as a fiber on TT_SIM_NOWHERE, and whatever it starts, until it returns; by
// then it must have joined all it started. errors TT_NOMEM; TT_PEER nobody can ever go on
TT_NODISCARD tt_status tt_sim_run(tt_sim *sim,
                                  void (*body)(void *argument),
                                  void *argument,
                                  tt_error *err);

// ---- from within a fiber ----------------------------------------------------------------------

// Virtual nanoseconds since the simulation was opened, as the clock of the calling fiber's host
// shows them; never less than before. thread: the simulation's
tt_clock tt_sim_clock(tt_sim *sim);
// The same without any host's error: the master's.
tt_clock tt_sim_true_clock(tt_sim *sim);
// The calling fiber runs on `host` from now on.
void tt_sim_settle_on(tt_sim *sim, uint32_t host);
// Adds to what the calling fiber has to work before its next wait or flush.
void tt_sim_owe(tt_sim *sim, double seconds);
// Works off what is owed and `seconds` more, on `threads` cores at once if they are free; seconds
// are of one thread, all of them working so long.
void tt_sim_work(tt_sim *sim, double seconds, uint32_t threads);

// Calls on_host when a host has crashed (up 0) and when it is there again; between fibers, which it
// may start. A thread that ran on a host that crashed can be joined, as if it had returned. NULL:
// nobody is told any more.
void
tt_sim_watch_hosts(tt_sim *sim, void (*on_host)(void *self, uint32_t host, int up), void *self);
int tt_sim_host_is_up(const tt_sim *sim, uint32_t host);

// Ends another fiber where it stands: what it holds is lost. It can be joined, as if it had
// returned; not for one that has been joined.
void tt_sim_kill(tt_sim *sim, tt_thread *thread);

// A line of the trace, with the time before it.
void tt_sim_trace(tt_sim *sim, const char *format, ...) TT_PRINTF(2, 3);

typedef struct tt_sim_counters {
    uint64_t events, switches, fibers;     // acted upon; into fibers; started
    uint64_t dropped, duplicated, delayed; // messages
    uint64_t crashes;                      // of hosts
} tt_sim_counters;
// How busy the busiest host was, shares of the time so far: of its cores, and of its network card.
typedef struct tt_sim_load {
    double cores, network;
} tt_sim_load;
void tt_sim_load_read(const tt_sim *sim, tt_sim_load *out);
void tt_sim_counters_read(const tt_sim *sim, tt_sim_counters *out);

// ---- the network ------------------------------------------------------------------------------

typedef struct tt_sim_network {
    double bytes_per_s;      // of a host's network card, each way
    double latency_s;        // between two hosts
    double local_latency_s;  // between two nodes of one host
    double oversubscription; // hosts' cards together, over what the switch carries; >= 1
    double jitter;           // log of the spread of latency
    int nowhere_is_far;      // what goes to and from TT_SIM_NOWHERE takes the latency, too, and
                             // suffers faults of messages and of being cut off
    // What it costs `node`'s processor to send or receive a frame that travels in so many chunks.
    // NULL: nothing. thread: the fiber that sends or receives
    double (*cost_s)(
        void *self, uint32_t node, const tt_frame *frame, uint32_t chunks, int sending);
    void *cost_self;
} tt_sim_network;

// A mesh (tt/comm.h) whose node i is on host_of_node[i], copied. It must be closed before the
// simulation.
TT_NODISCARD tt_status tt_sim_mesh_open(tt_sim *sim,
                                        const tt_sim_network *network,
                                        uint32_t node_count,
                                        const uint32_t *host_of_node,
                                        tt_mesh **out,
                                        tt_error *err);

#endif
