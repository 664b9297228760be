/* Frozen matrices in fewer bits: codes against the published rules written out in another way, what is exact, and the
 * task beside them. */
#include "dev/cpu/cases.h"
#include "dev/host/codes.h"
#include "dev/host/kernels.h"
#include "op/bf16.h"
#include "op/f16.h"
#include "op/mx.h"

enum { COUNT = 64 * AH_CODES_BLOCK };

static void normals_fill(float *x, int count, uint64_t seed)
{
    for (int i = 0; i < count; i++)
        x[i] = (float)ah__random_normal(seed, (uint64_t)i) * (i / AH_NF4_GROUP % 7 ? 0.02F : 3.0F);
}

static float largest(const float *x, int count)
{
    float most = 0;
    for (int i = 0; i < count; i++)
        most = fmaxf(most, fabsf(x[i]));
    return most;
}

/* The number of the quantile with the smallest distance, all looked at. */
static int nearest_quantile(double fraction)
{
    static const float quantiles[16] = AH_NF4_VALUES;
    int best = 0;
    for (int i = 1; i < 16; i++)
        if (fabs((double)quantiles[i] - fraction) < fabs((double)quantiles[best] - fraction))
            best = i;
    return best;
}

static void nf4_takes_the_nearest_quantile(void **state)
{
    static const float quantiles[16] = AH_NF4_VALUES;
    static float x[COUNT], back[COUNT];
    static unsigned char kept[COUNT / AH_CODES_BLOCK * AH_NF4_BYTES];
    normals_fill(x, COUNT, 5);
    assert_int_equal(ah__codes_bytes(AH_CODES_NF4, COUNT), sizeof kept);
    ah__codes_narrow(kept, x, COUNT, AH_CODES_NF4);
    ah__codes_widen(back, kept, COUNT, AH_CODES_NF4);
    for (int g = 0; g < COUNT / AH_NF4_GROUP; g++) {
        float most = largest(x + g * AH_NF4_GROUP, AH_NF4_GROUP);
        for (int i = g * AH_NF4_GROUP; i < (g + 1) * AH_NF4_GROUP; i++) {
            const unsigned char *block = kept + i / AH_CODES_BLOCK * AH_NF4_BYTES;
            int byte = block[i % AH_CODES_BLOCK / 2], code = i % 2 ? byte & 15 : byte >> 4;
            double fraction = (double)x[i] / (double)most;
            int expected = nearest_quantile(fraction);
            if (code != expected) /* between two by less than a rounding */
                assert_true(fabs(fabs((double)quantiles[code] - fraction) -
                                 fabs((double)quantiles[expected] - fraction)) < 1e-6);
            assert_true(back[i] == quantiles[code] * most);
        }
    }
}

static void int8_takes_the_nearest_step(void **state)
{
    static float x[COUNT], back[COUNT], again[COUNT];
    static char kept[COUNT / AH_CODES_BLOCK * AH_INT8_BYTES];
    normals_fill(x, COUNT, 6);
    assert_int_equal(ah__codes_bytes(AH_CODES_INT8, COUNT), sizeof kept);
    ah__codes_narrow(kept, x, COUNT, AH_CODES_INT8);
    ah__codes_widen(back, kept, COUNT, AH_CODES_INT8);
    for (int g = 0; g < COUNT / AH_INT8_GROUP; g++) {
        float most = largest(x + g * AH_INT8_GROUP, AH_INT8_GROUP);
        double scale = (double)ah__f16_value(ah__f16_of(most / 127));
        for (int i = g * AH_INT8_GROUP; i < (g + 1) * AH_INT8_GROUP; i++) {
            double code = (double)back[i] / scale;
            assert_true(fabs(code - nearbyint(code)) < 1e-4 && fabs(code) < 127.001);
            assert_true(fabs(code - (double)x[i] / ((double)most / 127)) < 0.5001);
        }
    }
    /* What came from codes, as from a GGUF's Q8_0, has the same codes. */
    ah__codes_narrow(kept, back, COUNT, AH_CODES_INT8);
    ah__codes_widen(again, kept, COUNT, AH_CODES_INT8);
    assert_memory_equal(again, back, sizeof back);
}

/* The value by its definition, in double and with another rounding: |value / scale| in units of the last place that
 * E2M1 has at its size, rounded to even. */
static float e2m1_expected(float value, int exponent)
{
    double most = fmin(fabs(ldexp((double)value, -exponent)), 6);
    double unit = most < 2 ? 0.5 : most < 4 ? 1 : 2;
    return (float)copysign(ldexp(nearbyint(most / unit) * unit, exponent), (double)value);
}

static void mxfp4_takes_the_nearest_float(void **state)
{
    static const float steps[] = {0.25F, 0.5F, 0.75F, 1, 1.25F, 1.5F, 1.75F, 2, 2.5F, 3, 3.5F, 4, 5, 6, 7, 7.99F};
    static float x[COUNT], back[COUNT];
    static unsigned char kept[COUNT / AH_CODES_BLOCK * AH_MXFP4_BYTES];
    normals_fill(x, COUNT, 9);
    for (int i = 0; i < 32 * AH_MXFP4_GROUP; i++) /* all between two codes, in groups whose scales are of any size */
        x[i] = ldexpf(i % 2 ? -steps[i / 2 % 16] : steps[i / 2 % 16], i / AH_MXFP4_GROUP * 7 - 96);
    assert_int_equal(ah__codes_bytes(AH_CODES_MXFP4, COUNT), sizeof kept);
    assert_int_equal(sizeof kept * 8 * 4, COUNT * 17);
    ah__codes_narrow(kept, x, COUNT, AH_CODES_MXFP4);
    ah__codes_widen(back, kept, COUNT, AH_CODES_MXFP4);
    for (int g = 0; g < COUNT / AH_MXFP4_GROUP; g++) {
        int exponent = (int)floor(log2((double)largest(x + g * AH_MXFP4_GROUP, AH_MXFP4_GROUP))) - 2;
        const unsigned char *block = kept + g / 8 * AH_MXFP4_BYTES;
        assert_int_equal(block[AH_CODES_BLOCK / 2 + g % 8], exponent + 127);
        for (int i = g * AH_MXFP4_GROUP; i < (g + 1) * AH_MXFP4_GROUP; i++) {
            float expected = e2m1_expected(x[i], exponent);
            assert_memory_equal(&back[i], &expected, sizeof expected);
        }
    }
}

/* A group of another program's, which may have larger scales than the rule gives, keeps its values: every code as the
 * largest of its group, beside all smaller ones; at every scale that values are kept at. */
static void mxfp4_keeps_what_is_mxfp4(void **state)
{
    static const float values[] = AH_E2M1_VALUES;
    for (int scale = -98; scale <= 125; scale++)
        for (int most = 0; most < 8; most++) {
            float x[AH_CODES_BLOCK] = {0}, back[AH_CODES_BLOCK];
            char kept[AH_MXFP4_BYTES];
            for (int i = 0; i < AH_CODES_BLOCK; i++)
                x[i] = ldexpf(values[i % (most + 1) + (i / 8 % 2 ? 8 : 0)], scale);
            ah__codes_narrow(kept, x, AH_CODES_BLOCK, AH_CODES_MXFP4);
            ah__codes_widen(back, kept, AH_CODES_BLOCK, AH_CODES_MXFP4);
            for (int i = 0; i < AH_CODES_BLOCK; i++)
                assert_true(back[i] >= x[i] && back[i] <= x[i]);
        }
}

/* Zeros, the last block not whole, values too small to have a scale, and such as are no numbers. */
static void edges(void **state)
{
    for (int codes = AH_CODES_INT8; codes < AH_CODES_COUNT; codes++) {
        float x[AH_CODES_BLOCK + 3] = {0}, back[AH_CODES_BLOCK + 3];
        char kept[2 * AH_INT8_BYTES];
        memset(kept, 0xAB, sizeof kept);
        x[70] = 1e-40F;
        x[AH_CODES_BLOCK - 1] = NAN;
        x[AH_CODES_BLOCK + 2] = -2;
        ah__codes_narrow(kept, x, AH_CODES_BLOCK + 3, (enum ah_codes)codes);
        ah__codes_widen(back, kept, AH_CODES_BLOCK + 3, (enum ah_codes)codes);
        assert_true(back[0] >= 0 && back[0] <= 0 && back[70] >= 0 && back[70] <= 0);
        assert_true(isnan(back[AH_CODES_BLOCK - 1]));
        assert_true(back[AH_CODES_BLOCK + 2] < -1.99F && back[AH_CODES_BLOCK + 2] > -2.01F);
        if ((size_t)ah__codes_bytes((enum ah_codes)codes, AH_CODES_BLOCK + 3) < sizeof kept)
            assert_int_equal((unsigned char)kept[sizeof kept - 1], 0xAB);
    }
}

/* What an element of blocks says, by the words of op/codes.h. */
static float element(const unsigned char *kept, int i, enum ah_codes codes)
{
    static const float quantiles[16] = AH_NF4_VALUES, floats[16] = AH_E2M1_VALUES;
    int at = i % AH_CODES_BLOCK, nibble = at % 2 ? 0 : 4;
    const unsigned char *block = kept + i / AH_CODES_BLOCK * ah__codes_block_bytes(codes);
    if (codes == AH_CODES_MXFP4) {
        int scale = block[AH_CODES_BLOCK / 2 + at / AH_MXFP4_GROUP];
        return scale == 255 ? NAN : ldexpf(floats[block[at / 2] >> nibble & 15], scale - 127);
    }
    if (codes == AH_CODES_NF4) {
        float scale;
        memcpy(&scale, block + AH_CODES_BLOCK / 2 + at / AH_NF4_GROUP * 4, sizeof scale);
        return quantiles[block[at / 2] >> nibble & 15] * scale;
    }
    uint16_t half;
    memcpy(&half, block + AH_CODES_BLOCK + at / AH_INT8_GROUP * 2, sizeof half);
    return (float)(block[at] < 128 ? block[at] : block[at] - 256) * ah__f16_value(half);
}

/* All codes with scales of any size, also such as are no numbers; elements of any count from the first on; nothing
 * behind them is written. */
static void every_code_is_what_its_words_say(void **state)
{
    static const char *const isas[] = {"avx512", "avx2", "plain"};
    static const float scales[] = {1, 0.37F, -3e-5F, 0, 65504, 1e30F, INFINITY, NAN};
    static const unsigned char mx_scales[] = {127, 121, 25, 2, 252, 130, 255, 118};
    enum { BLOCKS = 16, MANY = BLOCKS * AH_CODES_BLOCK };
    static unsigned char kept[BLOCKS * AH_INT8_BYTES];
    static float expected[MANY], found[MANY + 1];
    static uint16_t narrow[MANY + 1];
    for (int test = 0; test < 3 * 3 * 40; test++) {
        enum ah_codes codes = (enum ah_codes)(1 + test % 3);
        int count = test < 9 ? MANY : 1 + (int)(ah__random_bits(77, (uint64_t)test) % MANY);
        int whole = count / AH_CODES_BLOCK * AH_CODES_BLOCK;
        for (int b = 0; b < BLOCKS; b++) {
            unsigned char *block = kept + b * ah__codes_block_bytes(codes);
            for (int i = 0; i < AH_CODES_BLOCK; i++) /* all bytes in each block of int8, and of two of the others */
                block[i] = (unsigned char)(i * 37 + b * (codes == AH_CODES_INT8 ? 11 : 128 * 37));
            for (int g = 0; g < 8; g++) {
                float scale = scales[(b + g) % 8];
                uint16_t half = ah__f16_of(scale);
                if (codes == AH_CODES_INT8)
                    memcpy(block + AH_CODES_BLOCK + 2 * g, &half, sizeof half);
                else if (codes == AH_CODES_MXFP4)
                    block[AH_CODES_BLOCK / 2 + g] = mx_scales[(b + g) % 8];
                else if (g < 4)
                    memcpy(block + AH_CODES_BLOCK / 2 + 4 * g, &scale, sizeof scale);
            }
        }
        for (int i = 0; i < count; i++)
            expected[i] = element(kept, i, codes);
        ah__host_isa_force(isas[test / 3 % 3]);
        memset(found, 0x5A, sizeof found);
        memset(narrow, 0x5A, sizeof narrow);
        ah__codes_widen(found, kept, count, codes);
        ah__host_kernels()->expand(narrow, AH_BF16, kept, codes, whole / AH_CODES_BLOCK);
        ah__host_isa_force(NULL);
        assert_memory_equal(found, expected, (size_t)count * sizeof *found);
        for (int i = 0; i < whole; i++)
            assert_int_equal(narrow[i], ah__bf16_of(expected[i]));
        assert_int_equal(((unsigned char *)(found + count))[0], 0x5A);
        assert_int_equal(narrow[whole], 0x5A5A);
    }
}

/* The same bits as values widened one by one and rounded, for any number of threads and any instruction set. */
static void tasks_expand_in_pieces(void **state)
{
    static const char *const isas[] = {"avx512", "avx2", "plain"};
    enum { MANY = 1000 * AH_CODES_BLOCK };
    static float x[MANY], expected[MANY], wide[MANY];
    static uint16_t narrow[MANY], expected_narrow[MANY];
    static char kept[MANY / AH_CODES_BLOCK * AH_INT8_BYTES];
    normals_fill(x, MANY, 7);
    for (int codes = AH_CODES_INT8; codes < AH_CODES_COUNT; codes++)
        for (int threads = 1; threads <= 3; threads++) {
            struct test_pool p = pool_begin(threads);
            ah__host_isa_force(isas[threads - 1]);
            ah__codes_narrow(kept, x, MANY, (enum ah_codes)codes);
            ah__codes_widen(expected, kept, MANY, (enum ah_codes)codes);
            ah__bf16_narrow(expected_narrow, expected, MANY);
            struct ah_task task = {
                .as.expand = {
                    .to = wide, .from = kept, .to_dtype = AH_F32, .codes = (enum ah_codes)codes, .count = MANY}};
            assert_ok(ah__host_expand(p.pool, &task));
            assert_memory_equal(wide, expected, sizeof wide);
            task.as.expand.to = narrow;
            task.as.expand.to_dtype = AH_BF16;
            assert_ok(ah__host_expand(p.pool, &task));
            assert_memory_equal(narrow, expected_narrow, sizeof narrow);
            ah__host_isa_force(NULL);
            pool_end(&p);
        }
}

AH_TEST_CASES("dev/host/codes", nf4_takes_the_nearest_quantile, int8_takes_the_nearest_step,
              mxfp4_takes_the_nearest_float, mxfp4_keeps_what_is_mxfp4, edges, every_code_is_what_its_words_say,
              tasks_expand_in_pieces)
