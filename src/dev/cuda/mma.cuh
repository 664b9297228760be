/* Tensor cores: a warp's product of small matrices in bf16, with sums in fp32. Needs sm_80. In place of this file
 * tests/emulation/kernel.h has the same for the processor. */
#ifndef AH_DEV_CUDA_MMA_CUH
#define AH_DEV_CUDA_MMA_CUH

#include <stdint.h>

/* Computes sum [16,8] += a [16,16] times b [16,8], by all lanes of a warp. Lane 4g + t has two adjacent terms in each
 * word, the earlier one low: of a, rows g and g + 8 at terms 2t, then both at 2t + 8; of b, column g at terms 2t, then
 * 2t + 8; of the sum columns 2t and 2t + 1 of row g, then of row g + 8. The order in which 16 terms and the sum are
 * added is the GPU's. */
static __device__ inline void tensor_add(float sum[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
