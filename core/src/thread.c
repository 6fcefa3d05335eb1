// Threads, pinning, and the event.
#include "tt/atomic.h"
#include "tt/core_thread.h"
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static cpu_set_t allowed_at_start;
static pthread_once_t allowed_once = PTHREAD_ONCE_INIT;

static _Thread_local const tt_thread_turns *turns_taken;

void
tt_thread_take_turns(const tt_thread_turns *turns)
{
    turns_taken = turns;
}

static void
read_allowed(void)
{
    if (sched_getaffinity(0, sizeof allowed_at_start, &allowed_at_start) != 0)
        CPU_SET(0, &allowed_at_start);
}

tt_status
tt_thread_start(
    tt_thread *thread, const char *name, void *(*body)(void *self), void *self, tt_error *err)
{
    if (turns_taken != NULL)
        return turns_taken->start(turns_taken->self, thread, name, body, self, err);
    (void)pthread_once(&allowed_once, read_allowed);
    int rc = pthread_create(&thread->handle, NULL, body, self);
    if (rc != 0)
        return tt_error_set(err, TT_NOMEM, NULL,
                            "lower cluster.nodes or raise the thread limit (ulimit -u)",
                            "cannot start thread '%s': %s", name, tt_errno_text(rc));
    char short_name[16] = {0};
    memcpy(short_name, name, strnlen(name, sizeof short_name - 1));
    (void)pthread_setname_np(thread->handle, short_name);
    thread->running = 1;
    return TT_OK;
}

void
tt_thread_join(tt_thread *thread)
{
    if (!thread->running)
        return;
    if (turns_taken != NULL)
        turns_taken->join(turns_taken->self, thread);
    else
        (void)pthread_join(thread->handle, NULL);
    thread->running = 0;
}

int
tt_thread_processor_count(void)
{
    if (turns_taken != NULL)
        return turns_taken->processor_count;
    (void)pthread_once(&allowed_once, read_allowed);
    return TT_MAX(CPU_COUNT(&allowed_at_start), 1);
}

tt_status
tt_thread_pin(int processor_index)
{
    if (turns_taken != NULL)
        return TT_OK;
    (void)pthread_once(&allowed_once, read_allowed);
    cpu_set_t wanted = allowed_at_start;
    if (processor_index >= 0) {
        int nth = processor_index % tt_thread_processor_count();
        CPU_ZERO(&wanted);
        for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &allowed_at_start) && nth-- == 0)
                CPU_SET(cpu, &wanted);
    }
    return pthread_setaffinity_np(pthread_self(), sizeof wanted, &wanted) == 0 ? TT_OK
                                                                               : TT_UNSUPPORTED;
}

void
tt_thread_set_background(void)
{
    if (turns_taken != NULL)
        return;
    // Linux keeps the nice value per thread; failing to lower it harms nobody.
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
}

static int
scope_of(const tt_event *event)
{
    return event->is_shared ? 0 : FUTEX_PRIVATE_FLAG;
}

void
tt_event_signal(tt_event *event)
{
    // Sequentially consistent with the waiter's "announce, then re-read": one of the two sees the
    // other.
    (void)tt_add_seq(&event->word, 1u);
    if (turns_taken != NULL)
        turns_taken->signal(turns_taken->self, event);
    else if (tt_load_seq(&event->waiters) != 0)
        (void)syscall(SYS_futex, &event->word, scope_of(event) | FUTEX_WAKE, INT32_MAX, NULL, NULL,
                      0);
}

int
tt_event_wait(tt_event *event, uint32_t seen, uint32_t spin_count, uint64_t timeout_ns)
{
    if (turns_taken != NULL)
        return turns_taken->wait(turns_taken->self, event, seen, spin_count, timeout_ns);
    for (uint32_t spin = 0; spin <= spin_count; spin++) {
        if (tt_load_acquire(&event->word) != seen)
            return 1;
        tt_cpu_pause();
    }
    if (timeout_ns == 0)
        return 0;
    (void)tt_add_seq(&event->waiters, 1u);
    if (tt_load_seq(&event->word) == seen) {
        struct timespec limit = {(time_t)(timeout_ns / 1000000000u),
                                 (long)(timeout_ns % 1000000000u)};
        (void)syscall(SYS_futex, &event->word, scope_of(event) | FUTEX_WAIT, seen, &limit, NULL, 0);
    }
    (void)tt_add_seq(&event->waiters, (uint32_t)-1);
    return tt_load_acquire(&event->word) != seen;
}
