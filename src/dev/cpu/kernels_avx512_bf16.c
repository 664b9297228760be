/* The kernels with AVX-512 on bf16 elements. */
#if defined(__x86_64__)
#define AH_SIMD 512
#else
#define AH_SIMD 1
#endif
#define AH_BF16_ELEMENTS
#include "dev/cpu/kernels_isa.h"

const struct ah_kernels ah__kernels_avx512_bf16 = AH_KERNELS;
