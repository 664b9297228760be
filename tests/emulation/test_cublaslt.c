/* cuBLASLt's stand-in: products against sums in double, and what it refuses. */
#include "rig.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "op/bf16.h"
#include "test_paths.h"

#define FUNCTIONS(X)                                                                                                   \
    X(cublasLtCreate)                                                                                                  \
    X(cublasLtDestroy)                                                                                                 \
    X(cublasLtMatmul)                                                                                                  \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    X(cublasLtMatmulDescCreate)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                                       \
    X(cublasLtMatmulDescSetAttribute)                                                                                  \
    X(cublasLtMatmulPreferenceCreate)                                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                                 \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    X(cublasLtMatrixLayoutCreate)                                                                                      \
    X(cublasLtMatrixLayoutDestroy)                                                                                     \
    X(cublasLtGetStatusString)

static struct {
    void *library;
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} lt;

static void library_open(void)
{
    lt.library = dlopen(AH_TEST_EMULATION "/libraries/libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!lt.library)
        fail_msg("%s", dlerror());
#define FIND(name)                                                                                                     \
    void *name##_symbol = dlsym(lt.library, #name);                                                                    \
    memcpy(&lt.name, &name##_symbol, sizeof lt.name);                                                                  \
    assert_non_null(name##_symbol);
    FUNCTIONS(FIND)
#undef FIND
}

/* D = op(A) op(B) + beta D + bias, by columns. */
struct product {
    bool trans_a, trans_b, bias;
    cudaDataType_t type, d_type;
    int64_t m, n, k, lda, ldb, ldd;
    float beta;
};

struct plan {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    cublasStatus_t status; /* of the heuristic */
};

#define assert_lt(call) assert_int_equal(call, CUBLAS_STATUS_SUCCESS)

static void desc_set(struct plan *plan, cublasLtMatmulDescAttributes_t name, const void *value, size_t bytes)
{
    assert_lt(lt.cublasLtMatmulDescSetAttribute(plan->desc, name, value, bytes));
}

static void plan_open(struct plan *plan, const struct product *p, const void *bias, uint32_t align)
{
    int32_t trans_a = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, trans_b = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t epilogue = p->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    uint64_t workspace = RIG_BYTES / 2;
    int count;
    memset(plan, 0, sizeof *plan);
    assert_lt(lt.cublasLtCreate(&plan->handle));
    assert_lt(lt.cublasLtMatmulDescCreate(&plan->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    desc_set(plan, CUBLASLT_MATMUL_DESC_TRANSA, &trans_a, sizeof trans_a);
    desc_set(plan, CUBLASLT_MATMUL_DESC_TRANSB, &trans_b, sizeof trans_b);
    desc_set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    desc_set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    uint64_t a_rows = (uint64_t)(p->trans_a ? p->k : p->m), a_cols = (uint64_t)(p->trans_a ? p->m : p->k);
    uint64_t b_rows = (uint64_t)(p->trans_b ? p->n : p->k), b_cols = (uint64_t)(p->trans_b ? p->k : p->n);
    assert_lt(lt.cublasLtMatrixLayoutCreate(&plan->a, p->type, a_rows, a_cols, p->lda));
    assert_lt(lt.cublasLtMatrixLayoutCreate(&plan->b, p->type, b_rows, b_cols, p->ldb));
    assert_lt(lt.cublasLtMatrixLayoutCreate(&plan->d, p->d_type, (uint64_t)p->m, (uint64_t)p->n, p->ldd));
    assert_lt(lt.cublasLtMatmulPreferenceCreate(&plan->preference));
    assert_lt(lt.cublasLtMatmulPreferenceSetAttribute(plan->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                      &workspace, sizeof workspace));
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (int i = 0; i < 4; i++)
        assert_lt(lt.cublasLtMatmulPreferenceSetAttribute(plan->preference, aligned[i], &align, sizeof align));
    plan->status = lt.cublasLtMatmulAlgoGetHeuristic(plan->handle, plan->desc, plan->a, plan->b, plan->d, plan->d,
                                                     plan->preference, 1, &plan->found, &count);
}

static void plan_close(struct plan *plan)
{
    assert_lt(lt.cublasLtMatmulPreferenceDestroy(plan->preference));
    assert_lt(lt.cublasLtMatrixLayoutDestroy(plan->a));
    assert_lt(lt.cublasLtMatrixLayoutDestroy(plan->b));
    assert_lt(lt.cublasLtMatrixLayoutDestroy(plan->d));
    assert_lt(lt.cublasLtMatmulDescDestroy(plan->desc));
    assert_lt(lt.cublasLtDestroy(plan->handle));
}

/* Where the operands lie in the first buffer of the rig, in elements of 4 bytes; the workspace is the second buffer. */
enum { A = 0, B = 4096, BIAS = 8192, D = 12288 };

static cublasStatus_t plan_run(struct plan *plan, struct rig *rig, float beta, size_t workspace_bytes)
{
    const float alpha = 1;
    float *a = rig->device + A, *b = rig->device + B, *d = rig->device + D;
    return lt.cublasLtMatmul(plan->handle, plan->desc, &alpha, a, plan->a, b, plan->b, &beta, d, plan->d, d, plan->d,
                             &plan->found.algo, rig->device2, workspace_bytes, rig->stream);
}

static float number(int at)
{
    return (float)((int)(ah__random_bits(7, (uint64_t)at) % 33) - 16) / 8; /* of few bits: exact in bf16, too */
}

static void element_put(void *to, cudaDataType_t type, int64_t at, float value)
{
    if (type == CUDA_R_16BF)
        ((uint16_t *)to)[at] = ah__bf16_of(value);
    else
        ((float *)to)[at] = value;
}

static float element_get(const void *from, cudaDataType_t type, int64_t at)
{
    return type == CUDA_R_16BF ? ah__bf16_value(((const uint16_t *)from)[at]) : ((const float *)from)[at];
}

static void operands_fill(struct rig *rig, const struct product *p)
{
    for (int i = 0; i < 4096; i++) {
        element_put(rig->pinned + A, p->type, i, number(i));
        element_put(rig->pinned + B, p->type, i, number(i + 5000));
        element_put(rig->pinned + BIAS, p->d_type, i, number(i + 10000));
        element_put(rig->pinned + D, p->d_type, i, number(i + 15000));
    }
    assert_cuda(cudaMemcpyAsync(rig->device, rig->pinned, RIG_BYTES, cudaMemcpyHostToDevice, rig->stream));
}

static void product_check(const struct rig *rig, const struct product *p)
{
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t i = 0; i < p->ldd; i++) {
            double sum = 0, old = number((int)(j * p->ldd + i) + 15000);
            for (int64_t l = 0; l < p->k && i < p->m; l++)
                sum += (double)number((int)(p->trans_a ? i * p->lda + l : l * p->lda + i)) *
                       (double)number((int)(p->trans_b ? l * p->ldb + j : j * p->ldb + l) + 5000);
            sum += (double)p->beta * old + (p->bias ? (double)number((int)i + 10000) : 0);
            double expected = i < p->m ? sum : old; /* what lies between columns stays */
            double got = (double)element_get(rig->pinned + D, p->d_type, j * p->ldd + i);
            assert_true(fabs(got - expected) <= fabs(expected) * (p->d_type == CUDA_R_16BF ? 0x1p-8 : 1e-6));
        }
}

static void products_are_sums_of_products(void **state)
{
    static const struct product products[] = {
        {false, false, false, CUDA_R_32F, CUDA_R_32F, 5, 7, 11, 5, 11, 5, 0},
        {true, false, true, CUDA_R_32F, CUDA_R_32F, 5, 7, 11, 12, 13, 6, 0},
        {false, true, false, CUDA_R_32F, CUDA_R_32F, 16, 9, 70, 20, 10, 17, 1},
        {true, true, true, CUDA_R_32F, CUDA_R_32F, 1, 33, 8, 8, 33, 1, 1},
        {false, false, true, CUDA_R_16BF, CUDA_R_16BF, 24, 8, 96, 24, 96, 24, 0},
        {true, false, false, CUDA_R_16BF, CUDA_R_16BF, 24, 8, 96, 96, 96, 25, 1},
        {false, true, false, CUDA_R_16BF, CUDA_R_32F, 24, 8, 96, 24, 8, 24, 1},
        {true, false, true, CUDA_R_16BF, CUDA_R_32F, 3, 2, 1, 1, 1, 3, 0},
    };
    library_open();
    for (size_t i = 0; i < AH_LENGTH(products); i++) {
        struct rig rig;
        struct plan plan;
        rig_open(&rig);
        operands_fill(&rig, &products[i]);
        plan_open(&plan, &products[i], rig.device + BIAS, 256);
        assert_lt(plan.status);
        assert_true(plan.found.workspaceSize == 0 || products[i].k >= 64);
        assert_lt(plan_run(&plan, &rig, products[i].beta, RIG_BYTES));
        rig_read(&rig, rig.device, RIG_BYTES);
        product_check(&rig, &products[i]);
        plan_close(&plan);
        rig_close(&rig);
    }
    dlclose(lt.library);
}

static void what_was_promised_is_checked(void **state)
{
    const struct product fits = {false, false, false, CUDA_R_32F, CUDA_R_32F, 16, 16, 64, 16, 64, 16, 0};
    const struct product other = {false, false, false, CUDA_R_32F, CUDA_R_32F, 16, 15, 64, 16, 64, 16, 0};
    struct rig rig;
    struct plan plan, another;
    const float one = 1, zero = 0;
    library_open();
    rig_open(&rig);
    operands_fill(&rig, &fits);
    plan_open(&plan, &fits, NULL, 16);
    plan_open(&another, &other, NULL, 16);
    size_t needed = plan.found.workspaceSize;
    assert_true(needed > 0);
    assert_int_equal(plan_run(&plan, &rig, 0, needed - 1), CUBLAS_STATUS_INVALID_VALUE);
    cublasLtMatmulHeuristicResult_t found = plan.found;
    plan.found = another.found;
    assert_int_equal(plan_run(&plan, &rig, 0, needed), CUBLAS_STATUS_INVALID_VALUE);
    assert_non_null(strstr(emulation_message(), "the algorithm is none for this product"));
    plan.found = found;
    assert_int_equal(lt.cublasLtMatmul(plan.handle, plan.desc, &one, rig.device + 1, plan.a, rig.device + B, plan.b,
                                       &zero, rig.device + D, plan.d, rig.device + D, plan.d, &found.algo, rig.device2,
                                       needed, rig.stream),
                     CUBLAS_STATUS_INVALID_VALUE);
    assert_non_null(strstr(emulation_message(), "its alignment was promised to be 16"));
    assert_int_equal(lt.cublasLtMatmul(plan.handle, plan.desc, &one, rig.pinned, plan.a, rig.device + B, plan.b, &zero,
                                       rig.device + D, plan.d, rig.device + D, plan.d, &found.algo, rig.device2, needed,
                                       rig.stream),
                     CUBLAS_STATUS_INVALID_VALUE);
    int32_t wrong = 1;
    assert_int_equal(lt.cublasLtMatmulDescSetAttribute(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, &wrong, 8),
                     CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(lt.cublasLtMatmulDescSetAttribute(plan.desc, CUBLASLT_MATMUL_DESC_FILL_MODE, &wrong, 4),
                     CUBLAS_STATUS_INVALID_VALUE);
    plan_close(&plan);
    plan_close(&another);
    rig_close(&rig);
    dlclose(lt.library);
}

static void what_it_does_not_know_it_refuses(void **state)
{
    static const struct {
        struct product product;
        cublasStatus_t status;
    } cases[] = {
        {{false, false, false, CUDA_R_64F, CUDA_R_64F, 4, 4, 4, 4, 4, 4, 0}, CUBLAS_STATUS_NOT_SUPPORTED},
        {{false, false, false, CUDA_R_32F, CUDA_R_16BF, 4, 4, 4, 4, 4, 4, 0}, CUBLAS_STATUS_NOT_SUPPORTED},
        {{false, false, false, CUDA_R_32F, CUDA_R_32F, 4, 4, 4, 3, 4, 4, 0}, CUBLAS_STATUS_INVALID_VALUE},
    };
    struct rig rig;
    struct plan plan;
    library_open();
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        rig_open(&rig);
        plan_open(&plan, &cases[i].product, NULL, 4);
        assert_int_equal(plan.status, cases[i].status);
        assert_non_null(lt.cublasLtGetStatusString(plan.status));
        plan_close(&plan);
        rig_close(&rig);
    }
    dlclose(lt.library);
}

static void its_objects_are_counted(void **state)
{
    struct emulation_counts counts;
    cublasLtHandle_t handle = NULL;
    library_open();
    emulation_reset();
    emulation_fail("cublasLtCreate", 1, CUBLAS_STATUS_ALLOC_FAILED);
    assert_int_equal(lt.cublasLtCreate(&handle), CUBLAS_STATUS_ALLOC_FAILED);
    assert_null(handle);
    assert_lt(lt.cublasLtCreate(&handle));
    emulation_counts(&counts);
    assert_int_equal(counts.library_objects, 1);
    assert_int_equal(counts.calls_after_failure, 1);
    assert_lt(lt.cublasLtDestroy(handle));
    assert_int_equal(emulation_alive(), 0);
    emulation_reset();
    dlclose(lt.library);
}

AH_TEST_CASES("emulation/cublaslt", products_are_sums_of_products, what_was_promised_is_checked,
              what_it_does_not_know_it_refuses, its_objects_are_counted)
