/* Adam with moments in 8 bits (dev/code8.h); a part of kernels_isa.h. It does a group at a time, so that its new
 * moments are in the cache when their scale is known. */
#include "dev/code8.h"

static const struct ah_code8 code8_signed = AH_CODE8_SIGNED, code8_unsigned = AH_CODE8_UNSIGNED;
static const float code8_decades[AH_CODE8_LEVELS] = AH_CODE8_DECADES;

/* Loads 16 values as ah__code8_value does. */
AH_INLINE v16 code8_load(const uint8_t *codes, const struct ah_code8 *table)
{
    const i16 zero = i_set(0);
    i16 k = i_sub(i_load_bytes(codes), i_set(table->origin)), magnitude = i_max(k, i_sub(zero, k));
    i16 bits = i_bits(v_from_int(i_add(i_add(magnitude, magnitude), i_set(1))));
    i16 level = i_sub(i_right(bits, 23), i_set(table->exponent));
    v16 mantissa = v_of_bits(i_or(i_and(bits, i_set(0x7fffff)), i_set(0x3f800000)));
    v16 within = v_fma(v_set(0.9F), v_sub(mantissa, v_set(1)), v_set(0.1F));
    v16 value = v_fma(v_table(code8_decades, level), within, v_from_int(i_right(level, 3)));
    i16 sign = i_and(k, i_set(INT32_MIN));
    return v_of_bits(i_xor(i_bits(value), sign));
}

/* Stores 16 fractions as ah__code8_of does. */
AH_INLINE void code8_store(uint8_t *codes, v16 fraction, const struct ah_code8 *table)
{
    const i16 last_level = i_set(AH_CODE8_LEVELS - 1);
    i16 sign = i_right_signed(i_bits(fraction), 31);
    i16 bits = i_min(i_and(i_bits(fraction), i_set(INT32_MAX)), i_set(0x3f800000));
    v16 a = v_of_bits(bits);
    v16 guess = v_fma(v_from_int(bits), v_set(AH_CODE8_GUESS_SLOPE), v_set(AH_CODE8_GUESS_OFFSET));
    i16 level = i_max(i_from_float(guess), i_set(0));
    level = i_count(level, a, v_table(table->least, level));
    i16 last = i_min(level, last_level);
    v16 k = v_fma(v_max(a, v_set(AH_CODE8_SMALL)), v_table(table->slope, last), v_table(table->offset, last));
    i16 whole = i_add(i_from_float(v_min(k, v_table(table->most, last))), i_sub(level, last));
    i16 code = i_add(i_sub(i_xor(whole, sign), sign), i_set(table->origin));
    i_store_bytes(codes, i_max(code, i_set(0))); /* there is no code -1 */
}

AH_INLINE float code8_scale_at(const uint8_t *group)
{
    float scale;
    memcpy(&scale, group + AH_CODE8_GROUP, sizeof scale);
    return scale;
}

/* Encodes and stores a group of values. `most`: their largest magnitudes, lane by lane, as bits. */
AH_INLINE void code8_group_store(uint8_t *group, const float *values, i16 most, const struct ah_code8 *table)
{
    int32_t lane[LANES];
    uint32_t largest = 0;
    memcpy(lane, &most, sizeof lane);
    for (int i = 0; i < LANES; i++)
        largest = (uint32_t)lane[i] > largest ? (uint32_t)lane[i] : largest;
    uint32_t scale = ah__code8_scale(largest);
    memcpy(group + AH_CODE8_GROUP, &scale, sizeof scale);
    if (!ah__code8_usable(scale)) {
        memset(group, ah__code8_of(0, table), AH_CODE8_GROUP);
        return;
    }
    v16 inverse = v_set(1.0F / ah__code8_float(scale));
    for (int i = 0; i < AH_CODE8_GROUP; i += LANES)
        code8_store(group + i, v_mul(v_load(values + i), inverse), table);
}

AH_INLINE i16 i_larger_magnitude(i16 most, v16 x)
{
    return i_max(most, i_and(i_bits(x), i_set(INT32_MAX)));
}

/* Updates elements [at, at + 256). */
AH_INLINE void code8_group(const struct ah_adam_piece *s, const struct ah_adam *adam, int64_t at,
                           const struct adam_form form)
{
    float first[AH_CODE8_GROUP], second[AH_CODE8_GROUP];
    int64_t group = at / AH_CODE8_GROUP * AH_CODE8_BYTES;
    const uint8_t *m = (const uint8_t *)s->m + group, *v = (const uint8_t *)s->v + group;
    const v16 m_scale = v_set(code8_scale_at(m)), v_scale = v_set(code8_scale_at(v));
    i16 most_first = i_set(0), most_second = i_set(0);
    for (int i = 0; i < AH_CODE8_GROUP; i += LANES) {
        params_ahead(s, at + i + ADAM_AHEAD, form);
        struct adam_values x = {param_load(s, at + i, LANES, form), v_mul(code8_load(m + i, &code8_signed), m_scale),
                                v_mul(code8_load(v + i, &code8_unsigned), v_scale)};
        x = adam_update(s, adam, load(s->g, at + i, LANES, form.short_params), x);
        v_store(first + i, x.first);
        v_store(second + i, x.second);
        most_first = i_larger_magnitude(most_first, x.first);
        most_second = i_larger_magnitude(most_second, x.second);
        param_store(s, adam, at + i, x.param, LANES, form);
    }
    code8_group_store((uint8_t *)s->to_m + group, first, most_first, &code8_signed);
    code8_group_store((uint8_t *)s->to_v + group, second, most_second, &code8_unsigned);
}

/* Updates a piece of whole groups. */
AH_INLINE void code8_all(const struct ah_adam_piece *piece, const struct adam_form form)
{
    enum { LINE = 64 };
    const struct ah_adam_piece s = *piece;
    const struct ah_adam constants = *piece->adam;
    for (int64_t i = 0; i < s.count; i += AH_CODE8_GROUP) {
        int64_t ahead = (i + ADAM_AHEAD) / AH_CODE8_GROUP * AH_CODE8_BYTES;
        for (int64_t line = 0; line < AH_CODE8_BYTES; line += LINE) {
            v_prefetch((const char *)s.m + ahead + line);
            v_prefetch((const char *)s.v + ahead + line);
        }
        code8_group(&s, &constants, i, form);
    }
}

#define CODE8_OF(name, ...)                                                                                            \
    static AH_TARGET void name(const struct ah_adam_piece *piece)                                                      \
    {                                                                                                                  \
        code8_all(piece, (struct adam_form){__VA_ARGS__});                                                             \
    }
CODE8_OF(adam_f32_code8, false, false, false)
CODE8_OF(adam_bf16_code8, true, false, false)
CODE8_OF(adam_planes_code8, true, true, false)
