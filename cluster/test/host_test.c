// Goal: a host's process starts tasks with their descriptors and the caller's memory, tells how
// each ends, and nothing is left behind: not when tasks hang, when the host's process is killed or
// stands still, or when its caller is killed. A caller that has bequeathed them leaves them to one
// successor of the same user, for a time. Method: real processes.
#include "host_calls.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TASKS = 4, HANGS = 3 };

// Says who it is and what it sees, then ends or hangs.
static int
body(void *self, uint32_t task, const int *descriptors, uint32_t count)
{
    char text[64];
    if (count > 0) {
        int size = snprintf(text, sizeof text, "%u:%s;", task, (const char *)self);
        (void)!write(descriptors[0], text, (size_t)size);
    }
    while (task == HANGS)
        (void)pause();
    return (int)task;
}

static void
nap(void)
{
    const struct timespec ms = {0, 1000000};
    (void)nanosleep(&ms, NULL);
}

static tt_host_news
await(tt_host *host)
{
    tt_host_news news;
    for (int i = 0; i < 10000; i++) {
        if (tt_host_next(host, &news))
            return news;
        nap();
    }
    fail_msg("nothing came within 10 s");
    return news;
}

static int
start(tt_host *host, uint32_t task)
{
    assert_int_equal(tt_host_start(host, task, NULL, 0, NULL), TT_OK);
    tt_host_news news = await(host);
    assert_int_equal(news.kind, TT_HOST_STARTED);
    assert_int_equal(news.task, task);
    return news.pid;
}

static void
await_gone(int pid)
{
    for (int i = 0; i < 10000 && kill(pid, 0) == 0; i++)
        nap();
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static void
a_task_has_memory_and_descriptors(void **state)
{
    TT_UNUSED(state);
    tt_host *host;
    int ends[2];
    char memory[] = "before", text[64] = "";
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(tt_host_open(TASKS, body, memory, &host, NULL), TT_OK);
    memcpy(memory, "behind", sizeof memory); // tasks have what was there when the host was opened
    for (uint32_t task = 0; task < 3; task++) {
        assert_int_equal(tt_host_start(host, task, &ends[1], 1, NULL), TT_OK);
        assert_int_equal(await(host).kind, TT_HOST_STARTED);
        tt_host_news news = await(host);
        assert_int_equal(news.kind, TT_HOST_ENDED);
        assert_int_equal(news.task, task);
        assert_true(WIFEXITED(news.wait_status));
        assert_int_equal(WEXITSTATUS(news.wait_status), task);
    }
    tt_host_close(host);
    (void)close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) >
                0); // nobody has it open any more, or it hangs
    assert_string_equal(text, "0:before;1:before;2:before;");
    assert_int_equal(read(ends[0], text, sizeof text), 0);
    (void)close(ends[0]);
}

static void
a_killed_task_is_told_and_begun_anew(void **state)
{
    TT_UNUSED(state);
    tt_host *host;
    assert_int_equal(tt_host_open(TASKS, body, NULL, &host, NULL), TT_OK);
    for (int round = 0; round < 20; round++) {
        int pid = start(host, HANGS);
        if (round % 2 == 0)
            tt_host_kill(host, HANGS);
        else
            assert_int_equal(kill(pid, SIGKILL), 0);
        tt_host_news news = await(host);
        assert_int_equal(news.kind, TT_HOST_ENDED);
        assert_int_equal(news.pid, pid);
        assert_true(WIFSIGNALED(news.wait_status));
        assert_int_equal(WTERMSIG(news.wait_status), SIGKILL);
    }
    tt_host_kill(host, 0); // not there: nothing
    tt_host_close(host);
}

// Who traces it keeps it from being gone, as a system does that is slow to take its memory.
// by_us: it is the host that kills it, else somebody else.
static void
check_slow_to_be_gone(int by_us)
{
    tt_host *host;
    assert_int_equal(tt_host_open(TASKS, body, NULL, &host, NULL), TT_OK);
    int pid = start(host, HANGS), status;
    if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) != 0) {
        tt_host_close(host);
        skip(); // not allowed here
    }
    if (by_us)
        tt_host_kill(host, HANGS);
    else
        assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, __WALL), pid); // it is about to be gone
    assert_true(WIFSTOPPED(status));
    tt_host_news news = await(host);
    assert_int_equal(news.kind, TT_HOST_ENDED);
    assert_int_equal(news.pid, pid);
    assert_int_equal(WTERMSIG(news.wait_status), SIGKILL);
    int another = start(host, HANGS);
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
    await_gone(pid);
    assert_int_equal(kill(another, 0), 0);
    assert_false(tt_host_next(host, &news)); // it was told of already
    tt_host_close(host);
    await_gone(another);
}

static void
one_that_takes_long_to_be_gone_is_not_awaited(void **state)
{
    TT_UNUSED(state);
    check_slow_to_be_gone(1);
    check_slow_to_be_gone(0);
}

// A child that ends as told and is not waited for yet.
static pid_t
ended_child(int by_signal)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)raise(by_signal); // 0: none
        _exit(9);               // which is no signal
    }
    siginfo_t info;
    assert_true(pid > 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    return pid;
}

static void
only_the_killed_are_told_apart(void **state)
{
    TT_UNUSED(state);
    static const int signals[] = {0, SIGTERM, SIGKILL};
    assert_false(tti_host_is_killed(getpid()));
    for (size_t i = 0; i < TT_COUNT_OF(signals); i++) {
        pid_t pid = ended_child(signals[i]);
        assert_int_equal(tti_host_is_killed(pid), signals[i] == SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_false(tti_host_is_killed(pid)); // nobody
    }
}

static void
what_is_there_is_not_begun_twice(void **state)
{
    TT_UNUSED(state);
    tt_host *host;
    assert_int_equal(tt_host_open(TASKS, body, NULL, &host, NULL), TT_OK);
    int pid = start(host, HANGS);
    const uint32_t wrong[] = {HANGS, TASKS};
    for (size_t i = 0; i < TT_COUNT_OF(wrong); i++) {
        assert_int_equal(tt_host_start(host, wrong[i], NULL, 0, NULL), TT_OK);
        tt_host_news news = await(host);
        assert_int_equal(news.kind, TT_HOST_ENDED);
        assert_int_equal(news.task, wrong[i]);
        assert_int_equal(news.wait_status, -1);
    }
    tt_host_close(host);
    await_gone(pid);
}

static void
nothing_outlives_the_host(void **state)
{
    TT_UNUSED(state);
    const int signals[] = {SIGKILL, SIGSTOP};
    for (size_t i = 0; i < TT_COUNT_OF(signals); i++) {
        tt_host *host;
        tt_host_news news;
        assert_int_equal(tt_host_open(TASKS, body, NULL, &host, NULL), TT_OK);
        int pid = start(host, HANGS);
        char path[64];
        int parent = 0;
        (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d %*s %*c %d", &parent), 1);
        (void)fclose(file);
        assert_int_equal(kill(parent, signals[i]), 0);
        if (signals[i] == SIGKILL) {
            assert_int_equal(await(host).kind, TT_HOST_LOST);
            assert_int_equal(tt_host_next(host, &news), 0);
            assert_int_equal(tt_host_start(host, 0, NULL, 0, NULL), TT_PEER);
        }
        tt_host_close(host);
        await_gone(pid);
    }
}

static void
nothing_outlives_the_caller(void **state)
{
    TT_UNUSED(state);
    int ends[2], pid = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t caller = fork();
    if (caller == 0) {
        tt_host *host;
        if (tt_host_open(TASKS, body, NULL, &host, NULL) != TT_OK)
            _exit(1);
        int task = start(host, HANGS);
        (void)!write(ends[1], &task, sizeof task);
        for (;;)
            (void)pause();
    }
    assert_true(caller > 0);
    assert_int_equal(read(ends[0], &pid, sizeof pid), sizeof pid);
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(kill(caller, SIGKILL), 0);
    assert_int_equal(waitpid(caller, NULL, 0), caller);
    await_gone(pid);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

// ---- successors --------------------------------------------------------------------------------

#define MS UINT64_C(1000000)

// What a caller that will die has left behind.
typedef struct orphan {
    char name[64];
    pid_t caller;
    int pipe[2];
    int task; // the process of task HANGS
} orphan;

_Noreturn static void
live_and_bequeath(const orphan *o, uint64_t patience_ns, int forget)
{
    tt_host *host;
    if (tt_host_open(TASKS, body, NULL, &host, NULL) != TT_OK)
        _exit(1);
    int task = start(host, HANGS);
    if (tt_host_bequeath(host, o->name, patience_ns, o->pipe, 2, NULL) != TT_OK)
        _exit(1);
    if (forget)
        tt_host_forget(host);
    (void)!write(o->pipe[1], &task, sizeof task);
    for (;;)
        (void)pause();
}

static orphan
leave(uint64_t patience_ns, int forget)
{
    static int number;
    orphan o = {.task = 0};
    (void)snprintf(o.name, sizeof o.name, "trimtab-test/%d/%d", getpid(), number++);
    assert_int_equal(pipe(o.pipe), 0);
    o.caller = fork();
    if (o.caller == 0)
        live_and_bequeath(&o, patience_ns, forget);
    assert_true(o.caller > 0);
    assert_int_equal(read(o.pipe[0], &o.task, sizeof o.task), sizeof o.task);
    return o;
}

static void
kill_caller(const orphan *o)
{
    assert_int_equal(kill(o->caller, SIGKILL), 0);
    assert_int_equal(waitpid(o->caller, NULL, 0), o->caller);
}

static tt_status
inherit(const orphan *o, tt_host_estate *estate, tt_host **out)
{
    static int pids[TASKS];
    tt_status status = TT_NOTFOUND;
    estate->pid = pids;
    // The host's process may not have heard yet that its caller is gone.
    for (int i = 0; status == TT_NOTFOUND && i < 200; i++) {
        status = tt_host_inherit(o->name, TASKS, estate, out, NULL);
        if (status != TT_OK)
            nap();
    }
    return status;
}

static void
close_estate(const tt_host_estate *estate, const orphan *o)
{
    for (uint32_t i = 0; i < estate->count; i++)
        (void)close(estate->descriptors[i]);
    (void)close(o->pipe[0]);
    (void)close(o->pipe[1]);
}

static void
a_successor_inherits_everything(void **state)
{
    TT_UNUSED(state);
    orphan o = leave(60000 * MS, 0);
    tt_host_estate estate;
    tt_host *host;
    char text[8] = "";
    kill_caller(&o);
    assert_int_equal(inherit(&o, &estate, &host), TT_OK);
    assert_int_equal(kill(o.task, 0), 0);
    assert_int_equal(estate.pid[HANGS], o.task);
    assert_int_equal(estate.pid[0], 0);
    assert_int_equal(estate.count, 2);
    assert_int_equal(write(estate.descriptors[1], "handed", 6), 6);
    assert_int_equal(read(o.pipe[0], text, sizeof text), 6);
    assert_string_equal(text, "handed");
    // It starts, kills and tells as for the caller it had.
    assert_int_equal(tt_host_start(host, 1, NULL, 0, NULL), TT_OK);
    assert_int_equal(await(host).kind, TT_HOST_STARTED);
    assert_int_equal(await(host).kind, TT_HOST_ENDED);
    tt_host_kill(host, HANGS);
    assert_int_equal(await(host).pid, o.task);
    int pid = start(host, HANGS);
    tt_host_close(host);
    await_gone(pid);
    close_estate(&estate, &o);
    assert_int_equal(tt_host_inherit(o.name, TASKS, &estate, &host, NULL), TT_NOTFOUND);
}

static void
there_is_one_caller_at_a_time(void **state)
{
    TT_UNUSED(state);
    orphan o = leave(60000 * MS, 0);
    tt_host_estate estate, other;
    tt_host *host, *second;
    int pids[TASKS];
    estate.pid = other.pid = pids;
    assert_int_equal(tt_host_inherit(o.name, TASKS, &estate, &host, NULL), TT_NOTFOUND);
    kill_caller(&o);
    assert_int_equal(inherit(&o, &estate, &host), TT_OK);
    assert_int_equal(tt_host_inherit(o.name, TASKS, &other, &second, NULL), TT_NOTFOUND);
    tt_host_close(host);
    close_estate(&estate, &o);
}

static void
successors_may_die_too(void **state)
{
    TT_UNUSED(state);
    orphan o = leave(60000 * MS, 0);
    tt_host_estate estate;
    tt_host *host;
    kill_caller(&o);
    for (int i = 0; i < 3; i++) {
        pid_t successor = fork();
        if (successor == 0)
            _exit(inherit(&o, &estate, &host) == TT_OK ? 0 : 1);
        int wait_status;
        assert_int_equal(waitpid(successor, &wait_status, 0), successor);
        assert_int_equal(wait_status, 0);
    }
    assert_int_equal(inherit(&o, &estate, &host), TT_OK);
    assert_int_equal(estate.pid[HANGS], o.task);
    tt_host_close(host);
    await_gone(o.task);
    close_estate(&estate, &o);
}

static void
without_a_successor_all_ends(void **state)
{
    TT_UNUSED(state);
    for (int forget = 0; forget < 2; forget++) {
        orphan o = leave(forget ? 60000 * MS : 100 * MS, forget);
        tt_host_estate none = {.count = 0};
        kill_caller(&o);
        await_gone(o.task);
        close_estate(&none, &o);
    }
}

static void
a_stranger_inherits_nothing(void **state)
{
    TT_UNUSED(state);
    if (getuid() != 0)
        skip(); // only root can be somebody else
    orphan o = leave(60000 * MS, 0);
    tt_host_estate estate;
    tt_host *host;
    int wait_status;
    kill_caller(&o);
    pid_t stranger = fork();
    if (stranger == 0) {
        enum { NOBODY = 65534 };
        if (setuid(NOBODY) != 0)
            _exit(2);
        _exit(inherit(&o, &estate, &host) == TT_NOTFOUND ? 0 : 1);
    }
    assert_int_equal(waitpid(stranger, &wait_status, 0), stranger);
    assert_int_equal(wait_status, 0);
    assert_int_equal(inherit(&o, &estate, &host), TT_OK);
    tt_host_close(host);
    await_gone(o.task);
    close_estate(&estate, &o);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_has_memory_and_descriptors),
        cmocka_unit_test(a_killed_task_is_told_and_begun_anew),
        cmocka_unit_test(one_that_takes_long_to_be_gone_is_not_awaited),
        cmocka_unit_test(only_the_killed_are_told_apart),
        cmocka_unit_test(what_is_there_is_not_begun_twice),
        cmocka_unit_test(nothing_outlives_the_host),
        cmocka_unit_test(nothing_outlives_the_caller),
        cmocka_unit_test(a_successor_inherits_everything),
        cmocka_unit_test(there_is_one_caller_at_a_time),
        cmocka_unit_test(successors_may_die_too),
        cmocka_unit_test(without_a_successor_all_ends),
        cmocka_unit_test(a_stranger_inherits_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
