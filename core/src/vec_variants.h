// The variants that vec.c chooses from; each source file is compiled with its own target flags.
#ifndef TTI_VEC_VARIANTS_H
#define TTI_VEC_VARIANTS_H

#include "tt/core_vec.h"

extern const tt_vec_ops tti_vec_portable;
#if defined(__x86_64__)
extern const tt_vec_ops tti_vec_avx2;
extern const tt_vec_ops tti_vec_avx512;
extern const tt_vec_ops tti_vec_avx512_bf16; // avx512 with the processor's own bf16 encoding
#endif

#endif
