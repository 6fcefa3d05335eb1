// A job while it runs: nodes (threads), what is published to them and what they report.
//
// Threads: the master (the thread that called tt_job_run) and one per node. The master publishes
// generations, pauses and stops; a node adopts at its iteration boundaries. Stop order: workers
// first (their pushes complete), then servers.
#ifndef TTI_RUNTIME_H
#define TTI_RUNTIME_H

#include "checkpoint_file.h"
#include "job_internal.h"
#include "tt/cluster_members.h"

enum { TTI_BATCHES_MAX = 10, TTI_COMPUTE_MAX = 4, TTI_AGGREGATION_MAX = 8 };
// Measurement records there is room for: of a node, and about so many of all together (12 MB).
enum { TTI_RECORDS_MAX = 8192, TTI_RECORDS_MIN = 1024, TTI_RECORDS_TOTAL = 1 << 18 };

// What one iteration measured; fixed size, written by its worker, read by the master.
typedef struct tti_record {
    uint64_t sequence;   // apply order over the job
    uint64_t generation; // adopted when it pulled
    uint64_t done_ns, cycle_ns;
    uint32_t worker, examples;
    float loss;
    float staleness; // iterations applied between its pull and its push
} tti_record;

typedef struct tti_records {
    _Alignas(64) uint64_t written; // by the worker; release
    uint64_t lost;                 // found no room
    _Alignas(64) uint64_t read;    // by the master; release
    tti_record *slots;             // [capacity]
    uint32_t capacity;
} tti_records;

// One published state of the job. Immutable; freed when every node has adopted a later one.
typedef struct tti_generation {
    tt_ps_view *view;
    tt_setting setting;
    struct tti_generation *previous;
} tti_generation;

// What the knobs of one node set; used by that node's thread only.
typedef struct tti_node_setting {
    uint32_t compute_threads, in_flight, prefetch, aggregation, staleness, spin;
    int bf16, pinning;
    const tt_vec_ops *ops;
} tti_node_setting;

// A pool of helper threads of one worker.
typedef struct tti_compute tti_compute;
typedef struct tti_compute_task {
    const tt_model *model;
    const tt_vec_ops *ops;
    const tt_batch *batch;
    uint32_t micro_rows,
        micro_count; // the batch is micro_count pieces of micro_rows rows (the last may be short)
    float scale;
    const float *params;
    float *gradient; // complete when the task is done
    size_t floats;
    double losses[TTI_AGGREGATION_MAX]; // sums per piece
} tti_compute_task;
TT_NODISCARD tt_status tti_compute_open(const tt_model *model,
                                        uint32_t max_rows,
                                        size_t floats_max,
                                        tti_compute **out);
// 1 .. TTI_COMPUTE_MAX threads, the caller's included. TT_NOMEM leaves the pool as it was.
tt_status tti_compute_resize(tti_compute *compute, uint32_t threads, int pin_to);
void tti_compute_run(tti_compute *compute, tti_compute_task *task);
void tti_compute_close(tti_compute *compute);

struct tti_runtime;

typedef struct tti_node {
    struct tti_runtime *rt;
    uint32_t index;
    uint32_t attempt; // which process of this number it is
    tt_thread thread;
    // Its host's part (agent.c), where processes can die.
    tt_thread agent;
    tt_pulse pulse;
    int64_t ahead_ns; // this host's clock to the master's, relaxed; the agent writes it
    int crashed; // the process has ended where it stood; [master and the simulation, in turns]
    tt_ps_server *server; // messages only
    tt_ps_client *client; // messages only
    tt_outbox outbox;
    tt_knob_set *knobs;
    tt_knob_host host;
    tti_node_setting now;
    const tti_generation *adopted;
    uint64_t adopted_generation; // release; acquired by the master
    int working;                 // acts as a worker
    // worker
    tti_compute *compute;
    tt_batch *batches[TTI_BATCHES_MAX];
    uint32_t batch_micro[TTI_BATCHES_MAX]; // pieces in it
    uint32_t batch_round[TTI_BATCHES_MAX], batch_slice[TTI_BATCHES_MAX];
    uint32_t batch_head, batch_count; // prepared ones, a ring
    float *params, *gradient;
    uint32_t *rows;
    tt_shard_cache cache;
    uint32_t round, slice;           // BSP: next item to prepare
    uint32_t clock;                  // SSP: iterations done
    int clock_ended;                 // SSP: nobody waits for it any more
    int clock_unknown;               // SSP: some server does not know it
    uint32_t lost_seen;              // the last death it has taken note of
    uint64_t boundary_ns, paused_ns; // of the cycle under way
    uint32_t redo_until;             // BSP: before this round, what is in already is asked first
    uint32_t resting;                // for which call to rest, 0: for none; release
    int finished;                    // worker has reached a limit; release
    int left;                        // the thread has ended its work; release
    uint32_t clock_seen;             // copies for the master, relaxed
    uint32_t
        round_begun;    // BSP: stored (seq) before the gate is looked at; read by the master (seq)
    int round_open;     // that round was begun with the gate open
    uint32_t gate_seen; // the gate at the last boundary
    uint32_t working_seen;
    uint64_t batches_ready, batches_waited, iterations; // relaxed
    uint64_t wait_max_ns; // longest on a moving partition since last asked, relaxed
    tti_records records;
} tti_node;

// Messages and batches over all nodes of a runtime, or of several one after the other.
typedef struct tti_traffic {
    uint64_t frames, bytes, chunks, sleeps, pushes, batches_ready, batches_waited;
    uint64_t moving_wait_count;
} tti_traffic;

// Nodes that die and come back (membership.c); the master's. Only where they can.
typedef struct tti_membership {
    int on;
    tt_mesh *control; // heartbeats; its last end is the master's
    tt_members members;
    int stop_agents; // release
    // Nothing but going back to the last checkpoint keeps all parameters of one moment (BSP); or
    // there are not enough nodes left. [nodes and master, in turns]
    int must_go_back, must_fail;
    uint32_t deaths, returns;
    // The last checkpoint, while partitions are being restored from it.
    tti_checkpoint file;
    tt_ps_state *state;
    // Finds it. errors TT_NOTFOUND there is none yet
    tt_status (*find_checkpoint)(void *self, tti_checkpoint *out, tt_error *err);
    void (*on_event)(void *self, const char *text);
    void *self; // of these
} tti_membership;

// Rounds of one slice: `next` - 1 - i was counted if bit i of `counted` is set. Acknowledgements
// may come late, so that the round after is counted before. [nodes, in turns]
typedef struct tti_slice_count {
    uint32_t next;
    uint64_t counted;
} tti_slice_count;

// Looks at the job beside its clock (simulated hosts only): called by the worker whose push makes
// the iterations reach the next multiple of `every`, in the simulation's one thread.
typedef struct tti_watch {
    uint64_t every; // 0: nobody looks
    void (*look)(void *self, uint64_t iterations);
    void *self;
} tti_watch;

typedef struct tti_runtime {
    const tt_job *job;
    tti_watch watch;
    tt_clock clock;
    uint32_t node_count;
    tt_mesh *mesh;      // messages; its last end is the master's
    tt_ps_store *store; // in place
    tt_ledger *ledger;
    tti_node *nodes; // [node_count + 1]; the last is the master, as a reader
    tti_membership membership;
    tti_traffic lost_traffic;      // of processes that have ended
    tt_ps_client *reader;          // master's, for evaluation
    const tti_generation *current; // release; acquired by nodes
    tti_generation *newest;        // master's own pointer to the same
    // raised by the master: release; acquired by nodes
    int stop, pause, stop_servers;
    int interrupt;    // stop or pause, for waits inside the store
    tt_event resume;  // the end of a pause, or stop
    uint64_t applied; // iterations applied, relaxed add
    // BSP, where nodes can die: which rounds of a slice were counted among `applied`
    tti_slice_count slice_counts[TT_PS_SLICES_MAX];
    uint64_t examples_trained; // relaxed add
    // Generation of a partition's move that is under way, or 0; and how many are: they still have
    // to leave their old server, or to be restored. Taken back by servers.
    uint32_t *moving; // [partition_count]
    uint32_t unretired;
    uint64_t example_limit; // ASP, SSP: workers end when so many were taken; relaxed
    uint32_t round_limit;   // BSP; relaxed
    // BSP: odd while the master chooses the round of a new generation; nobody begins a round then
    // (seq)
    uint32_t gate;
    uint32_t hold_round;           // BSP: workers rest before they begin it; release
    uint32_t rest_call;            // number of the pause or hold asked for; after it; release
    uint64_t retry_ns;             // a request without an answer for so long is sent again
    uint64_t start_ns, elapsed_ns; // elapsed: on the job's clock when it starts
    // rows that were prepared by nodes which then became servers, to be trained by others
    pthread_mutex_t orphans_lock;
    uint32_t *orphans; // guarded by orphans_lock
    size_t orphan_count, orphan_capacity;
    uint32_t orphans_there;           // relaxed hint
    tt_event bell;                    // for the master: something is worth a look
    int discard;                      // what is trained from here on is not wanted; release
    double load_model_s, load_data_s; // spent in tti_runtime_load
} tti_runtime;

// A saved runtime to go on from.
typedef struct tti_restore {
    const uint8_t *bytes; // as tti_runtime_save wrote them; NULL: from the beginning
    size_t count;
    double elapsed_s;            // on the job's clock
    uint32_t generation;         // the first one's number
    const tt_ps_view *placement; // whose partitions go where this says; NULL: dealt out anew
} tti_restore;

// runtime.c
// restore: what tti_runtime_save wrote, with when; NULL: from the beginning.
TT_NODISCARD tt_status tti_runtime_open(const tt_job *job,
                                        const tt_setting *start,
                                        const tti_restore *restore,
                                        tti_runtime **out,
                                        tt_error *err);
tt_status tti_runtime_start(tti_runtime *rt, tt_error *err);
// Publishes a view and setting as the generation in force; takes the view.
TT_NODISCARD tt_status tti_runtime_publish(tti_runtime *rt,
                                           tt_ps_view *view,
                                           const tt_setting *setting,
                                           uint32_t *shards_moved);
// The clock with which joining workers begin, and under BSP the round from which a new generation
// holds: the first that nobody has begun. The gate must be closed.
void tti_runtime_horizon(const tti_runtime *rt, uint32_t *clock, uint32_t *round);
// BSP: closes the gate, or opens it (see may_begin_round).
void tti_runtime_turn_gate(tti_runtime *rt);
// Frees generations that no node uses any more.
void tti_runtime_collect(tti_runtime *rt);
void tti_runtime_wake_all(tti_runtime *rt);
// Of the workers, which is to be awaited; what makes them rest is said before.
void tti_runtime_call_to_rest(tti_runtime *rt);
// Every worker at rest; true when so within the time.
int tti_runtime_pause(tti_runtime *rt);
// True when they all are within the time.
int tti_runtime_await_rest(tti_runtime *rt);
void tti_runtime_resume(tti_runtime *rt);
void tti_runtime_stop(tti_runtime *rt);
void tti_runtime_close(tti_runtime *rt);
// Closes it although iterations are under way: they are given up.
void tti_runtime_abandon(tti_runtime *rt);
// Every node that is there has adopted the newest generation and does in it what it is to do, and
// no partition is on its way.
int tti_runtime_settled(const tti_runtime *rt);
// Adds what its nodes counted.
void tti_runtime_traffic(const tti_runtime *rt, tti_traffic *sum);
// Iterations applied so far: pushes, merged ones counted as many; under BSP rounds.
uint64_t tti_runtime_iterations(const tti_runtime *rt);
uint32_t tti_runtime_workers(const tti_runtime *rt);
void tti_runtime_bytes(const tti_runtime *rt, uint64_t *carried, uint64_t *drained);
// The whole model as it would be saved, [table rows][width]. Training goes on meanwhile unless
// paused.
// errors TT_PEER nobody will ever answer: too few nodes are left; TT_BUSY all are about to go back
// to a checkpoint (BSP), and some partition waits for a round that does not end
tt_status tti_runtime_read_model(tti_runtime *rt, float *out, tt_error *err);
// The error that says so.
tt_status tti_runtime_deserted(tt_error *err);
// The same out of the servers' memory, without a message; simulated hosts only.
void tti_runtime_peek_model(const tti_runtime *rt, float *out);

// runtime_state.c: everything but the nodes' threads, as bytes. Data position, rows taken and not
// trained, parameters with optimiser state.
// Every worker at rest, nothing half done, and under BSP all in front of the same round; true when
// so within the time. No partition may be on its way. Ended by tti_runtime_go_on.
int tti_runtime_hold(tti_runtime *rt);
void tti_runtime_go_on(tti_runtime *rt);
// While held, or stopped. Faults are in the archive's status.
void tti_runtime_save(tti_runtime *rt, tt_archive *out);
uint64_t tti_runtime_save_bytes(const tti_runtime *rt);
// Of a runtime whose parts were just opened. errors TT_CORRUPT, TT_INVALID another model; TT_NOMEM
TT_NODISCARD tt_status tti_runtime_load(tti_runtime *rt, const tti_restore *restore, tt_error *err);

// The parameters' part of what tti_runtime_save wrote. errors TT_CORRUPT, TT_INVALID, TT_NOMEM
TT_NODISCARD tt_status tti_runtime_open_saved(
    tti_runtime *rt, const uint8_t *bytes, uint64_t count, tt_ps_state **out, tt_error *err);

// runtime.c, for processes that begin and end while the job runs
TT_NODISCARD tt_status tti_node_open(tti_node *node, tt_error *err);
void tti_node_close(tti_node *node);

// membership.c [master]
TT_NODISCARD tt_status tti_membership_open(tti_runtime *rt, tt_error *err);
// Lets heartbeats in, declares who is dead, publishes deaths and returns. From every wait of the
// master.
void tti_membership_watch(tti_runtime *rt);
// How long the master may wait before it watches again, at most most_ns.
uint64_t tti_membership_wait_ns(const tti_runtime *rt, uint64_t most_ns);
TT_NODISCARD tt_status tti_membership_start(tti_runtime *rt, tt_error *err);
void tti_membership_stop(tti_runtime *rt);
void tti_membership_close(tti_runtime *rt);

// agent.c: what starts and ends a node's process on its host.
void *tti_agent_main(void *self);

// node.c
void *tti_node_main(void *self);
// It was declared dead, and has not heard of it yet.
int tti_node_is_expelled(const tti_node *node);
// Lets messages in and does what servers do meanwhile; waits at most timeout_ns when there is
// nothing. [node]
void tti_node_serve(tti_node *node, uint64_t timeout_ns);
void tti_node_adopt(tti_node *node);
// Waits while the master pauses the job. [node]
void tti_node_rest(tti_node *node);
int tti_stopping(const tti_runtime *rt);
tt_ps_hooks tti_node_hooks(tti_node *node);
// node_knobs.c
const void *tti_node_extension(const tt_knob_host *host, const char *name);

// worker.c
TT_NODISCARD tt_status tti_worker_open(tti_node *node, tt_error *err);
void tti_worker_close(tti_node *node);
// The rows of the batch prepared in `slot`.
uint32_t *tti_worker_rows(const tti_node *node, uint32_t slot);
// One iteration (or one merged push). 0: nothing to do any more. [node]
int tti_worker_iterate(tti_node *node);
// Gives away what was prepared: the node becomes a server.
void tti_worker_retire(tti_node *node);
// What a process that has ended took and had not trained is given to others. [master]
void tti_worker_bury(const tti_node *node);
void tti_worker_join(tti_node *node);
// BSP: forgets prepared batches; they will be prepared again, from effective_round on, by whoever
// owns their slices then.
void tti_worker_rewind(tti_node *node, uint32_t effective_round);
// BSP: a worker has died. Goes back to the first round that may lack one of its slices.
void tti_worker_go_back(tti_node *node, const tt_ps_view *view);
uint32_t tti_worker_next_round(const tti_node *node);

// records.c
TT_NODISCARD tt_status tti_records_open(tti_records *records, uint32_t node_count);
void tti_records_put(tti_records *records, const tti_record *record);
uint32_t tti_records_take(tti_records *records, tti_record *out, uint32_t capacity);

#endif
