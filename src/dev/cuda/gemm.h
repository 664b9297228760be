/* Products of row-major matrices by cuBLASLt. The algorithm is its heuristic's first choice for the shape, the device
 * and the library's version, never the outcome of a timing, so that the same product gives the same bits tomorrow. Sums
 * are fp32; fp32 operands are multiplied as fp32 (no TF32). */
#ifndef AH_DEV_CUDA_GEMM_H
#define AH_DEV_CUDA_GEMM_H

#include "dev/cuda/state.h"

/* What is done to a product before it is stored; the extra operand is of C's dtype. */
enum ah_cuda_epilogue {
    AH_CUDA_PLAIN,
    AH_CUDA_BIAS,    /* + extra [n] */
    AH_CUDA_GELU_BWD /* times the slope of gelu at extra [m,n], whose rows are as far apart as C's, a multiple of 8 */
};

/* C[m,n] (+)= op(A) op(B), with its epilogue; A is [m,k], or [k,m] when trans_a; B is [k,n], or [n,k] when trans_b. A
 * and B are of `dtype`, C is of `c_dtype`: that, or AH_F32 without an epilogue. */
struct ah_cuda_gemm_shape {
    bool trans_a, trans_b, accumulate;
    enum ah_cuda_epilogue epilogue;
    enum ah_dtype dtype, c_dtype;
    int64_t m, n, k;
    int64_t lda, ldb, ldc; /* elements from one row to the next */
    int64_t align_bytes;   /* a power of two that every address will be a multiple of */
};

/* A product made ready. Whether it adds to C may be changed in `shape` afterwards: the choice does not depend on it. */
struct ah_cuda_gemm {
    struct ah_cuda_gemm_shape shape;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes;
};

/* What addresses of all of these operands are multiples of, up to the 16 bytes that bases are aligned to at least and
 * the widest loads want: it follows from their offsets. Absent ones do not count. */
int64_t ah__cuda_align(const struct ah_operand *const *operands, int count);
/* AH_EDEVICE when the library has no algorithm for it, naming the shape; nothing is to be given back then. */
int ah__cuda_gemm_init(struct ah_cuda_gemm *out, struct ah_cuda *cuda, const struct ah_cuda_gemm_shape *shape);
/* The same, but that the library has none is no failure: *found tells. */
int ah__cuda_gemm_try(struct ah_cuda_gemm *out, bool *found, struct ah_cuda *cuda,
                      const struct ah_cuda_gemm_shape *shape);
void ah__cuda_gemm_fini(struct ah_cuda_gemm *gemm, struct ah_cuda *cuda); /* all zero is fine */
/* What the library would choose from, its own choice first; *count 0: nothing. For a bench, which may put another one
 * into a product. AH_EDEVICE. */
int ah__cuda_gemm_choices(cublasLtMatmulHeuristicResult_t *out, int most, int *count, const struct ah_cuda_gemm *gemm,
                          const struct ah_cuda *cuda);

/* Addresses of a product's operands. */
struct ah_cuda_gemm_at {
    const void *a, *b, *extra; /* extra null without an epilogue */
    void *c;
    void *workspace; /* of workspace_bytes, 256-byte aligned */
};
/* Asynchronous. AH_EDEVICE. */
int ah__cuda_gemm_enqueue(const struct ah_cuda_gemm *gemm, struct ah_cuda *cuda, cudaStream_t stream,
                          const struct ah_cuda_gemm_at *at);

#endif
