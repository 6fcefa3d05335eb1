// The process that starts the processes of nodes, its caller's side: see tt/cluster_host.h.
#include "host_calls.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLOSE_MS = 1000, INHERIT_S = 5 };

struct tt_host {
    int socket;
    pid_t pid;
    int lost;
    int listens; // it has the socket at which a successor asks
};

// ---- opening -----------------------------------------------------------------------------------

static tt_status
fork_keeper(tti_host_keeper *k, int caller_socket, tt_host *host, tt_error *err)
{
    host->pid = fork();
    if (host->pid == 0) {
        (void)close(caller_socket);
        tti_host_keep(k);
    }
    if (host->pid > 0)
        return TT_OK;
    return tt_error_set(err, TT_NOMEM, NULL, "raise the process limit (ulimit -u)",
                        "cannot start a process for the nodes: %s", tt_errno_text(errno));
}

tt_status
tt_host_open(uint32_t task_count, tt_host_task *body, void *self, tt_host **out, tt_error *err)
{
    int pair[2];
    *out = NULL;
    tt_host *host = tt_mem_zalloc(1, sizeof *host);
    tti_host_process *processes = tt_mem_zalloc(TT_MAX(task_count, 1u), sizeof *processes);
    if (host == NULL || processes == NULL) {
        tt_mem_free(host);
        tt_mem_free(processes);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the processes of nodes");
    }
    tt_status status = TT_OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        status = tt_error_set(err, TT_IO, NULL, NULL, "no sockets for the processes of nodes: %s",
                              tt_errno_text(errno));
    } else {
        tti_host_keeper k = {.socket = pair[1],
                             .process = processes,
                             .task_count = task_count,
                             .body = body,
                             .self = self};
        host->socket = pair[0];
        status = fork_keeper(&k, pair[0], host, err);
        (void)close(pair[1]);
        if (status != TT_OK)
            (void)close(pair[0]);
    }
    tt_mem_free(processes); // the keeper has its own
    if (status != TT_OK)
        tt_mem_free(host);
    else
        *out = host;
    return status;
}

// Until the other side of the socket is gone.
static int
has_hung_up(int socket)
{
    tt_host_news news;
    for (;;) {
        ssize_t got = recv(socket, &news, sizeof news, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return 1;
        if (got < 0 && errno == EAGAIN)
            return 0;
    }
}

// It may be a child of whoever was here before: then nobody but init waits for it.
void
tt_host_close(tt_host *host)
{
    const tti_host_call over = {.kind = TTI_HOST_CLOSE};
    const struct timespec pause = {0, 1000000};
    if (host == NULL)
        return;
    if (!tti_host_send(host->socket, &over, sizeof over, NULL, 0) && !host->lost)
        (void)kill(host->pid, SIGKILL); // it stands still
    for (int ms = 0; !has_hung_up(host->socket); ms++) {
        if (ms == CLOSE_MS)
            (void)kill(host->pid, SIGKILL);
        (void)nanosleep(&pause, NULL);
    }
    (void)close(host->socket);
    while (waitpid(host->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    tt_mem_free(host);
}

void
tt_host_release(tt_host *host)
{
    if (host == NULL)
        return;
    (void)close(host->socket);
    tt_mem_free(host);
}

// ---- calls and news ----------------------------------------------------------------------------

tt_status
tt_host_start(tt_host *host, uint32_t task, const int *descriptors, uint32_t count, tt_error *err)
{
    TT_ASSERT(count <= TT_HOST_DESCRIPTORS_MAX);
    const tti_host_call what = {.kind = TTI_HOST_START, .task = task};
    if (!host->lost && tti_host_send(host->socket, &what, sizeof what, descriptors, count))
        return TT_OK;
    return tt_error_set(err, TT_PEER, NULL, NULL, "the process that starts nodes does not answer");
}

void
tt_host_kill(tt_host *host, uint32_t task)
{
    const tti_host_call what = {.kind = TTI_HOST_KILL, .task = task};
    (void)tti_host_send(host->socket, &what, sizeof what, NULL, 0);
}

int
tt_host_next(tt_host *host, tt_host_news *out)
{
    if (host->lost)
        return 0;
    ssize_t got = recv(host->socket, out, sizeof *out, MSG_DONTWAIT);
    if (got == (ssize_t)sizeof *out)
        return 1;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    host->lost = 1;
    *out = (tt_host_news){.kind = TT_HOST_LOST};
    return 1;
}

// ---- successors --------------------------------------------------------------------------------

// In the abstract namespace: nothing of it is left when nobody has it open.
static socklen_t
address_of(const char *name, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t size = TT_MIN(strlen(name), sizeof out->sun_path - 1);
    memcpy(out->sun_path + 1, name, size);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
}

static tt_status
listen_at(tt_host *host, const char *name, tt_error *err)
{
    struct sockaddr_un address;
    socklen_t size = address_of(name, &address);
    const tti_host_call what = {.kind = TTI_HOST_LISTEN};
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int fine = listener >= 0 && bind(listener, (struct sockaddr *)&address, size) == 0 &&
               listen(listener, 4) == 0;
    int reason = errno;
    fine = fine && tti_host_send(host->socket, &what, sizeof what, &listener, 1);
    if (listener >= 0)
        (void)close(listener);
    host->listens = fine;
    return fine ? TT_OK
                : tt_error_set(err, TT_IO, NULL, NULL, "no socket for a successor: %s",
                               tt_errno_text(reason));
}

tt_status
tt_host_bequeath(tt_host *host,
                 const char *name,
                 uint64_t patience_ns,
                 const int *descriptors,
                 uint32_t count,
                 tt_error *err)
{
    TT_ASSERT(count > 0 && count <= TT_HOST_DESCRIPTORS_MAX);
    const tti_host_call what = {.kind = TTI_HOST_BEQUEATH, .patience_ns = patience_ns};
    if (!host->listens)
        TT_TRY(listen_at(host, name, err));
    if (!host->lost && tti_host_send(host->socket, &what, sizeof what, descriptors, count))
        return TT_OK;
    return tt_error_set(err, TT_PEER, NULL, NULL, "the process that starts nodes does not answer");
}

void
tt_host_forget(tt_host *host)
{
    const tti_host_call what = {.kind = TTI_HOST_FORGET};
    (void)tti_host_send(host->socket, &what, sizeof what, NULL, 0);
}

// The socket of who listens there under our own name, or -1.
static int
connect_to(const char *name)
{
    struct sockaddr_un address;
    struct ucred who;
    socklen_t size = address_of(name, &address), who_size = sizeof who;
    const struct timeval limit = {.tv_sec = INHERIT_S};
    int socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket_ < 0)
        return -1;
    if (setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        connect(socket_, (struct sockaddr *)&address, size) == 0 &&
        getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &who, &who_size) == 0 &&
        (who.uid == getuid() || who.uid == 0))
        return socket_;
    (void)close(socket_);
    return -1;
}

tt_status
tt_host_inherit(
    const char *name, uint32_t task_count, tt_host_estate *estate, tt_host **out, tt_error *err)
{
    tt_host_news news;
    uint32_t none;
    *out = NULL;
    estate->count = 0;
    tt_host *host = tt_mem_zalloc(1, sizeof *host);
    if (host == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the processes of nodes");
    host->socket = connect_to(name);
    int fine = host->socket >= 0 && tti_host_receive(host->socket, &news, sizeof news,
                                                     estate->descriptors, &estate->count);
    host->pid = news.pid;
    fine = fine && (int)news.kind == TTI_HOST_ESTATE;
    estate->task_count = news.task;
    memset(estate->pid, 0, task_count * sizeof *estate->pid);
    int unused[TT_HOST_DESCRIPTORS_MAX];
    while (fine && tti_host_receive(host->socket, &news, sizeof news, unused, &none) &&
           (int)news.kind != TTI_HOST_TOLD)
        if (news.task < task_count)
            estate->pid[news.task] = news.kind == TT_HOST_STARTED ? news.pid : 0;
    host->listens = 1;
    if (fine && (int)news.kind == TTI_HOST_TOLD) {
        *out = host;
        return TT_OK;
    }
    for (uint32_t i = 0; i < estate->count; i++)
        (void)close(estate->descriptors[i]);
    if (host->socket >= 0)
        (void)close(host->socket);
    tt_mem_free(host);
    return tt_error_set(err, TT_NOTFOUND, NULL, NULL, "no processes of this run are left");
}
