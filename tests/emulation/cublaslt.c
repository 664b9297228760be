/* cuBLASLt as far as the CUDA plugin uses it, in a library of its own (libcublasLt.so.13): products on the emulated
 * GPU's streams. What it does not know it refuses, as the real one refuses what it cannot do; what it is promised
 * (alignments, the workspace, the algorithm's shape) it checks. */
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "emulation.h"
#include "product.h"

enum { DESC = 0x44455343, LAYOUT = 0x4C41594F, PREFERENCE = 0x50524546, HANDLE = 0x48414E44, ALGORITHM = 0x414C474F };
enum { SPLIT_K = 64, WORKSPACE_ALIGN = 256 };

#define ENTER(function)                                                                                                \
    do {                                                                                                               \
        int error_ = emulation_enter(function);                                                                        \
        if (error_)                                                                                                    \
            return (cublasStatus_t)error_;                                                                             \
    } while (0)
#define ENTER_RELEASE(function)                                                                                        \
    do {                                                                                                               \
        int error_ = emulation_enter_release(function);                                                                \
        if (error_)                                                                                                    \
            return (cublasStatus_t)error_;                                                                             \
    } while (0)
#define REFUSE(status, ...) return (cublasStatus_t)emulation_object(status, __VA_ARGS__)

struct description {
    int kind;
    int32_t compute_type, scale_type, pointer_mode, trans_a, trans_b, bias_type;
    uint32_t epilogue;
    const void *bias, *aux;
    int64_t aux_ld;
};

struct layout {
    int kind;
    uint32_t type;
    int32_t order, batches;
    uint64_t rows, columns;
    int64_t ld, stride;
};

struct preference {
    int kind;
    uint64_t workspace;
    uint32_t reduction, align[4]; /* A, B, C, D */
};

/* What a heuristic result says about itself: in the opaque algorithm. */
struct algorithm {
    uint32_t kind, shape; /* a hash of what it was chosen for */
    uint64_t workspace;
    uint32_t align[4];
};

struct attribute {
    int name;
    size_t bytes, offset;
};
#define ATTRIBUTE(name, type, member)                                                                                  \
    {                                                                                                                  \
        name, sizeof((struct type){0}.member), offsetof(struct type, member)                                           \
    }

static const struct attribute description_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, description, compute_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SCALE_TYPE, description, scale_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_POINTER_MODE, description, pointer_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSA, description, trans_a),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSB, description, trans_b),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE, description, epilogue),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, description, bias),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, description, bias_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, description, aux),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, description, aux_ld),
    {0}};
static const struct attribute layout_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_TYPE, layout, type),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ORDER, layout, order),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ROWS, layout, rows),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_COLS, layout, columns),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_LD, layout, ld),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout, batches),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout, stride),
    {0}};
static const struct attribute preference_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, preference, workspace),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, preference, reduction),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, preference, align[0]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, preference, align[1]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, preference, align[2]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, preference, align[3]),
    {0}};

/* ---- objects */

static void *object_new(const void *initial, size_t bytes)
{
    void *object = malloc(bytes);
    if (!object)
        abort();
    memcpy(object, initial, bytes);
    emulation_library_object(1);
    return object;
}

/* Every object begins with its kind. */
static bool is_kind(const void *object, int kind)
{
    return object && *(const int *)object == kind;
}

static cublasStatus_t object_free(const char *function, void *object, int kind)
{
    ENTER_RELEASE(function);
    if (!is_kind(object, kind))
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "%s: not what the matching Create gave", function);
    *(int *)object = 0;
    free(object);
    emulation_library_object(-1);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t attribute_set(const char *function, void *object, int kind, const struct attribute *known,
                                    int name, const void *value, size_t bytes)
{
    ENTER(function);
    if (!is_kind(object, kind) || !value)
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "%s: no object or no value", function);
    for (; known->bytes; known++)
        if (known->name == name && known->bytes == bytes) {
            memcpy((char *)object + known->offset, value, bytes);
            return CUBLAS_STATUS_SUCCESS;
        }
    REFUSE(CUBLAS_STATUS_INVALID_VALUE, "%s: attribute %d of %zu bytes", function, name, bytes);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    const int kind = HANDLE;
    ENTER("cublasLtCreate");
    *out = object_new(&kind, sizeof kind);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return object_free("cublasLtDestroy", handle, HANDLE);
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "the operation completed successfully";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an invalid value was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality is not supported";
    default:
        return "an internal operation failed";
    }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale)
{
    const struct description made = {.kind = DESC,
                                     .compute_type = (int32_t)compute,
                                     .scale_type = (int32_t)scale,
                                     .bias_type = -1,
                                     .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    ENTER("cublasLtMatmulDescCreate");
    *out = object_new(&made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description)
{
    return object_free("cublasLtMatmulDescDestroy", description, DESC);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes)
{
    return attribute_set("cublasLtMatmulDescSetAttribute", description, DESC, description_attributes, (int)name, value,
                         bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    const struct layout made = {.kind = LAYOUT,
                                .type = (uint32_t)type,
                                .order = CUBLASLT_ORDER_COL,
                                .batches = 1,
                                .rows = rows,
                                .columns = columns,
                                .ld = ld};
    ENTER("cublasLtMatrixLayoutCreate");
    *out = object_new(&made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return object_free("cublasLtMatrixLayoutDestroy", layout, LAYOUT);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t bytes)
{
    return attribute_set("cublasLtMatrixLayoutSetAttribute", layout, LAYOUT, layout_attributes, (int)name, value,
                         bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    const struct preference made = {
        .kind = PREFERENCE, .reduction = CUBLASLT_REDUCTION_SCHEME_MASK, .align = {256, 256, 256, 256}};
    ENTER("cublasLtMatmulPreferenceCreate");
    *out = object_new(&made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return object_free("cublasLtMatmulPreferenceDestroy", preference, PREFERENCE);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void *value,
                                                    size_t bytes)
{
    return attribute_set("cublasLtMatmulPreferenceSetAttribute", preference, PREFERENCE, preference_attributes,
                         (int)name, value, bytes);
}

/* ---- problems */

/* The four matrices and what is done with them; `shape` does not depend on addresses, alpha or beta. */
struct problem {
    const struct description *desc;
    const struct layout *a, *b, *c, *d;
    int64_t m, n, k;
    uint32_t shape;
};

static uint32_t hash_add(uint32_t hash, int64_t value)
{
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (uint32_t)(value >> 8 * i & 0xFF)) * 16777619U;
    return hash;
}

static uint32_t layout_hash(uint32_t hash, const struct layout *layout)
{
    hash = hash_add(hash_add(hash, layout->type), (int64_t)layout->rows);
    hash = hash_add(hash_add(hash, (int64_t)layout->columns), layout->ld);
    return hash_add(hash_add(hash, layout->batches), layout->stride);
}

/* Which combinations of types this library multiplies: fp32 with fp32, bf16 with bf16 into either. */
static bool types_known(const struct description *desc, const struct layout *a, const struct layout *b,
                        const struct layout *c, const struct layout *d)
{
    bool single = a->type == CUDA_R_32F && b->type == CUDA_R_32F && c->type == CUDA_R_32F;
    bool half = a->type == CUDA_R_16BF && b->type == CUDA_R_16BF && (c->type == CUDA_R_16BF || c->type == CUDA_R_32F);
    return desc->compute_type == CUBLAS_COMPUTE_32F && desc->scale_type == CUDA_R_32F && (single || half) &&
           c->type == d->type;
}

static bool epilogue_known(const struct description *desc, const struct layout *d)
{
    if (desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT)
        return true;
    if (desc->epilogue == CUBLASLT_EPILOGUE_DGELU)
        return desc->aux && desc->aux_ld % 8 == 0 && desc->aux_ld >= (int64_t)d->rows && d->batches == 1;
    return desc->epilogue == CUBLASLT_EPILOGUE_BIAS && (desc->bias_type == -1 || desc->bias_type == (int32_t)d->type);
}

static bool layout_good(const struct layout *layout, uint64_t rows, uint64_t columns, int32_t batches)
{
    return layout->rows == rows && layout->columns == columns && layout->ld >= (int64_t)rows &&
           layout->order == CUBLASLT_ORDER_COL && layout->batches == batches;
}

static cublasStatus_t problem_make(struct problem *out, const void *description, const void *a, const void *b,
                                   const void *c, const void *d)
{
    *out = (struct problem){.desc = description, .a = a, .b = b, .c = c, .d = d};
    if (!is_kind(description, DESC) || !is_kind(a, LAYOUT) || !is_kind(b, LAYOUT) || !is_kind(c, LAYOUT) ||
        !is_kind(d, LAYOUT))
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "a product without a description or a layout");
    const struct description *desc = description;
    bool trans_a = desc->trans_a == CUBLAS_OP_T, trans_b = desc->trans_b == CUBLAS_OP_T;
    uint64_t m = out->d->rows, n = out->d->columns, k = trans_a ? out->a->rows : out->a->columns;
    if ((!trans_a && desc->trans_a != CUBLAS_OP_N) || (!trans_b && desc->trans_b != CUBLAS_OP_N) ||
        desc->pointer_mode != CUBLASLT_POINTER_MODE_HOST || !types_known(desc, a, b, c, d) ||
        !epilogue_known(desc, d) || !m || !n || !k)
        REFUSE(CUBLAS_STATUS_NOT_SUPPORTED, "a product of types %u, %u, %u, %u, epilogue %u", out->a->type,
               out->b->type, out->c->type, out->d->type, desc->epilogue);
    int32_t batches = out->d->batches;
    if (!layout_good(a, trans_a ? k : m, trans_a ? m : k, batches) ||
        !layout_good(b, trans_b ? n : k, trans_b ? k : n, batches) || !layout_good(c, m, n, batches) ||
        !layout_good(d, m, n, batches))
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "a product whose matrices do not fit each other");
    out->m = (int64_t)m;
    out->n = (int64_t)n;
    out->k = (int64_t)k;
    uint32_t hash = hash_add(hash_add(hash_add(2166136261U, desc->trans_a), desc->trans_b), desc->epilogue);
    out->shape = layout_hash(layout_hash(layout_hash(layout_hash(hash, a), b), c), d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *returned)
{
    struct problem problem;
    const struct preference *wish = (const void *)preference;
    ENTER("cublasLtMatmulAlgoGetHeuristic");
    if (!is_kind(handle, HANDLE) || !is_kind(wish, PREFERENCE) || requested < 1 || !results || !returned)
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmulAlgoGetHeuristic: an argument is missing");
    *returned = 0;
    cublasStatus_t status = problem_make(&problem, description, a, b, c, d);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    struct algorithm chosen = {.kind = ALGORITHM, .shape = problem.shape};
    memcpy(chosen.align, wish->align, sizeof chosen.align);
    /* Long sums are split where there is room for their parts. */
    uint64_t parts = (uint64_t)(problem.m * problem.n * (int64_t)sizeof(float));
    if (problem.k >= SPLIT_K && parts <= wish->workspace && problem.d->batches == 1)
        chosen.workspace = parts;
    memset(&results[0], 0, sizeof results[0]);
    memcpy(&results[0].algo, &chosen, sizeof chosen);
    results[0].workspaceSize = (size_t)chosen.workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1;
    *returned = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products */

static size_t layout_bytes(const struct layout *layout)
{
    size_t elements = (size_t)(layout->ld * ((int64_t)layout->columns - 1)) + layout->rows;
    elements += (size_t)(layout->stride * (layout->batches - 1));
    return elements * (layout->type == CUDA_R_16BF ? 2 : 4);
}

static struct product_matrix matrix_of(const void *at, const struct layout *layout)
{
    return (struct product_matrix){(char *)(uintptr_t)at, layout->type == CUDA_R_16BF, layout->ld, layout->stride};
}

static cublasStatus_t operand_check(char name, const void *at, const struct layout *layout, uint32_t align)
{
    if (!emulation_is_device(at, layout_bytes(layout)))
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul: %c at %p is no device memory of %zu bytes", name, at,
               layout_bytes(layout));
    if ((uintptr_t)at % align)
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul: %c at %p, its alignment was promised to be %u", name, at,
               align);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t algorithm_check(const struct algorithm *algorithm, const struct problem *problem,
                                      const void *workspace, size_t workspace_bytes)
{
    if (!algorithm || algorithm->kind != ALGORITHM || algorithm->shape != problem->shape)
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul: the algorithm is none for this product");
    if (workspace_bytes < algorithm->workspace ||
        (workspace_bytes && !emulation_is_device(workspace, workspace_bytes)) || (uintptr_t)workspace % WORKSPACE_ALIGN)
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul: workspace %p of %zu bytes, expected %llu", workspace,
               workspace_bytes, (unsigned long long)algorithm->workspace);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t product_make(struct product *out, const struct problem *problem,
                                   const struct algorithm *algorithm, const void *const at[4])
{
    const struct layout *const layouts[] = {problem->a, problem->b, problem->c, problem->d};
    for (int i = 0; i < 4; i++) {
        if (i == 2 && out->beta == 0)
            continue;
        cublasStatus_t status = operand_check("ABCD"[i], at[i], layouts[i], algorithm -> align[i]);
        if (status != CUBLAS_STATUS_SUCCESS)
            return status;
    }
    const struct description *desc = problem->desc;
    struct layout aux = *problem->d; /* of gelu's input: another distance between columns, D's type */
    aux.ld = desc->aux_ld;
    out->dgelu = desc->epilogue == CUBLASLT_EPILOGUE_DGELU;
    if (out->dgelu) {
        cublasStatus_t status = operand_check('X', desc->aux, &aux, algorithm->align[3]);
        if (status != CUBLAS_STATUS_SUCCESS)
            return status;
        out->aux = matrix_of(desc->aux, &aux);
    }
    bool bias = desc->epilogue == CUBLASLT_EPILOGUE_BIAS;
    out->bias_bf16 = problem->d->type == CUDA_R_16BF;
    if (bias && !emulation_is_device(desc->bias, (size_t)problem->m * (out->bias_bf16 ? 2 : 4)))
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul: the bias at %p is no device memory", desc->bias);
    out->bias = bias ? desc->bias : NULL;
    out->trans_a = desc->trans_a == CUBLAS_OP_T;
    out->trans_b = desc->trans_b == CUBLAS_OP_T;
    out->m = problem->m;
    out->n = problem->n;
    out->k = problem->k;
    out->batches = problem->d->batches;
    out->a = matrix_of(at[0], problem->a);
    out->b = matrix_of(at[1], problem->b);
    out->c = matrix_of(at[2], problem->c);
    out->d = matrix_of(at[3], problem->d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b,
                              const void *beta, const void *C, cublasLtMatrixLayout_t c, void *D,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    struct problem problem;
    struct algorithm algorithm = {0};
    ENTER("cublasLtMatmul");
    if (!is_kind(handle, HANDLE) || !alpha || !beta || !algo)
        REFUSE(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul: an argument is missing");
    cublasStatus_t status = problem_make(&problem, description, a, b, c, d);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    memcpy(&algorithm, algo, sizeof algorithm);
    struct product product = {.alpha = *(const float *)alpha, .beta = *(const float *)beta};
    status = algorithm_check(&algorithm, &problem, workspace, workspace_bytes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = product_make(&product, &problem, &algorithm, (const void *const[]){A, B, C, D});
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    product.workspace = workspace;
    product.workspace_bytes = (int64_t)algorithm.workspace;
    emulation_count_product();
    _Static_assert(sizeof product <= EMULATION_ARGUMENT_BYTES, "what a stream takes");
    return emulation_enqueue(stream, "cublasLtMatmul", product_run, &product, sizeof product)
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}
