/* Products of bf16 operands against the definition in double, by AMX and by fp32 panels, and their bits. */
#include "dev/cpu/cases.h"
#include "dev/cpu/gemm_bf16.h"

#include <math.h>

struct bf16_size {
    int64_t m, n, k;
};

static const struct bf16_size bf16_sizes[] = {{1, 1, 1},      {3, 5, 7},     {17, 33, 31},
                                              {65, 1, 40},    {33, 70, 65},  {130, 200, 257},
                                              {530, 400, 33}, {70, 45, 530}, {520, 390, 300}};

static double value(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return (double)out;
}

/* A row-major matrix, its rows 3 elements longer than they need be; half the numbers are bf16. */
struct numbers {
    void *at;
    int64_t stride, count;
    bool fp32;
};

static struct numbers numbers_new(int64_t rows, int64_t cols, bool fp32, uint64_t seed)
{
    struct numbers out = {.stride = cols + 3, .count = rows * (cols + 3), .fp32 = fp32};
    out.at = malloc((size_t)out.count * (fp32 ? sizeof(float) : sizeof(uint16_t)));
    assert_non_null(out.at);
    for (int64_t i = 0; i < out.count; i++) {
        float x = (float)ah__random_normal(seed, (uint64_t)i);
        if (fp32)
            ((float *)out.at)[i] = x;
        else
            ((uint16_t *)out.at)[i] = bf16_round(x);
    }
    return out;
}

static double number(const struct numbers *x, int64_t i)
{
    return x->fp32 ? (double)((float *)x->at)[i] : value(((uint16_t *)x->at)[i]);
}

enum { TRANS_A = 1, TRANS_B = 2, ACCUMULATE = 4, BIAS = 8, C_FP32 = 16, FLAGS = 32 };

struct product {
    struct numbers a, b, c, before, bias;
    struct ah_gemm_bf16 gemm;
};

static struct product product_new(const struct bf16_size *s, int flags)
{
    bool ta = flags & TRANS_A, tb = flags & TRANS_B, fp32 = flags & C_FP32;
    struct product p = {.a = numbers_new(ta ? s->k : s->m, ta ? s->m : s->k, false, 1),
                        .b = numbers_new(tb ? s->n : s->k, tb ? s->k : s->n, false, 2),
                        .c = numbers_new(s->m, s->n, fp32, 3),
                        .before = numbers_new(s->m, s->n, fp32, 3),
                        .bias = numbers_new(1, s->n, false, 4)};
    p.gemm = (struct ah_gemm_bf16){.trans_a = ta,
                                   .trans_b = tb,
                                   .accumulate = flags & ACCUMULATE,
                                   .c_fp32 = fp32,
                                   .m = s->m,
                                   .n = s->n,
                                   .k = s->k,
                                   .a = p.a.at,
                                   .b = p.b.at,
                                   .c = p.c.at,
                                   .lda = p.a.stride,
                                   .ldb = p.b.stride,
                                   .ldc = p.c.stride,
                                   .bias = flags & BIAS ? p.bias.at : NULL};
    return p;
}

static void product_free(struct product *p)
{
    free(p->a.at), free(p->b.at), free(p->c.at), free(p->before.at), free(p->bias.at);
}

static double wanted(const struct product *p, int64_t i, int64_t j)
{
    const struct ah_gemm_bf16 *g = &p->gemm;
    double sum = (g->accumulate ? number(&p->before, i * g->ldc + j) : 0) + (g->bias ? number(&p->bias, j) : 0);
    for (int64_t t = 0; t < g->k; t++)
        sum += number(&p->a, g->trans_a ? t * g->lda + i : i * g->lda + t) *
               number(&p->b, g->trans_b ? j * g->ldb + t : t * g->ldb + j);
    return sum;
}

static void bf16_product_check(struct ah_pool *pool, const struct bf16_size *s, int flags)
{
    struct product p = product_new(s, flags);
    assert_ok(ah__cpu_gemm_bf16(pool, &p.gemm));
    for (int64_t i = 0; i < p.c.count; i++) {
        int64_t row = i / p.c.stride, col = i % p.c.stride;
        double want = col < s->n ? wanted(&p, row, col) : number(&p.before, i);
        double slack = col < s->n ? 1e-6 * (double)(s->k + 8) + (flags & C_FP32 ? 0 : fabs(want) / 250) : 0;
        if (!(fabs(number(&p.c, i) - want) <= slack))
            fail_msg("%lldx%lldx%lld, flags %d, at %lld,%lld: %.9g, expected %.9g", (long long)s->m, (long long)s->n,
                     (long long)s->k, flags, (long long)row, (long long)col, number(&p.c, i), want);
    }
    product_free(&p);
}

static void bf16_products_match_definition(void **state)
{
    struct test_pool p = pool_begin(2);
    for (int forbidden = 0; forbidden < 2; forbidden++) {
        ah__cpu_amx_forbid(forbidden);
        for (size_t i = 0; i < AH_LENGTH(bf16_sizes); i++)
            for (int flags = 0; flags < FLAGS; flags++)
                if ((bf16_sizes[i].m < 500 || flags % 5 == 0) && (!ah_test_samples() || (flags + (int)i) % 4 == 0))
                    bf16_product_check(p.pool, &bf16_sizes[i], flags);
    }
    ah__cpu_amx_forbid(false);
    pool_end(&p);
}

/* The same bits for any number of threads; with AMX also for a product of part of the rows and columns. */
static void bf16_products_do_not_depend_on_threads(void **state)
{
    const struct bf16_size size = {300, 410, 570}, part = {37, 50, 570};
    for (int forbidden = 0; forbidden < 2; forbidden++)
        for (int flags = C_FP32; flags < C_FP32 + 4; flags++) {
            struct product first = product_new(&size, flags), other = product_new(&size, flags);
            ah__cpu_amx_forbid(forbidden);
            for (int threads = 1; threads <= 3; threads++) {
                struct test_pool p = pool_begin(threads);
                assert_ok(ah__cpu_gemm_bf16(p.pool, threads == 1 ? &first.gemm : &other.gemm));
                pool_end(&p);
                if (threads > 1)
                    assert_memory_equal(other.c.at, first.c.at, (size_t)first.c.count * sizeof(float));
            }
            struct test_pool p = pool_begin(1);
            other.gemm.m = part.m, other.gemm.n = part.n;
            assert_ok(ah__cpu_gemm_bf16(p.pool, &other.gemm));
            pool_end(&p);
            if (ah__cpu_has_amx())
                assert_memory_equal(other.c.at, first.c.at, (size_t)first.c.count * sizeof(float));
            ah__cpu_amx_forbid(false);
            product_free(&first);
            product_free(&other);
        }
}

AH_TEST_CASES("dev/cpu/gemm_bf16", bf16_products_match_definition, bf16_products_do_not_depend_on_threads)
