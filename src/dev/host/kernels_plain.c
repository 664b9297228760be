/* The host's arithmetic for any processor: the same 16 lanes in plain C. */
#define AH_SIMD 1
#include "dev/host/kernels_isa.h"

const struct ah_host_kernels ah__host_kernels_plain = AH_HOST_KERNELS;
