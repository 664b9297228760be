/* Moments in 8 bits: groups of 256 values, each with a code of 8 bits, and one scale for all, the group's largest
 * magnitude. The codes are those of 8-bit Adam (Dettmers et al., "8-bit Optimizers via Block-wise Quantization", 2022),
 * numbered in the order of their values. The values are fractions of the scale:
 *   level i = 0 .. 6 has n values 10^(i-6) * (0.1 + 0.9 * (j + 1/2) / n), j = 0 .. n-1; and there are 0 and 1;
 *   first moments, which have a sign: n = 2^i, and each value of a level is there with both signs;
 *   second moments: n = 2^(i+1).
 * A fraction becomes the nearest code, but a second moment above zero never becomes zero, since the next step would
 * divide by it. Everything is float arithmetic, each operation rounded once, the same on every device. For C and CUDA
 * C. */
#ifndef AH_DEV_CODE8_H
#define AH_DEV_CODE8_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "dev/draw.h"

/* Sizes of a group. In memory it is its codes and then its scale, a float. */
enum { AH_CODE8_GROUP = 256, AH_CODE8_BYTES = AH_CODE8_GROUP + 4, AH_CODE8_LEVELS = 8, AH_CODE8_ZERO_SIGNED = 127 };

/* Tables to convert between fractions and codes. Values are counted from below the first level: they are k = n .. 2n-1
 * in a level of n values, and zero is k = 0 or 1. 2k + 1 as a float has the level as its exponent and j + 1/2 as its
 * mantissa. Levels are counted from 1 here; level 0 is the value 0. */
struct ah_code8 {
    float least[AH_CODE8_LEVELS]; /* of each level but 0 the smallest fraction that is rounded into it; last: to 1 */
    float slope[AH_CODE8_LEVELS], offset[AH_CODE8_LEVELS]; /* k = fraction * slope + offset, rounded down, */
    float most[AH_CODE8_LEVELS];                           /* and at most this */
    int32_t origin;                                        /* code of k = 0 */
    int32_t exponent;                                      /* biased exponent of 2k + 1 for k in level 0 */
};

#define AH_CODE8_LEAST(decade, n) ((float)((decade)*0.1 * (1 + 1.8 / (n))))
#define AH_CODE8_SLOPE(decade, n) ((float)((n) / (0.9 * (decade))))
#define AH_CODE8_OFFSET(decade, n) ((float)((n)*8 / 9.0))
#define AH_CODE8_MOST(decade, n) ((float)(2 * (n)-0.5))
/* Levels 2 to 7; the first of them has n values. */
#define AH_CODE8_UPPER(f, n) f(1e-5, n), f(1e-4, 2 * n), f(1e-3, 4 * n), f(1e-2, 8 * n), f(1e-1, 16 * n), f(1, 32 * n)
#define AH_CODE8_TABLE(n, k_zero, least_of_all, origin, exponent)                                                      \
    {                                                                                                                  \
        {least_of_all, AH_CODE8_UPPER(AH_CODE8_LEAST, 2 * n), (float)(1 - 0.225 / (64 * n))},                          \
            {0, AH_CODE8_SLOPE(1e-6, n), AH_CODE8_UPPER(AH_CODE8_SLOPE, 2 * n)},                                       \
            {k_zero, AH_CODE8_OFFSET(1e-6, n), AH_CODE8_UPPER(AH_CODE8_OFFSET, 2 * n)},                                \
            {k_zero + 0.5F, AH_CODE8_MOST(1e-6, n), AH_CODE8_UPPER(AH_CODE8_MOST, 2 * n)}, origin, exponent            \
    }
#define AH_CODE8_SIGNED AH_CODE8_TABLE(1, 0, 0.275e-6F, AH_CODE8_ZERO_SIGNED, 127)
#define AH_CODE8_UNSIGNED AH_CODE8_TABLE(2, 1, 1.17549435e-38F, -1, 128)
#define AH_CODE8_DECADES                                                                                               \
    {                                                                                                                  \
        0, 1e-6F, 1e-5F, 1e-4F, 1e-3F, 1e-2F, 1e-1F, 1                                                                 \
    }

/* Constants of a first guess at the level: a float's bits are its logarithm, exact to 0.09 of an octave; here in
 * decades. The guess is the level or the one below. */
#define AH_CODE8_GUESS_SLOPE ((float)(0.30103 / 8388608))
#define AH_CODE8_GUESS_OFFSET ((float)(7.3 - 127 * 0.30103))
/* Smaller fractions get the smallest value of a level. */
#define AH_CODE8_SMALL 1.1e-7F

/* Returns nonzero for scales that codes can use; with others all codes are zero. `bits`: of a magnitude. */
AH_DRAW_INLINE int ah__code8_usable(uint32_t bits)
{
    return bits >= 0x00800000U && bits < 0x7f800000U;
}

/* Returns the bits of the scale from those of the largest magnitude: zero if it is too small, NaN for NaN. */
AH_DRAW_INLINE uint32_t ah__code8_scale(uint32_t bits)
{
    return bits < 0x00800000U ? 0 : bits > 0x7f800000U ? 0x7fc00000U : bits;
}

AH_DRAW_INLINE uint32_t ah__code8_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

AH_DRAW_INLINE float ah__code8_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the code of a fraction, which is at most 1 but for rounding. `table`: AH_CODE8_SIGNED or
 * AH_CODE8_UNSIGNED. */
AH_DRAW_INLINE uint8_t ah__code8_of(float fraction, const struct ah_code8 *table)
{
    uint32_t sign = ah__code8_bits(fraction) >> 31, magnitude = ah__code8_bits(fraction) & 0x7fffffffU;
    magnitude = magnitude < 0x3f800000U ? magnitude : 0x3f800000U;
    float a = ah__code8_float(magnitude), from = a > AH_CODE8_SMALL ? a : AH_CODE8_SMALL;
    int32_t level = (int32_t)fmaf((float)(int32_t)magnitude, AH_CODE8_GUESS_SLOPE, AH_CODE8_GUESS_OFFSET);
    level = level > 0 ? level : 0;
    level += a >= table->least[level];
    int32_t last = level < AH_CODE8_LEVELS - 1 ? level : AH_CODE8_LEVELS - 1;
    float k = fmaf(from, table->slope[last], table->offset[last]);
    int32_t whole = (int32_t)(k < table->most[last] ? k : table->most[last]) + level - last;
    int32_t code = table->origin + (sign ? -whole : whole);
    return (uint8_t)(code > 0 ? code : 0); /* there is no code -1 */
}

/* Returns the value of a code as a fraction; `decades`: AH_CODE8_DECADES. */
AH_DRAW_INLINE float ah__code8_value(uint8_t code, const struct ah_code8 *table, const float *decades)
{
    int32_t k = (int32_t)code - table->origin, magnitude = k < 0 ? -k : k;
    uint32_t bits = ah__code8_bits((float)(2 * magnitude + 1));
    int32_t level = (int32_t)(bits >> 23) - table->exponent;
    float mantissa = ah__code8_float((bits & 0x7fffffU) | 0x3f800000U) - 1;
    float value = decades[level & 7] * fmaf(0.9F, mantissa, 0.1F) + (float)(level >> 3);
    return k < 0 ? -value : value;
}

#endif
