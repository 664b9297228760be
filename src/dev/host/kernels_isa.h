/* The host's arithmetic of one instruction set, included by kernels_avx512.c, kernels_avx2.c and kernels_plain.c after
 * AH_SIMD is defined. */
#include "dev/host/kernels.h"
#include "dev/host/simd.h"

/* ---- optimizer --------------------------------------------------------------------------------------------------- */

enum { ADAM_AHEAD = 768 }; /* elements of each array fetched ahead of use; past the end a prefetch does nothing */

/* Elements [at, at + lanes), at most 16. `bf16` and `half` are constants where this is inlined. */
AH_INLINE void adam_step(const struct ah_adam_piece *s, const struct ah_adam *adam, int64_t at, int lanes,
                         const bool bf16, const bool half)
{
    v16 given =
        bf16 ? v_load_most_bf16((const uint16_t *)s->g + at, lanes) : v_load_most((const float *)s->g + at, lanes);
    v16 grad = v_mul(given, v_set(s->scale));
    v16 first = v_fma(v_set(adam->beta1), v_load_most(s->m + at, lanes), v_mul(v_set(adam->one_minus_beta1), grad));
    v16 second = v_fma(v_set(adam->beta2), v_load_most(s->v + at, lanes),
                       v_mul(v_mul(v_set(adam->one_minus_beta2), grad), grad));
    v16 root = v_add(v_mul(v_sqrt(second), v_set(adam->inv_sqrt_bias2)), v_set(adam->eps));
    v16 decayed = v_mul(v_load_most(s->p + at, lanes), v_set(s->decay_factor));
    v16 updated = v_fma(v_set(-adam->step_size), v_div(first, root), decayed);
    v_store_most(s->to_m + at, first, lanes);
    v_store_most(s->to_v + at, second, lanes);
    v_store_most(s->to_p + at, updated, lanes);
    if (half)
        v_store_most_bf16(s->half + at, updated, lanes);
}

AH_INLINE void adam_ahead(const struct ah_adam_piece *s, int64_t at, const bool bf16)
{
    v_prefetch((const char *)s->p + at * (int64_t)sizeof(float));
    v_prefetch((const char *)s->m + at * (int64_t)sizeof(float));
    v_prefetch((const char *)s->v + at * (int64_t)sizeof(float));
    v_prefetch((const char *)s->g + at * (int64_t)(bf16 ? sizeof(uint16_t) : sizeof(float)));
}

AH_INLINE void adam_all(const struct ah_adam_piece *piece, const bool bf16, const bool half)
{
    const struct ah_adam_piece s = *piece;
    const struct ah_adam constants = *piece->adam;
    int64_t i = 0;
    for (; i + LANES <= s.count; i += LANES) {
        adam_ahead(&s, i + ADAM_AHEAD, bf16);
        adam_step(&s, &constants, i, LANES, bf16, half);
    }
    if (i < s.count)
        adam_step(&s, &constants, i, (int)(s.count - i), bf16, half);
}

static AH_TARGET void adam_f32(const struct ah_adam_piece *piece)
{
    adam_all(piece, false, false);
}
static AH_TARGET void adam_f32_half(const struct ah_adam_piece *piece)
{
    adam_all(piece, false, true);
}
static AH_TARGET void adam_bf16(const struct ah_adam_piece *piece)
{
    adam_all(piece, true, false);
}
static AH_TARGET void adam_bf16_half(const struct ah_adam_piece *piece)
{
    adam_all(piece, true, true);
}

static void adam(const struct ah_adam_piece *piece)
{
    static void (*const table[2][2])(const struct ah_adam_piece *piece) = {{adam_f32, adam_f32_half},
                                                                           {adam_bf16, adam_bf16_half}};
    table[piece->grad_dtype == AH_BF16][piece->half != NULL](piece);
}

/* ---- sum of squares ---------------------------------------------------------------------------------------------- */

AH_INLINE v16 load(const void *x, int64_t at, int64_t lanes, const bool bf16)
{
    return bf16 ? v_load_most_bf16((const uint16_t *)x + at, lanes) : v_load_most((const float *)x + at, lanes);
}

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

#define AH_HOST_KERNELS                                                                                                \
    {                                                                                                                  \
        .adam = adam, .sum_squares = sum_squares, .to_bf16 = to_bf16, .from_bf16 = from_bf16,                          \
    }
