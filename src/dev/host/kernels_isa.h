/* The host's arithmetic for one instruction set. kernels_avx512.c, kernels_avx2.c and kernels_plain.c include it after
 * they have defined AH_SIMD. */
#include <string.h>

#include "dev/draw.h"
#include "dev/host/kernels.h"
#include "dev/host/simd.h"
#include "dev/host/simd_int.h"
#include "dev/host/simd_sum.h"

/* ---- optimizer --------------------------------------------------------------------------------------------------- */

enum { ADAM_AHEAD = 768 }; /* elements by which each array is prefetched; beyond its end a prefetch does nothing */

/* The formats of an update's arrays; constants where it is inlined. short_params: parameters and gradients are BF16;
 * planes: parameters also have a rest; short_moments: moments are BF16. Moments in codes are none of these
 * (kernels_code8.h). */
struct adam_form {
    bool short_params, planes, short_moments;
};

AH_INLINE v16 load(const void *x, int64_t at, int64_t lanes, const bool bf16)
{
    return bf16 ? v_load_most_bf16((const uint16_t *)x + at, lanes) : v_load_most((const float *)x + at, lanes);
}

/* Stores values, rounded by the 16 bits of `drawn` from bit `shift` on. */
AH_INLINE void store_drawn(uint16_t *to, v16 x, const uint32_t *drawn, int shift, int lanes)
{
    union {
        float value[LANES];
        uint32_t bits[LANES];
    } exact;
    uint16_t rounded[LANES];
    v_store(exact.value, x);
    for (int i = 0; i < LANES; i++)
        rounded[i] = ah__bf16_drawn(exact.bits[i], drawn[i] >> shift & 0xffff);
    if (lanes == LANES)
        memcpy(to, rounded, sizeof rounded);
    else
        memcpy(to, rounded, (size_t)lanes * sizeof *rounded);
}

AH_INLINE void draw(uint32_t *drawn, uint32_t key, uint32_t first)
{
    for (int i = 0; i < LANES; i++)
        drawn[i] = ah__draw(key, first + (uint32_t)i);
}

AH_INLINE void words_store(uint16_t *to, i16 x, int lanes)
{
    uint16_t words[LANES];
    if (lanes == LANES) {
        i_store_words(to, x);
        return;
    }
    i_store_words(words, x);
    memcpy(to, words, (size_t)lanes * sizeof *words);
}

/* Stores values as ah__plane_bits and ah__plane_upper do. */
AH_INLINE void planes_store(const struct ah_adam_piece *s, int64_t at, v16 x, int lanes)
{
    i16 bits = i_bits(x), magnitude = i_and(bits, i_set(INT32_MAX));
    i16 nan = i_right_signed(i_sub(i_set(0x7f800000), magnitude), 31);
    bits = i_or(i_and(bits, i_xor(nan, i_set(-1))), i_and(nan, i_set(0x7fc00000)));
    words_store((uint16_t *)s->to_p + at, i_right(i_add(bits, i_set(0x8000)), 16), lanes);
    words_store(s->to_rest + at, bits, lanes);
}

/* Loads parameters as ah__planes_joined does. */
AH_INLINE v16 param_load(const struct ah_adam_piece *s, int64_t at, int lanes, const struct adam_form form)
{
    v16 param = load(s->p, at, lanes, form.short_params);
    if (!form.planes)
        return param;
    i16 rest = i_right_signed(i_bits(v_load_most_bf16(s->rest + at, lanes)), 16);
    return v_of_bits(i_add(i_bits(param), rest));
}

AH_INLINE void param_store(const struct ah_adam_piece *s, const struct ah_adam *adam, int64_t at, v16 updated,
                           int lanes, const struct adam_form form)
{
    uint32_t drawn[LANES];
    if (!form.short_params) {
        v_store_most((float *)s->to_p + at, updated, lanes);
    } else if (form.planes) {
        planes_store(s, at, updated, lanes);
    } else {
        draw(drawn, ~adam->draw, s->first + (uint32_t)at);
        store_drawn((uint16_t *)s->to_p + at, updated, drawn, 0, lanes);
    }
}

AH_INLINE void moments_store(const struct ah_adam_piece *s, const struct ah_adam *adam, int64_t at, v16 first,
                             v16 second, int lanes, const struct adam_form form)
{
    uint32_t drawn[LANES];
    if (!form.short_moments) {
        v_store_most((float *)s->to_m + at, first, lanes);
        v_store_most((float *)s->to_v + at, second, lanes);
        return;
    }
    draw(drawn, adam->draw, s->first + (uint32_t)at);
    store_drawn((uint16_t *)s->to_m + at, first, drawn, 0, lanes);
    store_drawn((uint16_t *)s->to_v + at, second, drawn, 16, lanes);
}

struct adam_values {
    v16 param, first, second; /* the parameter and its moments */
};

/* Does the operations of dev.h. */
AH_INLINE struct adam_values adam_update(const struct ah_adam_piece *s, const struct ah_adam *adam, v16 given,
                                         struct adam_values old)
{
    v16 grad = v_mul(given, v_set(s->scale));
    v16 first = v_fma(v_set(adam->beta1), old.first, v_mul(v_set(adam->one_minus_beta1), grad));
    v16 second = v_fma(v_set(adam->beta2), old.second, v_mul(v_mul(v_set(adam->one_minus_beta2), grad), grad));
    v16 root = v_add(v_mul(v_sqrt(second), v_set(adam->inv_sqrt_bias2)), v_set(adam->eps));
    v16 decayed = v_mul(old.param, v_set(s->decay_factor));
    return (struct adam_values){v_fma(v_set(-adam->step_size), v_div(first, root), decayed), first, second};
}

/* Updates elements [at, at + lanes), at most 16. */
AH_INLINE void adam_step(const struct ah_adam_piece *s, const struct ah_adam *adam, int64_t at, int lanes,
                         const struct adam_form form)
{
    struct adam_values x = {param_load(s, at, lanes, form), load(s->m, at, lanes, form.short_moments),
                            load(s->v, at, lanes, form.short_moments)};
    x = adam_update(s, adam, load(s->g, at, lanes, form.short_params), x);
    moments_store(s, adam, at, x.first, x.second, lanes, form);
    param_store(s, adam, at, x.param, lanes, form);
}

AH_INLINE int64_t bytes_of(const bool bf16)
{
    return bf16 ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float);
}

/* Prefetches parameters and gradient. */
AH_INLINE void params_ahead(const struct ah_adam_piece *s, int64_t at, const struct adam_form form)
{
    v_prefetch((const char *)s->p + at * bytes_of(form.short_params));
    v_prefetch((const char *)s->g + at * bytes_of(form.short_params));
    if (form.planes)
        v_prefetch(s->rest + at);
}

AH_INLINE void adam_ahead(const struct ah_adam_piece *s, int64_t at, const struct adam_form form)
{
    params_ahead(s, at, form);
    v_prefetch((const char *)s->m + at * bytes_of(form.short_moments));
    v_prefetch((const char *)s->v + at * bytes_of(form.short_moments));
}

AH_INLINE void adam_all(const struct ah_adam_piece *piece, const struct adam_form form)
{
    const struct ah_adam_piece s = *piece;
    const struct ah_adam constants = *piece->adam;
    int64_t i = 0;
    for (; i + LANES <= s.count; i += LANES) {
        adam_ahead(&s, i + ADAM_AHEAD, form);
        adam_step(&s, &constants, i, LANES, form);
    }
    if (i < s.count)
        adam_step(&s, &constants, i, (int)(s.count - i), form);
}

#define ADAM_OF(name, ...)                                                                                             \
    static AH_TARGET void name(const struct ah_adam_piece *piece)                                                      \
    {                                                                                                                  \
        adam_all(piece, (struct adam_form){__VA_ARGS__});                                                              \
    }
ADAM_OF(adam_f32, false, false, false)
ADAM_OF(adam_bf16, true, false, false)
ADAM_OF(adam_planes, true, true, false)
ADAM_OF(adam_f32_short, false, false, true)
ADAM_OF(adam_bf16_short, true, false, true)
ADAM_OF(adam_planes_short, true, true, true)

#include "dev/host/kernels_code8.h"

static void adam(const struct ah_adam_piece *piece)
{
    static void (*const table[AH_DTYPE_COUNT][3])(const struct ah_adam_piece *piece) = {
        [AH_F32] = {adam_f32, adam_bf16, adam_planes},
        [AH_BF16] = {adam_f32_short, adam_bf16_short, adam_planes_short},
        [AH_U8] = {adam_f32_code8, adam_bf16_code8, adam_planes_code8}};
    table[piece->moment_dtype][piece->rest ? 2 : piece->dtype == AH_BF16](piece);
}

/* ---- sum of squares ---------------------------------------------------------------------------------------------- */

AH_INLINE double squares(const void *x, int64_t n, const bool bf16)
{
    d16 sum[2] = {d_zero(), d_zero()};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        sum[0] = d_add_square(sum[0], load(x, i, LANES, bf16));
        sum[1] = d_add_square(sum[1], load(x, i + LANES, LANES, bf16));
    }
    for (; i < n; i += LANES)
        sum[0] = d_add_square(sum[0], load(x, i, n - i, bf16));
    double lane[2][LANES], total = 0;
    d_store(lane[0], sum[0]);
    d_store(lane[1], sum[1]);
    for (int j = 0; j < LANES; j++)
        total += lane[0][j] + lane[1][j];
    return total;
}

static AH_TARGET double squares_f32(const void *x, int64_t n)
{
    return squares(x, n, false);
}
static AH_TARGET double squares_bf16(const void *x, int64_t n)
{
    return squares(x, n, true);
}

static double sum_squares(const void *x, enum ah_dtype dtype, int64_t n)
{
    return dtype == AH_BF16 ? squares_bf16(x, n) : squares_f32(x, n);
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

static AH_TARGET void to_bf16(uint16_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        v_store_most_bf16(y + i, v_load_most(x + i, n - i), n - i);
}

static AH_TARGET void from_bf16(float *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        v_store_most(y + i, v_load_most_bf16(x + i, n - i), n - i);
}

/* ---- codes ------------------------------------------------------------------------------------------------------- */

#include "dev/host/kernels_codes.h"

#define AH_HOST_KERNELS                                                                                                \
    {                                                                                                                  \
        .adam = adam, .sum_squares = sum_squares, .to_bf16 = to_bf16, .from_bf16 = from_bf16, .expand = expand,        \
    }
