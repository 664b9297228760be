/* The kernels of one instruction set, included by kernels_avx512.c, kernels_avx2.c and kernels_plain.c after AH_SIMD is
 * defined. Everything is written in 16-lane vectors with explicit fused operations, so that the tables give equal bits. */
#include "dev/cpu/kernels.h"
#include "dev/cpu/simd.h"

#include "dev/cpu/attention_isa.h"
#include "dev/cpu/norm_isa.h"

static AH_TARGET void exp_array(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        v_store_most(y + i, v_exp(v_load_most(x + i, n - i)), n - i);
}

/* ---- activations --------------------------------------------------------------------------------------------------- */

/* With u = sqrt(2/pi) (x + 0.044715 x^3), (1 + tanh u) / 2 is the logistic function s(2u): no cancellation, one exp. */
AH_INLINE v16 gelu_exp(v16 x, v16 square)
{
    v16 minus_two_u = v_mul(x, v_fma(square, v_set(-0.0713548163F), v_set(-1.59576912F)));
    return v_exp(minus_two_u);
}

AH_INLINE v16 gelu_of(v16 x)
{
    return v_div(x, v_add(v_set(1.0F), gelu_exp(x, v_mul(x, x))));
}

/* s + x s (1 - s) (2u)', where 1 - s = e s. */
AH_INLINE v16 gelu_slope(v16 x)
{
    v16 square = v_mul(x, x);
    v16 e = gelu_exp(x, square);
    v16 s = v_div(v_set(1.0F), v_add(v_set(1.0F), e));
    v16 inner = v_fma(square, v_set(0.214064449F), v_set(1.59576912F));
    return v_fma(v_mul(v_mul(x, s), v_mul(e, s)), inner, s);
}

AH_INLINE v16 relu_of(v16 x)
{
    return v_max(v_set(0.0F), x);
}

/* 1 where x > 0, else 0; NaN counts as not positive, but then the forward pass has shown it. */
AH_INLINE v16 relu_slope(v16 x)
{
    return v_if_less(v_set(0.0F), x, v_set(1.0F), v_set(0.0F));
}

#define ACTIVATION(name)                                                                                               \
    static AH_TARGET void name(float *y, const float *x, int64_t n)                                                    \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            v_store(y + i, name##_of(v_load(x + i)));                                                                  \
        if (i < n)                                                                                                     \
            v_store_first(y + i, name##_of(v_load_first(x + i, (int)(n - i))), (int)(n - i));                          \
    }                                                                                                                  \
    static AH_TARGET void name##_bwd(float *dx, const float *dy, const float *x, int64_t n, bool accumulate)           \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i += LANES) {                                                                       \
            v16 before = accumulate ? v_load_most(dx + i, n - i) : v_set(0.0F);                                        \
            v16 slope = name##_slope(v_load_most(x + i, n - i));                                                       \
            v_store_most(dx + i, v_fma(v_load_most(dy + i, n - i), slope, before), n - i);                             \
        }                                                                                                              \
    }
ACTIVATION(gelu)
ACTIVATION(relu)

static AH_TARGET void add(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        v_store_most(y + i, v_add(v_load_most(a + i, n - i), v_load_most(b + i, n - i)), n - i);
}

/* ---- softmax cross-entropy ----------------------------------------------------------------------------------------- */

static AH_TARGET float row_largest(const float *x, int64_t n)
{
    v16 most[SUMS];
    for (int u = 0; u < SUMS; u++)
        most[u] = v_set(x[0]);
    int64_t i = 0;
    for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
        for (int u = 0; u < SUMS; u++)
            most[u] = v_max(most[u], v_load(x + i + u * LANES));
    for (; i < n; i += LANES)
        most[0] = v_max(most[0],
                        n - i >= LANES ? v_load(x + i) : v_first((int)(n - i), v_load_first(x + i, (int)(n - i)), most[0]));
    return v_largest(v_max(v_max(most[0], most[1]), v_max(most[2], most[3])));
}

/* y = e^(x - shift); gives the sum. */
static AH_TARGET float row_exp(float *y, const float *x, int64_t n, float shift)
{
    v16 sum[SUMS], less = v_set(shift);
    for (int u = 0; u < SUMS; u++)
        sum[u] = v_set(0.0F);
    int64_t i = 0;
    for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
        for (int u = 0; u < SUMS; u++) {
            v16 e = v_exp(v_sub(v_load(x + i + u * LANES), less));
            v_store(y + i + u * LANES, e);
            sum[u] = v_add(sum[u], e);
        }
    for (; i < n; i += LANES) {
        int lanes = n - i >= LANES ? LANES : (int)(n - i);
        v16 e = v_first(lanes, v_exp(v_sub(v_load_first(x + i, lanes), less)), v_set(0.0F));
        v_store_first(y + i, e, lanes);
        sum[0] = v_add(sum[0], e);
    }
    return sums_total(sum);
}

static AH_TARGET double cross_entropy(float *dlogits, const float *logits, int64_t cols, int64_t target, float scale)
{
    float most = row_largest(logits, cols), at_target = logits[target];
    float sum = row_exp(dlogits, logits, cols, most);
    v16 factor = v_set(scale / sum);
    for (int64_t i = 0; i < cols; i += LANES)
        v_store_most(dlogits + i, v_mul(v_load_most(dlogits + i, cols - i), factor), cols - i);
    dlogits[target] -= scale;
    return log((double)sum) + (double)most - (double)at_target;
}

/* ---- optimizer ----------------------------------------------------------------------------------------------------- */

enum { ADAM_AHEAD = 768 }; /* floats of each array fetched ahead of use; past the end a prefetch does nothing */

AH_INLINE void adam_step(float *p, float *m, float *v, const float *g, int lanes, const struct ah_adam *adam, float decay)
{
    v16 grad = v_load_most(g, lanes);
    v16 first = v_fma(v_set(adam->beta1), v_load_most(m, lanes), v_mul(v_set(adam->one_minus_beta1), grad));
    v16 second = v_fma(v_set(adam->beta2), v_load_most(v, lanes),
                       v_mul(v_mul(v_set(adam->one_minus_beta2), grad), grad));
    v16 root = v_add(v_mul(v_sqrt(second), v_set(adam->inv_sqrt_bias2)), v_set(adam->eps));
    v16 decayed = v_mul(v_load_most(p, lanes), v_set(decay));
    v_store_most(m, first, lanes);
    v_store_most(v, second, lanes);
    v_store_most(p, v_fma(v_set(-adam->step_size), v_div(first, root), decayed), lanes);
}

static AH_TARGET void adam_array(float *p, float *m, float *v, const float *g, int64_t n, const struct ah_adam *adam,
                                 float decay_factor)
{
    const struct ah_adam constants = *adam;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        v_prefetch((const char *)p + (i + ADAM_AHEAD) * (int64_t)sizeof(float));
        v_prefetch((const char *)m + (i + ADAM_AHEAD) * (int64_t)sizeof(float));
        v_prefetch((const char *)v + (i + ADAM_AHEAD) * (int64_t)sizeof(float));
        v_prefetch((const char *)g + (i + ADAM_AHEAD) * (int64_t)sizeof(float));
        adam_step(p + i, m + i, v + i, g + i, LANES, &constants, decay_factor);
    }
    if (i < n)
        adam_step(p + i, m + i, v + i, g + i, (int)(n - i), &constants, decay_factor);
}

static AH_TARGET double sum_squares(const float *x, int64_t n)
{
    d16 sum[2] = {d_zero(), d_zero()};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        sum[0] = d_add_square(sum[0], v_load(x + i));
        sum[1] = d_add_square(sum[1], v_load(x + i + LANES));
    }
    for (; i < n; i += LANES)
        sum[0] = d_add_square(sum[0], v_load_most(x + i, n - i));
    double lane[2][LANES], total = 0;
    d_store(lane[0], sum[0]);
    d_store(lane[1], sum[1]);
    for (int j = 0; j < LANES; j++)
        total += lane[0][j] + lane[1][j];
    return total;
}

#define AH_KERNELS(label, usable_here)                                                                                 \
    {                                                                                                                  \
        .name = (label), .usable = (usable_here), .exp = exp_array, .gelu = gelu, .gelu_bwd = gelu_bwd, .relu = relu,  \
        .relu_bwd = relu_bwd, .add = add, .layernorm = layernorm, .layernorm_bwd = layernorm_bwd, .strip = strip,      \
        .cross_entropy = cross_entropy, .attention = attention, .attention_bwd = attention_bwd, .adam = adam_array,    \
        .sum_squares = sum_squares,                                                                                    \
    }
