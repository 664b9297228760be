/* Products against the definition in double, in every combination of transposition, accumulation, bias and strides. */
#include "dev/cpu/cases.h"

#include <math.h>

struct sizes {
    int64_t m, n, k;
};

static const struct sizes sizes[] = {{1, 1, 1}, {3, 5, 7}, {1, 70, 33}, {65, 1, 40}, {130, 200, 17}, {530, 400, 3}};

struct matrix {
    float *at;
    int64_t stride, bytes;
};

/* A matrix with 3 columns more than it needs. */
static struct matrix matrix_new(int64_t rows, int64_t cols, uint64_t seed)
{
    struct matrix out = {.stride = cols + 3, .bytes = rows * (cols + 3) * (int64_t)sizeof(float)};
    out.at = malloc((size_t)out.bytes);
    assert_non_null(out.at);
    for (int64_t i = 0; i < rows * out.stride; i++)
        out.at[i] = (float)ah__random_normal(seed, (uint64_t)i);
    return out;
}

static double element(const struct ah_gemm *g, int64_t i, int64_t j, const float *before)
{
    double sum = (g->accumulate ? (double)before[i * g->ldc + j] : 0) + (g->bias ? (double)g->bias[j] : 0);
    for (int64_t t = 0; t < g->k; t++)
        sum += (double)g->a[g->trans_a ? t * g->lda + i : i * g->lda + t] *
               (double)g->b[g->trans_b ? j * g->ldb + t : t * g->ldb + j];
    return sum;
}

static void product_check(struct ah_pool *pool, const struct sizes *s, int flags)
{
    bool trans_a = flags & 1, trans_b = flags & 2, accumulate = flags & 4, with_bias = flags & 8;
    struct matrix a = matrix_new(trans_a ? s->k : s->m, trans_a ? s->m : s->k, 1), c = matrix_new(s->m, s->n, 3);
    struct matrix b = matrix_new(trans_b ? s->n : s->k, trans_b ? s->k : s->n, 2), bias = matrix_new(1, s->n, 4);
    struct matrix before = matrix_new(s->m, s->n, 3);
    for (int64_t i = 0; !accumulate && i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++)
            c.at[i * c.stride + j] = NAN;
    struct ah_gemm g = {.trans_a = trans_a,
                        .trans_b = trans_b,
                        .accumulate = accumulate,
                        .m = s->m,
                        .n = s->n,
                        .k = s->k,
                        .lda = a.stride,
                        .ldb = b.stride,
                        .ldc = c.stride,
                        .grid = ah__cpu_gemm_grid(s->m, s->n),
                        .a = a.at,
                        .b = b.at,
                        .c = c.at,
                        .bias = with_bias ? bias.at : NULL};
    assert_ok(ah__cpu_gemm(pool, &g));
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < c.stride; j++) {
            double want = j < s->n ? element(&g, i, j, before.at) : (double)before.at[i * c.stride + j];
            double slack = j < s->n ? 1e-6 * (double)(s->k + 8) : 0;
            if (!(fabs((double)c.at[i * c.stride + j] - want) <= slack))
                fail_msg("%lldx%lldx%lld, flags %d, at %lld,%lld: %.9g, expected %.9g", (long long)s->m,
                         (long long)s->n, (long long)s->k, flags, (long long)i, (long long)j,
                         (double)c.at[i * c.stride + j], want);
        }
    free(a.at), free(b.at), free(c.at), free(bias.at), free(before.at);
}

static void products_match_definition(void **state)
{
    struct test_pool p = pool_begin(2);
    for (size_t i = 0; i < AH_LENGTH(sizes); i++)
        for (int flags = 0; flags < 16; flags++)
            product_check(p.pool, &sizes[i], flags);
    pool_end(&p);
}

/* The place of operands in memory must not change bits either: plans move them. */
static void products_do_not_depend_on_addresses(void **state)
{
    enum { M = 100, N = 90, K = 300, SLACK = 64 };
    struct test_pool p = pool_begin(1);
    float *a = malloc((M * K + SLACK) * sizeof *a), *b = malloc((K * N + SLACK) * sizeof *b), c[2][M * N];
    for (int flags = 0; flags < 4; flags++)
        for (int shift = 0; shift < SLACK; shift += shift < 16 ? 4 : 16) {
            struct ah_gemm g = {.trans_a = flags & 1,
                                .trans_b = flags & 2,
                                .m = M,
                                .n = N,
                                .k = K,
                                .a = a + shift,
                                .b = b + (SLACK - shift),
                                .c = c[shift > 0],
                                .lda = flags & 1 ? M : K,
                                .ldb = flags & 2 ? K : N,
                                .ldc = N,
                                .grid = ah__cpu_gemm_grid(M, N)};
            for (int i = 0; i < M * K; i++)
                a[shift + i] = (float)ah__random_normal(1, (uint64_t)i);
            for (int i = 0; i < K * N; i++)
                b[SLACK - shift + i] = (float)ah__random_normal(2, (uint64_t)i);
            assert_ok(ah__cpu_gemm(p.pool, &g));
            assert_memory_equal(c[shift > 0], c[0], sizeof c[0]);
        }
    free(a), free(b);
    pool_end(&p);
}

/* Tiles of any shape cover it once; two workers share those of all but small ones evenly. */
static void tiles_cover_every_shape(void **state)
{
    static const int64_t lengths[] = {1, 16, 47, 48, 64, 100, 256, 384, 512, 768, 1000, 1024, 2048, 3072, 8192, 50257};
    for (size_t i = 0; i < AH_LENGTH(lengths); i++)
        for (size_t j = 0; j < AH_LENGTH(lengths); j++) {
            int64_t m = lengths[i], n = lengths[j];
            struct ah_gemm_grid grid = ah__cpu_gemm_grid(m, n);
            assert_true(grid.down * grid.rows >= m && (grid.down - 1) * grid.rows < m);
            assert_true(grid.across * grid.cols >= n && (grid.across - 1) * grid.cols < n);
            assert_true(grid.rows % 16 == 0 && grid.cols % 16 == 0);
            if (m >= 256 && n >= 256)
                assert_true(grid.down * grid.across >= 4);
        }
}

AH_TEST_CASES("dev/cpu/gemm", products_match_definition, tiles_cover_every_shape, products_do_not_depend_on_addresses)
