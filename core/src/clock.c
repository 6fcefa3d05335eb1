// The world's clocks, and one that is moved by hand.
#include "tt/core_clock.h"
#include <time.h>

static uint64_t
read_clock(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t
monotonic_now(void *self)
{
    (void)self;
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t
manual_now(void *self)
{
    return *(const uint64_t *)self;
}

tt_clock
tt_clock_monotonic(void)
{
    return (tt_clock){monotonic_now, NULL};
}

tt_clock
tt_clock_manual(uint64_t *time_ns)
{
    return (tt_clock){manual_now, time_ns};
}

uint64_t
tt_clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t
tt_clock_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t
tt_clock_wall_seconds(void)
{
    return (int64_t)time(NULL);
}

int64_t
tt_clock_wall_ns(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME);
}
