// Which variant of the vector kernels this processor can run.
#include "tt/core_vec.h"
#include "vec_variants.h"

#if defined(__x86_64__)

static int
can_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int
can_avx512(void)
{
    return can_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const tt_vec_ops *
tt_vec_ops_for(tt_vec_variant variant)
{
    __builtin_cpu_init();
    if (variant >= TT_VEC_AVX512 && can_avx512()) {
        return __builtin_cpu_supports("avx512bf16") ? &tti_vec_avx512_bf16 : &tti_vec_avx512;
    }
    return variant >= TT_VEC_AVX2 && can_avx2() ? &tti_vec_avx2 : &tti_vec_portable;
}

#else

const tt_vec_ops *
tt_vec_ops_for(tt_vec_variant variant)
{
    (void)variant;
    return &tti_vec_portable;
}

#endif

const tt_vec_ops *
tt_vec_best(void)
{
    return tt_vec_ops_for(TT_VEC_AVX512);
}
