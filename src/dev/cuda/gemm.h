/* Products of row-major matrices by cuBLASLt. The algorithm is its heuristic's first choice for the shape, the device
 * and the library's version, never the outcome of a timing, so that the same product gives the same bits tomorrow. Sums
 * are fp32; fp32 operands are multiplied as fp32 (no TF32). */
#ifndef AH_DEV_CUDA_GEMM_H
#define AH_DEV_CUDA_GEMM_H

#include "dev/cuda/device.h"

/* C[m,n] (+)= op(A) op(B) + bias; A is [m,k], or [k,m] when trans_a; B is [k,n], or [n,k] when trans_b. A and B are of
 * `dtype`, C is of `c_dtype` (that or AH_F32), bias [n] is of `dtype`, which is then that of C, too. */
struct ah_cuda_gemm_shape {
    bool trans_a, trans_b, accumulate, bias;
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
void ah__cuda_gemm_fini(struct ah_cuda_gemm *gemm, struct ah_cuda *cuda); /* all zero is fine */
/* Asynchronous. `bias` null unless the shape has one; `workspace` of workspace_bytes, 256-byte aligned. AH_EDEVICE. */
int ah__cuda_gemm_enqueue(const struct ah_cuda_gemm *gemm, struct ah_cuda *cuda, cudaStream_t stream, const void *a,
                          const void *b, const void *bias, void *c, void *workspace);

#endif
