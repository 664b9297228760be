/* The random bits by which values are rounded up or down. They depend on a key and a counter alone, not on place,
 * piece, thread, rank or device. For C and CUDA C. */
#ifndef AH_DEV_DRAW_H
#define AH_DEV_DRAW_H

#include <stdint.h>

#ifdef __CUDACC__
#define AH_DRAW_INLINE static __host__ __device__ inline
#else
#define AH_DRAW_INLINE static inline __attribute__((always_inline))
#endif

/* Returns 32 random bits. The mixer is Chris Wellons's "lowbias32" (hash-prospector), over a Weyl sequence. Counters
 * with equal low 32 bits give equal bits. */
AH_DRAW_INLINE uint32_t ah__draw(uint32_t key, uint32_t counter)
{
    uint32_t x = counter * 0x9e3779b9U + key;
    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return x ^ x >> 16;
}

/* Rounds the bits of a float to BF16 by 16 random bits: up with a probability that makes the mean exact. Infinity stays
 * infinity. Not for NaN. */
AH_DRAW_INLINE uint16_t ah__bf16_drawn(uint32_t bits, uint32_t random16)
{
    return (uint16_t)((bits + random16) >> 16);
}

#endif
