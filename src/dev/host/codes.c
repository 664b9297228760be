#include "dev/host/codes.h"

#include <math.h>
#include <string.h>

#include "dev/host/kernels.h"
#include "dev/host/task.h"
#include "op/f16.h"
#include "op/mx.h"

enum { EXPAND_BLOCKS = 256 }; /* blocks in a piece */

static const float nf4[16] = AH_NF4_VALUES;

/* ---- from floats ------------------------------------------------------------------------------------------------- */

/* Returns the largest magnitude of a group; NaN if a value is not finite, 0 if it is so small that decoded values would
 * be subnormal. */
static float most_of(const float *values, int count)
{
    float most = 0;
    for (int i = 0; i < count; i++) {
        float magnitude = fabsf(values[i]);
        if (!isfinite(magnitude))
            return NAN;
        most = magnitude > most ? magnitude : most;
    }
    return most < 0x1p-100F ? 0 : most;
}

/* Encodes a block; the codes are 0 if the scale is 0 or not a number. */
static void int8_narrow(char *to, const float values[AH_CODES_BLOCK])
{
    for (int g = 0; g < AH_CODES_BLOCK / AH_INT8_GROUP; g++) {
        float scale = most_of(values + g * AH_INT8_GROUP, AH_INT8_GROUP) / 127;
        float inverse = scale > 0 ? 1 / scale : 0;
        uint16_t half = ah__f16_of(scale); /* NaN for NaN */
        for (int i = g * AH_INT8_GROUP; i < (g + 1) * AH_INT8_GROUP; i++)
            to[i] = inverse > 0 ? (char)lroundf(values[i] * inverse) : 0;
        memcpy(to + AH_CODES_BLOCK + 2 * g, &half, sizeof half);
    }
}

/* Returns the number of the nearest value; of two equally near ones the lower. */
static unsigned nf4_of(float fraction)
{
    unsigned code = 0;
    for (unsigned i = 0; i < 15; i++)
        code += fraction > (nf4[i] + nf4[i + 1]) / 2;
    return code;
}

/* Writes codes of 4 bits, the first of two in the high half of a byte. */
static void nibbles_store(char *to, const unsigned char codes[AH_CODES_BLOCK])
{
    for (int i = 0; i < AH_CODES_BLOCK / 2; i++)
        to[i] = (char)(codes[2 * i] << 4 | codes[2 * i + 1]);
}

static void nf4_narrow(char *to, const float values[AH_CODES_BLOCK])
{
    unsigned char codes[AH_CODES_BLOCK];
    for (int g = 0; g < AH_CODES_BLOCK / AH_NF4_GROUP; g++) {
        float scale = most_of(values + g * AH_NF4_GROUP, AH_NF4_GROUP), inverse = scale > 0 ? 1 / scale : 0;
        for (int i = g * AH_NF4_GROUP; i < (g + 1) * AH_NF4_GROUP; i++)
            codes[i] = (unsigned char)nf4_of(inverse > 0 ? values[i] * inverse : 0);
        memcpy(to + AH_CODES_BLOCK / 2 + 4 * g, &scale, sizeof scale);
    }
    nibbles_store(to, codes);
}

/* Returns the code nearest to a value; of two equally near ones the even, beyond the largest that. */
static unsigned char e2m1_of(float value)
{
    float most = fabsf(value);
    int code = (most > 0.25F) + (most >= 0.75F) + (most > 1.25F) + (most >= 1.75F) + (most > 2.5F) + (most >= 3.5F) +
               (most > 5);
    return (unsigned char)(code | (signbit(value) ? 8 : 0));
}

/* Returns the scale of a group with this largest magnitude, which has no fewer exponents below it than E2M1. */
static uint8_t e8m0_of(float most)
{
    if (isnan(most))
        return AH_E8M0_NAN;
    return most > 0 ? (uint8_t)(ilogbf(most) - AH_E2M1_MOST_EXPONENT + AH_E8M0_BIAS) : 0;
}

static void mxfp4_narrow(char *to, const float values[AH_CODES_BLOCK])
{
    unsigned char codes[AH_CODES_BLOCK];
    for (int g = 0; g < AH_CODES_BLOCK / AH_MXFP4_GROUP; g++) {
        float most = most_of(values + g * AH_MXFP4_GROUP, AH_MXFP4_GROUP);
        uint8_t scale = e8m0_of(most);
        float inverse = most > 0 ? 1 / ah__e8m0_value(scale) : 0;
        for (int i = g * AH_MXFP4_GROUP; i < (g + 1) * AH_MXFP4_GROUP; i++)
            codes[i] = inverse > 0 ? e2m1_of(values[i] * inverse) : 0;
        to[AH_CODES_BLOCK / 2 + g] = (char)scale;
    }
    nibbles_store(to, codes);
}

void ah__codes_narrow(void *to, const float *values, int64_t count, enum ah_codes codes)
{
    static void (*const narrow[])(char *to, const float values[AH_CODES_BLOCK]) = {
        [AH_CODES_INT8] = int8_narrow, [AH_CODES_NF4] = nf4_narrow, [AH_CODES_MXFP4] = mxfp4_narrow};
    float block[AH_CODES_BLOCK];
    for (int64_t i = 0; i < count; i += AH_CODES_BLOCK) {
        int64_t there = count - i < AH_CODES_BLOCK ? count - i : AH_CODES_BLOCK;
        memset(block, 0, sizeof block);
        memcpy(block, values + i, (size_t)there * sizeof *block);
        narrow[codes]((char *)to + ah__codes_bytes(codes, i), block);
    }
}

/* ---- to floats --------------------------------------------------------------------------------------------------- */

void ah__codes_widen(float *values, const void *from, int64_t count, enum ah_codes codes)
{
    const struct ah_host_kernels *kernels = ah__host_kernels();
    int64_t whole = count / AH_CODES_BLOCK, rest = count - whole * AH_CODES_BLOCK;
    kernels->expand(values, AH_F32, from, codes, whole);
    if (rest == 0)
        return;
    float block[AH_CODES_BLOCK];
    kernels->expand(block, AH_F32, (const char *)from + whole * ah__codes_block_bytes(codes), codes, 1);
    memcpy(values + whole * AH_CODES_BLOCK, block, (size_t)rest * sizeof *values);
}

/* ---- the task ---------------------------------------------------------------------------------------------------- */

struct expand {
    const struct ah_host_kernels *kernels;
    const struct ah_task *task;
    struct ah_pieces pieces; /* pieces of blocks */
};

static void expand_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct expand *job = context;
    enum ah_codes codes = job->task->as.expand.codes;
    enum ah_dtype to_dtype = job->task->as.expand.to_dtype;
    int64_t first = index * job->pieces.size, to = first * AH_CODES_BLOCK * ah__dtype_bytes(to_dtype);
    job->kernels->expand((char *)job->task->as.expand.to + to, to_dtype,
                         (const char *)job->task->as.expand.from + first * ah__codes_block_bytes(codes), codes,
                         ah__pieces_length(&job->pieces, index));
}

int ah__host_expand(struct ah_pool *pool, const struct ah_task *task)
{
    struct expand job = {.kernels = ah__host_kernels(),
                         .task = task,
                         .pieces = ah__pieces(task->as.expand.count / AH_CODES_BLOCK, EXPAND_BLOCKS)};
    ah__pool_run(pool, expand_piece, job.pieces.count, &job);
    return AH_OK;
}
