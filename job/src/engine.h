// Where the nodes are that do not share the master's memory: on simulated hosts, or in processes of
// this host. The runtime asks its job's engine to bring nodes up and to take them down; all else
// between the master and a node goes through two meshes, whose last end is the master's.
//
// Thread: the master's.
#ifndef TTI_ENGINE_H
#define TTI_ENGINE_H

#include "tt/core.h"

struct tt_job;
struct tti_runtime;

typedef struct tti_engine {
    // rt->mesh, of parameters, and rt->membership.control, of heartbeats, orders and reports.
    // errors TT_NOMEM, TT_IO
    tt_status (*open)(struct tti_runtime *rt, tt_error *err);
    // is_gone[node_count]: which nodes cannot begin now.
    void (*list_gone)(const struct tti_runtime *rt, uint8_t *is_gone);
    // Nodes that have ended can be begun anew: when too few are left, all go back to the last
    // checkpoint, and else the job fails.
    int goes_back;
    // Makes node n ready to begin under the newest generation. NULL: it brings all it needs when it
    // is started.
    tt_status (*open_node)(struct tti_runtime *rt, uint32_t n, tt_error *err);
    // Starts those that are not gone. errors TT_NOMEM, TT_PEER
    tt_status (*start)(struct tti_runtime *rt, tt_error *err);
    // Looks after them; called from every wait of the master. NULL: nothing to do.
    void (*watch)(struct tti_runtime *rt);
    // How the process of node n, which is dead, has ended, if that is known. NULL: it never is.
    int (*cause)(const struct tti_runtime *rt, uint32_t n, char *out, size_t size);
    // The nodes have ended, or will never.
    void (*stop)(struct tti_runtime *rt);
    void (*close)(struct tti_runtime *rt);
} tti_engine;

// NULL: nodes are threads. simulated_nodes.c, processes.c
const tti_engine *tti_engine_of(const struct tt_job *job);
extern const tti_engine tti_engine_simulated, tti_engine_processes;

#endif
