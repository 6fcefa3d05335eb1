// The only loops that race on purpose (Hogwild). A float is loaded and stored whole by every
// processor we run on, so an update can be lost but a value never torn. Under the thread sanitizer
// TT_RACY_LOAD and TT_RACY_STORE are relaxed atomics, which do not vectorise (5 to 15 times slower
// on rows in the first-level cache), hence plain floats in production.
//
// Each body is compiled for the common vector widths with function attributes rather than per file:
// the choice is made inside the call, as callers have no table at hand.
#include "tt/atomic.h"
#include "tt/core_vec.h"

#define BODY static inline __attribute__((always_inline)) void

BODY
copy_body(const float *source, float *restrict target, size_t n)
{
    for (size_t i = 0; i < n; i++)
        target[i] = TT_RACY_LOAD(source + i);
}

BODY
sgd_body(float *restrict w, const float *restrict g, size_t n, float lr)
{
    for (size_t i = 0; i < n; i++)
        TT_RACY_STORE(w + i, TT_RACY_LOAD(w + i) - lr * g[i]);
}

BODY
adagrad_body(
    float *restrict w, float *restrict acc, const float *restrict g, size_t n, float lr, float eps)
{
    for (size_t i = 0; i < n; i++) {
        const float sum = TT_RACY_LOAD(acc + i) + g[i] * g[i];
        TT_RACY_STORE(acc + i, sum);
        TT_RACY_STORE(w + i, TT_RACY_LOAD(w + i) - lr * g[i] / (__builtin_sqrtf(sum) + eps));
    }
}

BODY
add_body(const float *restrict x, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        TT_RACY_STORE(y + i, TT_RACY_LOAD(y + i) + x[i]);
}

#if defined(__x86_64__) && !defined(TT_TSAN)

__attribute__((target("avx2"))) static void
sgd_avx2(float *w, const float *g, size_t n, float lr)
{
    sgd_body(w, g, n, lr);
}

__attribute__((target("avx2"))) static void
adagrad_avx2(float *w, float *acc, const float *g, size_t n, float lr, float eps)
{
    adagrad_body(w, acc, g, n, lr, eps);
}

__attribute__((target("avx2"))) static void
add_avx2(const float *x, float *y, size_t n)
{
    add_body(x, y, n);
}

#define WIDE(call)                                                                                 \
    do {                                                                                           \
        if (tt_vec_best()->variant >= TT_VEC_AVX2) {                                               \
            call;                                                                                  \
            return;                                                                                \
        }                                                                                          \
    } while (0)
#else
#define WIDE(call)                                                                                 \
    do {                                                                                           \
    } while (0)
#endif

void
tt_vec_racy_copy(const float *source, float *target, size_t n)
{
    copy_body(source, target, n);
}

void
tt_vec_racy_sgd(float *w, const float *g, size_t n, float lr)
{
    WIDE(sgd_avx2(w, g, n, lr));
    sgd_body(w, g, n, lr);
}

void
tt_vec_racy_adagrad(float *w, float *acc, const float *g, size_t n, float lr, float eps)
{
    WIDE(adagrad_avx2(w, acc, g, n, lr, eps));
    adagrad_body(w, acc, g, n, lr, eps);
}

void
tt_vec_racy_add(const float *x, float *y, size_t n)
{
    WIDE(add_avx2(x, y, n));
    add_body(x, y, n);
}
