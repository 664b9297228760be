/* Casts: every bfloat16, roundings around it, NaN, and the same bits for every instruction set, length and alignment.
 */
#include "dev/cpu/cases.h"
#include "dev/host/kernels.h"

static const char *const isas[] = {"avx512", "avx2", "plain"};

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Nearest even by comparing distances in double; the next one beyond the largest is infinity. */
static uint16_t nearest(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t low = bits >> 16;
    if (x != x)
        return (uint16_t)(low | 0x40);
    if ((low & 0x7FFF) == 0x7F80)
        return (uint16_t)low;
    double below = (double)float_of(low << 16);
    double above = (low & 0x7FFF) == 0x7F7F ? 2 * (double)float_of(0x7F000000) * (low >> 15 ? -1 : 1)
                                            : (double)float_of((low + 1) << 16);
    double from_below = (double)x - below, from_above = above - (double)x;
    if (low >> 15)
        from_below = -from_below, from_above = -from_above;
    return (uint16_t)(from_below < from_above || (from_below == from_above && !(low & 1)) ? low : low + 1);
}

enum { RESTS = 9, ALL = 65536 };

/* Every upper half with lower halves around the tie. */
static void every_value_rounds_to_nearest_even(void **state)
{
    static const uint32_t rests[RESTS] = {0, 1, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0x8002, 0xFFFE, 0xFFFF};
    static float x[ALL], wide[ALL];
    static uint16_t y[ALL];
    for (size_t isa = 0; isa < AH_LENGTH(isas); isa++)
        for (int rest = 0; rest < RESTS; rest++) {
            ah__host_isa_force(isas[isa]);
            for (uint32_t i = 0; i < ALL; i++)
                x[i] = float_of(i << 16 | rests[rest]);
            ah__host_kernels()->to_bf16(y, x, ALL);
            ah__host_kernels()->from_bf16(wide, y, ALL);
            for (uint32_t i = 0; i < ALL; i++) {
                if (y[i] != nearest(x[i]))
                    fail_msg("%s: %a became %04x, expected %04x", isas[isa], (double)x[i], y[i], nearest(x[i]));
                uint32_t bits = (uint32_t)y[i] << 16;
                assert_memory_equal(&wide[i], &bits, sizeof bits);
            }
        }
    ah__host_isa_force(NULL);
}

/* No element beyond the last is read or written, and short arrays are cast like long ones; also with denormals off. */
static void every_length_is_exact(void **state)
{
    enum { MOST = 70 };
    struct test_pool p = pool_begin(1);
    for (size_t isa = 0; isa < AH_LENGTH(isas); isa++)
        for (int n = 0; n <= MOST; n++) {
            float *x = malloc((size_t)n * sizeof *x + 1);
            uint16_t y[MOST + 1], *exact = malloc((size_t)n * sizeof *exact + 1);
            assert_true(x && exact);
            for (int i = 0; i < n; i++)
                x[i] = (float)ah__random_normal(3, (uint64_t)i) * (i % 5 ? 1.0F : 1e-39F);
            memset(y, 0xAB, sizeof y);
            ah__host_isa_force(isas[isa]);
            ah__host_kernels()->to_bf16(y, x, n);
            for (int i = 0; i < n; i++)
                exact[i] = y[i];
            assert_int_equal(y[n], 0xABAB);
            ah__host_kernels()->from_bf16(x, exact, n);
            for (int i = 0; i < n; i++) {
                uint32_t bits = (uint32_t)exact[i] << 16;
                assert_memory_equal(&x[i], &bits, sizeof bits);
                assert_int_equal(exact[i], nearest((float)ah__random_normal(3, (uint64_t)i) * (i % 5 ? 1.0F : 1e-39F)));
            }
            free(x), free(exact);
        }
    ah__host_isa_force(NULL);
    pool_end(&p);
}

static void tasks_cast_in_pieces(void **state)
{
    enum { N = 200003 };
    struct test_pool p = pool_begin(3);
    float *x = malloc(N * sizeof *x), *back = malloc(N * sizeof *back);
    uint16_t *y = malloc(N * sizeof *y);
    assert_true(x && back && y);
    for (int i = 0; i < N; i++)
        x[i] = (float)ah__random_normal(1, (uint64_t)i);
    struct ah_task task = {.as.cast = {.to = y, .from = x, .to_dtype = AH_BF16, .from_dtype = AH_F32, .count = N}};
    assert_ok(ah__host_cast(p.pool, &task));
    for (int i = 0; i < N; i++)
        assert_int_equal(y[i], nearest(x[i]));
    task = (struct ah_task){.as.cast = {.to = back, .from = y, .to_dtype = AH_F32, .from_dtype = AH_BF16, .count = N}};
    assert_ok(ah__host_cast(p.pool, &task));
    for (int i = 0; i < N; i++)
        assert_true(back[i] == float_of((uint32_t)y[i] << 16));
    task = (struct ah_task){.as.cast = {.to = back, .from = x, .count = N}};
    assert_ok(ah__host_cast(p.pool, &task));
    assert_memory_equal(back, x, N * sizeof *x);
    free(x), free(back), free(y);
    pool_end(&p);
}

/* Every length around the doublings, for any number of threads; what is listed becomes zero instead. */
static void narrowing_in_place_is_exact(void **state)
{
    static const int lengths[] = {0, 1, 2047, 2048, 2049, 4097, 65537, 400003};
    static const struct ah_range zeros[] = {{0, 1}, {1000, 1024}, {2040, 2047}};
    for (size_t i = 0; i < AH_LENGTH(lengths); i++)
        for (int threads = 1; threads <= 3; threads++) {
            int n = lengths[i];
            bool gaps = n > 2046;
            struct test_pool p = pool_begin(threads);
            float *x = malloc(((size_t)n + 1) * sizeof *x);
            assert_non_null(x);
            for (int j = 0; j < n; j++)
                x[j] = (float)ah__random_normal(7, (uint64_t)j);
            struct ah_task task = {.as.cast = {.to = x,
                                               .from = x,
                                               .to_dtype = AH_BF16,
                                               .from_dtype = AH_F32,
                                               .count = n,
                                               .zeros = zeros,
                                               .zero_count = gaps ? AH_LENGTH(zeros) : 0}};
            assert_ok(ah__host_cast(p.pool, &task));
            for (int j = 0; j < n; j++) {
                bool gap = false;
                for (int z = 0; gaps && z < (int)AH_LENGTH(zeros); z++)
                    gap = gap || (j >= zeros[z].from && j < zeros[z].to);
                uint16_t found;
                memcpy(&found, (const char *)x + 2 * (size_t)j, sizeof found);
                assert_int_equal(found, gap ? 0 : nearest((float)ah__random_normal(7, (uint64_t)j)));
            }
            free(x);
            pool_end(&p);
        }
}

AH_TEST_CASES("dev/host/cast", narrowing_in_place_is_exact, every_value_rounds_to_nearest_even, every_length_is_exact,
              tasks_cast_in_pieces)
