// Goal: a host's process starts tasks with their descriptors and the caller's memory, tells how
// each ends, and nothing is left behind: not when tasks hang, when the host's process is killed or
// stands still, or when its caller is killed. Method: real processes.
#include "tt/cluster_host.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_has_memory_and_descriptors),
        cmocka_unit_test(a_killed_task_is_told_and_begun_anew),
        cmocka_unit_test(what_is_there_is_not_begun_twice),
        cmocka_unit_test(nothing_outlives_the_host),
        cmocka_unit_test(nothing_outlives_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
