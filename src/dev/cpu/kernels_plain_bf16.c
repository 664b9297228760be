/* The kernels for any processor on bf16 elements. */
#define AH_SIMD 1
#define AH_BF16_ELEMENTS
#include "dev/cpu/kernels_isa.h"

const struct ah_kernels ah__kernels_plain_bf16 = AH_KERNELS;
