/* Every operator in bf16 against the same operator in fp32 on the same numbers, and what prepare refuses.
 *
 * Arithmetic is fp32 in both, so a result in bf16 is the fp32 result rounded once: within 2^-8 of it, and where sums
 * have another order (products, gradients of attention's queries) by the error of fp32 sums besides. All other
 * operators give the very bits of the rounded result, and the very bits where the result is fp32. */
#include "dev/cpu/cases.h"
#include "dev/cpu/gemm_bf16.h"

#include <math.h>

#define S1(a) {1, {a, 0, 0, 0}}
#define S2(a, b) {2, {a, b, 0, 0}}
#define S3(a, b, c) {3, {a, b, c, 0}}

static const struct op_case bf16_cases[] = {
    {"embedding", AH_OP_EMBEDDING, {0}, {S2(11, 21), S2(2, 7)}, {0}, 11},
    {"add_position", AH_OP_ADD_POSITION, {0}, {S3(2, 7, 21), S2(9, 21)}, {0}, 0},
    {"layernorm of 20", AH_OP_LAYERNORM, {.eps = 1e-5F}, {S3(2, 7, 20), S1(20), S1(20)}, {0}, 0},
    {"layernorm of 1", AH_OP_LAYERNORM, {.eps = 1e-5F}, {S2(3, 1), S1(1), S1(1)}, {0}, 0},
    {"layernorm of 37 without bias", AH_OP_LAYERNORM, {.eps = 1e-5F}, {S2(5, 37), S1(37)}, {0}, 0},
    {"layernorm of 173", AH_OP_LAYERNORM, {.eps = 1e-5F}, {S3(5, 41, 173), S1(173), S1(173)}, {0}, 0},
    {"rmsnorm of 21", AH_OP_RMSNORM, {.eps = 1e-5F}, {S3(2, 7, 21), S1(21)}, {0}, 0},
    {"rmsnorm of 173", AH_OP_RMSNORM, {.eps = 1e-5F}, {S3(5, 41, 173), S1(173)}, {0}, 0},
    {"rotary", AH_OP_ROTARY, {.heads = 3, .theta = 1e4F}, {S3(2, 30, 3 * 40)}, {0}, 0},
    {"rotary of some", AH_OP_ROTARY, {.heads = 5, .theta = 500, .dims = 6}, {S3(3, 77, 5 * 19)}, {0}, 0},
    {"linear", AH_OP_LINEAR, {0}, {S3(2, 7, 20), S2(20, 13), S1(13)}, {0}, 0},
    {"linear without bias", AH_OP_LINEAR, {0}, {S3(2, 7, 21), S2(21, 13)}, {0}, 0},
    {"linear out_in", AH_OP_LINEAR, {.out_in = true}, {S3(2, 7, 20), S2(13, 20), S1(13)}, {0}, 0},
    {"linear in tiles", AH_OP_LINEAR, {0}, {S2(531, 70), S2(70, 410), S1(410)}, {0}, 0},
    {"linear to one", AH_OP_LINEAR, {0}, {S2(5, 20), S2(20, 1), S1(1)}, {0}, 0},
    {"attention of 7", AH_OP_ATTENTION, {.heads = 3}, {S3(2, 7, 60 * 3)}, {0}, 0},
    {"attention of 70, head 5", AH_OP_ATTENTION, {.heads = 2}, {S3(1, 70, 10 * 3)}, {0}, 0},
    {"attention of 200", AH_OP_ATTENTION, {.heads = 2}, {S3(2, 200, 64 * 3)}, {0}, 0},
    {"attention of 128, head 256", AH_OP_ATTENTION, {.heads = 1}, {S3(1, 128, 256 * 3)}, {0}, 0},
    {"attention of 1", AH_OP_ATTENTION, {.heads = 2}, {S3(1, 1, 8 * 3)}, {0}, 0},
    {"attention_qkv of 150",
     AH_OP_ATTENTION_QKV,
     {.heads = 6, .kv_heads = 2},
     {S3(2, 150, 6 * 40), S3(2, 150, 2 * 40), S3(2, 150, 2 * 40)},
     {0},
     0},
    {"silu_mul", AH_OP_SILU_MUL, {0}, {S1(40007), S1(40007)}, {0}, 0},
    {"gelu", AH_OP_GELU, {0}, {S1(40007)}, {0}, 0},
    {"relu", AH_OP_RELU, {0}, {S1(40007)}, {0}, 0},
    {"add", AH_OP_ADD, {0}, {S3(2, 7, 21), S3(2, 7, 21)}, {0}, 0},
    {"copy", AH_OP_COPY, {0}, {S1(40007)}, {0}, 0},
    {"cross_entropy", AH_OP_CROSS_ENTROPY, {0}, {S3(2, 7, 11), S2(2, 7)}, {0}, 11},
    {"cross_entropy of 1001", AH_OP_CROSS_ENTROPY, {0}, {S3(3, 5, 1001), S2(3, 5)}, {0}, 1001},
    {"linear_cross_entropy", AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(3, 30, 70), S2(501, 70), S2(3, 30)}, {0}, 501},
    {"embedding_bwd", AH_OP_EMBEDDING_BWD, {0}, {S3(3, 70, 137), S2(3, 70)}, S2(50, 137), 50},
    {"position_bwd", AH_OP_POSITION_BWD, {0}, {S3(5, 30, 71)}, S2(33, 71), 0},
    {"layernorm_bwd", AH_OP_LAYERNORM_BWD, {0}, {S2(300, 203), S2(300, 203), S1(203), S1(300), S1(300)}, {0}, 0},
    {"rmsnorm_bwd", AH_OP_RMSNORM_BWD, {0}, {S2(300, 203), S2(300, 203), S1(203), S1(300)}, {0}, 0},
    {"rotary_bwd", AH_OP_ROTARY_BWD, {.heads = 3, .theta = 1e4F, .dims = 38}, {S3(2, 30, 3 * 41)}, {0}, 0},
    {"linear_bwd_x", AH_OP_LINEAR_BWD_X, {0}, {S2(100, 77), S2(90, 77)}, {0}, 0},
    {"linear_bwd_x out_in", AH_OP_LINEAR_BWD_X, {.out_in = true}, {S2(9, 13), S2(13, 20)}, {0}, 0},
    {"linear_bwd_w", AH_OP_LINEAR_BWD_W, {0}, {S2(601, 53), S2(601, 90)}, {0}, 0},
    {"linear_bwd_w out_in", AH_OP_LINEAR_BWD_W, {.out_in = true}, {S3(3, 5, 53), S3(3, 5, 91)}, {0}, 0},
    {"linear_bwd_b", AH_OP_LINEAR_BWD_B, {0}, {S2(600, 530)}, {0}, 0},
    {"attention_bwd of 150",
     AH_OP_ATTENTION_BWD,
     {.heads = 3},
     {S3(2, 150, 120), S3(2, 150, 360), S3(2, 150, 120), S3(2, 3, 150)},
     {0},
     0},
    {"attention_bwd of 17, head 7",
     AH_OP_ATTENTION_BWD,
     {.heads = 5},
     {S3(3, 17, 35), S3(3, 17, 105), S3(3, 17, 35), S3(3, 5, 17)},
     {0},
     0},
    {"attention_qkv_bwd of 150",
     AH_OP_ATTENTION_QKV_BWD,
     {.heads = 6, .kv_heads = 2},
     {S3(2, 150, 120), S3(2, 150, 120), S3(2, 150, 40), S3(2, 150, 40), S3(2, 150, 120), S3(2, 6, 150)},
     {0},
     0},
    {"attention_qkv_bwd of 17, as many heads",
     AH_OP_ATTENTION_QKV_BWD,
     {.heads = 5, .kv_heads = 5},
     {S3(3, 17, 35), S3(3, 17, 35), S3(3, 17, 35), S3(3, 17, 35), S3(3, 17, 35), S3(3, 5, 17)},
     {0},
     0},
    {"silu_mul_bwd", AH_OP_SILU_MUL_BWD, {0}, {S1(50005), S1(50005), S1(50005)}, {0}, 0},
    {"gelu_bwd", AH_OP_GELU_BWD, {0}, {S1(50005), S1(50005)}, {0}, 0},
    {"relu_bwd", AH_OP_RELU_BWD, {0}, {S1(50005), S1(50005)}, {0}, 0},
};

/* The same call on the same numbers in another dtype; with acc the outputs already hold something. */
static void pair_init(struct op_data *half, struct op_data *full, const struct op_case *c)
{
    op_data_init_in(half, c, AH_BF16, 1);
    op_data_init_in(full, c, AH_F32, 1);
    for (int i = 0; i < ah__op_table[c->op]->inputs; i++) {
        const struct ah_operand *from = &half->call.in[i], *to = &full->call.in[i];
        for (int64_t j = 0; from->space && to->meta.dtype == AH_F32 && j < ah__shape_count(&to->meta.shape); j++)
            operand_set(full, to, j, operand_get(half, from, j));
    }
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++)
        for (int64_t j = 0; c->attr.acc >> i & 1U && j < ah__shape_count(&half->call.out[i].meta.shape); j++) {
            operand_set(half, &half->call.out[i], j, (float)ah__random_normal(77 + (uint64_t)i, (uint64_t)j));
            operand_set(full, &full->call.out[i], j, operand_get(half, &half->call.out[i], j));
        }
}

/* Whether fp32 sums have another order than in fp32. */
static bool sums_differently(enum ah_op op)
{
    return ah__op_table[op]->limit == AH_OP_LIMIT_PRODUCT || ah__op_table[op]->limit == AH_OP_LIMIT_ATTENTION_BWD;
}

/* Logits are rounded on the way: the largest, z, by 2^-9 |z|, which moves every probability of its row, and so each
 * gradient, by up to twice that part of it. 0: with this operator nothing is rounded on the way. */
static double rounding_between(const struct op_data *full)
{
    const struct ah_operand *x = &full->call.in[0], *weight = &full->call.in[1];
    double largest = 0;
    if (full->call.op != AH_OP_LINEAR_CROSS_ENTROPY)
        return 0;
    int64_t channels = weight->meta.shape.dim[1];
    for (int64_t row = 0; row < ah__shape_rows(&x->meta.shape); row++)
        for (int64_t v = 0; v < weight->meta.shape.dim[0]; v++) {
            double logit = 0;
            for (int64_t i = 0; i < channels; i++)
                logit += (double)operand_get(full, x, row * channels + i) *
                         (double)operand_get(full, weight, v * channels + i);
            largest = fmax(largest, fabs(logit));
        }
    return 0x1p-8 * largest + 0x1p-8; /* and the gradients of logits themselves */
}

static void outputs_compare(const struct op_case *c, int output, const struct op_data *half, const struct op_data *full)
{
    const struct ah_operand *got = &half->call.out[output], *want = &full->call.out[output];
    bool rounded = got->meta.dtype == AH_BF16;
    int64_t count = ah__shape_count(&want->meta.shape);
    double largest = 0, between = rounding_between(full);
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)operand_get(full, want, i)));
    for (int64_t i = 0; i < count; i++) {
        float x = operand_get(half, got, i), y = operand_get(full, want, i);
        double slack = (rounded ? 0x1p-8 * fabs((double)y) : 0) + (between > 3e-6 ? between : 3e-6) * largest;
        if (ah__op_table[c->op]->out[output].kind == AH_OPERAND_SCRATCH)
            continue;
        bool exact = (rounded ? bf16_widen(bf16_round(y)) : y) == x;
        if (sums_differently(c->op) ? !(fabs((double)x - (double)y) <= slack) : !exact)
            fail_msg("%s, acc %u, output %d, element %lld: %.9g, in fp32 %.9g", c->name, (unsigned)c->attr.acc, output,
                     (long long)i, (double)x, (double)y);
    }
}

static void case_check(struct ah_pool *pool, const struct op_case *c)
{
    struct op_data half, full;
    pair_init(&half, &full, c);
    assert_ok(call_run(pool, &half.call, half.base));
    assert_ok(call_run(pool, &full.call, full.base));
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++)
        outputs_compare(c, i, &half, &full);
    op_data_fini(&half);
    op_data_fini(&full);
}

/* Everything is run that adds too: gradients of parameters, and others that are not in place. */
static void operators_round_once(void **state)
{
    (void)state;
    struct test_pool p = pool_begin(2);
    for (int forbidden = 0; forbidden < 2; forbidden++)
        for (size_t i = 0; i < AH_LENGTH(bf16_cases); i++) {
            struct op_case c = bf16_cases[i];
            const struct ah_op_row *row = ah__op_table[c.op];
            if (forbidden && row->limit != AH_OP_LIMIT_PRODUCT)
                continue;
            ah__cpu_amx_forbid(forbidden);
            case_check(p.pool, &c);
            for (int output = 0; output < row->outputs; output++)
                c.attr.acc |= (unsigned)(row->out[output].kind == AH_OPERAND_PARAM_GRADIENT) << output;
            if (c.op == AH_OP_LINEAR_BWD_X || c.op == AH_OP_LAYERNORM_BWD || c.op == AH_OP_RMSNORM_BWD)
                c.attr.acc |= 1;
            if (row->limit == AH_OP_LIMIT_ATTENTION_BWD)
                c.attr.acc = (1U << row->outputs) - 1;
            if (c.attr.acc)
                case_check(p.pool, &c);
        }
    ah__cpu_amx_forbid(false);
    pool_end(&p);
}

static bool in_cases(enum ah_op op)
{
    for (size_t i = 0; i < AH_LENGTH(bf16_cases); i++)
        if (bf16_cases[i].op == op)
            return true;
    return false;
}

static void every_operator_is_tried(void **state)
{
    (void)state;
    for (int op = 0; op < AH_OP_COUNT; op++)
        if (!in_cases((enum ah_op)op))
            fail_msg("no case in bf16 for %s", ah__op_table[op]->name);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static const struct op_case *case_of(enum ah_op op)
{
    size_t i = 0;
    while (bf16_cases[i].op != op)
        i++;
    return &bf16_cases[i];
}

/* A bf16 call with one operand in another dtype. Operands 0.. are inputs, 100.. outputs. */
static const struct {
    enum ah_op op;
    int operand;
    enum ah_dtype dtype;
    const char *words;
} refusals[] = {
    {AH_OP_LINEAR, 0, AH_F16, "cpu: call 0, linear: input 0 (x) is F16, expected F32 or BF16"},
    {AH_OP_GELU, 0, AH_I32, "cpu: call 0, gelu: input 0 (x) is I32, expected F32 or BF16"},
    {AH_OP_LINEAR, 0, AH_F32, "cpu: call 0, linear: input 1 (weight) is BF16, expected F32"},
    {AH_OP_LINEAR, 1, AH_F32, "cpu: call 0, linear: input 1 (weight) is F32, expected BF16"},
    {AH_OP_LINEAR, 2, AH_F32, "cpu: call 0, linear: input 2 (bias) is F32, expected BF16"},
    {AH_OP_LINEAR, 100, AH_F32, "cpu: call 0, linear: output 0 (y) is F32, expected BF16"},
    {AH_OP_ADD, 1, AH_F32, "cpu: call 0, add: input 1 (b) is F32, expected BF16"},
    {AH_OP_EMBEDDING, 1, AH_BF16, "cpu: call 0, embedding: input 1 (ids) is BF16, expected I32"},
    {AH_OP_LAYERNORM, 101, AH_BF16, "cpu: call 0, layernorm: output 1 (mean) is BF16, expected F32"},
    {AH_OP_LAYERNORM_BWD, 4, AH_BF16, "cpu: call 0, layernorm_bwd: input 4 (rstd) is BF16, expected F32"},
    {AH_OP_LAYERNORM_BWD, 101, AH_BF16, "cpu: call 0, layernorm_bwd: output 1 (dweight) is BF16, expected F32"},
    {AH_OP_LINEAR_BWD_W, 100, AH_BF16, "cpu: call 0, linear_bwd_w: output 0 (dweight) is BF16, expected F32"},
    {AH_OP_EMBEDDING_BWD, 100, AH_BF16, "cpu: call 0, embedding_bwd: output 0 (dtable) is BF16, expected F32"},
    {AH_OP_CROSS_ENTROPY, 100, AH_BF16, "cpu: call 0, cross_entropy: output 0 (loss) is BF16, expected F32"},
};

static void other_dtypes_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < AH_LENGTH(refusals); i++) {
        struct op_data data;
        struct ah_cpu_program *made;
        op_data_init_in(&data, case_of(refusals[i].op), AH_BF16, 1);
        struct ah_call call = data.call;
        struct ah_program program = {.count = 1, .calls = &call};
        int at = refusals[i].operand;
        (at < 100 ? &call.in[at] : &call.out[at - 100])->meta.dtype = refusals[i].dtype;
        assert_fails(ah__cpu_program_new(&made, &program, 1), AH_EDEVICE, refusals[i].words);
        op_data_fini(&data);
    }
}

/* Only what sums in memory asks for a workspace, as much as its pool has threads. */
static void workspace_is_asked_for(void **state)
{
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct op_data data;
        struct ah_cpu_program *made;
        struct test_pool p = pool_begin(1);
        op_data_init_in(&data, case_of(AH_OP_ATTENTION_BWD), bf16 ? AH_BF16 : AH_F32, 1);
        struct ah_program program = {.count = 1, .calls = &data.call};
        assert_ok(ah__cpu_program_new(&made, &program, 3));
        assert_int_equal(made->prepared.workspace_bytes, bf16 ? 3 * 160 * 48 * 4 : 0);
        if (bf16)
            assert_fails(ah__cpu_program_run(made, p.pool, data.base), AH_EINTERNAL, "not bound");
        ah__cpu_program_free(made);
        op_data_fini(&data);
        pool_end(&p);
    }
}

AH_TEST_SUITE("dev/cpu/bf16", cmocka_unit_test(operators_round_once), cmocka_unit_test(every_operator_is_tried),
              cmocka_unit_test(other_dtypes_are_refused), cmocka_unit_test(workspace_is_asked_for))
