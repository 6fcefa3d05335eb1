// A host's process: beside the master, it starts the processes of nodes on this host and says when
// one has ended. It is forked while its caller has one thread, and has one thread for ever, so that
// it can fork a task at any time; what its caller had in memory the tasks have, too, and share
// until they write to it.
//
// No task outlives its host's process, and that one does not outlive its caller, unless the caller
// has bequeathed what a successor needs (tt_host_bequeath) and died: then it waits for one.
//
// Caveats: a task begins with the caller's memory, but without its threads and without any open
// descriptor besides those that it is handed and standard error.
#ifndef TT_CLUSTER_HOST_H
#define TT_CLUSTER_HOST_H

#include "tt/core.h"

enum { TT_HOST_DESCRIPTORS_MAX = 128 };

typedef struct tt_host tt_host;

// A task's whole life: its number, and the descriptors that it was handed. Returns its exit code.
// It runs in a process of its own.
typedef int tt_host_task(void *self, uint32_t task, const int *descriptors, uint32_t count);

typedef enum tt_host_news_kind {
    TT_HOST_STARTED, // `pid` is the task's process
    TT_HOST_ENDED,   // it has ended, as wait_status says (waitpid), or never began: -1
    TT_HOST_LOST,    // the host's process is gone, with all tasks; nothing more will come
} tt_host_news_kind;

typedef struct tt_host_news {
    tt_host_news_kind kind;
    uint32_t task;
    int pid, wait_status;
} tt_host_news;

// Of tasks 0 .. task_count - 1. errors TT_NOMEM, TT_IO. thread: the caller's only one
TT_NODISCARD tt_status
tt_host_open(uint32_t task_count, tt_host_task *body, void *self, tt_host **out, tt_error *err);
// Ends all tasks at once, and the host's process. NULL: nothing.
void tt_host_close(tt_host *host);
// Leaves it alone, as if this process had died: all that was bequeathed stays so. NULL: nothing.
void tt_host_release(tt_host *host);
// Starts a task of which no process is there. The descriptors are duplicated. errors TT_PEER the
// host's process is gone or stands still
TT_NODISCARD tt_status
tt_host_start(tt_host *host, uint32_t task, const int *descriptors, uint32_t count, tt_error *err);
// Ends a task at once. That it has ended is told later: when it is gone, or a tenth of a second
// after, for it runs no more then, and another may take its place. Nothing if it is not there.
void tt_host_kill(tt_host *host, uint32_t task);
// The next news, if there are any; does not wait.
int tt_host_next(tt_host *host, tt_host_news *out);

// If the caller dies from here on, the tasks and the host's process stay for so long, and a process
// of the same user that knows the name inherits these descriptors, which are duplicated. Takes the
// place of what was bequeathed before; the name stays as it was first said. errors TT_IO, TT_PEER
TT_NODISCARD tt_status tt_host_bequeath(tt_host *host,
                                        const char *name,
                                        uint64_t patience_ns,
                                        const int *descriptors,
                                        uint32_t count,
                                        tt_error *err);
// From here on all ends with the caller again.
void tt_host_forget(tt_host *host);

// What was bequeathed. The descriptors are the caller's.
typedef struct tt_host_estate {
    int descriptors[TT_HOST_DESCRIPTORS_MAX];
    uint32_t count;
    uint32_t task_count; // of the host's process
    int *pid;            // [task_count], the caller's: of the tasks that are there; 0: it is not
} tt_host_estate;

// The host's process that somebody has left behind, with its tasks and its memory as they are. It
// goes on as if the caller had opened it. errors TT_NOTFOUND there is none; TT_NOMEM
TT_NODISCARD tt_status tt_host_inherit(
    const char *name, uint32_t task_count, tt_host_estate *estate, tt_host **out, tt_error *err);

#endif
