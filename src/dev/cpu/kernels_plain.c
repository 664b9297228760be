/* The kernels for any processor: the same 16 lanes in plain C. Slow; a fused multiply-add may be a library call. */
#define AH_SIMD 1
#include "dev/cpu/kernels_isa.h"

const struct ah_kernels ah__kernels_plain = AH_KERNELS;
