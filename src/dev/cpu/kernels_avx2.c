/* The kernels with AVX2 and FMA. */
#if defined(__x86_64__)

#define AH_SIMD 256
#include "dev/cpu/kernels_isa.h"

static bool usable(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#else

#define AH_SIMD 1
#include "dev/cpu/kernels_isa.h"

static bool usable(void)
{
    return false;
}

#endif

const struct ah_kernels ah__kernels_avx2 = AH_KERNELS("avx2", usable);
