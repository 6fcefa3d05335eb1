// What a host's process (host_keeper.c) and its caller (host.c) say to each other: messages of
// fixed size over a socket, some with descriptors beside them.
#ifndef TTI_HOST_CALLS_H
#define TTI_HOST_CALLS_H

#include "tt/cluster_host.h"
#include <sys/types.h>

// From the caller.
typedef enum tti_host_call_kind {
    TTI_HOST_START, // a task, with its descriptors
    TTI_HOST_KILL,
    TTI_HOST_LISTEN,   // with the socket at which a successor will ask
    TTI_HOST_BEQUEATH, // with what the successor gets
    TTI_HOST_FORGET,   // there is nothing to be had any more
    TTI_HOST_CLOSE,    // all is over: the caller ends, and has not died
} tti_host_call_kind;

typedef struct tti_host_call {
    tti_host_call_kind kind;
    uint32_t task;
    uint64_t patience_ns; // for a successor
} tti_host_call;

// To a successor, before any news: the estate comes with its descriptors; then a TT_HOST_STARTED
// for each task that is there; then that this was all.
enum { TTI_HOST_ESTATE = 100, TTI_HOST_TOLD };

// Without waiting; false when there is no room or nobody.
int
tti_host_send(int socket, const void *what, size_t size, const int *descriptors, uint32_t count);
// Waits. False when the other side is gone, or what came is of another size.
int tti_host_receive(int socket, void *what, size_t size, int *descriptors, uint32_t *count);

typedef struct tti_host_process {
    pid_t pid;          // 0: not there
    uint64_t killed_ns; // when it was, or was seen to be; 0: it was not
} tti_host_process;

typedef struct tti_host_keeper {
    int socket; // -1: nobody is there
    int listener, signals;
    pid_t self_pid;
    tti_host_process *process; // [task_count]
    uint32_t task_count;
    tt_host_task *body;
    void *self;
    // What a successor gets; none: all ends with the caller.
    int estate[TT_HOST_DESCRIPTORS_MAX];
    uint32_t estate_count;
    uint64_t patience_ns, alone_until_ns;
    uint64_t looked_ns; // when it was last looked whether somebody else has killed a task
} tti_host_keeper;

// Whether a process was sent a SIGKILL, by anybody, and may not be gone yet.
int tti_host_is_killed(pid_t pid);
// The host's process: a child that was forked just now.
_Noreturn void tti_host_keep(tti_host_keeper *keeper);

#endif
