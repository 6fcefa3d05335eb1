// Atomics named by their memory order; the only door to them. Every release names its acquire in a
// comment. Works on plain-typed fields through the compiler's generic builtins (gcc, clang).
#ifndef TT_ATOMIC_H
#define TT_ATOMIC_H

#include <stdint.h>

#define tt_load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define tt_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define tt_load_seq(p)         __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define tt_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define tt_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define tt_store_seq(p, v)     __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define tt_add_relaxed(p, v)   __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define tt_add_acq_rel(p, v)   __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define tt_add_seq(p, v)       __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define tt_sub_acq_rel(p, v)   __atomic_fetch_sub((p), (v), __ATOMIC_ACQ_REL)
#define tt_swap_acq_rel(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define tt_swap_seq(p, v)      __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define tt_cas_acq_rel(p, expected, desired)                                                       \
    __atomic_compare_exchange_n((p), (expected), (desired), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

// Orders a store before a later load of something else. The thread sanitizer does not know fences,
// so there it is a read-modify-write, which is as strong on every machine we run on.
static inline void
tt_fence_seq(void)
{
#ifdef TT_TSAN
    uint32_t word = 0;
    (void)__atomic_fetch_add(&word, 1u, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// One spin of a waiting loop.
static inline void
tt_cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

// Racy float accesses (Hogwild, Niu et al. 2011): plain in production so that they vectorise,
// relaxed atomics under the thread sanitizer, which would rightly report them otherwise. Only the
// Hogwild kernels may use these.
#ifdef TT_TSAN
static inline float
tt_racy_load(const float *p)
{
    float value;
    __atomic_load(p, &value, __ATOMIC_RELAXED);
    return value;
}
static inline void
tt_racy_store(float *p, float value)
{
    __atomic_store(p, &value, __ATOMIC_RELAXED);
}
#define TT_RACY_LOAD(p)     tt_racy_load(p)
#define TT_RACY_STORE(p, v) tt_racy_store((p), (v))
#else
#define TT_RACY_LOAD(p)     (*(p))
#define TT_RACY_STORE(p, v) (*(p) = (v))
#endif

#endif
