/* An F32 value in two halves of 16 bits: a BF16 number, rounded to nearest and ties away from zero, and the low half of
 * the value's bits. Together they give the value again, since the low half tells whether the other was rounded up. For
 * C and CUDA C. */
#ifndef AH_DEV_PLANES_H
#define AH_DEV_PLANES_H

#include <stdint.h>

#ifdef __CUDACC__
#define AH_PLANES_INLINE static __host__ __device__ inline
#else
#define AH_PLANES_INLINE static inline
#endif

/* Returns the bits of a float to split. Every NaN becomes the same one, whose low half is zero, so that it is not
 * rounded to another value. All other floats keep their bits. */
AH_PLANES_INLINE uint32_t ah__plane_bits(uint32_t bits)
{
    return (bits & 0x7fffffffU) > 0x7f800000U ? 0x7fc00000U : bits;
}

/* Returns the BF16 number of bits from ah__plane_bits. The low half is their low 16 bits, unchanged. */
AH_PLANES_INLINE uint16_t ah__plane_upper(uint32_t bits)
{
    return (uint16_t)((bits + 0x8000U) >> 16);
}

/* Returns the bits of the float. `rest` counts from -0x8000. */
AH_PLANES_INLINE uint32_t ah__planes_joined(uint16_t upper, uint16_t rest)
{
    return ((uint32_t)upper << 16) + (rest & 0x7fffU) - (rest & 0x8000U);
}

#endif
