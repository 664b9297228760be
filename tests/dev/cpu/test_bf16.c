/* Every operator in bf16 against the same operator in fp32 on the same numbers, and what prepare refuses.
 *
 * Arithmetic is fp32 in both, so a result in bf16 is the fp32 result rounded once: within 2^-8 of it, and where sums
 * have another order (products, gradients of attention's queries) by the error of fp32 sums besides. All other
 * operators give the very bits of the rounded result, and the very bits where the result is fp32. */
#include "dev/cpu/gemm_bf16.h"
#include "dev/value_cases.h"

#include <math.h>

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
    op_data_fill_sums(half, 77);
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++)
        for (int64_t j = 0; c->attr.acc >> i & 1U && j < ah__shape_count(&half->call.out[i].meta.shape); j++)
            operand_set(full, &full->call.out[i], j, operand_get(half, &half->call.out[i], j));
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
    struct test_pool p = pool_begin(2);
    for (int forbidden = 0; forbidden < 2; forbidden++)
        for (size_t i = 0; i < AH_LENGTH(value_cases); i++) {
            struct op_case c = value_cases[i];
            const struct ah_op_row *row = ah__op_table[c.op];
            if (forbidden && row->limit != AH_OP_LIMIT_PRODUCT)
                continue;
            ah__cpu_amx_forbid(forbidden);
            case_check(p.pool, &c);
            c.attr.acc = op_adds(c.op);
            if (c.attr.acc)
                case_check(p.pool, &c);
        }
    ah__cpu_amx_forbid(false);
    pool_end(&p);
}

static bool in_cases(enum ah_op op)
{
    for (size_t i = 0; i < AH_LENGTH(value_cases); i++)
        if (value_cases[i].op == op)
            return true;
    return false;
}

static void every_operator_is_tried(void **state)
{
    for (int op = 0; op < AH_OP_COUNT; op++)
        if (!in_cases((enum ah_op)op))
            fail_msg("no case in bf16 for %s", ah__op_table[op]->name);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static const struct op_case *case_of(enum ah_op op)
{
    size_t i = 0;
    while (value_cases[i].op != op)
        i++;
    return &value_cases[i];
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

AH_TEST_CASES("dev/cpu/bf16", operators_round_once, every_operator_is_tried, other_dtypes_are_refused,
              workspace_is_asked_for)
