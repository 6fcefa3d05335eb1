// Threads (pthreads, which the thread sanitizer understands) and the one blocking primitive of the
// project: an event that is waited for with a bounded spin and then a futex.
#ifndef TT_CORE_THREAD_H
#define TT_CORE_THREAD_H

#include "tt/core_status.h"
#include <pthread.h>
#include <stdint.h>

typedef struct tt_thread {
    pthread_t handle;
    void *turn; // of whoever takes turns, instead of the handle
    int running;
} tt_thread;
struct tt_event;

// Whoever runs many threads' bodies in turns on one thread, with a clock of its own (a simulation),
// takes over what would block or wake: the functions below go to it where it is in force. Pinning
// and priorities then do nothing. Spins are its to interpret. What must not block meanwhile: a
// mutex held across a wait.
typedef struct tt_thread_turns {
    void *self;
    tt_status (*start)(void *self,
                       tt_thread *thread,
                       const char *name,
                       void *(*body)(void *argument),
                       void *argument,
                       tt_error *err);
    void (*join)(void *self, tt_thread *thread);
    void (*signal)(void *self, struct tt_event *event); // the word was raised
    int (*wait)(void *self,
                struct tt_event *event,
                uint32_t seen,
                uint32_t spin_count,
                uint64_t timeout_ns);
    int processor_count;
} tt_thread_turns;
// For the calling thread, until it is taken back with NULL.
void tt_thread_take_turns(const tt_thread_turns *turns);

// Starts a thread named `name` (at most 15 bytes are shown). Join with tt_thread_join; the starter
// joins.
TT_NODISCARD tt_status tt_thread_start(
    tt_thread *thread, const char *name, void *(*body)(void *self), void *self, tt_error *err);
void tt_thread_join(tt_thread *thread);
// Pins the calling thread to one processor (index into the processors this process may use, modulo
// their number), or to all of them with -1. TT_UNSUPPORTED when the system refuses.
tt_status tt_thread_pin(int processor_index);
// Processors this process may run on; at least 1.
int tt_thread_processor_count(void);
// Lowers the calling thread's priority below the trainers' (nice value), for work that must not get
// in their way.
void tt_thread_set_background(void);

// A counter one waits on. The word only grows; waiters pass what they last saw. thread [any]
typedef struct tt_event {
    uint32_t word;      // grows with each signal; release in signal, acquire in wait
    uint32_t waiters;   // sleepers, so that a signal without one costs no system call
    uint32_t is_shared; // it is in memory that processes share
} tt_event;

static inline uint32_t
tt_event_read(const tt_event *event)
{
    return __atomic_load_n(&event->word, __ATOMIC_SEQ_CST);
}
void tt_event_signal(tt_event *event);
// Returns once the word differs from `seen`, after at most spin_count pauses and then sleeping, or
// after timeout_ns (0 = do not sleep). True when it differs.
int tt_event_wait(tt_event *event, uint32_t seen, uint32_t spin_count, uint64_t timeout_ns);

#endif
