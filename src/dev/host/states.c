#include "dev/host/states.h"

#include "dev/code8.h"
#include "op/bf16.h"

static const struct ah_code8 tables[2] = {AH_CODE8_UNSIGNED, AH_CODE8_SIGNED};

static void group_narrow(uint8_t *group, const float *values, int64_t count, const struct ah_code8 *table)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t magnitude = ah__code8_bits(values[i]) & 0x7fffffffU;
        most = most > magnitude ? most : magnitude;
    }
    uint32_t scale = ah__code8_scale(most);
    bool usable = ah__code8_usable(scale);
    float inverse = usable ? 1.0F / ah__code8_float(scale) : 0;
    for (int64_t i = 0; i < AH_CODE8_GROUP; i++)
        group[i] = ah__code8_of(usable && i < count ? values[i] * inverse : 0, table);
    memcpy(group + AH_CODE8_GROUP, &scale, sizeof scale);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void code8_narrow(void *to, const float *values, int64_t count, bool is_signed)
{
    for (int64_t i = 0; i < count; i += AH_CODE8_GROUP)
        group_narrow((uint8_t *)to + i / AH_CODE8_GROUP * AH_CODE8_BYTES, values + i,
                     smaller(count - i, AH_CODE8_GROUP), &tables[is_signed]);
}

static void code8_widen(float *values, const void *from, int64_t count, bool is_signed)
{
    static const float decades[AH_CODE8_LEVELS] = AH_CODE8_DECADES;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *group = (const uint8_t *)from + i / AH_CODE8_GROUP * AH_CODE8_BYTES;
        float scale;
        memcpy(&scale, group + AH_CODE8_GROUP, sizeof scale);
        values[i] = ah__code8_value(group[i % AH_CODE8_GROUP], &tables[is_signed], decades) * scale;
    }
}

static void f32_narrow(void *to, const float *values, int64_t count, bool is_signed)
{
    (void)is_signed;
    memcpy(to, values, (size_t)count * sizeof *values);
}

static void f32_widen(float *values, const void *from, int64_t count, bool is_signed)
{
    f32_narrow(values, from, count, is_signed);
}

static void bf16_narrow(void *to, const float *values, int64_t count, bool is_signed)
{
    (void)is_signed;
    ah__bf16_narrow(to, values, count);
}

static void bf16_widen(float *values, const void *from, int64_t count, bool is_signed)
{
    (void)is_signed;
    ah__bf16_widen(values, from, count);
}

static const struct ah_state_format formats[AH_DTYPE_COUNT] = {
    [AH_F32] = {1, 4, {0}, f32_narrow, f32_widen},
    [AH_BF16] = {1, 2, {0}, bf16_narrow, bf16_widen},
    [AH_U8] = {AH_CODE8_GROUP, AH_CODE8_BYTES, {0, AH_CODE8_ZERO_SIGNED}, code8_narrow, code8_widen},
};

const struct ah_state_format *ah__state_format(enum ah_dtype dtype)
{
    bool found = (unsigned)dtype < AH_DTYPE_COUNT && formats[dtype].group > 0;
    return found ? &formats[dtype] : NULL;
}

int64_t ah__state_bytes(enum ah_dtype dtype, int64_t count)
{
    return (count + formats[dtype].group - 1) / formats[dtype].group * formats[dtype].group_bytes;
}

void ah__state_split(void *to, const void *state, enum ah_dtype dtype, int64_t count, bool scales)
{
    const struct ah_state_format *f = &formats[dtype];
    int64_t each = ah__dtype_bytes(dtype), all = f->group * each;
    for (int64_t i = 0; i < count; i += f->group) {
        const char *group = (const char *)state + ah__state_bytes(dtype, i);
        if (scales)
            memcpy((float *)to + i / f->group, group + all, sizeof(float));
        else
            memcpy((char *)to + i * each, group, (size_t)(smaller(count - i, f->group) * each));
    }
}

void ah__state_join(void *state, enum ah_dtype dtype, const void *codes, const void *scales, int64_t count,
                    bool is_signed)
{
    const struct ah_state_format *f = &formats[dtype];
    int64_t each = ah__dtype_bytes(dtype), all = f->group * each;
    for (int64_t i = 0; i < count; i += f->group) {
        char *group = (char *)state + ah__state_bytes(dtype, i);
        memset(group, f->zero[is_signed], (size_t)all);
        memcpy(group, (const char *)codes + i * each, (size_t)(smaller(count - i, f->group) * each));
        memcpy(group + all, (const char *)scales + i / f->group * (int64_t)sizeof(float), sizeof(float));
    }
}
