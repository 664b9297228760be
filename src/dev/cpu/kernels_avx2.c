/* The kernels with AVX2 and FMA. */
#if defined(__x86_64__)
#define AH_SIMD 256
#else
#define AH_SIMD 1
#endif
#include "dev/cpu/kernels_isa.h"

const struct ah_kernels ah__kernels_avx2 = AH_KERNELS;
