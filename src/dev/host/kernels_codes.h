/* Decodes frozen matrices in fewer bits (op/codes.h) to floats or BF16; a part of kernels_isa.h. */
#include "op/codes.h"
#include "op/f16.h"
#include "op/mx.h"

static const float nf4_values[16] = AH_NF4_VALUES, e2m1_values[16] = AH_E2M1_VALUES;

AH_INLINE void expanded_store(void *to, int at, v16 x, const bool bf16)
{
    if (bf16)
        v_store_bf16((uint16_t *)to + at, x);
    else
        v_store((float *)to + at, x);
}

/* Decodes a block. */
AH_INLINE void int8_expand(void *to, const uint8_t *from, const bool bf16)
{
    for (int g = 0; g < AH_CODES_BLOCK / AH_INT8_GROUP; g++) {
        uint16_t half;
        memcpy(&half, from + AH_CODES_BLOCK + 2 * g, sizeof half);
        v16 scale = v_set(ah__f16_value(half));
        for (int i = g * AH_INT8_GROUP; i < (g + 1) * AH_INT8_GROUP; i += LANES)
            expanded_store(to, i, v_mul(v_from_int(i_load_signed_bytes(from + i)), scale), bf16);
    }
}

AH_INLINE void nf4_expand(void *to, const uint8_t *from, const bool bf16)
{
    for (int g = 0; g < AH_CODES_BLOCK / AH_NF4_GROUP; g++) {
        float most;
        memcpy(&most, from + AH_CODES_BLOCK / 2 + 4 * g, sizeof most);
        v16 scale = v_set(most);
        for (int i = g * AH_NF4_GROUP; i < (g + 1) * AH_NF4_GROUP; i += LANES)
            expanded_store(to, i, v_mul(v_table16(nf4_values, i_load_nibbles(from + i / 2)), scale), bf16);
    }
}

AH_INLINE void mxfp4_expand(void *to, const uint8_t *from, const bool bf16)
{
    for (int g = 0; g < AH_CODES_BLOCK / AH_MXFP4_GROUP; g++) {
        v16 scale = v_set(ah__e8m0_value(from[AH_CODES_BLOCK / 2 + g]));
        for (int i = g * AH_MXFP4_GROUP; i < (g + 1) * AH_MXFP4_GROUP; i += LANES)
            expanded_store(to, i, v_mul(v_table16(e2m1_values, i_load_nibbles(from + i / 2)), scale), bf16);
    }
}

#define EXPAND_OF(name, block, block_bytes, bf16, type)                                                                \
    static AH_TARGET void name(void *to, const uint8_t *from, int64_t blocks)                                          \
    {                                                                                                                  \
        for (int64_t b = 0; b < blocks; b++)                                                                           \
            block((type *)to + b * AH_CODES_BLOCK, from + b * (block_bytes), bf16);                                    \
    }
EXPAND_OF(expand_int8_f32, int8_expand, AH_INT8_BYTES, false, float)
EXPAND_OF(expand_int8_bf16, int8_expand, AH_INT8_BYTES, true, uint16_t)
EXPAND_OF(expand_nf4_f32, nf4_expand, AH_NF4_BYTES, false, float)
EXPAND_OF(expand_nf4_bf16, nf4_expand, AH_NF4_BYTES, true, uint16_t)
EXPAND_OF(expand_mxfp4_f32, mxfp4_expand, AH_MXFP4_BYTES, false, float)
EXPAND_OF(expand_mxfp4_bf16, mxfp4_expand, AH_MXFP4_BYTES, true, uint16_t)

static void expand(void *to, enum ah_dtype to_dtype, const void *from, enum ah_codes codes, int64_t blocks)
{
    static void (*const table[][2])(void *to, const uint8_t *from,
                                    int64_t blocks) = {[AH_CODES_INT8] = {expand_int8_f32, expand_int8_bf16},
                                                       [AH_CODES_NF4] = {expand_nf4_f32, expand_nf4_bf16},
                                                       [AH_CODES_MXFP4] = {expand_mxfp4_f32, expand_mxfp4_bf16}};
    table[codes][to_dtype == AH_BF16](to, from, blocks);
}
