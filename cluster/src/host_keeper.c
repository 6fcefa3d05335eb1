// The host's process: see tt/cluster_host.h. It starts tasks, tells how they end, and outlives a
// caller that died for as long as a successor may come.
#include "host_calls.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// How long the end of one that was killed is awaited. It runs no more, but the system may take
// longer to free its memory and files; another one may then be started in its place.
#define KILLED_NS UINT64_C(100000000)
// Whether somebody else has killed one is looked at so often.
#define LOOK_NS UINT64_C(250000000)

static uint64_t
now_ns(void)
{
    tt_clock clock = tt_clock_monotonic();
    return tt_clock_now(&clock);
}

_Noreturn static void
end_all(const tti_host_keeper *k)
{
    for (uint32_t t = 0; t < k->task_count; t++)
        if (k->process[t].pid != 0)
            (void)kill(k->process[t].pid, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    _exit(0);
}

// What the caller does not hear because it is gone, its successor is told.
static void
tell(const tti_host_keeper *k, int kind, uint32_t task, int pid, int wait_status)
{
    const tt_host_news news = {(tt_host_news_kind)kind, task, pid, wait_status};
    if (k->socket >= 0)
        (void)send(k->socket, &news, sizeof news, MSG_NOSIGNAL);
}

// ---- tasks -------------------------------------------------------------------------------------

// Ctrl-C is for the caller, which ends the job as it should be ended.
static void
leave_signals_to_caller(void)
{
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGHUP, SIG_IGN);
}

static void
close_one(int *descriptor)
{
    if (*descriptor >= 0)
        (void)close(*descriptor);
    *descriptor = -1;
}

static void
drop_estate(tti_host_keeper *k)
{
    for (uint32_t i = 0; i < k->estate_count; i++)
        (void)close(k->estate[i]);
    k->estate_count = 0;
}

_Noreturn static void
run_task(tti_host_keeper *k, uint32_t task, const int *descriptors, uint32_t count)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != k->self_pid)
        _exit(1); // the keeper died before that was set
    close_one(&k->socket);
    close_one(&k->listener);
    close_one(&k->signals);
    drop_estate(k);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    char name[32]; // of which 15 bytes are shown
    (void)snprintf(name, sizeof name, "trimtab-n%u", task);
    (void)prctl(PR_SET_NAME, name);
    _exit(k->body(k->self, task, descriptors, count));
}

static void
start_task(tti_host_keeper *k, uint32_t task, const int *descriptors, uint32_t count)
{
    pid_t pid = task < k->task_count && k->process[task].pid == 0 ? fork() : -1;
    if (pid == 0)
        run_task(k, task, descriptors, count);
    if (pid < 0) {
        tell(k, TT_HOST_ENDED, task, 0, -1);
        return;
    }
    k->process[task] = (tti_host_process){.pid = pid};
    tell(k, TT_HOST_STARTED, task, pid, 0);
}

static void
kill_task(tti_host_keeper *k, uint32_t task)
{
    if (task >= k->task_count || k->process[task].pid == 0)
        return;
    (void)kill(k->process[task].pid, SIGKILL);
    if (k->process[task].killed_ns == 0)
        k->process[task].killed_ns = now_ns();
}

static void
say_ended(tti_host_keeper *k, uint32_t task, int wait_status)
{
    tell(k, TT_HOST_ENDED, task, k->process[task].pid, wait_status);
    k->process[task] = (tti_host_process){0};
}

static void
reap(tti_host_keeper *k)
{
    struct signalfd_siginfo info;
    int status;
    (void)!read(k->signals, &info, sizeof info); // several may be told as one
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (uint32_t t = 0; t < k->task_count; t++)
            if (k->process[t].pid == pid)
                say_ended(k, t, status);
}

// Does not wait any longer for those that take long to be gone, whoever killed them. Returns when
// to look again.
static uint64_t
let_killed_go(tti_host_keeper *k)
{
    uint64_t now = now_ns(), next = UINT64_MAX;
    int looks = now - k->looked_ns >= LOOK_NS;
    if (looks)
        k->looked_ns = now;
    for (uint32_t t = 0; t < k->task_count; t++) {
        if (k->process[t].pid == 0)
            continue;
        if (k->process[t].killed_ns == 0 && looks && tti_host_is_killed(k->process[t].pid))
            k->process[t].killed_ns = now;
        const uint64_t killed_ns = k->process[t].killed_ns;
        if (killed_ns == 0)
            next = TT_MIN(next, k->looked_ns + LOOK_NS);
        else if (now - killed_ns >= KILLED_NS)
            say_ended(k, t, SIGKILL); // as waitpid says it
        else
            next = TT_MIN(next, killed_ns + KILLED_NS);
    }
    return next;
}

// ---- callers -----------------------------------------------------------------------------------

// The caller has died.
static void
lose_caller(tti_host_keeper *k)
{
    close_one(&k->socket);
    if (k->estate_count == 0 || k->listener < 0)
        end_all(k);
    k->alone_until_ns = now_ns() + k->patience_ns;
}

// Nobody but who runs this process, and who could do as he pleases anyway.
static int
is_ours(int socket)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           (who.uid == getuid() || who.uid == 0);
}

static void
meet_successor(tti_host_keeper *k)
{
    int socket = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);
    if (socket < 0)
        return;
    const tt_host_news estate = {(tt_host_news_kind)TTI_HOST_ESTATE, k->task_count, getpid(), 0};
    if (k->socket >= 0 || !is_ours(socket) ||
        !tti_host_send(socket, &estate, sizeof estate, k->estate, k->estate_count)) {
        (void)close(socket);
        return;
    }
    k->socket = socket;
    for (uint32_t t = 0; t < k->task_count; t++)
        if (k->process[t].pid != 0)
            tell(k, TT_HOST_STARTED, t, k->process[t].pid, 0);
    tell(k, TTI_HOST_TOLD, 0, 0, 0);
}

static void
keep_descriptors(tti_host_keeper *k, const tti_host_call *what, int *descriptors, uint32_t count)
{
    if (what->kind == TTI_HOST_LISTEN) {
        close_one(&k->listener);
        k->listener = count > 0 ? dup(descriptors[0]) : -1;
        return;
    }
    drop_estate(k);
    k->patience_ns = what->patience_ns;
    for (uint32_t i = 0; i < count; i++)
        k->estate[k->estate_count++] = dup(descriptors[i]);
}

static void
obey(tti_host_keeper *k)
{
    tti_host_call what;
    int descriptors[TT_HOST_DESCRIPTORS_MAX];
    uint32_t count;
    if (!tti_host_receive(k->socket, &what, sizeof what, descriptors, &count)) {
        lose_caller(k);
        return;
    }
    switch (what.kind) {
    case TTI_HOST_START:
        start_task(k, what.task, descriptors, count);
        break;
    case TTI_HOST_KILL:
        kill_task(k, what.task);
        break;
    case TTI_HOST_LISTEN:
    case TTI_HOST_BEQUEATH:
        keep_descriptors(k, &what, descriptors, count);
        break;
    case TTI_HOST_FORGET:
        drop_estate(k);
        break;
    case TTI_HOST_CLOSE:
        end_all(k);
    }
    for (uint32_t i = 0; i < count; i++)
        (void)close(descriptors[i]);
}

// ---- its life ----------------------------------------------------------------------------------

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

static int
open_signals(void)
{
    sigset_t children;
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_BLOCK, &children, NULL);
    return signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

// How long to wait for anything: without a caller, until nobody will come any more.
static int
patience_ms(tti_host_keeper *k)
{
    uint64_t next = let_killed_go(k), now = now_ns();
    if (k->socket < 0 && now >= k->alone_until_ns)
        end_all(k);
    if (k->socket < 0)
        next = TT_MIN(next, k->alone_until_ns);
    if (next == UINT64_MAX)
        return -1;
    return next > now ? (int)TT_MIN((next - now) / 1000000 + 1, UINT64_C(1000000)) : 0;
}

void
tti_host_keep(tti_host_keeper *k)
{
    leave_signals_to_caller();
    close_descriptors(k->socket);
    (void)prctl(PR_SET_NAME, "trimtab-host");
    k->self_pid = getpid();
    k->listener = -1;
    k->signals = open_signals();
    if (k->signals < 0)
        _exit(1); // the caller hears that it is gone
    for (;;) {
        // One that is negative is left out.
        struct pollfd any[] = {
            {k->signals, POLLIN, 0}, {k->socket, POLLIN, 0}, {k->listener, POLLIN, 0}};
        if (poll(any, TT_COUNT_OF(any), patience_ms(k)) < 0 && errno != EINTR)
            end_all(k);
        if (any[0].revents != 0)
            reap(k);
        if (any[1].revents != 0)
            obey(k);
        if (any[2].revents != 0)
            meet_successor(k);
    }
}
