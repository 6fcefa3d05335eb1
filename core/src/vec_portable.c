// The variant that runs everywhere: four lanes in the compilers' vector notation, which becomes
// SSE2 on x86-64, NEON on arm64 and plain code elsewhere.
#include "vec_variants.h"
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define LANES     4
#define TILE_WIDE 5

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));

static inline vf
splat(float x)
{
    return (vf){x, x, x, x};
}

static inline vf
load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void
store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

static inline vf
load_part(const float *p, size_t rest, float fill)
{
    vf v = splat(fill);
    for (size_t i = 0; i < LANES && i < rest; i++)
        v[i] = p[i];
    return v;
}

static inline void
store_part(float *p, size_t rest, vf v)
{
    for (size_t i = 0; i < LANES && i < rest; i++)
        p[i] = v[i];
}

static inline vf
load_bytes(const uint8_t *p)
{
    return (vf){(float)p[0], (float)p[1], (float)p[2], (float)p[3]};
}

static inline vd
low_half(vf v)
{
    return (vd){(double)v[0], (double)v[1]};
}

static inline vd
high_half(vf v)
{
    return (vd){(double)v[2], (double)v[3]};
}

static inline float
sum_lanes(vf v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static inline double
sum_doubles(vd v)
{
    return v[0] + v[1];
}

static inline float
max_lanes(vf v)
{
    float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
    return a > b ? a : b;
}

// The upper 16 bits of each lane of a, then of b.
static inline void
store_upper(tt_bf16 *target, vu a, vu b)
{
#if defined(__SSE2__)
    // arithmetic shifts make lanes that fit 16 signed bits, so that packing does not saturate
    __m128i low = _mm_srai_epi32((__m128i)a, 16), high = _mm_srai_epi32((__m128i)b, 16);
    _mm_storeu_si128((__m128i *)target, _mm_packs_epi32(low, high));
#else
    for (size_t i = 0; i < LANES; i++) {
        target[i].bits = (uint16_t)(a[i] >> 16);
        target[i + LANES].bits = (uint16_t)(b[i] >> 16);
    }
#endif
}

// clang-format off: the bodies use the definitions above and each other, in this order
#include "vec_body_basic.h"
#include "vec_body_dense.h"
#include "vec_body_loss.h"
#include "vec_body_sparse.h"
// clang-format on

const tt_vec_ops tti_vec_portable = {VEC_TABLE("portable", TT_VEC_PORTABLE, bf16_encode)};
