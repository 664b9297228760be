/* Numbers of OCP's Microscaling Formats (MX) 1.0, section 5: floats of 4 bits and scales that are powers of two. */
#ifndef AH_OP_MX_H
#define AH_OP_MX_H

#include "op/f16.h"

/* The 16 values of E2M1, by code. */
#define AH_E2M1_VALUES                                                                                                 \
    {                                                                                                                  \
        0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F, -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F         \
    }

enum { AH_E2M1_MOST_EXPONENT = 2, AH_E8M0_BIAS = 127, AH_E8M0_NAN = 255 };

/* Returns 2^(scale - 127), NaN for 255. */
AH_F16_INLINE float ah__e8m0_value(uint8_t scale)
{
    uint32_t bits = scale == AH_E8M0_NAN ? 0x7FC00000U : scale ? (uint32_t)scale << 23 : 0x00400000U;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
