// Eight lanes: AVX2 and FMA. Compiled with these instructions on; run only when the processor has
// them.
#include "vec_variants.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define LANES     8
#define TILE_WIDE 5

typedef float vf __attribute__((vector_size(32)));
typedef int32_t vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32)));
typedef double vd __attribute__((vector_size(32)));

static inline vf
splat(float x)
{
    return (vf)_mm256_set1_ps(x);
}

static inline vf
load(const float *p)
{
    return (vf)_mm256_loadu_ps(p);
}

static inline void
store(float *p, vf v)
{
    _mm256_storeu_ps(p, (__m256)v);
}

// All ones in the lanes below `rest`.
static inline __m256i
part_mask(size_t rest)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(rest < LANES ? (int)rest : LANES), lane);
}

static inline vf
load_part(const float *p, size_t rest, float fill)
{
    __m256i mask = part_mask(rest);
    return (vf)_mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(p, mask),
                                _mm256_castsi256_ps(mask));
}

static inline void
store_part(float *p, size_t rest, vf v)
{
    _mm256_maskstore_ps(p, part_mask(rest), (__m256)v);
}

static inline vf
load_bytes(const uint8_t *p)
{
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline vd
low_half(vf v)
{
    return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
}

static inline vd
high_half(vf v)
{
    return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
}

static inline float
sum_lanes(vf v)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

static inline double
sum_doubles(vd v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static inline float
max_lanes(vf v)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

// The upper 16 bits of each lane of a, then of b.
static inline void
store_upper(tt_bf16 *target, vu a, vu b)
{
    // packing works within 128-bit halves: the middle quarters change places
    __m256i packed =
        _mm256_packus_epi32(_mm256_srli_epi32((__m256i)a, 16), _mm256_srli_epi32((__m256i)b, 16));
    _mm256_storeu_si256((__m256i *)target, _mm256_permute4x64_epi64(packed, 0xd8));
}

// clang-format off: the bodies use the definitions above and each other, in this order
#include "vec_body_basic.h"
#include "vec_body_dense.h"
#include "vec_body_loss.h"
#include "vec_body_sparse.h"
// clang-format on

const tt_vec_ops tti_vec_avx2 = {VEC_TABLE("avx2", TT_VEC_AVX2, bf16_encode)};

#else
typedef int tti_vec_avx2_is_for_x86_64;
#endif
