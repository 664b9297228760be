/* Brain floats as 16 bits: the upper half of a float. For files and checks; devices have casts of their own. */
#ifndef AH_OP_BF16_H
#define AH_OP_BF16_H

#include <stdint.h>
#include <string.h>

/* Rounds to nearest even; a NaN stays one. */
static inline uint16_t ah__bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U)
        return (uint16_t)(bits >> 16 | 0x40U);
    return (uint16_t)((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

static inline float ah__bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Convert arrays of count elements that do not overlap. */
static inline void ah__bf16_narrow(uint16_t *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = ah__bf16_of(from[i]);
}

static inline void ah__bf16_widen(float *to, const uint16_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = ah__bf16_value(from[i]);
}

#endif
