/* mma.sync: a warp's product of matrices in bf16, with sums in fp32. Which lane has which elements is PTX ISA's (matrix
 * fragments for m16n8k16). The ISA leaves open in which order terms are added and how sums are rounded: here they are
 * exact but for the last rounding, to nearest, or towards zero at the low end of approximations. */
#include "inside.h"

#include <math.h>
#include <string.h>

enum { ROWS = 16, COLS = 8, TERMS = 16 };

static double bf16_of(uint64_t word, int which)
{
    uint32_t bits = (uint32_t)(word >> 16 * which) << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static float f32_of(uint64_t value)
{
    uint32_t bits = (uint32_t)value;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t sum_bits(double sum, enum ptx_approximate end)
{
    float x = (float)sum;
    uint32_t bits = 0x7FFFFFFF;
    if (end == PTX_LOW && isfinite(x) && fabs((double)x) > fabs(sum))
        x = nextafterf(x, 0);
    if (!isnan(x))
        memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The row, or column of the right factor, that lane l has in its i-th word, and the first of its two terms. */
static int word_line(int l, int i, int words)
{
    return l / 4 + (words == MATRIX_LEFT && i % 2 ? 8 : 0);
}

static int word_term(int l, int i, int words)
{
    return l % 4 * 2 + (i >= words / 2 ? 8 : 0);
}

static void factor_read(double to[][TERMS], const struct ptx_warp *warp, const struct ptx_instr *in, int first,
                        int words)
{
    for (int i = 0; i < words; i++) {
        const uint64_t *s = ptx_source(warp, in, in->source[first + i], (uint32_t)FULL);
        for (int l = 0; l < WARP; l++)
            for (int which = 0; which < 2; which++)
                to[word_line(l, i, words)][word_term(l, i, words) + which] = bf16_of(s[l], which);
    }
}

void ptx_multiply(struct ptx_warp *warp, const struct ptx_instr *in)
{
    double left[ROWS][TERMS], right[COLS][TERMS];
    uint64_t out[MATRIX_SUMS][WARP];
    factor_read(left, warp, in, 0, MATRIX_LEFT);
    factor_read(right, warp, in, MATRIX_LEFT, MATRIX_RIGHT);
    for (int i = 0; i < MATRIX_SUMS; i++) {
        const uint64_t *before = ptx_source(warp, in, in->source[MATRIX_LEFT + MATRIX_RIGHT + i], (uint32_t)FULL);
        for (int l = 0; l < WARP; l++) {
            double sum = (double)f32_of(before[l]);
            for (int term = 0; term < TERMS; term++)
                sum += left[l / 4 + i / 2 * 8][term] * right[l % 4 * 2 + i % 2][term];
            out[i][l] = sum_bits(sum, in->module->approximate);
        }
    }
    for (int i = 0; i < MATRIX_SUMS; i++) {
        memcpy(warp->reg + (size_t)in->result[i] * WARP, out[i], sizeof out[i]);
        warp->defined[in->result[i]] = (uint32_t)FULL;
    }
}
