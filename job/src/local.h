// A job whose nodes are processes of this host: the master's side (engine local, engine.h) and what
// such a process does. They share the memory of two meshes, and what the job had opened before it
// began: data, model, search space.
#ifndef TTI_LOCAL_H
#define TTI_LOCAL_H

#include "tt/cluster_host.h"

struct tt_job;
struct tti_runtime;

// One node's process, as the master knows it.
typedef struct tti_local_node {
    int pid;         // 0: not there
    int is_fresh;    // begun after the death of the one before, and without work so far
    int is_killed;   // its end was asked for
    int wait_status; // of the last one that has ended, when has_ended
    int has_ended;
    uint64_t begun_ns, next_ns; // when it was begun; not begun anew before
} tti_local_node;

typedef struct tti_local {
    int mesh, control;    // the descriptors of their memory
    int is_lost;          // nobody can start processes any more
    tti_local_node *node; // [node_count]
} tti_local;

// While the job trains, whichever runtime is at work.
typedef struct tti_local_host {
    tt_host *host;
    uint32_t *deaths; // [node_count]: how often in a row its process has ended soon after it began
} tti_local_host;

// The process that starts the nodes' (tt/cluster_host.h), before anything of the run is open. Of
// another engine nothing is done. thread: the process's only one. errors TT_NOMEM, TT_IO
TT_NODISCARD tt_status tti_local_open(struct tt_job *job, tt_error *err);
void tti_local_close(struct tt_job *job);

// local_task.c: the whole life of a node's process (tt_host_task); self: the job.
int tti_local_task(void *self, uint32_t task, const int *descriptors, uint32_t count);

#endif
