// The process that starts the processes of nodes: see tt/cluster_host.h. It and its caller speak
// over a pair of sockets, in messages of fixed size.
#include "tt/cluster_host.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLOSE_TRIES = 1000 };

typedef enum call_kind { CALL_START, CALL_KILL } call_kind;

// From the caller. A start carries descriptors.
typedef struct call {
    call_kind kind;
    uint32_t task;
} call;

struct tt_host {
    int socket;
    pid_t pid;
    int lost;
};

// ---- messages with descriptors -----------------------------------------------------------------

typedef union descriptor_space {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(TT_HOST_DESCRIPTORS_MAX * sizeof(int))];
} descriptor_space;

static int
send_call(int socket, const call *what, const int *descriptors, uint32_t count)
{
    descriptor_space space = {0};
    struct iovec part = {(void *)(uintptr_t)what, sizeof *what};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &space;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                 .cmsg_level = SOL_SOCKET,
                                 .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *what;
}

// False when the other side is gone.
static int
receive_call(int socket, call *what, int *descriptors, uint32_t *count)
{
    descriptor_space space;
    struct iovec part = {what, sizeof *what};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof space};
    ssize_t got;
    *count = 0;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof *what)
        return 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head != NULL;
         head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
            *count = (uint32_t)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(descriptors, CMSG_DATA(head), *count * sizeof(int));
        }
    return 1;
}

// ---- the host's process ------------------------------------------------------------------------

typedef struct keeper {
    int socket, signals;
    pid_t self_pid;
    pid_t *pid; // [task_count], 0: not there
    uint32_t task_count;
    tt_host_task *body;
    void *self;
} keeper;

// What the caller does not hear because it is gone ends the keeper anyway.
static void
tell(const keeper *k, tt_host_news_kind kind, uint32_t task, int pid, int wait_status)
{
    const tt_host_news news = {kind, task, pid, wait_status};
    (void)send(k->socket, &news, sizeof news, MSG_NOSIGNAL);
}

// Ctrl-C is for the caller, which ends the job as it should be ended.
static void
leave_signals_to_caller(void)
{
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGHUP, SIG_IGN);
}

_Noreturn static void
run_task(const keeper *k, uint32_t task, const int *descriptors, uint32_t count)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != k->self_pid)
        _exit(1); // the keeper died before that was set
    (void)close(k->socket);
    (void)close(k->signals);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    char name[32]; // of which 15 bytes are shown
    (void)snprintf(name, sizeof name, "trimtab-n%u", task);
    (void)prctl(PR_SET_NAME, name);
    _exit(k->body(k->self, task, descriptors, count));
}

static void
start_task(keeper *k, uint32_t task, const int *descriptors, uint32_t count)
{
    pid_t pid = task < k->task_count && k->pid[task] == 0 ? fork() : -1;
    if (pid == 0)
        run_task(k, task, descriptors, count);
    if (pid < 0) {
        tell(k, TT_HOST_ENDED, task, 0, -1);
        return;
    }
    k->pid[task] = pid;
    tell(k, TT_HOST_STARTED, task, pid, 0);
}

static void
reap(keeper *k)
{
    struct signalfd_siginfo info;
    int status;
    (void)!read(k->signals, &info, sizeof info); // several may be told as one
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (uint32_t t = 0; t < k->task_count; t++)
            if (k->pid[t] == pid) {
                k->pid[t] = 0;
                tell(k, TT_HOST_ENDED, t, pid, status);
            }
}

_Noreturn static void
end_all(const keeper *k)
{
    for (uint32_t t = 0; t < k->task_count; t++)
        if (k->pid[t] != 0)
            (void)kill(k->pid[t], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    _exit(0);
}

static void
obey(keeper *k)
{
    call what;
    int descriptors[TT_HOST_DESCRIPTORS_MAX];
    uint32_t count;
    if (!receive_call(k->socket, &what, descriptors, &count))
        end_all(k);
    if (what.kind == CALL_START)
        start_task(k, what.task, descriptors, count);
    else if (what.task < k->task_count && k->pid[what.task] != 0)
        (void)kill(k->pid[what.task], SIGKILL);
    for (uint32_t i = 0; i < count; i++)
        (void)close(descriptors[i]);
}

// What the caller has open is its own; standard input and output go nowhere.
static void
close_descriptors(int socket)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere >= 0) {
        (void)dup2(nowhere, STDIN_FILENO);
        (void)dup2(nowhere, STDOUT_FILENO);
    }
    if (socket > 3)
        (void)close_range(3, (unsigned)socket - 1, 0);
    (void)close_range((unsigned)socket + 1, ~0U, 0);
}

_Noreturn static void
keep(keeper *k)
{
    sigset_t children;
    leave_signals_to_caller();
    close_descriptors(k->socket);
    (void)prctl(PR_SET_NAME, "trimtab-host");
    k->self_pid = getpid();
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_BLOCK, &children, NULL);
    k->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (k->signals < 0)
        _exit(1); // the caller hears that it is gone
    for (;;) {
        struct pollfd either[] = {{k->signals, POLLIN, 0}, {k->socket, POLLIN, 0}};
        if (poll(either, 2, -1) < 0 && errno != EINTR)
            end_all(k);
        if (either[0].revents != 0)
            reap(k);
        if (either[1].revents != 0)
            obey(k);
    }
}

// ---- the caller's side -------------------------------------------------------------------------

static tt_status
fork_keeper(keeper *k, int caller_socket, tt_host *host, tt_error *err)
{
    host->pid = fork();
    if (host->pid == 0) {
        (void)close(caller_socket);
        keep(k);
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
    pid_t *pids = tt_mem_zalloc(TT_MAX(task_count, 1u), sizeof *pids);
    if (host == NULL || pids == NULL) {
        tt_mem_free(host);
        tt_mem_free(pids);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the processes of nodes");
    }
    tt_status status = TT_OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        status = tt_error_set(err, TT_IO, NULL, NULL, "no sockets for the processes of nodes: %s",
                              tt_errno_text(errno));
    } else {
        keeper k = {
            .socket = pair[1], .pid = pids, .task_count = task_count, .body = body, .self = self};
        host->socket = pair[0];
        status = fork_keeper(&k, pair[0], host, err);
        (void)close(pair[1]);
        if (status != TT_OK)
            (void)close(pair[0]);
    }
    tt_mem_free(pids); // the keeper has its own
    if (status != TT_OK)
        tt_mem_free(host);
    else
        *out = host;
    return status;
}

void
tt_host_close(tt_host *host)
{
    if (host == NULL)
        return;
    (void)close(host->socket); // it ends
    const struct timespec pause = {0, 1000000};
    for (int tries = 0; waitpid(host->pid, NULL, WNOHANG) == 0; tries++) {
        if (tries == CLOSE_TRIES) // it stands still
            (void)kill(host->pid, SIGKILL);
        (void)nanosleep(&pause, NULL);
    }
    tt_mem_free(host);
}

tt_status
tt_host_start(tt_host *host, uint32_t task, const int *descriptors, uint32_t count, tt_error *err)
{
    TT_ASSERT(count <= TT_HOST_DESCRIPTORS_MAX);
    const call what = {CALL_START, task};
    if (!host->lost && send_call(host->socket, &what, descriptors, count))
        return TT_OK;
    return tt_error_set(err, TT_PEER, NULL, NULL, "the process that starts nodes does not answer");
}

void
tt_host_kill(tt_host *host, uint32_t task)
{
    const call what = {CALL_KILL, task};
    (void)send_call(host->socket, &what, NULL, 0);
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
