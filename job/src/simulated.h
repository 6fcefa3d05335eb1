// A job on simulated hosts: which node is where, and what its code costs there. On any other engine
// the functions that charge do nothing.
#ifndef TTI_SIMULATED_H
#define TTI_SIMULATED_H

#include "node.h"

struct tti_process;
struct tti_runtime;

// Runs body(argument), which trains the job, on virtual time, and says what that took. errors
// TT_NOMEM; TT_PEER the simulation stands still
TT_NODISCARD tt_status tti_simulate(tt_job *job,
                                    void (*body)(void *argument),
                                    void *argument,
                                    tt_job_simulation *counters,
                                    tt_error *err);
TT_NODISCARD tt_status tti_simulated_mesh(struct tti_runtime *rt, tt_error *err);
// A network of its own for heartbeats, whose messages cost nothing and reach the master through
// what befalls the hosts.
TT_NODISCARD tt_status tti_simulated_control(struct tti_runtime *rt, tt_mesh **out, tt_error *err);
uint32_t tti_simulated_host(const tt_job *job, uint32_t node);
// is_gone[node_count]: whose host is not there now.
void tti_simulated_gone(const struct tti_runtime *rt, uint8_t *is_gone);

// Looks at the job beside its clock: called by the worker whose push makes the iterations reach the
// next multiple of `every`, in the simulation's one thread.
typedef struct tti_watch {
    uint64_t every; // 0: nobody looks
    void (*look)(void *self, uint64_t iterations);
    void *self;
    tti_work *seen; // counted by who sees everything at once
} tti_watch;

// Its node, about to be opened, uses memory of another one that is never busy at the same time.
void tti_simulated_share(struct tti_process *process);
// The calling fiber is this node's from now on. [node]
void tti_simulated_enter(const tti_node *node);
// The node has adopted a generation. [node]
void tti_simulated_adopted(const tti_node *node);
// The gradient of this task was computed. [node]
void tti_simulated_gradient(tti_node *node, const tti_compute_task *task);
void tti_simulated_probe(tti_node *node, const tti_compute_task *task);
// The push of the batch in `slot` is applied and measured. [node]
void tti_simulated_applied(const tti_node *node, uint32_t slot);
// A batch was prepared. [node]
void tti_simulated_prepare(const tti_node *node, const tt_batch *batch);

#endif
