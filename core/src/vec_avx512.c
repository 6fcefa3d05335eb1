// Sixteen lanes: AVX-512 F, BW, DQ, VL. Compiled with these instructions on; run only when the
// processor has them.
#include "vec_variants.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define LANES     16
#define TILE_WIDE 10

typedef float vf __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
typedef double vd __attribute__((vector_size(64)));

static inline vf
splat(float x)
{
    return (vf)_mm512_set1_ps(x);
}

static inline vf
load(const float *p)
{
    return (vf)_mm512_loadu_ps(p);
}

static inline void
store(float *p, vf v)
{
    _mm512_storeu_ps(p, (__m512)v);
}

static inline __mmask16
part_mask(size_t rest)
{
    const uint32_t bits = rest < LANES ? (1U << rest) - 1U : 0xffffU;
    return (__mmask16)bits;
}

static inline vf
load_part(const float *p, size_t rest, float fill)
{
    return (vf)_mm512_mask_loadu_ps(_mm512_set1_ps(fill), part_mask(rest), p);
}

static inline void
store_part(float *p, size_t rest, vf v)
{
    _mm512_mask_storeu_ps(p, part_mask(rest), (__m512)v);
}

static inline vf
load_bytes(const uint8_t *p)
{
    return (vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

static inline vd
low_half(vf v)
{
    return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
}

static inline vd
high_half(vf v)
{
    return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
}

static inline float
sum_lanes(vf v)
{
    return _mm512_reduce_add_ps((__m512)v);
}

static inline double
sum_doubles(vd v)
{
    return _mm512_reduce_add_pd((__m512d)v);
}

static inline float
max_lanes(vf v)
{
    return _mm512_reduce_max_ps((__m512)v);
}

// The upper 16 bits of each lane of a, then of b.
static inline void
store_upper(tt_bf16 *target, vu a, vu b)
{
    __m256i low = _mm512_cvtepi32_epi16(_mm512_srli_epi32((__m512i)a, 16));
    __m256i high = _mm512_cvtepi32_epi16(_mm512_srli_epi32((__m512i)b, 16));
    _mm256_storeu_si256((__m256i *)target, low);
    _mm256_storeu_si256((__m256i *)(target + LANES), high);
}

// clang-format off: the bodies use the definitions above and each other, in this order
#include "vec_body_basic.h"
#include "vec_body_dense.h"
#include "vec_body_loss.h"
#include "vec_body_sparse.h"
// clang-format on

// The processor's instruction rounds, quiets and flushes exactly as bf16_encode does.
__attribute__((target("avx512bf16"))) static void
bf16_encode_native(const float *source, tt_bf16 *target, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512bh pair =
            _mm512_cvtne2ps_pbh(_mm512_loadu_ps(source + i + 16), _mm512_loadu_ps(source + i));
        _mm512_storeu_si512(target + i, (__m512i)pair);
    }
    for (; i < n; i += 16) {
        __mmask16 mask = part_mask(n - i);
        __m256bh half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, source + i));
        _mm256_mask_storeu_epi16(target + i, mask, (__m256i)half);
    }
}

const tt_vec_ops tti_vec_avx512 = {VEC_TABLE("avx512", TT_VEC_AVX512, bf16_encode)};
const tt_vec_ops tti_vec_avx512_bf16 = {VEC_TABLE("avx512", TT_VEC_AVX512, bf16_encode_native)};

#else
typedef int tti_vec_avx512_is_for_x86_64;
#endif
