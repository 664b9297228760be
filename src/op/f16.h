/* IEEE half floats as 16 bits, as files have them: every one is a float exactly. No device computes in them. */
#ifndef AH_OP_F16_H
#define AH_OP_F16_H

#include <stdint.h>
#include <string.h>

/* Exponent and fraction, moved where a float has them, are the value but for the difference of the exponents' biases,
 * subnormal numbers included; infinities and NaNs keep the largest exponent. */
static inline float ah__f16_value(uint16_t half)
{
    const float bias = 0x1p112F; /* 2^(127 - 15) */
    uint32_t bits = (uint32_t)(half & 0x7FFFU) << 13, special = (half & 0x7C00U) == 0x7C00U ? 0x7F800000U : 0;
    float value;
    memcpy(&value, &bits, sizeof value);
    value *= bias;
    memcpy(&bits, &value, sizeof bits);
    bits |= special | (uint32_t)(half & 0x8000U) << 16;
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
