/* The kernels of one instruction set for the host's own arithmetic: Adam, sums of squares, casts. A kernel works on a
 * piece on one thread, without knowledge of pools or tasks. Every table gives the same bits. */
#ifndef AH_DEV_HOST_KERNELS_H
#define AH_DEV_HOST_KERNELS_H

#include "dev/dev.h"
#include "dev/host/isa.h"

/* A piece of an Adam task, in which all elements have the same decay. */
struct ah_adam_piece {
    const void *p, *m, *v, *g;
    void *to_p, *to_m, *to_v; /* destinations: the same addresses, or memory that does not overlap */
    const uint16_t *rest;     /* low halves of p (dev/planes.h), or null */
    uint16_t *to_rest;
    enum ah_dtype dtype, moment_dtype;
    int64_t count;
    uint32_t first; /* number of element 0 in the training, for ah__draw */
    const struct ah_adam *adam;
    float decay_factor, scale;
};

struct ah_host_kernels {
    void (*adam)(const struct ah_adam_piece *piece);
    double (*sum_squares)(const void *x, enum ah_dtype dtype, int64_t n);
    /* Rounds to nearest even; NaN stays NaN. Denormals keep their values. */
    void (*to_bf16)(uint16_t *y, const float *x, int64_t n);
    void (*from_bf16)(float *y, const uint16_t *x, int64_t n);
    /* Decodes whole blocks to F32 or BF16. */
    void (*expand)(void *to, enum ah_dtype to_dtype, const void *from, enum ah_codes codes, int64_t blocks);
};

extern const struct ah_host_kernels ah__host_kernels_avx512, ah__host_kernels_avx2, ah__host_kernels_plain;
/* Returns the table in use. */
const struct ah_host_kernels *ah__host_kernels(void);

#endif
