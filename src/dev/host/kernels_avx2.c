/* The host's arithmetic with AVX2 and FMA. */
#if defined(__x86_64__)
#define AH_SIMD 256
#else
#define AH_SIMD 1
#endif
#include "dev/host/kernels_isa.h"

const struct ah_host_kernels ah__host_kernels_avx2 = AH_HOST_KERNELS;
