/* Row-major products by cuBLASLt, which stores matrices by columns. A row-major [m,k] matrix is a column-major [k,m]
 * matrix with the same distance between rows (columns there), so C = A B is requested as C^T = B^T A^T: the library's A
 * is our B and the other way round, its m is our n, and its bias, one element for each of its rows, is one for each of
 * our columns.
 *
 * Attributes that are set, with their types in cublasLt.h (CUDA 13.0):
 *
 *   cublasLtMatmulDescCreate(desc, computeType, scaleType)       CUBLAS_COMPUTE_32F, CUDA_R_32F
 *   CUBLASLT_MATMUL_DESC_POINTER_MODE                int32_t     CUBLASLT_POINTER_MODE_HOST
 *   CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB             int32_t     CUBLAS_OP_N or CUBLAS_OP_T
 *   CUBLASLT_MATMUL_DESC_EPILOGUE                    uint32_t    CUBLASLT_EPILOGUE_DEFAULT, _BIAS or _DGELU
 *   CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE              int32_t     CUDA_R_32F or CUDA_R_16BF: that of C
 *   CUBLASLT_MATMUL_DESC_BIAS_POINTER                const void *  for the choice, an address as aligned as any will be
 *   CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD             int64_t     elements; a multiple of 8, at least D's rows
 *   CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER        const void *  as the bias's; its type is, unset, that of D
 *   cublasLtMatrixLayoutCreate(layout, type, rows, cols, ld)     order CUBLASLT_ORDER_COL by default; uint64_t, int64_t
 *   CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES         uint64_t    32 MiB, NVIDIA's advice for Hopper; others need less
 *   CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK       uint32_t    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: parts of a sum
 *                                                                meet in fp32, never in bf16, and in a fixed order
 *   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{A,B,C,D}_BYTES  uint32_t  align_bytes
 *   cublasLtMatmulAlgoGetHeuristic(..., requestedAlgoCount, results, returnAlgoCount)  int, array, int *; a result
 *                                                                counts when its `state` is CUBLAS_STATUS_SUCCESS
 *   cublasLtMatmul(handle, desc, alpha, A, B, beta, C, D, algo, workspace, workspaceSizeInBytes, stream)  D may be C
 *
 * Alpha and beta are floats in host memory, which cublasLtMatmul() has read when it returns. */
#include "dev/cuda/gemm.h"

enum { WORKSPACE_LIMIT = 32 << 20, ALIGN_LIMIT = 16 };

static cudaDataType_t type_of(enum ah_dtype dtype)
{
    return dtype == AH_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Writes the shape as "[m,k] x [k,n] BF16 -> F32", for messages. */
static const char *shape_format(char *text, size_t size, const struct ah_cuda_gemm_shape *s)
{
    snprintf(text, size, "[%lld,%lld]%s x [%lld,%lld]%s %s -> %s, %lld-byte aligned", (long long)s->m, (long long)s->k,
             s->trans_a ? "^T" : "", (long long)s->k, (long long)s->n, s->trans_b ? "^T" : "", ah__dtype_name(s->dtype),
             ah__dtype_name(s->c_dtype), (long long)s->align_bytes);
    return text;
}

static int checked(const struct ah_cuda *cuda, const struct ah_cuda_gemm_shape *shape, const char *call,
                   cublasStatus_t status)
{
    char text[160];
    if (status == CUBLAS_STATUS_SUCCESS)
        return AH_OK;
    return ah__fail(status == CUBLAS_STATUS_ALLOC_FAILED ? AH_ENOMEM : AH_EDEVICE, "%s: %s; product %s", call,
                    cuda->library.cublasLtGetStatusString(status), shape_format(text, sizeof text, shape));
}

/* An attribute of a descriptor; all are set alike. */
struct attribute {
    int name;
    const void *value;
    size_t bytes;
};

static const uint32_t epilogues[] = {[AH_CUDA_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT,
                                     [AH_CUDA_BIAS] = CUBLASLT_EPILOGUE_BIAS,
                                     [AH_CUDA_GELU_BWD] = CUBLASLT_EPILOGUE_DGELU};
static const cublasLtMatmulDescAttributes_t extra_pointer[] = {
    [AH_CUDA_BIAS] = CUBLASLT_MATMUL_DESC_BIAS_POINTER, [AH_CUDA_GELU_BWD] = CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER};

static int operation_new(struct ah_cuda_gemm *gemm, const struct ah_cuda *cuda)
{
    const struct ah_cuda_gemm_shape *s = &gemm->shape;
    int32_t mode = CUBLASLT_POINTER_MODE_HOST, bias_type = (int32_t)type_of(s->c_dtype);
    int32_t trans_a = s->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, trans_b = s->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t epilogue = epilogues[s->epilogue];
    const void *extra = (const void *)(uintptr_t)s->align_bytes;
    const struct attribute attributes[] = {
        {CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode},
        {CUBLASLT_MATMUL_DESC_TRANSA, &trans_a, sizeof trans_a},
        {CUBLASLT_MATMUL_DESC_TRANSB, &trans_b, sizeof trans_b},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue},
        {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &extra, sizeof extra},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &s->ldc, sizeof s->ldc},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &extra, sizeof extra},
    };
    /* The first four attributes are for every product; of the others each epilogue has two. */
    static const size_t own[] = {[AH_CUDA_PLAIN] = AH_LENGTH(attributes), [AH_CUDA_BIAS] = 4, [AH_CUDA_GELU_BWD] = 6};
    AH_TRY(checked(cuda, s, "cublasLtMatmulDescCreate",
                   cuda->library.cublasLtMatmulDescCreate(&gemm->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F)));
    for (size_t i = 0; i < AH_LENGTH(attributes); i++) {
        if (i >= 4 && i / 2 * 2 != own[s->epilogue])
            continue;
        AH_TRY(checked(cuda, s, "cublasLtMatmulDescSetAttribute",
                       cuda->library.cublasLtMatmulDescSetAttribute(gemm->operation,
                                                                    (cublasLtMatmulDescAttributes_t)attributes[i].name,
                                                                    attributes[i].value, attributes[i].bytes)));
    }
    return AH_OK;
}

/* Makes the layout of a row-major [rows, cols] matrix, as its column-major transpose. */
static int layout_new(cublasLtMatrixLayout_t *out, const struct ah_cuda *cuda, const struct ah_cuda_gemm_shape *shape,
                      enum ah_dtype dtype, int64_t rows, int64_t cols, int64_t stride)
{
    return checked(
        cuda, shape, "cublasLtMatrixLayoutCreate",
        cuda->library.cublasLtMatrixLayoutCreate(out, type_of(dtype), (uint64_t)cols, (uint64_t)rows, stride));
}

static int layouts_new(struct ah_cuda_gemm *gemm, const struct ah_cuda *cuda)
{
    const struct ah_cuda_gemm_shape *s = &gemm->shape;
    AH_TRY(layout_new(&gemm->a, cuda, s, s->dtype, s->trans_a ? s->k : s->m, s->trans_a ? s->m : s->k, s->lda));
    AH_TRY(layout_new(&gemm->b, cuda, s, s->dtype, s->trans_b ? s->n : s->k, s->trans_b ? s->k : s->n, s->ldb));
    return layout_new(&gemm->c, cuda, s, s->c_dtype, s->m, s->n, s->ldc);
}

static int preference_fill(cublasLtMatmulPreference_t preference, const struct ah_cuda *cuda,
                           const struct ah_cuda_gemm_shape *shape)
{
    uint64_t workspace = WORKSPACE_LIMIT;
    uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, align = (uint32_t)shape->align_bytes;
    const struct attribute attributes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align, sizeof align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align, sizeof align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align, sizeof align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align, sizeof align},
    };
    for (size_t i = 0; i < AH_LENGTH(attributes); i++)
        AH_TRY(checked(cuda, shape, "cublasLtMatmulPreferenceSetAttribute",
                       cuda->library.cublasLtMatmulPreferenceSetAttribute(
                           preference, (cublasLtMatmulPreferenceAttributes_t)attributes[i].name, attributes[i].value,
                           attributes[i].bytes)));
    return AH_OK;
}

/* Asks for the library's choices. Having none is no failure; choices that the library itself doubts are left out. */
static int choices_ask(cublasLtMatmulHeuristicResult_t *out, int most, int *count, const struct ah_cuda_gemm *gemm,
                       const struct ah_cuda *cuda, cublasLtMatmulPreference_t preference)
{
    int found = 0;
    *count = 0;
    AH_TRY(preference_fill(preference, cuda, &gemm->shape));
    cublasStatus_t status = cuda->library.cublasLtMatmulAlgoGetHeuristic(
        cuda->lt, gemm->operation, gemm->b, gemm->a, gemm->c, gemm->c, preference, most, out, &found);
    bool fused = gemm->shape.epilogue == AH_CUDA_GELU_BWD; /* which the library may refuse as a wrong combination */
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && !(fused && status == CUBLAS_STATUS_INVALID_VALUE))
        AH_TRY(checked(cuda, &gemm->shape, "cublasLtMatmulAlgoGetHeuristic", status));
    for (int i = 0; i < found; i++)
        if (out[i].state == CUBLAS_STATUS_SUCCESS)
            out[(*count)++] = out[i];
    return AH_OK;
}

int ah__cuda_gemm_choices(cublasLtMatmulHeuristicResult_t *out, int most, int *count, const struct ah_cuda_gemm *gemm,
                          const struct ah_cuda *cuda)
{
    cublasLtMatmulPreference_t preference;
    AH_TRY(checked(cuda, &gemm->shape, "cublasLtMatmulPreferenceCreate",
                   cuda->library.cublasLtMatmulPreferenceCreate(&preference)));
    int status = choices_ask(out, most, count, gemm, cuda, preference);
    cuda->library.cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

/* Takes the heuristic's first choice. */
static int algorithm_choose(struct ah_cuda_gemm *gemm, bool *found, const struct ah_cuda *cuda)
{
    cublasLtMatmulHeuristicResult_t first;
    int count;
    AH_TRY(ah__cuda_gemm_choices(&first, 1, &count, gemm, cuda));
    *found = count > 0;
    if (*found) {
        gemm->algorithm = first.algo;
        gemm->workspace_bytes = (int64_t)first.workspaceSize;
    }
    return AH_OK;
}

int64_t ah__cuda_align(const struct ah_operand *const *operands, int count)
{
    int64_t bits = ALIGN_LIMIT;
    for (int i = 0; i < count; i++)
        if (operands[i]->space != AH_SPACE_NONE)
            bits |= operands[i]->offset;
    return bits & -bits;
}

int ah__cuda_gemm_try(struct ah_cuda_gemm *out, bool *found, struct ah_cuda *cuda,
                      const struct ah_cuda_gemm_shape *shape)
{
    *out = (struct ah_cuda_gemm){.shape = *shape};
    *found = false;
    int status = operation_new(out, cuda);
    if (status == AH_OK)
        status = layouts_new(out, cuda);
    if (status == AH_OK)
        status = algorithm_choose(out, found, cuda);
    if (!*found)
        ah__cuda_gemm_fini(out, cuda);
    return status;
}

int ah__cuda_gemm_init(struct ah_cuda_gemm *out, struct ah_cuda *cuda, const struct ah_cuda_gemm_shape *shape)
{
    bool found;
    AH_TRY(ah__cuda_gemm_try(out, &found, cuda, shape));
    return checked(cuda, shape, "cublasLtMatmulAlgoGetHeuristic",
                   found ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
}

void ah__cuda_gemm_fini(struct ah_cuda_gemm *gemm, struct ah_cuda *cuda)
{
    const cublasLtMatrixLayout_t layouts[] = {gemm->a, gemm->b, gemm->c};
    for (size_t i = 0; i < AH_LENGTH(layouts); i++)
        if (layouts[i])
            cuda->library.cublasLtMatrixLayoutDestroy(layouts[i]);
    if (gemm->operation)
        cuda->library.cublasLtMatmulDescDestroy(gemm->operation);
    *gemm = (struct ah_cuda_gemm){.operation = NULL};
}

int ah__cuda_gemm_enqueue(const struct ah_cuda_gemm *gemm, struct ah_cuda *cuda, cudaStream_t stream,
                          const struct ah_cuda_gemm_at *at)
{
    const float alpha = 1.0F, beta = gemm->shape.accumulate ? 1.0F : 0.0F;
    if (gemm->shape.epilogue != AH_CUDA_PLAIN)
        AH_TRY(checked(cuda, &gemm->shape, "cublasLtMatmulDescSetAttribute",
                       cuda->library.cublasLtMatmulDescSetAttribute(
                           gemm->operation, extra_pointer[gemm->shape.epilogue], &at->extra, sizeof at->extra)));
    return checked(cuda, &gemm->shape, "cublasLtMatmul",
                   cuda->library.cublasLtMatmul(cuda->lt, gemm->operation, &alpha, at->b, gemm->b, at->a, gemm->a,
                                                &beta, at->c, gemm->c, at->c, gemm->c, &gemm->algorithm,
                                                gemm->workspace_bytes > 0 ? at->workspace : NULL,
                                                (size_t)gemm->workspace_bytes, stream));
}
