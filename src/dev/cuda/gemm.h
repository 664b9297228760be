/* Products of row-major matrices by cuBLASLt. The algorithm is the heuristic's first choice for the shape, the device
 * and the library's version, never the result of a timing, so that the same product always has the same bits. Sums are
 * fp32; fp32 operands are multiplied as fp32 (no TF32). */
#ifndef AH_DEV_CUDA_GEMM_H
#define AH_DEV_CUDA_GEMM_H

#include "dev/cuda/state.h"

/* Changes to a product before it is stored; the extra operand is of C's dtype. */
enum ah_cuda_epilogue {
    AH_CUDA_PLAIN,
    AH_CUDA_BIAS,    /* + extra [n] */
    AH_CUDA_GELU_BWD /* times the slope of gelu at extra [m,n], whose rows are as far apart as C's, a multiple of 8 */
};

/* C[m,n] (+)= op(A) op(B), with its epilogue; A is [m,k], or [k,m] if trans_a; B is [k,n], or [n,k] if trans_b. A and B
 * are of `dtype`; C is of `c_dtype`, which is `dtype`, or AH_F32 without an epilogue. */
struct ah_cuda_gemm_shape {
    bool trans_a, trans_b, accumulate;
    enum ah_cuda_epilogue epilogue;
    enum ah_dtype dtype, c_dtype;
    int64_t m, n, k;
    int64_t lda, ldb, ldc; /* elements from one row to the next */
    int64_t align_bytes;   /* a power of two of which every address is a multiple */
};

/* A prepared product. `shape.accumulate` may be changed afterwards, since the choice does not depend on it. */
struct ah_cuda_gemm {
    struct ah_cuda_gemm_shape shape;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes;
};

/* Returns the alignment of all of these operands, by their offsets, up to 16 bytes: bases have at least that, and the
 * widest loads need no more. Absent operands do not count. */
int64_t ah__cuda_align(const struct ah_operand *const *operands, int count);
/* Prepares a product. AH_EDEVICE: the library has no algorithm for it; the message names the shape, and nothing is to
 * be freed. */
int ah__cuda_gemm_init(struct ah_cuda_gemm *out, struct ah_cuda *cuda, const struct ah_cuda_gemm_shape *shape);
/* Does the same, but a missing algorithm is no failure: *found is false. */
int ah__cuda_gemm_try(struct ah_cuda_gemm *out, bool *found, struct ah_cuda *cuda,
                      const struct ah_cuda_gemm_shape *shape);
void ah__cuda_gemm_fini(struct ah_cuda_gemm *gemm, struct ah_cuda *cuda); /* all zero is fine */
/* Returns the choices of the library, its first choice first; *count 0: none. For a bench, which may put another choice
 * into a product. AH_EDEVICE. */
int ah__cuda_gemm_choices(cublasLtMatmulHeuristicResult_t *out, int most, int *count, const struct ah_cuda_gemm *gemm,
                          const struct ah_cuda *cuda);

/* Addresses of a product's operands. */
struct ah_cuda_gemm_at {
    const void *a, *b, *extra; /* extra null without an epilogue */
    void *c;
    void *workspace; /* workspace_bytes, 256-byte aligned */
};
/* Enqueues a product; asynchronous. AH_EDEVICE. */
int ah__cuda_gemm_enqueue(const struct ah_cuda_gemm *gemm, struct ah_cuda *cuda, cudaStream_t stream,
                          const struct ah_cuda_gemm_at *at);

#endif
