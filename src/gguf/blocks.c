/* Types of tensors in GGUF files and the conversion of their blocks to floats: the float operations of ggml's
 * reference, in its order, so that the bits are the same. A block holds scales first (halves, "d" and "m"), then small
 * integers. */
#include <string.h>

#include "base/status.h"
#include "gguf/gguf.h"
#include "op/bf16.h"
#include "op/f16.h"
#include "op/mx.h"

enum { SMALL = 32, LARGE = 256 }; /* elements of a block */

static float half_at(const unsigned char *from)
{
    uint16_t half;
    memcpy(&half, from, sizeof half);
    return ah__f16_value(half);
}

/* ---- single elements --------------------------------------------------------------------------------------------- */

static void widen_f32(float *to, const unsigned char *from, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void widen_f16(float *to, const unsigned char *from, int64_t count)
{
    ah__f16_widen(to, from, count);
}

static void widen_bf16(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof bits);
        to[i] = ah__bf16_value(bits);
    }
}

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------ */

/* Layout of a block: d [1], q [32]. */
static void widen_q8_0(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t b = 0; b < count / SMALL; b++, from += 2 + SMALL, to += SMALL)
        for (int i = 0; i < SMALL; i++)
            to[i] = (float)(int8_t)from[2 + i] * half_at(from);
}

/* Returns the i-th of 32 numbers of 4 bits: the lower halves of 16 bytes, then their upper halves. */
static int nibble(const unsigned char *from, int i)
{
    return i < SMALL / 2 ? from[i] & 15 : from[i - SMALL / 2] >> 4;
}

/* Returns the i-th of 32 fifth bits, as bit 4 of a number. */
static int fifth(const unsigned char *from, int i)
{
    return (from[i / 8] >> i % 8 & 1) << 4;
}

/* Layout of a block: d [1], q [32] of 4 bits. */
static void widen_q4_0(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t b = 0; b < count / SMALL; b++, from += 18, to += SMALL)
        for (int i = 0; i < SMALL; i++)
            to[i] = half_at(from) * (float)(nibble(from + 2, i) - 8);
}

/* Layout of a block: d [1], m [1], q [32] of 4 bits. */
static void widen_q4_1(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t b = 0; b < count / SMALL; b++, from += 20, to += SMALL)
        for (int i = 0; i < SMALL; i++)
            to[i] = half_at(from) * (float)nibble(from + 4, i) + half_at(from + 2);
}

/* Layout of a block: d [1], fifth bits [32], q [32] of 4 bits. */
static void widen_q5_0(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t b = 0; b < count / SMALL; b++, from += 22, to += SMALL)
        for (int i = 0; i < SMALL; i++)
            to[i] = half_at(from) * (float)((nibble(from + 6, i) | fifth(from + 2, i)) - 16);
}

/* Layout of a block: d [1], m [1], fifth bits [32], q [32] of 4 bits. */
static void widen_q5_1(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t b = 0; b < count / SMALL; b++, from += 24, to += SMALL)
        for (int i = 0; i < SMALL; i++)
            to[i] = half_at(from) * (float)(nibble(from + 8, i) | fifth(from + 4, i)) + half_at(from + 2);
}

/* Layout of a block: its scale, a power of two in a byte, q [32] of 4 bits. There is no negative zero. */
static void widen_mxfp4(float *to, const unsigned char *from, int64_t count)
{
    static const float values[16] = AH_E2M1_VALUES;
    for (int64_t b = 0; b < count / SMALL; b++, from += 1 + SMALL / 2, to += SMALL)
        for (int i = 0; i < SMALL; i++)
            to[i] = values[nibble(from + 1, i)] * ah__e8m0_value(from[0]) + 0.0F;
}

/* ---- blocks of 256 ----------------------------------------------------------------------------------------------- */

/* Reads scale and minimum, 6 bits each, of the j-th of 8 groups; the upper two bits of groups 4 to 7 are stored above
 * those of groups 0 to 3. */
static void scale_and_min(int *scale, int *min, const unsigned char *from, int j)
{
    if (j < 4) {
        *scale = from[j] & 63;
        *min = from[j + 4] & 63;
    } else {
        *scale = (from[j + 4] & 15) | (from[j - 4] >> 6) << 4;
        *min = from[j + 4] >> 4 | (from[j] >> 6) << 4;
    }
}

/* Converts a block of Q4_K or Q5_K: d [1], dmin [1], scales and minima [8] of 6 bits. `high`: fifth bits [32][8], null
 * for Q4_K. Two groups share 32 bytes. */
static void widen_groups(float *to, const unsigned char *from, const unsigned char *high, const unsigned char *low)
{
    for (int j = 0; j < 8; j++, to += SMALL) {
        int scale, min;
        scale_and_min(&scale, &min, from + 4, j);
        float d = half_at(from) * (float)scale, m = half_at(from + 2) * (float)min;
        for (int i = 0; i < SMALL; i++) {
            int q = low[j / 2 * SMALL + i] >> 4 * (j % 2) & 15;
            to[i] = d * (float)(high ? q | (high[i] >> j & 1) << 4 : q) - m;
        }
    }
}

static void widen_q4_k(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t b = 0; b < count / LARGE; b++, from += 144, to += LARGE)
        widen_groups(to, from, NULL, from + 16);
}

static void widen_q5_k(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t b = 0; b < count / LARGE; b++, from += 176, to += LARGE)
        widen_groups(to, from, from + 16, from + 48);
}

/* Layout of a block: lower 4 bits [256], upper 2 bits [256], scales [16], d [1]; both halves of a block alike. */
static void widen_q6_k(float *to, const unsigned char *from, int64_t count)
{
    for (int64_t b = 0; b < count / LARGE; b++, from += 210, to += LARGE)
        for (int i = 0; i < LARGE; i++) {
            int half = i / 128, group = i / SMALL % 4, at = i % SMALL;
            int low = from[half * 64 + group % 2 * SMALL + at] >> 4 * (group / 2) & 15;
            int high = from[128 + half * SMALL + at] >> 2 * group & 3;
            float scale = half_at(from + 208) * (float)(int8_t)from[192 + i / 16];
            to[i] = scale * (float)((low | high << 4) - 32);
        }
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static const struct ah_gguf_type types[] = {
    {0, "F32", 1, 4, widen_f32},
    {1, "F16", 1, 2, widen_f16},
    {2, "Q4_0", 32, 18, widen_q4_0},
    {3, "Q4_1", 32, 20, widen_q4_1},
    {6, "Q5_0", 32, 22, widen_q5_0},
    {7, "Q5_1", 32, 24, widen_q5_1},
    {8, "Q8_0", 32, 34, widen_q8_0},
    {9, "Q8_1", 32, 40, NULL},
    {10, "Q2_K", 256, 84, NULL},
    {11, "Q3_K", 256, 110, NULL},
    {12, "Q4_K", 256, 144, widen_q4_k},
    {13, "Q5_K", 256, 176, widen_q5_k},
    {14, "Q6_K", 256, 210, widen_q6_k},
    {15, "Q8_K", 256, 292, NULL},
    {16, "IQ2_XXS", 256, 66, NULL},
    {17, "IQ2_XS", 256, 74, NULL},
    {18, "IQ3_XXS", 256, 98, NULL},
    {19, "IQ1_S", 256, 50, NULL},
    {20, "IQ4_NL", 32, 18, NULL},
    {21, "IQ3_S", 256, 110, NULL},
    {22, "IQ2_S", 256, 82, NULL},
    {23, "IQ4_XS", 256, 136, NULL},
    {24, "I8", 1, 1, NULL},
    {25, "I16", 1, 2, NULL},
    {26, "I32", 1, 4, NULL},
    {27, "I64", 1, 8, NULL},
    {28, "F64", 1, 8, NULL},
    {29, "IQ1_M", 256, 56, NULL},
    {30, "BF16", 1, 2, widen_bf16},
    {34, "TQ1_0", 256, 54, NULL},
    {35, "TQ2_0", 256, 66, NULL},
    {39, "MXFP4", 32, 17, widen_mxfp4},
};

const struct ah_gguf_type *ah__gguf_type(uint32_t id)
{
    for (size_t i = 0; i < AH_LENGTH(types); i++)
        if (types[i].id == id)
            return &types[i];
    return NULL;
}
