/* IEEE half floats as 16 bits, as in files: each is exactly a float. No device computes in them. */
#ifndef AH_OP_F16_H
#define AH_OP_F16_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define AH_F16_INLINE static __host__ __device__ inline
#else
#define AH_F16_INLINE static inline
#endif

/* Returns a half's value. Normal numbers need another exponent bias, infinities and NaNs the largest exponent; a
 * subnormal half is a multiple of 2^-24, which is a normal float. No float here is subnormal, so that a thread that
 * flushes subnormals to zero computes the same. */
AH_F16_INLINE float ah__f16_value(uint16_t narrow)
{
    uint32_t rest = narrow & 0x7FFFU, exponent = narrow & 0x7C00U;
    uint32_t normal = (rest << 13) + (exponent == 0x7C00U ? 0x70000000U : 0x38000000U), bits;
    float subnormal = (float)(int32_t)rest * 0x1p-24F, value;
    memcpy(&bits, &subnormal, sizeof bits);
    bits = (exponent ? normal : bits) | (uint32_t)(narrow & 0x8000U) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds to nearest even; a NaN stays one; a value that is too large becomes an infinity. */
static inline uint16_t ah__f16_of(float value)
{
    uint32_t bits, sign, rest;
    float scaled;
    memcpy(&bits, &value, sizeof bits);
    sign = bits >> 16 & 0x8000U;
    bits &= 0x7FFFFFFFU;
    if (bits > 0x7F800000U)
        return (uint16_t)(sign | 0x7E00U);
    if (bits >= 0x477FF000U)
        return (uint16_t)(sign | 0x7C00U);
    if (bits >= 0x38800000U) /* a normal half */
        return (uint16_t)(sign | ((bits - 0x38000000U + 0xFFFU + (bits >> 13 & 1U)) >> 13));
    memcpy(&scaled, &bits, sizeof scaled);
    scaled += 0.5F; /* the last bit of a float near 0.5 is 2^-24, the smallest half */
    memcpy(&rest, &scaled, sizeof rest);
    return (uint16_t)(sign | (rest - 0x3F000000U));
}

/* Converts count elements at any address that do not overlap. */
static inline void ah__f16_widen(float *to, const void *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t narrow;
        memcpy(&narrow, (const unsigned char *)from + 2 * i, sizeof narrow);
        to[i] = ah__f16_value(narrow);
    }
}

#endif
