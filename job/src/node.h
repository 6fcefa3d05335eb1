// A node: one thread that is a server or a worker and changes role at iteration boundaries. Of the
// job it knows the board alone.
//
// Threads: what is not said otherwise is used by the node's thread only.
#ifndef TTI_NODE_H
#define TTI_NODE_H

#include "board.h"
#include "tt/cluster_members.h"

enum { TTI_BATCHES_MAX = 10, TTI_COMPUTE_MAX = 4, TTI_AGGREGATION_MAX = 8 };

// What the knobs of one node set.
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
    float *each;                        // [batch rows] loss of each row; NULL: not wanted
} tti_compute_task;
TT_NODISCARD tt_status tti_compute_open(const tt_model *model,
                                        uint32_t max_rows,
                                        size_t floats_max,
                                        tti_compute **out);
// 1 .. TTI_COMPUTE_MAX threads, the caller's included. TT_NOMEM leaves the pool as it was.
tt_status tti_compute_resize(tti_compute *compute, uint32_t threads, int pin_to);
void tti_compute_run(tti_compute *compute, tti_compute_task *task);
// tt_model_curvature around a task that is done. work: 3 times task->floats. By the caller alone.
double tti_compute_curvature(tti_compute *compute,
                             const tti_compute_task *task,
                             double distance,
                             float *work);
void tti_compute_close(tti_compute *compute);

// Curvature of the loss, measured now and then (probe.c).
typedef struct tti_probe {
    float *work; // 3 times the parameters; NULL: it is not measured
    uint32_t pushes_left, every;
    float found; // since last taken; 0: nothing
} tti_probe;

typedef struct tti_node {
    tti_board *board;
    tti_standing *standing;
    const struct tti_watch *watch; // simulated hosts, else NULL
    // One that is never filled while its own are, or NULL; used while it opens.
    const tt_batch *beside;
    uint32_t index;
    uint32_t attempt; // which process of this number it is
    tt_thread thread;
    int64_t ahead_ns;     // this host's clock to the master's, relaxed; the agent writes it
    tt_ps_server *server; // messages only
    tt_ps_client *client; // messages only
    tt_outbox outbox;
    tt_knob_set *knobs;
    tt_knob_host host;
    tti_node_setting now;
    const tti_generation *adopted;
    int working; // acts as a worker
    // worker
    tti_compute *compute;
    tt_batch *batches[TTI_BATCHES_MAX];
    uint32_t batch_micro[TTI_BATCHES_MAX]; // pieces in it
    uint32_t batch_round[TTI_BATCHES_MAX], batch_slice[TTI_BATCHES_MAX];
    tti_again batch_name[TTI_BATCHES_MAX]; // of leased rows
    uint32_t batch_head, batch_count;      // prepared ones, a ring
    float *each;                           // losses of the rows of a batch
    float *params, *gradient;
    tti_probe probe;
    uint32_t *rows;
    // Rows of batches that were prepared for another push_aggregation: the next to be prepared.
    uint32_t *kept, kept_first, kept_count;
    uint64_t leased_before; // rows trained in earlier leases of this process
    tt_shard_cache cache;
    uint32_t round, slice;           // BSP: next item to prepare
    uint32_t clock;                  // SSP: iterations done
    int clock_ended;                 // SSP: nobody waits for it any more
    int clock_unknown;               // SSP: some server does not know it
    uint32_t lost_seen;              // the last death it has taken note of
    uint64_t boundary_ns, paused_ns; // of the cycle under way
    uint64_t cycle_ns;               // that the last one took
    int rows_to_come;                // it has no rows because the master has not sent them yet
    uint32_t redo_until;             // BSP: before this round, what is in already is asked first
    tti_slice_count *acknowledged;   // [slice_count] BSP: pushed by this process, and in everywhere
    int round_open;                  // the round begun last was begun with the gate open
    uint32_t gate_seen;              // the gate at the last boundary
} tti_node;

// With a server that begins under `first`, or joins those that are at work. board, standing, index
// and attempt are set. [control]
TT_NODISCARD tt_status tti_node_open(tti_node *node,
                                     const tt_ps_view *first,
                                     int joins,
                                     tt_error *err);
void tti_node_close(tti_node *node);
// Starts its thread.
TT_NODISCARD tt_status tti_node_start(tti_node *node, tt_error *err);
// It was declared dead, and has not heard of it yet.
int tti_node_is_expelled(const tti_node *node);
// Lets messages in and does what servers do meanwhile; waits at most timeout_ns when there is
// nothing. [node]
void tti_node_serve(tti_node *node, uint64_t timeout_ns);
void tti_node_adopt(tti_node *node);
// Waits while the master pauses the job. [node]
void tti_node_rest(tti_node *node);
int tti_stopping(const tti_board *board);
tt_ps_hooks tti_node_hooks(tti_node *node);
// node_knobs.c
const void *tti_node_extension(const tt_knob_host *host, const char *name);

// What it has counted. thread [any]
void tti_node_count(const tti_node *node, tti_counts *out);

// worker_batches.c
// Rows of the largest batch.
uint32_t tti_worker_rows_max(const tt_job *job);
// The rows of the batch prepared in `slot`.
uint32_t *tti_worker_rows(const tti_node *node, uint32_t slot);
// Prepares one more batch behind those that are ready. False when there is nothing more to train
// on. [node]
int tti_worker_prepare(tti_node *node);
// BSP: the first of this worker's slices from `from` on, or -1. [node]
int tti_worker_next_slice(const tti_node *node, uint32_t from);
// The number of iterations merged into a push has changed: what is prepared will be prepared anew.
// ASP, SSP. [node]
void tti_worker_regroup(tti_node *node);
// Rows that were taken and are not in a prepared batch, in the order in which they are trained.
uint32_t tti_worker_kept(const tti_node *node, uint32_t **rows);
// Rows of all prepared batches, and those.
uint64_t tti_worker_untrained(const tti_node *node);

// probe.c
// errors TT_NOMEM
TT_NODISCARD tt_status tti_probe_open(tti_node *node, size_t floats);
// After each push; measures when it is due. [node]
void tti_probe_pushed(tti_node *node, const tti_compute_task *task);
// What it found since last asked, or 0. [node]
float tti_probe_take(tti_node *node);
void tti_probe_close(tti_node *node);

// worker.c
TT_NODISCARD tt_status tti_worker_open(tti_node *node, tt_error *err);
void tti_worker_close(tti_node *node);
// One iteration (or one merged push). 0: nothing to do any more. [node]
int tti_worker_iterate(tti_node *node);
// Gives away what was prepared: the node becomes a server.
void tti_worker_retire(tti_node *node);
void tti_worker_join(tti_node *node);
// BSP: forgets prepared batches; they will be prepared again, from effective_round on, by whoever
// owns their slices then.
void tti_worker_rewind(tti_node *node, uint32_t effective_round);
// BSP: a worker has died. Goes back to the first round that may lack one of its slices.
void tti_worker_go_back(tti_node *node, const tt_ps_view *view);
uint32_t tti_worker_next_round(const tti_node *node);

#endif
