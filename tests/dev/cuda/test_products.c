/* Products, the head and attention of the CUDA device against the CPU device on the same numbers: fp32 to the error of
 * fp32 sums in another order; bf16 against the CPU device's fp32, so that a result is within one rounding of it. Every
 * call runs twice to the same bits, with guards behind all it writes. */
#include "dev/cuda/gpu.h"

#include <math.h>

#define S1(a) {1, {a, 0, 0, 0}}
#define S2(a, b) {2, {a, b, 0, 0}}
#define S3(a, b, c) {3, {a, b, c, 0}}

static const struct op_case linear_cases[] = {
    {"linear", AH_OP_LINEAR, {0}, {S3(2, 7, 20), S2(20, 13), S1(13)}, {0}, 0},
    {"linear without bias", AH_OP_LINEAR, {0}, {S3(2, 7, 21), S2(21, 13)}, {0}, 0},
    {"linear out_in", AH_OP_LINEAR, {.out_in = true}, {S3(2, 7, 20), S2(13, 20), S1(13)}, {0}, 0},
    {"linear of a sum in parts", AH_OP_LINEAR, {0}, {S2(70, 130), S2(130, 66), S1(66)}, {0}, 0},
    {"linear of one token", AH_OP_LINEAR, {0}, {S2(1, 20), S2(20, 1), S1(1)}, {0}, 0},
    {"linear_bwd_x", AH_OP_LINEAR_BWD_X, {0}, {S2(100, 77), S2(90, 77)}, {0}, 0},
    {"linear_bwd_x out_in", AH_OP_LINEAR_BWD_X, {.out_in = true}, {S2(9, 13), S2(13, 20)}, {0}, 0},
    {"linear_bwd_w", AH_OP_LINEAR_BWD_W, {0}, {S2(201, 53), S2(201, 90)}, {0}, 0},
    {"linear_bwd_w out_in", AH_OP_LINEAR_BWD_W, {.out_in = true}, {S3(3, 5, 53), S3(3, 5, 91)}, {0}, 0},
};

/* The second has several chunks and a rest, the third more than one and no rest, the last one token. */
static const struct op_case head_cases[] = {
    {"one chunk", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(3, 30, 70), S2(501, 70), S2(3, 30)}, {0}, 501},
    {"chunks and a rest", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(5, 31, 9), S2(30011, 9), S2(5, 31)}, {0}, 30011},
    {"a scale", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(2, 64, 8), S2(35001, 8), S2(2, 64), S1(1)}, {0}, 35001},
    {"one token", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(1, 1, 8), S2(7, 8), S2(1, 1)}, {0}, 7},
};

/* Heads of 64, 80, 96, 128, 256 channels and odd ones; lengths of a tile, one more, one less, and one. */
static const struct op_case attention_cases[] = {
    {"attention of 7", AH_OP_ATTENTION, {.heads = 3}, {S3(2, 7, 60 * 3)}, {0}, 0},
    {"attention of 130, head 5", AH_OP_ATTENTION, {.heads = 2}, {S3(1, 130, 10 * 3)}, {0}, 0},
    {"attention of 65, head 64", AH_OP_ATTENTION, {.heads = 2}, {S3(2, 65, 128 * 3)}, {0}, 0},
    {"attention of 1", AH_OP_ATTENTION, {.heads = 2}, {S3(2, 1, 8 * 3)}, {0}, 0},
    {"attention of 70, head 129", AH_OP_ATTENTION, {.heads = 1}, {S3(1, 70, 129 * 3)}, {0}, 0},
    {"attention_qkv of 66, head 80", AH_OP_ATTENTION_QKV, {.heads = 4, .kv_heads = 2},
     {S3(1, 66, 320), S3(1, 66, 160), S3(1, 66, 160)}, {0}, 0},
    {"attention_qkv of 64, head 96", AH_OP_ATTENTION_QKV, {.heads = 3, .kv_heads = 1},
     {S3(1, 64, 288), S3(1, 64, 96), S3(1, 64, 96)}, {0}, 0},
    {"attention_qkv of 63, head 128", AH_OP_ATTENTION_QKV, {.heads = 2, .kv_heads = 2},
     {S3(1, 63, 256), S3(1, 63, 256), S3(1, 63, 256)}, {0}, 0},
    {"attention_qkv of 66, head 256", AH_OP_ATTENTION_QKV, {.heads = 2, .kv_heads = 1},
     {S3(1, 66, 512), S3(1, 66, 256), S3(1, 66, 256)}, {0}, 0},
    {"attention_bwd of 130, head 40", AH_OP_ATTENTION_BWD, {.heads = 3},
     {S3(2, 130, 120), S3(2, 130, 360), S3(2, 130, 120), S3(2, 3, 130)}, {0}, 0},
    {"attention_bwd of 17, head 7", AH_OP_ATTENTION_BWD, {.heads = 5},
     {S3(3, 17, 35), S3(3, 17, 105), S3(3, 17, 35), S3(3, 5, 17)}, {0}, 0},
    {"attention_bwd of 1", AH_OP_ATTENTION_BWD, {.heads = 2}, {S3(1, 1, 16), S3(1, 1, 48), S3(1, 1, 16), S3(1, 2, 1)},
     {0}, 0},
    {"attention_bwd of 64, head 129", AH_OP_ATTENTION_BWD, {.heads = 1},
     {S3(1, 64, 129), S3(1, 64, 387), S3(1, 64, 129), S3(1, 1, 64)}, {0}, 0},
    {"attention_qkv_bwd of 70, head 80", AH_OP_ATTENTION_QKV_BWD, {.heads = 4, .kv_heads = 2},
     {S3(1, 70, 320), S3(1, 70, 320), S3(1, 70, 160), S3(1, 70, 160), S3(1, 70, 320), S3(1, 4, 70)}, {0}, 0},
    {"attention_qkv_bwd of 63, head 64", AH_OP_ATTENTION_QKV_BWD, {.heads = 3, .kv_heads = 1},
     {S3(2, 63, 192), S3(2, 63, 192), S3(2, 63, 64), S3(2, 63, 64), S3(2, 63, 192), S3(2, 3, 63)}, {0}, 0},
    {"attention_qkv_bwd of 65, head 256", AH_OP_ATTENTION_QKV_BWD, {.heads = 2, .kv_heads = 1},
     {S3(1, 65, 512), S3(1, 65, 512), S3(1, 65, 256), S3(1, 65, 256), S3(1, 65, 512), S3(1, 2, 65)}, {0}, 0},
};

/* One call three times over: on the GPU in `dtype`, and on the CPU device in fp32. */
struct pair {
    struct op_data gpu, cpu;
};

/* The same numbers in both, those that outputs hold when they are added to among them. */
static void pair_init(struct pair *p, const struct op_case *c, enum ah_dtype dtype)
{
    op_data_init_in(&p->gpu, c, dtype, 1);
    op_data_init_in(&p->cpu, c, AH_F32, 1);
    for (int i = 0; i < ah__op_table[c->op]->inputs; i++) {
        const struct ah_operand *from = &p->gpu.call.in[i], *to = &p->cpu.call.in[i];
        for (int64_t j = 0; from->space && to->meta.dtype == AH_F32 && j < ah__shape_count(&to->meta.shape); j++)
            operand_set(&p->cpu, to, j, operand_get(&p->gpu, from, j));
    }
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++)
        for (int64_t j = 0; c->attr.acc >> i & 1U && j < ah__shape_count(&p->gpu.call.out[i].meta.shape); j++) {
            operand_set(&p->gpu, &p->gpu.call.out[i], j, (float)ah__random_normal(77 + (uint64_t)i, (uint64_t)j));
            operand_set(&p->cpu, &p->cpu.call.out[i], j, operand_get(&p->gpu, &p->gpu.call.out[i], j));
        }
}

static void pair_fini(struct pair *p)
{
    op_data_fini(&p->gpu);
    op_data_fini(&p->cpu);
}

/* In bf16, what rounding logits and their gradients on the way moves (as in dev/cpu/test_bf16.c, from the same bound:
 * 2^-8 of the largest logit, and 2^-8). */
static double rounding_between(const struct op_data *full)
{
    const struct ah_operand *x = &full->call.in[0], *weight = &full->call.in[1];
    double largest = 0;
    int64_t channels = weight->meta.shape.dim[1];
    for (int64_t row = 0; row < ah__shape_rows(&x->meta.shape); row++)
        for (int64_t v = 0; v < weight->meta.shape.dim[0]; v++) {
            double logit = 0;
            for (int64_t i = 0; i < channels; i++)
                logit += (double)operand_get(full, x, row * channels + i) *
                         (double)operand_get(full, weight, v * channels + i);
            largest = fmax(largest, fabs(logit));
        }
    return 0x1p-8 * largest + 0x1p-8;
}

static void outputs_compare(const struct op_case *c, int output, const struct pair *p, double between)
{
    const struct ah_operand *got = &p->gpu.call.out[output], *want = &p->cpu.call.out[output];
    bool rounded = got->meta.dtype == AH_BF16;
    int64_t count = ah__shape_count(&want->meta.shape);
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)operand_get(&p->cpu, want, i)));
    for (int64_t i = 0; i < count; i++) {
        double x = (double)operand_get(&p->gpu, got, i), y = (double)operand_get(&p->cpu, want, i);
        if (!(fabs(x - y) <= (rounded ? 0x1p-8 * fabs(y) : 0) + between * largest))
            fail_msg("%s, acc %u, %s, output %d, element %lld: %.9g, on the CPU device %.9g", c->name,
                     (unsigned)c->attr.acc, ah__dtype_name(p->gpu.call.in[0].meta.dtype), output, (long long)i, x, y);
    }
}

static void case_check(struct test_gpu *gpu, struct ah_pool *pool, const struct op_case *c, enum ah_dtype dtype)
{
    struct pair p;
    pair_init(&p, c, dtype);
    gpu_run_twice(gpu, &p.gpu);
    assert_ok(call_run(pool, &p.cpu.call, p.cpu.base));
    bool head = c->op == AH_OP_LINEAR_CROSS_ENTROPY;
    double between = head && dtype == AH_BF16 ? rounding_between(&p.cpu) : 3e-6;
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++)
        if (ah__op_table[c->op]->out[i].kind != AH_OPERAND_SCRATCH)
            outputs_compare(c, i, &p, between);
    pair_fini(&p);
}

/* What an operator may be asked to add to. */
static unsigned adds_of(enum ah_op op)
{
    const struct ah_op_row *row = ah__op_table[op];
    unsigned adds = op == AH_OP_LINEAR_BWD_X ? 1 : 0;
    for (int output = 0; output < row->outputs; output++)
        adds |= (unsigned)(row->out[output].kind == AH_OPERAND_PARAM_GRADIENT) << output;
    return row->limit == AH_OP_LIMIT_ATTENTION_BWD ? (1U << row->outputs) - 1 : adds;
}

static void cases_check(const struct op_case *cases, size_t count)
{
    struct test_gpu gpu;
    struct test_pool p = pool_begin(1);
    gpu_begin(&gpu, 32 << 20);
    for (size_t i = 0; i < count; i++)
        for (int dtype = 0; dtype < 2; dtype++) {
            struct op_case c = cases[i];
            case_check(&gpu, p.pool, &c, dtype ? AH_BF16 : AH_F32);
            c.attr.acc = adds_of(c.op);
            if (c.attr.acc)
                case_check(&gpu, p.pool, &c, dtype ? AH_BF16 : AH_F32);
        }
    gpu_end(&gpu);
    pool_end(&p);
}

static void linear_layers_match_the_cpu_device(void **state)
{
    (void)state;
    cases_check(linear_cases, AH_LENGTH(linear_cases));
}

static void heads_match_the_cpu_device(void **state)
{
    (void)state;
    cases_check(head_cases, AH_LENGTH(head_cases));
}

static void attention_matches_the_cpu_device(void **state)
{
    (void)state;
    cases_check(attention_cases, AH_LENGTH(attention_cases));
}

/* ---- targets ------------------------------------------------------------------------------------------------------ */

static void target_set(struct op_data *data, int64_t token, int32_t id)
{
    ((int32_t *)operand_at(data, &data->call.in[2]))[token] = id;
}

/* Every third target, or all of them, or none. */
static void ignored_targets_do_not_count(void **state)
{
    (void)state;
    struct test_gpu gpu;
    struct test_pool p = pool_begin(1);
    gpu_begin(&gpu, 32 << 20);
    for (int every = 1; every <= 3; every += 2) {
        struct pair pair;
        pair_init(&pair, &head_cases[0], AH_F32);
        for (int64_t i = 0; i < 90; i += every) {
            target_set(&pair.gpu, i, AH_TARGET_IGNORED);
            target_set(&pair.cpu, i, AH_TARGET_IGNORED);
        }
        gpu_run_twice(&gpu, &pair.gpu);
        assert_ok(call_run(p.pool, &pair.cpu.call, pair.cpu.base));
        for (int i = 0; i < 4; i++)
            if (i != 1)
                outputs_compare(&head_cases[0], i, &pair, 3e-6);
        pair_fini(&pair);
    }
    gpu_end(&gpu);
    pool_end(&p);
}

static void a_target_that_is_no_class_makes_the_loss_nan(void **state)
{
    (void)state;
    struct test_gpu gpu;
    gpu_begin(&gpu, 32 << 20);
    static const int32_t ids[] = {-1, 501, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < AH_LENGTH(ids); i++) {
        struct op_data data;
        op_data_init_in(&data, &head_cases[0], AH_F32, 1);
        target_set(&data, 41, ids[i]);
        gpu_run_twice(&gpu, &data);
        assert_true(isnan((double)operand_get(&data, &data.call.out[0], 0)));
        op_data_fini(&data);
    }
    gpu_end(&gpu);
}

/* Evaluation wants the loss alone, a frozen head no gradient of its weight. */
static void a_head_makes_what_is_asked_for(void **state)
{
    (void)state;
    struct test_gpu gpu;
    struct test_pool p = pool_begin(1);
    gpu_begin(&gpu, 32 << 20);
    for (unsigned absent = 1; absent < 4; absent++) {
        struct pair pair;
        pair_init(&pair, &head_cases[1], AH_F32);
        for (int i = 0; i < 2; i++)
            if (absent >> i & 1U)
                pair.gpu.call.out[2 + i].space = pair.cpu.call.out[2 + i].space = AH_SPACE_NONE;
        gpu_run_twice(&gpu, &pair.gpu);
        assert_ok(call_run(p.pool, &pair.cpu.call, pair.cpu.base));
        for (int i = 0; i < 4; i++)
            if (i != 1 && pair.cpu.call.out[i].space)
                outputs_compare(&head_cases[1], i, &pair, 3e-6);
        pair_fini(&pair);
    }
    gpu_end(&gpu);
    pool_end(&p);
}

/* ---- refusals ----------------------------------------------------------------------------------------------------- */

static int prepare_case(struct test_gpu *gpu, const struct op_case *c)
{
    struct op_data data;
    struct ah_prepared *prepared = NULL;
    op_data_init_in(&data, c, AH_F32, 1);
    struct ah_program program = {.count = 1, .calls = &data.call};
    int status = gpu->dev->ops->prepare(gpu->dev, &program, &prepared);
    if (status == AH_OK)
        gpu->dev->ops->prepared_free(gpu->dev, prepared);
    op_data_fini(&data);
    return status;
}

static void heads_that_are_too_wide_are_refused(void **state)
{
    (void)state;
    struct test_gpu gpu;
    gpu_begin(&gpu, 1 << 20);
    const struct op_case wide = {"", AH_OP_ATTENTION, {.heads = 1}, {S3(1, 3, 257 * 3)}, {0}, 0};
    assert_fails(prepare_case(&gpu, &wide), AH_EDEVICE,
                 "cuda: call 0, attention: 257 channels in 1 heads, expected heads of at most 256 channels each");
    gpu_end(&gpu);
}

/* Whatever of the library's calls fails: one line with the product's shape, and nothing is left over. */
enum { NOT_SUPPORTED = 15 }; /* CUBLAS_STATUS_NOT_SUPPORTED */

static void failures_of_the_library_name_the_product(void **state)
{
    (void)state;
    static const char *const calls[] = {"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
                                        "cublasLtMatrixLayoutCreate",        "cublasLtMatmulPreferenceCreate",
                                        "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"};
    for (size_t i = 0; i < AH_LENGTH(calls); i++) {
        struct test_gpu gpu;
        gpu_begin(&gpu, 1 << 20);
        for (long nth = 1; nth <= 2; nth++) {
            emulation_fail(calls[i], nth, NOT_SUPPORTED);
            int status = prepare_case(&gpu, &head_cases[0]);
            assert_fails(status, AH_EDEVICE, calls[i]);
            assert_non_null(strstr(ah_error(), "product ["));
            emulation_reset();
        }
        gpu_end(&gpu);
    }
}

AH_TEST_SUITE("dev/cuda/products", cmocka_unit_test(linear_layers_match_the_cpu_device),
              cmocka_unit_test(heads_match_the_cpu_device), cmocka_unit_test(attention_matches_the_cpu_device),
              cmocka_unit_test(ignored_targets_do_not_count),
              cmocka_unit_test(a_target_that_is_no_class_makes_the_loss_nan),
              cmocka_unit_test(a_head_makes_what_is_asked_for),
              cmocka_unit_test(heads_that_are_too_wide_are_refused),
              cmocka_unit_test(failures_of_the_library_name_the_product))
