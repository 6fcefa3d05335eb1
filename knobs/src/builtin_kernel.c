// Built-in knob: which variant of the vector kernels a node runs.
#include "builtin_number.h"
#include <stdio.h>

enum kernel { PORTABLE, AVX2, AVX512 };
static const char *const kernel_names[] = {"portable", "avx2", "avx512", NULL};

static int
processor_has(enum kernel kernel)
{
#if defined(__x86_64__)
    if (kernel == AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (kernel == AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return kernel == PORTABLE;
}

static int
prepare_kernel(void *self, double value, char *reason, size_t reason_size)
{
    if (tti_builtin_prepare(self, value, reason, reason_size) != 0)
        return -1;
    if (processor_has((enum kernel)value))
        return 0;
    (void)snprintf(reason, reason_size, "this processor has no %s", kernel_names[(int)value]);
    return -1;
}

TTI_BUILTIN(kernel,
            prepare_kernel,
            .help = "variant of the vector kernels",
            .unit = "",
            .kind = TT_KNOB_ENUM,
            .max = AVX512,
            .values = kernel_names,
            .default_value = PORTABLE)
