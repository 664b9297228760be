/* The kernels of one instruction set and one compute dtype. kernels_avx512.c and its like include it after they have
 * defined AH_SIMD, and AH_BF16_ELEMENTS for bf16. Everything is written in 16-lane vectors of floats with explicit
 * fused operations, so that all instruction sets give equal bits; the dtype matters only for loads and stores. */
#include "dev/cpu/element_isa.h"
#include "dev/cpu/kernels.h"

#include "dev/cpu/attention_isa.h"

#include "dev/cpu/attention_bwd_isa.h"
#include "dev/cpu/norm_isa.h"

static AH_TARGET void exp_array(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        v_store_most(y + i, v_exp(v_load_most(x + i, n - i)), n - i);
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* GELU by tanh. With u = sqrt(2/pi) (x + 0.044715 x^3), (1 + tanh u) / 2 is the logistic function s(2u), which needs
 * one exp and loses no digits to cancellation. */
AH_INLINE v16 gelu_exp(v16 x, v16 square)
{
    v16 minus_two_u = v_mul(x, v_fma(square, v_set(-0.0713548163F), v_set(-1.59576912F)));
    return v_exp(minus_two_u);
}

AH_INLINE v16 gelu_of(v16 x)
{
    return v_div(x, v_add(v_set(1.0F), gelu_exp(x, v_mul(x, x))));
}

/* Returns the slope s + x s (1 - s) (2u)', where 1 - s = e s. */
AH_INLINE v16 gelu_slope(v16 x)
{
    v16 square = v_mul(x, x);
    v16 e = gelu_exp(x, square);
    v16 s = v_div(v_set(1.0F), v_add(v_set(1.0F), e));
    v16 inner = v_fma(square, v_set(0.214064449F), v_set(1.59576912F));
    return v_fma(v_mul(v_mul(x, s), v_mul(e, s)), inner, s);
}

/* Returns the probability P of a normal variable below -|x|; *density: its density at x. P is e^(-x^2 / 2) times a
 * slowly falling factor, a polynomial in 1 / (1 + |x| / 4), exact to 8e-9. The rounding error of x^2 is corrected. */
AH_INLINE v16 normal_tail(v16 x, v16 *density)
{
    static const float factor[] = {0.0162356608F, -0.0608639531F, 0.0469569489F, 0.0349443816F, 0.00706185726F,
                                   0.0898367986F, 0.070840992F,   0.0957787186F, 0.099458836F,  0.0997497663F};
    v16 a = v_min(v_set(13.5F), v_max(x, v_sub(v_set(0.0F), x))), square = v_mul(a, a);
    v16 lost = v_fma(a, a, v_sub(v_set(0.0F), square));
    v16 e = v_exp(v_mul(square, v_set(-0.5F)));
    e = v_fma(e, v_mul(lost, v_set(-0.5F)), e);
    v16 t = v_div(v_set(1.0F), v_fma(a, v_set(0.25F), v_set(1.0F))), p = v_set(factor[0]);
    for (int i = 1; i < 10; i++)
        p = v_fma(p, t, v_set(factor[i]));
    *density = v_mul(e, v_set(0.398942280F));
    return v_mul(e, v_mul(p, t));
}

AH_INLINE v16 normal_below(v16 x, v16 *density)
{
    v16 tail = normal_tail(x, density);
    return v_if_less(x, v_set(0.0F), tail, v_sub(v_set(1.0F), tail));
}

AH_INLINE v16 gelu_erf_of(v16 x)
{
    v16 density;
    return v_mul(x, normal_below(x, &density));
}

AH_INLINE v16 gelu_erf_slope(v16 x)
{
    v16 density, below = normal_below(x, &density);
    return v_fma(x, density, below);
}

AH_INLINE v16 relu_of(v16 x)
{
    return v_max(v_set(0.0F), x);
}

/* Returns 1 if x > 0, else 0. NaN counts as not positive; the forward pass has reported it by then. */
AH_INLINE v16 relu_slope(v16 x)
{
    return v_if_less(v_set(0.0F), x, v_set(1.0F), v_set(0.0F));
}

#define ACTIVATION(name)                                                                                               \
    static AH_TARGET void name(void *to, const void *from, int64_t n)                                                  \
    {                                                                                                                  \
        const element *x = from;                                                                                       \
        element *y = to;                                                                                               \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            e_store(y + i, name##_of(e_load(x + i)));                                                                  \
        if (i < n)                                                                                                     \
            e_store_first(y + i, name##_of(e_load_first(x + i, (int)(n - i))), (int)(n - i));                          \
    }                                                                                                                  \
    static AH_TARGET void name##_bwd(void *to, const void *gradient, const void *from, int64_t n, bool accumulate)     \
    {                                                                                                                  \
        const element *dy = gradient, *x = from;                                                                       \
        element *dx = to;                                                                                              \
        for (int64_t i = 0; i < n; i += LANES) {                                                                       \
            v16 before = accumulate ? e_load_most(dx + i, n - i) : v_set(0.0F);                                        \
            v16 slope = name##_slope(e_load_most(x + i, n - i));                                                       \
            e_store_most(dx + i, v_fma(e_load_most(dy + i, n - i), slope, before), n - i);                             \
        }                                                                                                              \
    }
ACTIVATION(gelu)
ACTIVATION(gelu_erf)
ACTIVATION(relu)

static AH_TARGET void silu_mul(void *to, const void *gates, const void *ups, int64_t n)
{
    const element *gate = gates, *up = ups;
    element *y = to;
    for (int64_t i = 0; i < n; i += LANES) {
        v16 g = e_load_most(gate + i, n - i);
        v16 silu = v_div(g, v_add(v_set(1.0F), v_exp(v_sub(v_set(0.0F), g))));
        e_store_most(y + i, v_mul(silu, e_load_most(up + i, n - i)), n - i);
    }
}

/* With s = 1 / (1 + e^-g), the slope of g s is s + g s (1 - s), where 1 - s = e^-g s. */
static AH_TARGET void silu_mul_bwd(void *to_gate, void *to_up, const void *gradient, const void *gates, const void *ups,
                                   int64_t n)
{
    const element *dy = gradient, *gate = gates, *up = ups;
    element *dgate = to_gate, *dup = to_up;
    for (int64_t i = 0; i < n; i += LANES) {
        v16 g = e_load_most(gate + i, n - i), d = e_load_most(dy + i, n - i);
        v16 e = v_exp(v_sub(v_set(0.0F), g));
        v16 s = v_div(v_set(1.0F), v_add(v_set(1.0F), e));
        v16 silu = v_mul(g, s), slope = v_fma(silu, v_mul(e, s), s);
        e_store_most(dgate + i, v_mul(v_mul(d, e_load_most(up + i, n - i)), slope), n - i);
        e_store_most(dup + i, v_mul(d, silu), n - i);
    }
}

/* Returns x within the limits; NaN stays NaN. */
AH_INLINE v16 v_within(v16 x, float low, float high)
{
    return v_min(v_set(high), v_max(v_set(low), x));
}

static AH_TARGET void swiglu_clamped(void *to, const void *gates, const void *ups, int64_t n, float factor, float limit)
{
    const element *gate = gates, *up = ups;
    element *y = to;
    for (int64_t i = 0; i < n; i += LANES) {
        v16 g = v_min(v_set(limit), e_load_most(gate + i, n - i));
        v16 u = v_within(e_load_most(up + i, n - i), -limit, limit);
        v16 glu = v_div(g, v_add(v_set(1.0F), v_exp(v_mul(g, v_set(-factor)))));
        e_store_most(y + i, v_mul(glu, v_add(u, v_set(1.0F))), n - i);
    }
}

/* Returns 1 in the lanes where `at` is x, which was kept within limits, and 0 in the others. */
AH_INLINE v16 v_kept(v16 x, v16 at)
{
    float lane[LANES], kept[LANES];
    v_store(lane, x);
    v_store(kept, at);
    for (int i = 0; i < LANES; i++)
        kept[i] = lane[i] < kept[i] || lane[i] > kept[i] ? 0.0F : 1.0F;
    return v_load(kept);
}

/* With s = 1 / (1 + e^(-f g)), the slope of g s is s + f g s (1 - s), where 1 - s = e^(-f g) s. */
static AH_TARGET void swiglu_clamped_bwd(void *to_gate, void *to_up, const void *gradient, const void *gates,
                                         const void *ups, int64_t n, float factor, float limit)
{
    const element *dy = gradient, *gate = gates, *up = ups;
    element *dgate = to_gate, *dup = to_up;
    const v16 one = v_set(1.0F);
    for (int64_t i = 0; i < n; i += LANES) {
        v16 x = e_load_most(gate + i, n - i), with = e_load_most(up + i, n - i), d = e_load_most(dy + i, n - i);
        v16 g = v_min(v_set(limit), x), u = v_within(with, -limit, limit);
        v16 e = v_exp(v_mul(g, v_set(-factor))), s = v_div(one, v_add(one, e)), glu = v_mul(g, s);
        v16 slope = v_fma(v_mul(glu, v_set(factor)), v_mul(e, s), s);
        v16 by_gate = v_mul(v_mul(d, v_add(u, one)), slope);
        e_store_most(dgate + i, v_mul(by_gate, v_kept(x, g)), n - i);
        e_store_most(dup + i, v_mul(v_mul(d, glu), v_kept(with, u)), n - i);
    }
}

static AH_TARGET void gelu_mul(void *to, const void *gates, const void *ups, int64_t n)
{
    const element *gate = gates, *up = ups;
    element *y = to;
    for (int64_t i = 0; i < n; i += LANES)
        e_store_most(y + i, v_mul(gelu_of(e_load_most(gate + i, n - i)), e_load_most(up + i, n - i)), n - i);
}

static AH_TARGET void gelu_mul_bwd(void *to_gate, void *to_up, const void *gradient, const void *gates, const void *ups,
                                   int64_t n)
{
    const element *dy = gradient, *gate = gates, *up = ups;
    element *dgate = to_gate, *dup = to_up;
    for (int64_t i = 0; i < n; i += LANES) {
        v16 g = e_load_most(gate + i, n - i), d = e_load_most(dy + i, n - i);
        e_store_most(dgate + i, v_mul(v_mul(d, e_load_most(up + i, n - i)), gelu_slope(g)), n - i);
        e_store_most(dup + i, v_mul(d, gelu_of(g)), n - i);
    }
}

static AH_TARGET void scale(void *to, const void *from, int64_t n, float factor)
{
    const element *x = from;
    element *y = to;
    for (int64_t i = 0; i < n; i += LANES)
        e_store_most(y + i, v_mul(e_load_most(x + i, n - i), v_set(factor)), n - i);
}

static AH_TARGET void soft_cap(void *to, const void *from, int64_t n, float cap)
{
    const element *x = from;
    element *y = to;
    for (int64_t i = 0; i < n; i += LANES)
        e_store_most(y + i, v_soft_cap(e_load_most(x + i, n - i), cap), n - i);
}

static AH_TARGET void rotary(void *over, const float *cosine, const float *sine, int heads, int64_t stride,
                             int64_t half)
{
    element *x = over;
    for (int head = 0; head < heads; head++, x += stride)
        for (int64_t i = 0; i < half; i += LANES) {
            v16 c = v_load_most(cosine + i, half - i), s = v_load_most(sine + i, half - i);
            v16 a = e_load_most(x + i, half - i), b = e_load_most(x + half + i, half - i);
            e_store_most(x + i, v_sub(v_mul(a, c), v_mul(b, s)), half - i);
            e_store_most(x + half + i, v_add(v_mul(b, c), v_mul(a, s)), half - i);
        }
}

static AH_TARGET void add(void *to, const void *left, const void *right, int64_t n)
{
    const element *a = left, *b = right;
    element *y = to;
    for (int64_t i = 0; i < n; i += LANES)
        e_store_most(y + i, v_add(e_load_most(a + i, n - i), e_load_most(b + i, n - i)), n - i);
}

static AH_TARGET void add_to(float *sum, const void *from, int64_t n)
{
    const element *x = from;
    for (int64_t i = 0; i < n; i += LANES)
        v_store_most(sum + i, v_add(v_load_most(sum + i, n - i), e_load_most(x + i, n - i)), n - i);
}

/* ---- rows of experts --------------------------------------------------------------------------------------------- */

static AH_TARGET void sum_rows(void *to, const void *from, const int32_t *rows, int count, int64_t n)
{
    const element *x = from;
    element *y = to;
    for (int64_t i = 0; i < n; i += LANES) {
        v16 sum = v_set(0.0F);
        for (int k = 0; k < count; k++)
            sum = v_add(sum, e_load_most(x + rows[k] * n + i, n - i));
        e_store_most(y + i, sum, n - i);
    }
}

static AH_TARGET float scale_row_bwd(void *to, const void *gradient, const void *from, int64_t n, float weight)
{
    const element *dy = gradient, *x = from;
    element *dx = to;
    v16 sum = v_set(0.0F), factor = v_set(weight);
    for (int64_t i = 0; i < n; i += LANES) {
        v16 d = e_load_most(dy + i, n - i);
        sum = v_fma(d, e_load_most(x + i, n - i), sum);
        e_store_most(dx + i, v_mul(d, factor), n - i);
    }
    return v_sum(sum);
}

/* ---- softmax cross-entropy --------------------------------------------------------------------------------------- */

static AH_TARGET float row_largest(const element *x, int64_t n)
{
    v16 most[SUMS], first = v_set(e_one(x));
    for (int u = 0; u < SUMS; u++)
        most[u] = first;
    int64_t i = 0;
    for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
        for (int u = 0; u < SUMS; u++)
            most[u] = v_max(most[u], e_load(x + i + u * LANES));
    for (; i < n; i += LANES)
        most[0] = v_max(most[0], n - i >= LANES ? e_load(x + i)
                                                : v_first((int)(n - i), e_load_first(x + i, (int)(n - i)), most[0]));
    return v_largest(v_max(v_max(most[0], most[1]), v_max(most[2], most[3])));
}

/* Returns the sum of e^(x - shift). If stores to y do not round, the terms are left there. */
static AH_TARGET float row_exp(element *y, const element *x, int64_t n, float shift)
{
    v16 sum[SUMS], less = v_set(shift);
    for (int u = 0; u < SUMS; u++)
        sum[u] = v_set(0.0F);
    int64_t i = 0;
    for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
        for (int u = 0; u < SUMS; u++) {
            v16 e = v_exp(v_sub(e_load(x + i + u * LANES), less));
            if (!ROUNDED)
                e_store(y + i + u * LANES, e);
            sum[u] = v_add(sum[u], e);
        }
    for (; i < n; i += LANES) {
        int lanes = n - i >= LANES ? LANES : (int)(n - i);
        v16 e = v_first(lanes, v_exp(v_sub(e_load_first(x + i, lanes), less)), v_set(0.0F));
        if (!ROUNDED)
            e_store_first(y + i, e, lanes);
        sum[0] = v_add(sum[0], e);
    }
    return sums_total(sum);
}

/* Returns x in one lane, 0 in the others. */
AH_INLINE v16 lane_only(int lane, float x)
{
    float of[LANES] = {0};
    of[lane] = x;
    return v_load(of);
}

static AH_TARGET double cross_entropy(void *to, const void *from, int64_t cols, int64_t target, float scale)
{
    const element *logits = from;
    element *dlogits = to;
    float most = row_largest(logits, cols), at_target = e_one(logits + target);
    float sum = row_exp(dlogits, logits, cols, most);
    v16 factor = v_set(scale / sum), less = v_set(most);
    for (int64_t i = 0; i < cols; i += LANES) {
        v16 e = ROUNDED ? v_exp(v_sub(e_load_most(logits + i, cols - i), less)) : e_load_most(dlogits + i, cols - i);
        e_store_most(dlogits + i, v_mul(e, factor), cols - i);
    }
    v16 of_target = v_mul(v_exp(v_sub(v_set(at_target), less)), factor);
    e_store_first(dlogits + target, v_sub(of_target, v_set(scale)), 1);
    return log((double)sum) + (double)most - (double)at_target;
}

/* Returns the sum of e^(capped x - shift). */
static AH_TARGET float row_exp_capped(const element *x, int64_t n, float shift, float cap)
{
    v16 sum[SUMS], less = v_set(shift);
    for (int u = 0; u < SUMS; u++)
        sum[u] = v_set(0.0F);
    for (int64_t i = 0; i < n; i += SUMS * LANES)
        for (int u = 0; u < SUMS && i + u * LANES < n; u++) {
            int64_t at = i + u * LANES;
            int lanes = n - at >= LANES ? LANES : (int)(n - at);
            v16 e = v_exp(v_sub(v_soft_cap(e_load_most(x + at, n - at), cap), less));
            sum[u] = v_add(sum[u], v_first(lanes, e, v_set(0.0F)));
        }
    return sums_total(sum);
}

/* The largest capped logit is the capped largest logit. With t = tanh(x / cap) the slope of the cap is 1 - t^2. */
static AH_TARGET double cross_entropy_capped(void *to, const void *from, int64_t cols, int64_t target, float scale,
                                             float cap)
{
    const element *logits = from;
    element *dlogits = to;
    float of_most[LANES], at_target[LANES];
    v_store(of_most, v_soft_cap(v_set(row_largest(logits, cols)), cap));
    v_store(at_target, v_soft_cap(v_set(e_one(logits + target)), cap));
    float sum = row_exp_capped(logits, cols, of_most[0], cap);
    v16 factor = v_set(scale / sum), less = v_set(of_most[0]), inverse = v_set(1.0F / cap), one = v_set(1.0F);
    for (int64_t i = 0; i < cols; i += LANES) {
        v16 t = v_tanh(v_mul(e_load_most(logits + i, cols - i), inverse)), slope = v_sub(one, v_mul(t, t));
        v16 g = v_mul(v_exp(v_sub(v_mul(v_set(cap), t), less)), factor);
        if (target >= i && target < i + LANES)
            g = v_sub(g, lane_only((int)(target - i), scale));
        e_store_most(dlogits + i, v_mul(g, slope), cols - i);
    }
    return log((double)sum) + (double)of_most[0] - (double)at_target[0];
}

#define AH_KERNELS                                                                                                     \
    {                                                                                                                  \
        .exp = exp_array, .gelu = gelu, .gelu_bwd = gelu_bwd, .gelu_erf = gelu_erf, .gelu_erf_bwd = gelu_erf_bwd,      \
        .relu = relu, .relu_bwd = relu_bwd, .add = add, .add_to = add_to, .silu_mul = silu_mul,                        \
        .silu_mul_bwd = silu_mul_bwd, .gelu_mul = gelu_mul, .gelu_mul_bwd = gelu_mul_bwd, .scale = scale,              \
        .rotary = rotary, .layernorm = layernorm, .layernorm_bwd = layernorm_bwd, .rmsnorm = rmsnorm,                  \
        .rmsnorm_bwd = rmsnorm_bwd, .strip = strip, .cross_entropy = cross_entropy,                                    \
        .cross_entropy_capped = cross_entropy_capped, .soft_cap = soft_cap, .attention = attention,                    \
        .attention_bwd = attention_bwd, .sum_rows = sum_rows, .scale_row_bwd = scale_row_bwd,                          \
        .swiglu_clamped = swiglu_clamped, .swiglu_clamped_bwd = swiglu_clamped_bwd,                                    \
    }
