/* The kernels with AVX-512. */
#if defined(__x86_64__)

#define AH_SIMD 512
#include "dev/cpu/kernels_isa.h"

static bool usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#else

#define AH_SIMD 1
#include "dev/cpu/kernels_isa.h"

static bool usable(void)
{
    return false;
}

#endif

const struct ah_kernels ah__kernels_avx512 = AH_KERNELS("avx512", usable);
