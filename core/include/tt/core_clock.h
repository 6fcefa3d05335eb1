// Time is handed in: nothing in tuner, estimator, reconfig or the protocol cores reads the world's
// clock.
#ifndef TT_CORE_CLOCK_H
#define TT_CORE_CLOCK_H

#include <stdint.h>

// Monotonic nanoseconds from an arbitrary origin.
typedef struct tt_clock {
    uint64_t (*now_ns)(void *self);
    void *self;
} tt_clock;

tt_clock tt_clock_monotonic(void);
// A clock that a test or the simulator moves: now is *time_ns.
tt_clock tt_clock_manual(uint64_t *time_ns);
static inline uint64_t
tt_clock_now(const tt_clock *clock)
{
    return clock->now_ns(clock->self);
}
// Now of the monotonic clock, for code that is of one host and of real time by its nature.
uint64_t tt_clock_monotonic_ns(void);
// Processor time of this process in nanoseconds, for benches and measurements.
uint64_t tt_clock_cpu_ns(void);
// Seconds since 1970, for names and records only.
int64_t tt_clock_wall_seconds(void);
// The same in nanoseconds, to compare hosts' clocks.
int64_t tt_clock_wall_ns(void);

#endif
