/* Inside the CPU device: a worker pool and the kernels that run on it. Every result is the same bits for any number of
 * threads: work is cut into pieces by shape alone, and each piece is reduced in a fixed order. */
#ifndef AH_DEV_CPU_CPU_H
#define AH_DEV_CPU_CPU_H

#include "base/alloc.h"
#include "dev/dev.h"

struct ah_pool;
/* `threads` workers, the calling thread of ah__pool_run being one of them. Workers (and the caller, by ah__pool_enter) run
 * with FTZ/DAZ and single-threaded oneDNN. `core`: first core to pin to, -1: not pinned. Scratch per worker is allocated
 * here. AH_ENOMEM, AH_EDEVICE. */
int ah__pool_new(struct ah_pool **out, int threads, int core);
void ah__pool_free(struct ah_pool *pool);
/* To be called once on the thread that will call ah__pool_run. */
void ah__pool_enter(struct ah_pool *pool);
/* Calls piece(context, i, worker) for i in 0..count-1 over the workers, in any order, and returns when all are done.
 * `count` below 2^31; a piece must not start another run. */
void ah__pool_run(struct ah_pool *pool, void (*piece)(void *context, int index, int worker), int count, void *context);
int ah__pool_threads(const struct ah_pool *pool);
/* Binds the calling thread to a core; without effect where that is not allowed. */
void ah__cpu_pin(int core);
/* The worker's own scratch: AH_POOL_SCRATCH floats, 64-byte aligned, owned by the pool. */
float *ah__pool_scratch(struct ah_pool *pool, int worker);
/* AH_POOL_PARTIALS doubles: one result per piece of a reduction, for the caller to combine in order. */
double *ah__pool_partials(struct ah_pool *pool);
enum { AH_POOL_PARTIALS = 4096, AH_POOL_SCRATCH = 11 * 64 * 256 };

/* Runs a compiled program / one call. Allocates nothing of ours. AH_EDEVICE when a library call fails. */
int ah__cpu_program(struct ah_pool *pool, const struct ah_program *program, char *const base[AH_SPACE_COUNT]);
int ah__cpu_call(struct ah_pool *pool, const struct ah_call *call, char *const base[AH_SPACE_COUNT]);
/* The tasks of dev.h. AH_EDEVICE for a dtype that is not built yet (all but AH_F32). */
int ah__cpu_adam(struct ah_pool *pool, const struct ah_task *task);
int ah__cpu_sqnorm(struct ah_pool *pool, const struct ah_task *task);

/* C[M,N] (+)= op(A) op(B), row-major fp32, by oneDNN, tiled by shape alone. */
struct ah_gemm {
    bool trans_a, trans_b, accumulate;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc;
    const float *bias; /* [N] added to every row, or null */
};
int ah__cpu_gemm(struct ah_pool *pool, const struct ah_gemm *gemm);

/* "avx512", "avx2" or "plain": what this processor runs; ah__cpu_isa_force(null) undoes. For tests of equal bits. */
const char *ah__cpu_isa(void);
void ah__cpu_isa_force(const char *isa);

#endif
