/* Products, the head and attention on the CUDA device: the shared cases, and others for what these change at. */
#include "dev/cuda/attention_cases.h"
#include "dev/cuda/emulated.h"
#include "dev/cuda/operators.h"
#include "dev/value_cases.h"

static const struct op_case linear_cases[] = {
    {"linear of one token", AH_OP_LINEAR, {0}, {S2(1, 20), S2(20, 1), S1(1)}, {0}, 0},
    {"linear of even sizes", AH_OP_LINEAR, {0}, {S2(64, 128), S2(128, 72), S1(72)}, {0}, 0},
    {"linear_bwd_x of one token", AH_OP_LINEAR_BWD_X, {0}, {S2(1, 7), S2(9, 7)}, {0}, 0},
    {"linear_bwd_w of one token", AH_OP_LINEAR_BWD_W, {0}, {S2(1, 53), S2(1, 90)}, {0}, 0},
};

/* Experts whose rows fill no tile, one tile, several, and whose tiles are cut off on each side; sizes of whole vectors
 * and others. */
static const struct op_case grouped_cases[] = {
    OP("grouped_linear, even", GROUPED_LINEAR, IN(S2(700, 72), S3(4, 136, 72), S1(4)), 0),
    OP("grouped_linear, odd", GROUPED_LINEAR, IN(S2(517, 37), S3(3, 261, 37), S1(3)), 0),
    OP("grouped_linear with biases, even", GROUPED_LINEAR, IN(S2(700, 72), S3(4, 136, 72), S1(4), S2(4, 136)), 0),
    OP("grouped_linear with biases, odd", GROUPED_LINEAR, IN(S2(517, 37), S3(3, 261, 37), S1(3), S2(3, 261)), 0),
    OP("grouped_linear of one row", GROUPED_LINEAR, IN(S2(1, 8), S3(40, 8, 8), S1(40)), 0),
    OP("grouped_linear of whole tiles", GROUPED_LINEAR, IN(S2(256, 64), S3(1, 128, 64), S1(1)), 0),
    OP("grouped_linear_bwd_x, even", GROUPED_LINEAR_BWD_X, IN(S2(700, 136), S3(4, 136, 72), S1(4)), 0),
    OP("grouped_linear_bwd_x, odd", GROUPED_LINEAR_BWD_X, IN(S2(517, 37), S3(3, 37, 261), S1(3)), 0),
    OP("grouped_linear_bwd_w, even", GROUPED_LINEAR_BWD_W, IN(S2(700, 136), S2(700, 72), S1(4)), 0),
    OP("grouped_linear_bwd_w, odd", GROUPED_LINEAR_BWD_W, IN(S2(517, 261), S2(517, 37), S1(3)), 0),
    OP("grouped_linear_bwd_w of one row", GROUPED_LINEAR_BWD_W, IN(S2(1, 8), S2(1, 8), S1(40)), 0),
};

/* One chunk; more rows than the operator's chunk has; several of the device's own chunks and a rest; a scale from
 * outside; one token. */
static const struct op_case head_cases[] = {
    {"one chunk", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(3, 30, 70), S2(501, 70), S2(3, 30)}, {0}, 501},
    {"chunks and a rest", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(5, 31, 9), S2(30011, 9), S2(5, 31)}, {0}, 30011},
    {"own chunks and a rest", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(3, 1490, 8), S2(1001, 8), S2(3, 1490)}, {0}, 1001},
    {"a scale", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(2, 64, 8), S2(501, 8), S2(2, 64), S1(1)}, {0}, 501},
    /* more than a chunk of 132 multiprocessors; not in a sample */
    {"a large GPU's chunks", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(1, 34001, 8), S2(65, 8), S2(1, 34001)}, {0}, 65},
    {"few tokens", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(1, 5, 16), S2(509, 16), S2(1, 5)}, {0}, 509},
    {"classes without padding, capped",
     AH_OP_LINEAR_CROSS_ENTROPY,
     {.cap = 0.75F},
     {S3(2, 30, 16), S2(7, 16), S2(2, 30)},
     {0},
     7},
    {"one token", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(1, 1, 8), S2(7, 8), S2(1, 1)}, {0}, 7},
};

/* Sums of products have another order, and so have attention's exponentials: errors of a few 2^-24 of the sums of
 * magnitudes, which with random operands are near the largest result. */
static struct bound bound_of(enum ah_op op)
{
    return (struct bound){.of_largest = 3e-6, .out_of = 30};
}

/* In fp32, sums over all classes, or over all tokens, that are made one term after the other drift by the root of their
 * number in roundings, or by four times that where there are thousands of such sums. In bf16, logits are rounded on the
 * way, and so are their gradients: the largest, z, by 2^-9 |z|, on either side, which moves every probability of its
 * row by up to twice that part of it. */
static struct bound head_bound(const struct op_case *c, enum ah_dtype dtype)
{
    struct op_data data;
    double largest = 0;
    operator_init(&data, c, dtype, NULL);
    const struct ah_operand *x = &data.call.in[0], *weight = &data.call.in[1];
    int64_t channels = weight->meta.shape.dim[1], classes = weight->meta.shape.dim[0];
    int64_t tokens = ah__shape_rows(&x->meta.shape), terms = tokens > classes ? tokens : classes;
    for (int64_t row = 0; dtype == AH_BF16 && row < tokens; row++)
        for (int64_t v = 0; v < classes; v++) {
            double logit = 0;
            for (int64_t i = 0; i < channels; i++)
                logit += (double)operand_get(&data, x, row * channels + i) *
                         (double)operand_get(&data, weight, v * channels + i);
            largest = fmax(largest, fabs(logit));
        }
    op_data_fini(&data);
    if (dtype == AH_BF16)
        return (struct bound){.of_value = 0x1p-7, .of_largest = 0x1p-8 * (largest + 1)};
    return (struct bound){.of_largest = 3e-6 + 0x1p-22 * sqrt((double)terms)};
}

static void head_check(struct device_pair *p, const struct op_case *c)
{
    for (int i = 0; i < 2; i++) {
        enum ah_dtype dtype = i ? AH_BF16 : AH_F32;
        struct op_case adding = *c;
        struct bound bound = head_bound(c, dtype);
        adding.attr.acc = op_adds(c->op);
        operator_check(p, c, dtype, bound, NULL);
        operator_check(p, &adding, dtype, bound, NULL);
    }
}

/* Attention by own kernels, whose bounds these are: test_cudnn.c has the library's. */
static void cases_check(const struct op_case *cases, size_t count)
{
    setenv("AUTOHETE_CUDA_ATTENTION", "own", 1);
    struct device_pair p = device_pair_open();
    unsetenv("AUTOHETE_CUDA_ATTENTION");
    for (size_t i = 0; i < count; i += ah_test_samples() ? 3 : 1) {
        enum ah_op_limit limit = ah__op_table[cases[i].op]->limit;
        if (cases[i].op == AH_OP_LINEAR_CROSS_ENTROPY)
            head_check(&p, &cases[i]);
        else if (limit != AH_OP_LIMIT_MEMORY)
            operator_check_all(&p, &cases[i], i, bound_of);
    }
    device_pair_close(&p);
    emulated_assert_clean();
}

static void products_agree_with_the_cpu(void **state)
{
    cases_check(value_cases, AH_LENGTH(value_cases));
}

static void other_products_agree_with_the_cpu(void **state)
{
    cases_check(linear_cases, AH_LENGTH(linear_cases));
}

static void grouped_products_agree_with_the_cpu(void **state)
{
    cases_check(grouped_cases, AH_LENGTH(grouped_cases));
}

/* ---- divisions of rows ------------------------------------------------------------------------------------------- */

static void ends_set(struct op_data *data, const int32_t *counts)
{
    int32_t *ends = operand_at(data, &data->call.in[2]), end = 0;
    for (int64_t e = 0; e < data->call.in[2].meta.shape.dim[0]; e++)
        ends[e] = end += counts[e];
}

static void first_has_all(struct op_data *data)
{
    ends_set(data, (const int32_t[]){400, 0, 0, 0, 0, 0});
}

static void last_has_all(struct op_data *data)
{
    ends_set(data, (const int32_t[]){0, 0, 0, 0, 0, 400});
}

/* Whole tiles, one row more and one less; none before, between and behind. */
static void ends_are_of_tiles(struct op_data *data)
{
    ends_set(data, (const int32_t[]){0, 128, 0, 129, 143, 0});
}

static void ends_are_beside_tiles(struct op_data *data)
{
    ends_set(data, (const int32_t[]){127, 1, 1, 127, 0, 144});
}

static void any_division_of_rows_agrees_with_the_cpu(void **state)
{
    static const struct op_case cases[] = {
        OP("grouped_linear", GROUPED_LINEAR, IN(S2(400, 24), S3(6, 136, 24), S1(6)), 0),
        OP("grouped_linear_bwd_x", GROUPED_LINEAR_BWD_X, IN(S2(400, 24), S3(6, 24, 136), S1(6)), 0),
        OP("grouped_linear_bwd_w", GROUPED_LINEAR_BWD_W, IN(S2(400, 24), S2(400, 136), S1(6)), 0),
        OP("grouped_linear_bwd_w, adding", GROUPED_LINEAR_BWD_W, IN(S2(400, 24), S2(400, 136), S1(6)), .acc = 1),
    };
    operator_change *const divisions[] = {first_has_all, last_has_all, ends_are_of_tiles, ends_are_beside_tiles};
    struct device_pair p = device_pair_open();
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        for (size_t j = 0; j < AH_LENGTH(divisions); j++)
            if (!ah_test_samples() || i % 4 == j)
                for (int dtype = 0; dtype < 2; dtype++)
                    operator_check(&p, &cases[i], dtype ? AH_BF16 : AH_F32, bound_of(cases[i].op), divisions[j]);
    device_pair_close(&p);
}

static void heads_agree_with_the_cpu(void **state)
{
    cases_check(head_cases, AH_LENGTH(head_cases));
}

/* A GPU with memory for no more logits than the operator's chunk has. */
static void a_head_on_a_small_gpu_agrees_with_the_cpu(void **state)
{
    if (getenv("AH_TEST_GPU"))
        skip();
    setenv("AUTOHETE_EMULATION_MEMORY", "268435456", 1);
    struct device_pair p = device_pair_open();
    head_check(&p, &head_cases[1]);
    device_pair_close(&p);
    unsetenv("AUTOHETE_EMULATION_MEMORY");
}

static void attention_agrees_with_the_cpu(void **state)
{
    cases_check(attention_cases, AH_LENGTH(attention_cases));
}

/* Attention's copies: one for each 64 channels of a head, with a cap or none; each with whole tiles and vectors, and
 * with rests, documents and a window. */
enum { COPIES = 4 * 2 * 2 * 2 };

static struct op_case copy_case(size_t number)
{
    int64_t blocks = 1 + (int64_t)number % 4;
    bool capped = number / 4 % 2, rests = number / 8 % 2, backward = number / 16;
    int64_t head = 64 * blocks - (rests ? 5 : 0), seq = rests ? 71 : 128;
    struct ah_shape q = S3(1, seq, 2 * head), k = S3(1, seq, head), lse = S3(1, 2, seq), positions = S2(1, seq);
    struct op_case c = {.name = backward ? "backward of every copy" : "every copy",
                        .op = backward ? AH_OP_ATTENTION_QKV_BWD : AH_OP_ATTENTION_QKV,
                        .attr = {.heads = 2, .kv_heads = 1, .cap = capped ? 0.5F : 0, .window = rests ? 40 : 0}};
    const struct ah_shape forth[] = {q, k, k, positions}, back[] = {q, q, k, k, q, lse, positions};
    if (backward)
        memcpy(c.in, back, sizeof back - (rests ? 0 : sizeof positions));
    else
        memcpy(c.in, forth, sizeof forth - (rests ? 0 : sizeof positions));
    return c;
}

static void every_copy_of_attention_agrees_with_the_cpu(void **state)
{
    (void)state;
    struct op_case cases[COPIES];
    for (size_t i = 0; i < COPIES; i++)
        cases[i] = copy_case(i);
    cases_check(cases, COPIES);
}

/* ---- targets ----------------------------------------------------------------------------------------------------- */

static int32_t *targets_of(struct op_data *data)
{
    return operand_at(data, &data->call.in[2]);
}

static void ignore_every_third(struct op_data *data)
{
    for (int i = 0; i < 90; i += 3)
        targets_of(data)[i] = AH_TARGET_IGNORED;
}

static void ignore_all(struct op_data *data)
{
    for (int i = 0; i < 90; i++)
        targets_of(data)[i] = AH_TARGET_IGNORED;
}

static void ignored_targets_do_not_count(void **state)
{
    struct device_pair p = device_pair_open();
    operator_check(&p, &head_cases[0], AH_F32, head_bound(&head_cases[0], AH_F32), ignore_every_third);
    operator_check(&p, &head_cases[0], AH_F32, head_bound(&head_cases[0], AH_F32), ignore_all);
    device_pair_close(&p);
}

static void a_target_that_is_no_class_makes_the_loss_nan(void **state)
{
    static const int32_t ids[] = {-1, 501, INT32_MAX, INT32_MIN};
    struct test_device gpu = test_device_open("cuda");
    for (size_t i = 0; i < AH_LENGTH(ids); i++) {
        struct op_data data;
        op_data_init_in(&data, &head_cases[0], AH_F32, 1);
        targets_of(&data)[41] = ids[i];
        struct ah_program program = {.count = 1, .calls = &data.call};
        test_device_run(&gpu, &program, data.memory, data.bytes, 0);
        assert_true(isnan((double)operand_get(&data, &data.call.out[0], 0)));
        op_data_fini(&data);
    }
    test_device_close(&gpu);
}

/* ---- what is not asked for --------------------------------------------------------------------------------------- */

static void without_dx(struct op_data *data)
{
    data->call.out[2].space = AH_SPACE_NONE;
}

static void without_dweight(struct op_data *data)
{
    data->call.out[3].space = AH_SPACE_NONE;
}

static void without_gradients(struct op_data *data)
{
    without_dx(data);
    without_dweight(data);
}

/* Evaluation wants the loss alone, a frozen head no gradient of its weight. */
static void a_head_makes_what_is_asked_for(void **state)
{
    operator_change *const changes[] = {without_dx, without_dweight, without_gradients};
    struct device_pair p = device_pair_open();
    for (size_t i = 0; i < AH_LENGTH(changes); i++)
        operator_check(&p, &head_cases[1], AH_F32, head_bound(&head_cases[1], AH_F32), changes[i]);
    device_pair_close(&p);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static int prepare_case(struct test_device *gpu, const struct op_case *c)
{
    struct op_data data;
    struct ah_prepared *prepared = NULL;
    op_data_init_in(&data, c, AH_F32, 1);
    struct ah_program program = {.count = 1, .calls = &data.call};
    int status = gpu->dev->ops->prepare(gpu->dev, &program, &prepared);
    gpu->dev->ops->prepared_free(gpu->dev, prepared);
    op_data_fini(&data);
    return status;
}

static void heads_that_are_too_wide_are_refused(void **state)
{
    const struct op_case wide = {"", AH_OP_ATTENTION, {.heads = 1}, {S3(1, 3, 257 * 3)}, {0}, 0};
    struct test_device gpu = test_device_open("cuda");
    assert_fails(prepare_case(&gpu, &wide), AH_EDEVICE,
                 "cuda: call 0, attention: 257 channels in 1 heads, expected heads of at most 256 channels each");
    test_device_close(&gpu);
}

/* Whatever of the library's calls fails: one line with the product's shape, and nothing is left over. */
static void failures_of_the_library_name_the_product(void **state)
{
    enum { NOT_SUPPORTED = 15, MOST = 40 }; /* CUBLAS_STATUS_NOT_SUPPORTED; more than a head has calls of a kind */
    static const char *const calls[] = {
        "cublasLtMatmulDescCreate",       "cublasLtMatmulDescSetAttribute",       "cublasLtMatrixLayoutCreate",
        "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"};
    if (getenv("AH_TEST_GPU")) /* a real library does not fail on demand */
        skip();
    for (size_t i = 0; i < AH_LENGTH(calls); i++) {
        struct test_device gpu = test_device_open("cuda");
        int status = AH_EDEVICE;
        long nth = 0;
        while (status != AH_OK && ++nth < MOST) {
            emulation_fail(calls[i], nth, NOT_SUPPORTED);
            status = prepare_case(&gpu, &head_cases[1]);
            if (status != AH_OK) {
                assert_fails(status, AH_EDEVICE, calls[i]);
                assert_non_null(strstr(ah_error(), "; product ["));
            }
            emulation_reset();
        }
        assert_in_range(nth, 2, MOST - 1);
        test_device_close(&gpu);
        assert_int_equal(emulation_alive(), 0);
    }
}

AH_TEST_CASES("dev/cuda/products", products_agree_with_the_cpu, other_products_agree_with_the_cpu,
              grouped_products_agree_with_the_cpu, any_division_of_rows_agrees_with_the_cpu, heads_agree_with_the_cpu,
              a_head_on_a_small_gpu_agrees_with_the_cpu, attention_agrees_with_the_cpu,
              every_copy_of_attention_agrees_with_the_cpu, ignored_targets_do_not_count,
              a_target_that_is_no_class_makes_the_loss_nan, a_head_makes_what_is_asked_for,
              heads_that_are_too_wide_are_refused, failures_of_the_library_name_the_product)
