/* The operators without products and attention, on the CUDA device. */
#include "dev/bit_cases.h"
#include "dev/cuda/operators.h"
#include "dev/value_cases.h"

#include <stdio.h>

/* What the shared tables leave out: the widths and lengths at which these kernels change what they do. */
static const struct op_case cuda_cases[] = {
    OP_IDS("embedding of 64", EMBEDDING, 40, IN(S2(40, 64), S2(3, 50)), 0),
    {"embedding_bwd, even", AH_OP_EMBEDDING_BWD, {0}, {S3(2, 150, 64), S2(2, 150)}, S2(40, 64), 40},
    {"embedding_bwd of one token", AH_OP_EMBEDDING_BWD, {0}, {S3(1, 1, 8), S2(1, 1)}, S2(3, 8), 3},
    {"embedding_bwd of one id", AH_OP_EMBEDDING_BWD, {0}, {S3(1, 300, 24), S2(1, 300)}, S2(5, 24), 1},
    {"embedding_bwd of 3000", AH_OP_EMBEDDING_BWD, {0}, {S3(3, 1000, 16), S2(3, 1000)}, S2(5000, 16), 5000},
    {"embedding_bwd of 4500 in 9", AH_OP_EMBEDDING_BWD, {0}, {S3(3, 1500, 8), S2(3, 1500)}, S2(20, 8), 9},
    {"embedding_bwd of 1100 channels", AH_OP_EMBEDDING_BWD, {0}, {S3(1, 70, 1104), S2(1, 70)}, S2(20, 1104), 20},
    OP("add_position, even", ADD_POSITION, IN(S3(3, 65, 64), S2(65, 64)), 0),
    {"position_bwd, even", AH_OP_POSITION_BWD, {0}, {S3(3, 65, 64)}, S2(80, 64), 0},
    OP("add_position from 2, even", ADD_POSITION, IN(S3(3, 65, 64), S2(70, 64)), .first = 2),
    OP("add_position from 1, odd start", ADD_POSITION, IN(S3(3, 8, 6), S2(9, 6)), .first = 1),
    {"position_bwd from 2, even", AH_OP_POSITION_BWD, {.first = 2}, {S3(3, 65, 64)}, S2(80, 64), 0},
    OP("rmsnorm of 128 of 512", RMSNORM, IN(S2(20, 512), S1(128)), .eps = 1e-5F),
    {"position_bwd of 1", AH_OP_POSITION_BWD, {0}, {S3(1, 1, 1)}, S2(2, 1), 0},
    OP("layernorm of 768", LAYERNORM, IN(S2(9, 768), S1(768), S1(768)), .eps = 1e-5F),
    OP("layernorm of 4104", LAYERNORM, IN(S2(3, 4104), S1(4104), S1(4104)), .eps = 1e-5F),
    OP("layernorm of 4097", LAYERNORM, IN(S2(2, 4097), S1(4097), S1(4097)), .eps = 1e-5F),
    OP("layernorm of 16384", LAYERNORM, IN(S2(2, 16384), S1(16384), S1(16384)), .eps = 1e-5F),
    OP("layernorm of 8193", LAYERNORM, IN(S2(2, 8193), S1(8193), S1(8193)), .eps = 1e-5F),
    OP("rmsnorm of 512", RMSNORM, IN(S2(20, 512), S1(512)), .eps = 1e-5F),
    OP("rmsnorm of 9000", RMSNORM, IN(S2(2, 9000), S1(9000)), .eps = 1e-5F),
    OP("layernorm_bwd of 768", LAYERNORM_BWD, IN(S2(230, 768), S2(230, 768), S1(768), S1(230), S1(230)), .eps = 1e-5F),
    OP("layernorm_bwd of 1", LAYERNORM_BWD, IN(S2(3, 1), S2(3, 1), S1(1), S1(3), S1(3)), .eps = 1e-5F),
    OP("layernorm_bwd of 2304", LAYERNORM_BWD, IN(S2(5, 2304), S2(5, 2304), S1(2304), S1(5), S1(5)), .eps = 1e-5F),
    OP("layernorm_bwd of 5000", LAYERNORM_BWD, IN(S2(3, 5000), S2(3, 5000), S1(5000), S1(3), S1(3)), .eps = 1e-5F),
    OP("layernorm_bwd of 10000", LAYERNORM_BWD, IN(S2(2, 10000), S2(2, 10000), S1(10000), S1(2), S1(2)), .eps = 1e-5F),
    OP("layernorm_bwd of 8193", LAYERNORM_BWD, IN(S2(2, 8193), S2(2, 8193), S1(8193), S1(2), S1(2)), .eps = 1e-5F),
    OP("rmsnorm_bwd of 64", RMSNORM_BWD, IN(S2(1800, 64), S2(1800, 64), S1(64), S1(1800)), .eps = 1e-5F),
    OP("linear_bwd_b of 1", LINEAR_BWD_B, IN(S2(1, 1)), 0),
    OP("linear_bwd_b, even", LINEAR_BWD_B, IN(S3(2, 600, 264)), 0),
    OP("rotary, even", ROTARY, IN(S3(2, 65, 3 * 64)), .heads = 3, .theta = 1e4F),
    OP("rotary of some, even", ROTARY, IN(S3(3, 20, 2 * 64)), .heads = 2, .theta = 5e5F, .dims = 32),
    OP("rotary of 4000", ROTARY, IN(S3(1, 4000, 16)), .heads = 1, .theta = 1e4F),
    OP("rotary of wide heads", ROTARY, IN(S3(2, 5, 1040)), .heads = 1, .theta = 1e4F),
    OP("rotary of short waves", ROTARY, IN(S3(1, 50, 2 * 6)), .heads = 2, .theta = 0.01F),
    OP("rotary_bwd, even", ROTARY_BWD, IN(S3(2, 65, 3 * 64)), .heads = 3, .theta = 1e4F),
    OP_IDS("cross_entropy of 1", CROSS_ENTROPY, 1, IN(S3(1, 3, 1), S2(1, 3)), 0),
    OP_IDS("cross_entropy of 4096", CROSS_ENTROPY, 4096, IN(S3(1, 3, 4096), S2(1, 3)), 0),
    OP_IDS("cross_entropy of 50257", CROSS_ENTROPY, 50257, IN(S3(1, 2, 50257), S2(1, 2)), 0),
    OP_IDS("cross_entropy, scaled", CROSS_ENTROPY, 16, IN(S3(2, 600, 16), S2(2, 600), S1(1)), 0),
    OP("gelu of 3", GELU, IN(S1(3)), 0),
    OP("silu_mul of 8192", SILU_MUL, IN(S1(8192), S1(8192)), 0),
    OP("gelu_mul of 8192", GELU_MUL, IN(S1(8192), S1(8192)), 0),
    OP("scale of 4097", SCALE, IN(S1(4097)), .scale = 0.22F),
    OP("rmsnorm of 9000, offset", RMSNORM, IN(S2(2, 9000), S1(9000)), .eps = 1e-5F, .offset = 1),
    OP("rmsnorm_bwd of 9000, offset", RMSNORM_BWD, IN(S2(3, 9000), S2(3, 9000), S1(9000), S1(3)), .eps = 1e-5F,
       .offset = 1),
    OP("route 8 of 128", ROUTE, IN(S3(2, 300, 128)), .picks = 8, .normalised = true),
    OP("route 1 of 1500", ROUTE, IN(S2(7, 1500)), .picks = 1),
    OP("route 32 of 32", ROUTE, IN(S2(33, 32)), .picks = 32),
    OP("route 30 of 40, several chunks", ROUTE, IN(S2(5000, 40)), .picks = 30),
    OP("route_bwd of 1500", ROUTE_BWD, IN(S2(9, 1500), S2(9, 8), S2(9, 8), S2(9, 8), S1(1500)), .picks = 8),
    OP("dispatch, even", DISPATCH, IN(S3(2, 37, 264), S3(2, 37, 3), S1(222)), 0),
    OP("dispatch, wide", DISPATCH, IN(S2(10, 1320), S2(10, 3), S1(30)), 0),
    OP("combine of 6, even", COMBINE, IN(S2(222, 264), S2(37, 6), S1(222)), 0),
    OP("combine of 9", COMBINE, IN(S2(333, 21), S2(37, 9), S1(333)), 0),
    OP("combine, even", COMBINE, IN(S2(222, 264), S3(2, 37, 3), S1(222)), 0),
    OP("scale_rows, even", SCALE_ROWS, IN(S2(222, 264), S3(2, 37, 3), S1(222)), 0),
    OP("scale_rows_bwd, even", SCALE_ROWS_BWD, IN(S2(222, 264), S2(222, 264), S3(2, 37, 3), S1(222)), 0),
    OP("gate_rows, even", GATE_ROWS, IN(S2(37, 264), S2(37, 1)), 0),
    OP("gate_rows_bwd, even", GATE_ROWS_BWD, IN(S2(37, 264), S2(37, 264), S2(37, 1)), 0),
    OP("silu_mul_halves, even", SILU_MUL_HALVES, IN(S2(222, 528)), 0),
    OP("silu_mul_halves_bwd, even", SILU_MUL_HALVES_BWD, IN(S2(222, 264), S2(222, 528)), 0),
    OP("swiglu_clamped, even", SWIGLU_CLAMPED, IN(S2(222, 528)), .scale = 1.702F, .limit = 0.75F),
    OP("swiglu_clamped_bwd, even", SWIGLU_CLAMPED_BWD, IN(S2(222, 264), S2(222, 528)), .scale = 1.702F, .limit = 0.75F),
    OP("shares of 40", SHARES, IN(S2(37, 40), S2(37, 3), S2(37, 3), S1(40)), 0),
    OP("shares_bwd of 40", SHARES_BWD, IN(S2(37, 40), S2(37, 3), S1(40)), 0),
    OP("grouped_linear_bwd_b, even", GROUPED_LINEAR_BWD_B, IN(S2(222, 264), S1(8)), 0),
    OP("add of 4097", ADD, IN(S1(4097), S1(4097)), 0),
};

/* What is added, copied or chosen has the CPU device's bits. Elsewhere sums of n terms have another order, and
 * exponentials and quotients are two places off at most: errors of a few 2^-24 of the sums of magnitudes, which with
 * random operands are near the largest result. */
static struct bound bound_of(enum ah_op op)
{
    switch ((int)op) {
    case AH_OP_EMBEDDING:
    case AH_OP_ADD_POSITION:
    case AH_OP_ADD:
    case AH_OP_COPY:
    case AH_OP_DISPATCH:
    case AH_OP_COMBINE:
    case AH_OP_SCALE_ROWS:
    case AH_OP_RELU:
    case AH_OP_RELU_BWD:
        return (struct bound){0};
    default:
        return (struct bound){.of_value = 1e-6, .of_largest = 1e-6, .out_of = 50};
    }
}

static void cases_check(const struct op_case *cases, size_t count)
{
    struct device_pair p = device_pair_open();
    for (size_t i = 0; i < count; i++)
        if (ah__op_table[cases[i].op]->limit == AH_OP_LIMIT_MEMORY)
            operator_check_all(&p, &cases[i], i, bound_of);
    device_pair_close(&p);
}

static void operators_agree_with_the_cpu(void **state)
{
    cases_check(value_cases, AH_LENGTH(value_cases));
}

static void many_elements_agree_with_the_cpu(void **state)
{
    cases_check(bit_cases, AH_LENGTH(bit_cases));
}

static void other_widths_agree_with_the_cpu(void **state)
{
    cases_check(cuda_cases, AH_LENGTH(cuda_cases));
}

static void every_operator_without_products_is_tried(void **state)
{
    bool tried[AH_OP_COUNT] = {false};
    for (size_t i = 0; i < AH_LENGTH(value_cases); i++)
        tried[value_cases[i].op] = true;
    for (int op = 0; op < AH_OP_COUNT; op++)
        if (!tried[op])
            fail_msg("no case for %s", ah__op_table[op]->name);
}

/* ---- unusual operands -------------------------------------------------------------------------------------------- */

static void dx_over_dy(struct op_data *data)
{
    data->call.out[0] = data->call.in[0];
}

static void dx_over_x(struct op_data *data)
{
    data->call.out[0] = data->call.in[1];
}

/* As a compiled program may have it. */
static void gradients_may_be_written_over_what_they_are_made_of(void **state)
{
    static const struct op_case cases[] = {
        OP("layernorm_bwd", LAYERNORM_BWD, IN(S2(300, 203), S2(300, 203), S1(203), S1(300), S1(300)), .eps = 1e-5F),
        OP("layernorm_bwd, even", LAYERNORM_BWD, IN(S2(9, 1104), S2(9, 1104), S1(1104), S1(9), S1(9)), .eps = 1e-5F),
        OP("rmsnorm_bwd", RMSNORM_BWD, IN(S2(30, 64), S2(30, 64), S1(64), S1(30)), .eps = 1e-5F),
        OP("rmsnorm_bwd of 8208", RMSNORM_BWD, IN(S2(11, 8208), S2(11, 8208), S1(8208), S1(11)), .eps = 1e-5F),
    };
    struct device_pair p = device_pair_open();
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        for (int dtype = 0; dtype < 2; dtype++) {
            operator_check(&p, &cases[i], dtype ? AH_BF16 : AH_F32, bound_of(cases[i].op), dx_over_dy);
            operator_check(&p, &cases[i], dtype ? AH_BF16 : AH_F32, bound_of(cases[i].op), dx_over_x);
        }
    device_pair_close(&p);
}

/* From far below to far above where exponentials end. */
static void inputs_spread(struct op_data *data)
{
    static const float at[] = {0, 1e-30F, 5, 9, 20, 85, 87, 88, 89, 100, 1e4F};
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        for (int64_t j = 0; data->call.in[i].space && j < ah__shape_count(&data->call.in[i].meta.shape); j++)
            operand_set(data, &data->call.in[i], j,
                        (j & 1 ? -1.0F : 1.0F) * at[(j / 2 + 5 * i) % (int64_t)AH_LENGTH(at)]);
}

/* Each result for itself. Where exponentials overflow, either device has something like 1e-30 for nothing; a GPU has 0,
 * since __fdividef gives 0 for a denominator above 2^126. In bf16 any result may be rounded to the other side: operands
 * have few digits, so that many products are half way between two numbers (gelu(5) * 89 = 445, nearly), where the last
 * place of an approximation decides. */
static void activations_hold_far_out(void **state)
{
    static const struct op_case cases[] = {
        OP("gelu", GELU, IN(S1(48)), 0),
        OP("relu", RELU, IN(S1(48)), 0),
        OP("gelu_erf", GELU_ERF, IN(S1(48)), 0),
        OP("gelu_erf_bwd", GELU_ERF_BWD, IN(S1(48), S1(48)), 0),
        OP("silu_mul", SILU_MUL, IN(S1(48), S1(48)), 0),
        OP("gelu_mul", GELU_MUL, IN(S1(48), S1(48)), 0),
        OP("gelu_mul_bwd", GELU_MUL_BWD, IN(S1(48), S1(48), S1(48)), 0),
        OP("gelu_bwd", GELU_BWD, IN(S1(48), S1(48)), 0),
        OP("relu_bwd", RELU_BWD, IN(S1(48), S1(48)), 0),
        OP("silu_mul_bwd", SILU_MUL_BWD, IN(S1(48), S1(48), S1(48)), 0),
    };
    const struct bound far_out = {.of_value = 1e-6, .least = 1e-20, .out_of = 1};
    struct device_pair p = device_pair_open();
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        for (int dtype = 0; dtype < 2; dtype++)
            operator_check(&p, &cases[i], dtype ? AH_BF16 : AH_F32, far_out, inputs_spread);
    device_pair_close(&p);
}

static void some_logits_are_hopeless(struct op_data *data)
{
    const struct ah_operand *logits = &data->call.in[0];
    int64_t cols = logits->meta.shape.dim[2];
    for (int64_t i = 0; i < ah__shape_count(&logits->meta.shape); i++)
        if (i % cols >= 8 && i % 3)
            operand_set(data, logits, i, i % 3 == 1 ? -INFINITY : -1e30F);
    operand_set(data, logits, 5, 1e4F);
    for (int64_t row = 0; row < ah__shape_rows(&logits->meta.shape); row++)
        ((int32_t *)operand_at(data, &data->call.in[1]))[row] = (int32_t)(row % 8);
}

static void logits_may_be_infinitely_small(void **state)
{
    static const struct op_case cases[] = {
        OP_IDS("cross_entropy of 700", CROSS_ENTROPY, 700, IN(S3(1, 6, 704), S2(1, 6)), 0),
        OP_IDS("cross_entropy of 701", CROSS_ENTROPY, 701, IN(S3(1, 6, 701), S2(1, 6)), 0),
    };
    struct device_pair p = device_pair_open();
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        for (int dtype = 0; dtype < 2; dtype++)
            operator_check(&p, &cases[i], dtype ? AH_BF16 : AH_F32, bound_of(cases[i].op), some_logits_are_hopeless);
    device_pair_close(&p);
}

/* ---- ids outside the table --------------------------------------------------------------------------------------- */

enum { STRAY_BELOW = 2, STRAY_ABOVE = 5 };

/* Of input 1, whose ids are below `vocabulary` of input 0 or output 0. */
static void ids_stray(struct op_data *data)
{
    int32_t *ids = operand_at(data, &data->call.in[1]);
    ids[STRAY_BELOW] = -1;
    ids[STRAY_ABOVE] = INT32_MAX;
}

static void no_id_strays(struct op_data *data)
{
    const struct ah_operand *dx = &data->call.in[0];
    int32_t *ids = operand_at(data, &data->call.in[1]);
    int64_t cols = dx->meta.shape.dim[2];
    ids[STRAY_BELOW] = ids[STRAY_ABOVE] = 0;
    for (int64_t i = 0; i < cols; i++) {
        operand_set(data, dx, STRAY_BELOW * cols + i, 0);
        operand_set(data, dx, STRAY_ABOVE * cols + i, 0);
    }
}

static void a_stray_id_makes_its_token_nan(void **state)
{
    static const struct op_case c = OP_IDS("embedding", EMBEDDING, 11, IN(S2(11, 24), S2(2, 7)), 0);
    struct test_device d = test_device_open("cuda");
    for (int dtype = 0; dtype < 2; dtype++) {
        struct op_data data;
        operator_run(&data, &d, &c, dtype ? AH_BF16 : AH_F32, 0, ids_stray);
        for (int64_t i = 0; i < 14 * 24; i++)
            assert_int_equal(!!isnan(operand_get(&data, &data.call.out[0], i)),
                             i / 24 == STRAY_BELOW || i / 24 == STRAY_ABOVE);
        op_data_fini(&data);
    }
    test_device_close(&d);
}

static void the_gradient_of_a_stray_id_goes_nowhere(void **state)
{
    static const struct op_case c = {
        "embedding_bwd", AH_OP_EMBEDDING_BWD, {.acc = 1}, {S3(3, 50, 24), S2(3, 50)}, S2(4, 24), 4};
    struct test_device d = test_device_open("cuda");
    struct op_data got, want;
    operator_run(&got, &d, &c, AH_F32, 0, ids_stray);
    operator_run(&want, &d, &c, AH_F32, 0, no_id_strays);
    for (int64_t i = 0; i < 4 * 24; i++) {
        float x = operand_get(&got, &got.call.out[0], i), y = operand_get(&want, &want.call.out[0], i);
        assert_true(fabsf(x - y) <= 1e-5F);
    }
    op_data_fini(&got);
    op_data_fini(&want);
    test_device_close(&d);
}

static void a_target_is_ignored(struct op_data *data)
{
    ((int32_t *)operand_at(data, &data->call.in[1]))[3] = AH_TARGET_IGNORED;
}

/* The gradients stay numbers. Only linear_cross_entropy ignores targets. */
static void a_stray_target_makes_the_loss_nan(void **state)
{
    static const struct op_case c = OP_IDS("cross_entropy", CROSS_ENTROPY, 11, IN(S3(2, 7, 11), S2(2, 7)), 0);
    static operator_change *const changes[] = {NULL, ids_stray, a_target_is_ignored};
    struct test_device d = test_device_open("cuda");
    for (size_t change = 0; change < AH_LENGTH(changes); change++) {
        struct op_data data;
        operator_run(&data, &d, &c, AH_F32, 0, changes[change]);
        assert_int_equal(!!isnan(operand_get(&data, &data.call.out[0], 0)), change > 0);
        for (int64_t i = 0; i < 14 * 11; i++)
            assert_true(isfinite(operand_get(&data, &data.call.out[1], i)));
        op_data_fini(&data);
    }
    test_device_close(&d);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void rows_too_wide_for_registers_are_refused(void **state)
{
    struct test_device d = test_device_open("cuda");
    for (int dtype = 0; dtype < 2; dtype++) {
        int64_t most = dtype ? 32768 : 16384;
        struct op_case c = OP("rmsnorm", RMSNORM, IN(S2(1, most + 1), S1(most + 1)), .eps = 1e-5F);
        struct op_data data;
        struct ah_prepared *prepared;
        char words[128];
        snprintf(words, sizeof words, "cuda: call 0, rmsnorm: input 0 (x) is [1,%d], expected at most %d channels",
                 (int)most + 1, (int)most);
        op_data_init_in(&data, &c, dtype ? AH_BF16 : AH_F32, 1);
        struct ah_program program = {.count = 1, .calls = &data.call};
        assert_fails(d.dev->ops->prepare(d.dev, &program, &prepared), AH_EDEVICE, words);
        op_data_fini(&data);
    }
    test_device_close(&d);
}

AH_TEST_CASES("dev/cuda/operators", operators_agree_with_the_cpu, many_elements_agree_with_the_cpu,
              other_widths_agree_with_the_cpu, every_operator_without_products_is_tried,
              gradients_may_be_written_over_what_they_are_made_of, activations_hold_far_out,
              logits_may_be_infinitely_small, a_stray_id_makes_its_token_nan, the_gradient_of_a_stray_id_goes_nowhere,
              a_stray_target_makes_the_loss_nan, rows_too_wide_for_registers_are_refused)
