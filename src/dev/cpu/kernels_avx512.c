/* The kernels with AVX-512. */
#if defined(__x86_64__)
#define AH_SIMD 512
#else
#define AH_SIMD 1
#endif
#include "dev/cpu/kernels_isa.h"

const struct ah_kernels ah__kernels_avx512 = AH_KERNELS;
