/* Adam against its definition in double, the sum of squares, and the accuracy of the exponential under them all. */
#include "dev/cpu/cases.h"
#include "dev/cpu/kernels.h"
#include "dev/draw.h"
#include "dev/planes.h"

#include <math.h>

enum { COUNT = 1003, DECAYED = 501, STEPS = 5 };

struct state {
    float p[COUNT], m[COUNT], v[COUNT], g[COUNT];
    double exact_p[COUNT], exact_m[COUNT], exact_v[COUNT];
};

/* AdamW as in PyTorch. */
static void exact_step(struct state *s, int step, double lr, double decay)
{
    for (int i = 0; i < COUNT; i++) {
        double g = (double)s->g[i];
        s->exact_m[i] = 0.9 * s->exact_m[i] + 0.1 * g;
        s->exact_v[i] = 0.999 * s->exact_v[i] + 0.001 * g * g;
        if (i < DECAYED)
            s->exact_p[i] -= lr * decay * s->exact_p[i];
        double root = sqrt(s->exact_v[i] / (1 - pow(0.999, step))) + 1e-8;
        s->exact_p[i] -= lr * (s->exact_m[i] / (1 - pow(0.9, step))) / root;
    }
}

static struct ah_task step_task(struct state *s, int step, double lr, double decay)
{
    struct ah_task task = {.type = AH_TASK_ADAM,
                           .as.adam = {.p = s->p, .m = s->m, .v = s->v, .g = s->g, .count = COUNT, .decayed = DECAYED}};
    task.as.adam.adam = (struct ah_adam){.beta1 = 0.9F,
                                         .one_minus_beta1 = 0.1F,
                                         .beta2 = 0.999F,
                                         .one_minus_beta2 = 0.001F,
                                         .eps = 1e-8F,
                                         .decay_factor = (float)(1 - lr * decay),
                                         .step_size = (float)(lr / (1 - pow(0.9, step))),
                                         .inv_sqrt_bias2 = (float)(1 / sqrt(1 - pow(0.999, step)))};
    return task;
}

static void adam_matches_definition(void **state)
{
    static struct state s;
    struct test_pool p = pool_begin(2);
    for (int i = 0; i < COUNT; i++)
        s.exact_p[i] = (double)(s.p[i] = (float)ah__random_normal(1, (uint64_t)i));
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            s.g[i] = (float)(ah__random_normal(2, (uint64_t)(step * COUNT + i)) * 0.01);
        struct ah_task task = step_task(&s, step, 0.01, 0.1);
        assert_ok(ah__host_adam(p.pool, &task));
        exact_step(&s, step, 0.01, 0.1);
    }
    for (int i = 0; i < COUNT; i++)
        if (!(fabs((double)s.p[i] - s.exact_p[i]) < 1e-6))
            fail_msg("parameter %d: %.9g, expected %.9g", i, (double)s.p[i], s.exact_p[i]);
    pool_end(&p);
}

/* The formula of dev.h, one rounding for each operation; decides bits. */
static void adam_rounds_as_written(void **state)
{
    static struct state s;
    struct test_pool p = pool_begin(1);
    struct ah_task task = step_task(&s, 3, 0.01, 0.1);
    const struct ah_adam a = task.as.adam.adam;
    float want[3][COUNT];
    for (int i = 0; i < COUNT; i++) {
        float *const field[4] = {&s.p[i], &s.m[i], &s.v[i], &s.g[i]};
        for (int j = 0; j < 4; j++)
            *field[j] = (float)fabs(ah__random_normal(6 + (uint64_t)j, (uint64_t)i));
        float m = fmaf(a.beta1, s.m[i], a.one_minus_beta1 * s.g[i]);
        float v = fmaf(a.beta2, s.v[i], a.one_minus_beta2 * s.g[i] * s.g[i]);
        float kept = i < DECAYED ? s.p[i] * a.decay_factor : s.p[i];
        want[0][i] = fmaf(-a.step_size, m / (sqrtf(v) * a.inv_sqrt_bias2 + a.eps), kept);
        want[1][i] = m;
        want[2][i] = v;
    }
    assert_ok(ah__host_adam(p.pool, &task));
    assert_memory_equal(s.p, want[0], sizeof want[0]);
    assert_memory_equal(s.m, want[1], sizeof want[1]);
    assert_memory_equal(s.v, want[2], sizeof want[2]);
    pool_end(&p);
}

static void sum_of_squares_is_exact_enough_and_shows_nan(void **state)
{
    enum { N = 200001 };
    struct test_pool p = pool_begin(2);
    float *g = malloc(N * sizeof *g);
    assert_non_null(g);
    double want = 0, got;
    for (int i = 0; i < N; i++) {
        g[i] = (float)ah__random_normal(4, (uint64_t)i);
        want += (double)g[i] * (double)g[i];
    }
    struct ah_task task = {.type = AH_TASK_SQNORM, .as.sqnorm = {.g = g, .count = N, .out = &got}};
    assert_ok(ah__host_sqnorm(p.pool, &task));
    assert_true(fabs(got - want) < 1e-12 * want);
    g[N - 1] = INFINITY;
    assert_ok(ah__host_sqnorm(p.pool, &task));
    assert_true(isinf(got));
    g[N / 2] = NAN;
    assert_ok(ah__host_sqnorm(p.pool, &task));
    assert_true(isnan(got));
    free(g);
    pool_end(&p);
}

/* bfloat16 by its definition: the upper half of a float, rounded to nearest even. */
static uint16_t nearest_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    uint32_t rest = bits & 0xFFFF, up = rest > 0x8000 || (rest == 0x8000 && (bits >> 16 & 1));
    return (uint16_t)((bits >> 16) + up);
}

static float widened(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

struct half_state {
    struct state s;
    uint16_t g[COUNT], p[COUNT], rest[COUNT];
};

/* Positive moments, so that the square root is real. */
static void half_state_fill(struct half_state *h)
{
    for (int i = 0; i < COUNT; i++) {
        float *const field[4] = {&h->s.p[i], &h->s.m[i], &h->s.v[i], &h->s.g[i]};
        for (int j = 0; j < 4; j++)
            *field[j] = (float)fabs(ah__random_normal(16 + (uint64_t)j, (uint64_t)i));
        h->g[i] = nearest_bf16(h->s.g[i]);
        uint32_t bits = bits_of(h->s.p[i]);
        h->p[i] = ah__plane_upper(bits);
        h->rest[i] = (uint16_t)bits;
    }
}

/* A bfloat16 gradient is the float it stands for, a scale is one multiplication before anything else, and a parameter
 * in two planes is the float: the same states as from a float gradient scaled beforehand. */
static void half_precision_is_rounding_at_the_ends(void **state)
{
    static struct half_state a, b;
    const float scales[] = {0, 1.0F, 0.37F};
    struct test_pool p = pool_begin(2);
    for (size_t i = 0; i < AH_LENGTH(scales); i++) {
        half_state_fill(&a);
        half_state_fill(&b);
        struct ah_task plain = step_task(&a.s, 3, 0.01, 0.1), half = step_task(&b.s, 3, 0.01, 0.1);
        for (int j = 0; j < COUNT; j++)
            a.s.g[j] = i == 0 ? widened(a.g[j]) : widened(a.g[j]) * scales[i];
        half.as.adam.g = b.g;
        half.as.adam.dtype = AH_BF16;
        half.as.adam.p = b.p;
        half.as.adam.rest = b.rest;
        half.as.adam.scale = i == 0 ? NULL : &scales[i];
        assert_ok(ah__host_adam(p.pool, &plain));
        assert_ok(ah__host_adam(p.pool, &half));
        assert_memory_equal(a.s.m, b.s.m, sizeof a.s.m);
        assert_memory_equal(a.s.v, b.s.v, sizeof a.s.v);
        for (int j = 0; j < COUNT; j++)
            assert_int_equal(ah__planes_joined(b.p[j], b.rest[j]), bits_of(a.s.p[j]));
    }
    pool_end(&p);
}

/* ---- moments in bf16 --------------------------------------------------------------------------------------------- */

struct short_state {
    float p[COUNT], g[COUNT];
    uint16_t m[COUNT], v[COUNT];
};

static void short_state_fill(struct short_state *s)
{
    for (int i = 0; i < COUNT; i++) {
        s->p[i] = (float)ah__random_normal(21, (uint64_t)i);
        s->g[i] = (float)ah__random_normal(22, (uint64_t)i);
        s->m[i] = nearest_bf16((float)ah__random_normal(23, (uint64_t)i));
        s->v[i] = nearest_bf16((float)fabs(ah__random_normal(24, (uint64_t)i)));
    }
}

/* Elements [from, to) of the states as a task of their own. */
static struct ah_task short_task(struct short_state *s, const struct ah_adam *adam, int from, int to)
{
    struct ah_task task = {.type = AH_TASK_ADAM};
    task.as.adam.p = s->p + from;
    task.as.adam.m = s->m + from;
    task.as.adam.v = s->v + from;
    task.as.adam.g = s->g + from;
    task.as.adam.moment_dtype = AH_BF16;
    task.as.adam.count = to - from;
    task.as.adam.first = 1000 + from;
    task.as.adam.adam = *adam;
    return task;
}

/* The rule of dev.h element by element; where pieces begin and end changes no bit. */
static void short_moments_are_rounded_as_written(void **state)
{
    static struct short_state whole, parts, want;
    static struct state unused;
    struct test_pool p = pool_begin(2);
    struct ah_adam a = step_task(&unused, 3, 0.01, 0.1).as.adam.adam;
    a.draw = 77;
    short_state_fill(&whole);
    parts = want = whole;
    for (int i = 0; i < COUNT; i++) {
        float m = fmaf(a.beta1, widened(want.m[i]), a.one_minus_beta1 * want.g[i]);
        float v = fmaf(a.beta2, widened(want.v[i]), a.one_minus_beta2 * want.g[i] * want.g[i]);
        uint32_t random = ah__draw(77, 1000 + (uint32_t)i);
        want.p[i] = fmaf(-a.step_size, m / (sqrtf(v) * a.inv_sqrt_bias2 + a.eps), want.p[i]);
        want.m[i] = (uint16_t)((bits_of(m) + (random & 0xffff)) >> 16);
        want.v[i] = (uint16_t)((bits_of(v) + (random >> 16)) >> 16);
    }
    struct ah_task task = short_task(&whole, &a, 0, COUNT);
    assert_ok(ah__host_adam(p.pool, &task));
    assert_memory_equal(&whole, &want, sizeof whole);
    const int cuts[] = {0, 1, 18, 500, COUNT};
    for (size_t i = 0; i + 1 < AH_LENGTH(cuts); i++) {
        task = short_task(&parts, &a, cuts[i], cuts[i + 1]);
        assert_ok(ah__host_adam(p.pool, &task));
    }
    assert_memory_equal(&parts, &want, sizeof parts);
    pool_end(&p);
}

/* Masters in bf16: the same update of what they stand for, rounded by bits of their own. */
static void short_masters_are_rounded_as_written(void **state)
{
    static struct short_state wide;
    static struct state unused;
    static uint16_t p[COUNT], g[COUNT], m[COUNT], v[COUNT], want[COUNT];
    struct test_pool pool = pool_begin(2);
    struct ah_adam a = step_task(&unused, 3, 0.01, 0.1).as.adam.adam;
    a.draw = 77;
    short_state_fill(&wide);
    memcpy(m, wide.m, sizeof m);
    memcpy(v, wide.v, sizeof v);
    for (int i = 0; i < COUNT; i++) {
        wide.p[i] = widened(p[i] = nearest_bf16(wide.p[i]));
        wide.g[i] = widened(g[i] = nearest_bf16(wide.g[i]));
    }
    struct ah_task of_wide = short_task(&wide, &a, 0, COUNT), of_short = of_wide;
    of_short.as.adam.p = p;
    of_short.as.adam.m = m;
    of_short.as.adam.v = v;
    of_short.as.adam.g = g;
    of_short.as.adam.dtype = AH_BF16;
    assert_ok(ah__host_adam(pool.pool, &of_wide));
    assert_ok(ah__host_adam(pool.pool, &of_short));
    for (int i = 0; i < COUNT; i++)
        want[i] = (uint16_t)((bits_of(wide.p[i]) + (ah__draw(~77U, 1000 + (uint32_t)i) & 0xffff)) >> 16);
    assert_memory_equal(p, want, sizeof p);
    assert_memory_equal(m, wide.m, sizeof m);
    assert_memory_equal(v, wide.v, sizeof v);
    pool_end(&pool);
}

/* A value that lies between two of bf16 is rounded up as often as it lies high: its mean stays. */
static void random_rounding_keeps_the_mean(void **state)
{
    enum { DRAWS = 100000 };
    const float values[] = {1.001F, -1.001F, 3.14159F, 1e-30F, 1.0F, 0.0F};
    for (size_t i = 0; i < AH_LENGTH(values); i++)
        for (int shift = 0; shift <= 16; shift += 16) {
            double sum = 0, gap = fabs((double)values[i]) / 128;
            for (uint32_t j = 0; j < DRAWS; j++)
                sum += (double)widened(ah__bf16_drawn(bits_of(values[i]), ah__draw(5, j) >> shift & 0xffff));
            /* Five standard errors of a coin between two neighbours. */
            assert_true(fabs(sum / DRAWS - (double)values[i]) <= 5 * gap / 2 / sqrt(DRAWS));
        }
    assert_int_equal(ah__bf16_drawn(0x7f800000, 0xffff), 0x7f80);
}

/* The scale is read when the task runs, and a scale of one is as good as none, for denormals and infinities too. */
static void a_scale_of_one_is_none(void **state)
{
    static struct half_state a, b;
    struct test_pool p = pool_begin(1);
    float scale = 7;
    half_state_fill(&a);
    for (int i = 0; i < COUNT; i += 3)
        a.s.g[i] = i % 2 ? 1e-40F : i % 4 ? -0.0F : INFINITY;
    b = a;
    struct ah_task none = step_task(&a.s, 3, 0.01, 0.1), one = step_task(&b.s, 3, 0.01, 0.1);
    one.as.adam.scale = &scale;
    scale = 1;
    assert_ok(ah__host_adam(p.pool, &none));
    assert_ok(ah__host_adam(p.pool, &one));
    assert_memory_equal(&a, &b, sizeof a);
    pool_end(&p);
}

static void sum_of_squares_reads_bf16(void **state)
{
    enum { N = 100003 };
    struct test_pool p = pool_begin(2);
    uint16_t *half = malloc(N * sizeof *half);
    float *wide = malloc(N * sizeof *wide);
    assert_true(half && wide);
    for (int i = 0; i < N; i++)
        wide[i] = widened(half[i] = nearest_bf16((float)ah__random_normal(4, (uint64_t)i)));
    double of_half, of_wide;
    struct ah_task task = {.as.sqnorm = {.g = half, .dtype = AH_BF16, .count = N, .out = &of_half}};
    assert_ok(ah__host_sqnorm(p.pool, &task));
    task = (struct ah_task){.as.sqnorm = {.g = wide, .count = N, .out = &of_wide}};
    assert_ok(ah__host_sqnorm(p.pool, &task));
    assert_true(of_half == of_wide && of_wide > 0);
    free(half), free(wide);
    pool_end(&p);
}

static void other_dtypes_are_refused(void **state)
{
    static struct state s;
    struct test_pool p = pool_begin(1);
    double sum;
    struct ah_task adam = step_task(&s, 1, 0.01, 0),
                   norm = {.as.sqnorm = {.g = s.g, .dtype = AH_F16, .count = 1, .out = &sum}},
                   cast = {.as.cast = {.to = s.p, .from = s.g, .to_dtype = AH_I32, .count = 1}};
    adam.as.adam.dtype = AH_F16;
    assert_fails(ah__host_adam(p.pool, &adam), AH_EDEVICE, "parameters in F16, expected F32 or BF16");
    adam.as.adam.dtype = AH_F32;
    adam.as.adam.moment_dtype = AH_F16;
    assert_fails(ah__host_adam(p.pool, &adam), AH_EDEVICE, "moments in F16, expected F32, BF16 or U8");
    assert_fails(ah__host_sqnorm(p.pool, &norm), AH_EDEVICE, "gradient in F16, expected F32 or BF16");
    assert_fails(ah__host_cast(p.pool, &cast), AH_EDEVICE, "output is I32, expected F32 or BF16");
    pool_end(&p);
}

/* Largest error in units of the result's last place, over all that softmax and GELU can ask for. */
static void exponential_is_accurate(void **state)
{
    enum { N = 400000 };
    float *x = malloc(2 * N * sizeof *x), *y = x + N;
    assert_non_null(x);
    for (int i = 0; i < N; i++)
        x[i] = (float)(-86.9 + 175.2 * i / N);
    ah__kernels(AH_F32)->exp(y, x, N);
    double worst = 0;
    for (int i = 0; i < N; i++) {
        double want = exp((double)x[i]);
        worst = fmax(worst, fabs((double)y[i] - want) / ldexp(1, ilogb(want) - 23));
    }
    assert_true(worst < 1.5);
    const float edge[6] = {-INFINITY, -87.0F, 0.0F, -0.0F, 1000.0F, NAN};
    float out[6];
    ah__kernels(AH_F32)->exp(out, edge, 6);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 1 && out[3] == 1 && out[4] > 2e38F && isnan(out[5]));
    free(x);
}

AH_TEST_CASES("dev/host/adam", adam_matches_definition, adam_rounds_as_written, half_precision_is_rounding_at_the_ends,
              a_scale_of_one_is_none, short_moments_are_rounded_as_written, short_masters_are_rounded_as_written,
              random_rounding_keeps_the_mean, sum_of_squares_is_exact_enough_and_shows_nan, sum_of_squares_reads_bf16,
              other_dtypes_are_refused, exponential_is_accurate)
