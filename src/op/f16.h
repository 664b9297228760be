/* IEEE half floats as 16 bits, as files have them: every one is a float exactly. No device computes in them. */
#ifndef AH_OP_F16_H
#define AH_OP_F16_H

#include <stdint.h>
#include <string.h>

/* Normal numbers have another exponent's bias, infinities and NaNs the largest exponent; subnormal ones are so many
 * 2^-24, which are normal floats. No float here is subnormal, so a thread that takes those for zero widens the same. */
static inline float ah__f16_value(uint16_t half)
{
    uint32_t rest = half & 0x7FFFU, exponent = half & 0x7C00U;
    uint32_t normal = (rest << 13) + (exponent == 0x7C00U ? 0x70000000U : 0x38000000U), bits;
    float subnormal = (float)(int32_t)rest * 0x1p-24F, value;
    memcpy(&bits, &subnormal, sizeof bits);
    bits = (exponent ? normal : bits) | (uint32_t)(half & 0x8000U) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Of count elements, which may lie at any address and do not overlap. */
static inline void ah__f16_widen(float *to, const void *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const unsigned char *)from + 2 * i, sizeof half);
        to[i] = ah__f16_value(half);
    }
}

#endif
