/* Inside the CPU device: prepares programs and runs them over a pool. Results have the same bits for any number of
 * threads: work is cut into pieces by shape alone, and each piece is reduced in a fixed order. */
#ifndef AH_DEV_CPU_CPU_H
#define AH_DEV_CPU_CPU_H

#include "base/alloc.h"
#include "dev/dev.h"
#include "dev/host/pool.h"

/* A prepared program: everything that does not depend on addresses is resolved. */
struct ah_cpu_program {
    struct ah_prepared prepared;
    struct ah_cpu_call *calls;
    int count; /* number of calls */
};

/* Prepares a program for a pool of `threads`, on which its workspace_bytes depend. AH_EDEVICE names the call, the
 * operand, what it is and what the device can run; AH_ENOMEM. */
int ah__cpu_program_new(struct ah_cpu_program **out, const struct ah_program *program, int threads);
void ah__cpu_program_free(struct ah_cpu_program *program); /* null is fine */
/* Runs a program. Call it on a thread that has entered the pool. Allocates nothing itself. AH_EDEVICE: a library call
 * failed or an id is out of range. */
int ah__cpu_program_run(const struct ah_cpu_program *program, struct ah_pool *pool, char *const base[AH_SPACE_COUNT]);

/* Tiles of a product, by its shape alone. */
struct ah_gemm_grid {
    int64_t rows, cols; /* rows and columns of a tile; the last of a row or column may be smaller */
    int64_t down, across;
};

/* C[M,N] (+)= op(A) op(B), row-major fp32, by oneDNN. */
struct ah_gemm {
    bool trans_a, trans_b, accumulate;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    struct ah_gemm_grid grid; /* tiles of m and n */
    const float *a, *b;
    float *c;
    const float *bias; /* [N] added to every row, or null */
};
struct ah_gemm_grid ah__cpu_gemm_grid(int64_t m, int64_t n);
int ah__cpu_gemm(struct ah_pool *pool, const struct ah_gemm *gemm);
/* Describes what the bits of products depend on beside their shapes: the library's version, the processor's features
 * that it uses, and how bf16 is multiplied. Our own kernels give the same bits everywhere. AH_ENOMEM. */
int ah__cpu_arithmetic(char *text, size_t size);

#endif
