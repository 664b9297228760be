/* Formats of frozen matrices with fewer bits. In memory a block is AH_CODES_BLOCK elements: all codes, then all scales.
 *   int8  groups of 32, as GGUF's Q8_0: the scale is the largest magnitude / 127 as a half float, a code is a signed
 *         byte: the value / scale, rounded to nearest, ties away from zero. 8.5 bits an element.
 *   nf4   groups of 64, as QLoRA publishes NF4 (Dettmers et al. 2023, without double quantization): the scale is the
 *         largest magnitude as a float, a code the nearest of 16 quantiles of the normal distribution, the first of two
 *         elements in the high half of a byte. 4.5 bits an element.
 *   mxfp4 groups of 32, as OCP publishes MXFP4 (Microscaling Formats 1.0, section 6.3): the scale is a power of 2 in a
 *         byte (E8M0), the largest that is no more than the largest magnitude / 4, a code a float of 4 bits (E2M1): the
 *         value / scale, rounded to nearest, ties to even, at most 6. In bytes as nf4's. 4.25 bits an element.
 * An element's value is code or quantile times scale, in float arithmetic, rounded once to the dtype it is widened to:
 * the same on every device. For C and CUDA C. */
#ifndef AH_OP_CODES_H
#define AH_OP_CODES_H

#include <stdint.h>

enum ah_codes { AH_CODES_NONE = 0, AH_CODES_INT8, AH_CODES_NF4, AH_CODES_MXFP4, AH_CODES_COUNT };

enum {
    AH_CODES_BLOCK = 256,
    AH_INT8_GROUP = 32,
    AH_NF4_GROUP = 64,
    AH_MXFP4_GROUP = 32,
    AH_INT8_BYTES = AH_CODES_BLOCK + AH_CODES_BLOCK / AH_INT8_GROUP * 2,
    AH_NF4_BYTES = AH_CODES_BLOCK / 2 + AH_CODES_BLOCK / AH_NF4_GROUP * 4,
    AH_MXFP4_BYTES = AH_CODES_BLOCK / 2 + AH_CODES_BLOCK / AH_MXFP4_GROUP
};

/* The 16 values of NF4, appendix E of the publication. */
#define AH_NF4_VALUES                                                                                                  \
    {                                                                                                                  \
        -1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,               \
            -0.18477343022823334F, -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,            \
            0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F,                     \
            0.7229568362236023F, 1.0F                                                                                  \
    }

/* Returns the bytes of a block. */
static inline int64_t ah__codes_block_bytes(enum ah_codes codes)
{
    static const int64_t bytes[] = {0, AH_INT8_BYTES, AH_NF4_BYTES, AH_MXFP4_BYTES};
    return bytes[codes];
}

/* Returns the bytes of `count` elements that begin a block. */
static inline int64_t ah__codes_bytes(enum ah_codes codes, int64_t count)
{
    return (count + AH_CODES_BLOCK - 1) / AH_CODES_BLOCK * ah__codes_block_bytes(codes);
}

#ifndef __cplusplus /* nothing for kernels */
/* Finds a format by its word, int8, nf4 or mxfp4; null gives AH_CODES_NONE. AH_EINPUT: "frozen: found X,
 * expected int8, nf4 or mxfp4". */
int ah__codes_parse(enum ah_codes *out, const char *word);
/* Returns the word of a format; null for AH_CODES_NONE. */
const char *ah__codes_word(enum ah_codes codes);
#endif

#endif
