// A job whose nodes are processes: what the master knows of them (processes.c, an engine,
// engine.h), and how they come to be: on this host (local.c) or on hosts that a remote shell
// reaches (remote.c). What such a process does is in node_task.c.
//
// Thread: the master's.
#ifndef TTI_PROCESSES_H
#define TTI_PROCESSES_H

#include "journal.h"
#include "tt/cluster_host.h"
#include "tt/comm.h"

struct tt_job;
struct tti_runtime;
struct tti_starter;

// How a process ended of which no waitpid tells.
enum {
    TTI_NOT_BEGUN = -1, // it could not be started
    TTI_UNSEEN = -2,    // there was no master to be told
    TTI_HOST_LOST = -3, // with its host, as far as the master can know
};

// One node's process.
typedef struct tti_node_process {
    int pid;         // 0: not there; -1: not known yet
    int is_fresh;    // begun after the death of the one before, and without work so far
    int is_killed;   // its end was asked for
    int wait_status; // of the last one that has ended, when has_ended
    int has_ended;
    uint64_t begun_ns, next_ns; // when it was begun; not begun anew before
} tti_node_process;

// Of one runtime.
typedef struct tti_processes {
    int is_lost;            // nobody can start processes any more
    tti_node_process *node; // [node_count]
} tti_processes;

typedef struct tti_starter_verbs {
    // rt->mesh and rt->membership.control, and what processes need to reach them.
    tt_status (*open_meshes)(struct tti_runtime *rt, tt_error *err);
    // Before nodes are begun: waits, for a while, for places that will be there soon. NULL:
    // nothing.
    void (*settle)(struct tti_starter *starter);
    // Whether node n's process can be started now; NULL: always.
    int (*can_start)(const struct tti_starter *starter, uint32_t n);
    // Node n's process, which begins with these bytes (node_task.h). errors TT_PEER, TT_NOMEM
    tt_status (*start)(
        struct tti_runtime *rt, uint32_t n, const uint8_t *begin, size_t size, tt_error *err);
    void (*kill)(struct tti_starter *starter, uint32_t n);
    const char *(*host_of)(const struct tti_starter *starter, uint32_t n);
    int (*next)(struct tti_starter *starter, tt_host_news *out); // as tt_host_next
    // Connections that it refused for itself; NULL: it has none.
    uint64_t (*refused)(const struct tti_starter *starter);
    // If this process dies, nodes and meshes stay for so long for whoever resumes the run, with
    // this journal; and no more. NULL: they always end with this process.
    tt_status (*bequeath)(struct tti_starter *starter,
                          const char *run_dir,
                          int journal,
                          uint64_t patience_ns,
                          tt_error *err);
    void (*forget)(struct tti_starter *starter);
    // Lets go of inherited nodes, which wait for somebody else.
    void (*release)(struct tti_starter *starter);
    // What open_meshes made and no other runtime can use; NULL: nothing.
    void (*close_meshes)(struct tti_starter *starter);
    void (*close)(struct tti_starter *starter);
} tti_starter_verbs;

// While the job trains, whichever runtime is at work.
typedef struct tti_starter {
    const tti_starter_verbs *verbs;
    uint32_t *deaths; // [node_count]: how often in a row its process has ended soon after it began
    // Of another master, whose nodes are still there: their processes, and its journal. The next
    // runtime goes on with them.
    int inherits;
    int *pid; // [node_count]
    tti_journal journal;
    void *self; // the engine's own
} tti_starter;

// Of engines local and ssh, before anything of the run is open; of another engine nothing is done.
// run_dir: of a run that goes on, whose nodes may still be there; NULL: of a new one.
// thread: the process's only one. errors TT_NOMEM, TT_IO, TT_PEER
TT_NODISCARD tt_status tti_processes_open(struct tt_job *job, const char *run_dir, tt_error *err);
void tti_processes_close(struct tt_job *job);
// The same, but nodes that were inherited are left alone.
void tti_processes_release(struct tt_job *job);

// Under which name what a master leaves is kept: the same for all names of a run's directory, and
// another for every directory. errors TT_NOTFOUND
TT_NODISCARD tt_status tti_processes_name(const char *run_dir,
                                          char *name,
                                          size_t size,
                                          tt_error *err);

// Where node n's process is, and its number there (0: it is not). False: nodes are no processes.
int
tti_processes_where(const struct tti_runtime *rt, uint32_t n, int *pid, char *host, size_t size);

// Connections that the engine refused beside those of the runtime's meshes.
uint64_t tti_processes_refused(const struct tti_runtime *rt);

// Numbers that are the same for nodes of one host: host[node_count]. False: nodes are no processes.
int tti_processes_hosts(const struct tti_runtime *rt, uint16_t *host);

// local.c
TT_NODISCARD tt_status tti_local_open(struct tt_job *job,
                                      const char *run_dir,
                                      tti_starter *out,
                                      tt_error *err);
// remote.c
TT_NODISCARD tt_status tti_remote_open(struct tt_job *job,
                                       const char *run_dir,
                                       tti_starter *out,
                                       tt_error *err);

#endif
