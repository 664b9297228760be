#include "op/op.h"
#include "test.h"

#include <math.h>
#include <string.h>

static struct ah_meta f32(int rank, int64_t a, int64_t b, int64_t c)
{
    return (struct ah_meta){AH_F32, {rank, {a, b, c, 0}}};
}

static struct ah_meta i32(int64_t a, int64_t b)
{
    return (struct ah_meta){AH_I32, {2, {a, b, 0, 0}}};
}

static bool contains(const struct ah_op_operand *operands, int count, enum ah_operand_kind kind)
{
    for (int i = 0; i < count; i++)
        if (operands[i].kind == kind)
            return true;
    return false;
}

/* Each of the first `count` operands has a name and a kind, no other has anything; optional ones are last. */
static void check_operands(const struct ah_op_row *row, const struct ah_op_operand *operands, int count, int most)
{
    static const struct ah_op_operand nothing;
    assert_in_range(count, 1, most);
    for (int i = 0; i < most; i++) {
        const struct ah_op_operand *operand = &operands[i];
        if (i >= count) {
            assert_memory_equal(operand, &nothing, sizeof nothing);
            continue;
        }
        if (!operand->name || !operand->name[0] || !operand->kind)
            fail_msg("%s: operand %d has no name or kind", row->name, i);
        if (i > 0 && operands[i - 1].optional && !operand->optional)
            fail_msg("%s: %s stands behind an optional operand", row->name, operand->name);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(operand->name, operands[j].name);
    }
}

static void check_flags(const struct ah_op_row *row)
{
    int in_place = 0;
    for (int i = 0; i < row->inputs; i++)
        assert_false(row->in[i].in_place || row->in[i].given);
    for (int i = 0; i < row->outputs; i++) {
        in_place += row->out[i].in_place;
        assert_false((row->out[i].optional && (i == 0 || row->out[i].in_place)) || (row->out[i].given && i > 0));
    }
    assert_true(in_place <= 1);
    assert_true((row->out[0].kind == AH_OPERAND_LOSS) == (row->classes != NULL));
    assert_true(contains(row->out, row->outputs, AH_OPERAND_PARAM_GRADIENT) == ((row->attrs & AH_ATTR_ACC) != 0));
}

static void check_row(const struct ah_op_row *row, const char *symbol, bool forward)
{
    assert_string_equal(row->name, symbol);
    check_operands(row, row->in, row->inputs, AH_OP_MAX_INPUTS);
    check_operands(row, row->out, row->outputs, AH_OP_MAX_OUTPUTS);
    check_flags(row);
    assert_true(row->infer && row->flops);
    assert_in_range(row->attrs, 0, (1 << AH_ATTR_COUNT) - 1);
    if ((row->limit == AH_OP_LIMIT_PRODUCT) != (row->product != NULL))
        fail_msg("%s: a matrix product has a size, nothing else has one", row->name);
    for (int i = 0; i < row->inputs + row->outputs; i++)
        if (!forward && (i < row->inputs ? row->in[i] : row->out[i - row->inputs]).backward_reads)
            fail_msg("%s has no backward that could read its operand %d", row->name, i);
}

static void rows_are_complete(void **state)
{
#define CHECK(id, name) check_row(ah__op_table[AH_OP_##id], #name, true);
    AH_OP_FORWARD_LIST(CHECK)
#undef CHECK
#define CHECK(id, name) check_row(ah__op_table[AH_OP_##id], #name, false);
    AH_OP_BACKWARD_LIST(CHECK)
    AH_OP_INFERENCE_LIST(CHECK)
#undef CHECK
}

struct rule {
    enum ah_op op;
    struct ah_attr attr;
    struct ah_meta in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS];
    double flops;
};

/* B 2, T 4, C 6, 2 heads, V 10 */
static const struct ah_meta absent;
#define X                                                                                                              \
    {                                                                                                                  \
        AH_F32,                                                                                                        \
        {                                                                                                              \
            3,                                                                                                         \
            {                                                                                                          \
                2, 4, 6, 0                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }
#define W(a, b)                                                                                                        \
    {                                                                                                                  \
        AH_F32,                                                                                                        \
        {                                                                                                              \
            2,                                                                                                         \
            {                                                                                                          \
                a, b, 0, 0                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }
#define N(a)                                                                                                           \
    {                                                                                                                  \
        AH_F32,                                                                                                        \
        {                                                                                                              \
            1,                                                                                                         \
            {                                                                                                          \
                a, 0, 0, 0                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }
#define F3(a, b, c)                                                                                                    \
    {                                                                                                                  \
        AH_F32,                                                                                                        \
        {                                                                                                              \
            3,                                                                                                         \
            {                                                                                                          \
                a, b, c, 0                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }
#define KV1                                                                                                            \
    {                                                                                                                  \
        .heads = 3, .kv_heads = 1                                                                                      \
    }
#define KV F3(2, 4, 2)
#define IDS                                                                                                            \
    {                                                                                                                  \
        AH_I32,                                                                                                        \
        {                                                                                                              \
            2,                                                                                                         \
            {                                                                                                          \
                2, 4, 0, 0                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Of 8 tokens with 2 of 5 experts each. */
#define PLACES(...)                                                                                                    \
    {                                                                                                                  \
        AH_I32, __VA_ARGS__                                                                                            \
    }
#define SLOTS PLACES({3, {2, 4, 2, 0}})
#define SOURCE PLACES({1, {16, 0, 0, 0}})
#define ENDS PLACES({1, {5, 0, 0, 0}})
#define SHARES F3(2, 4, 2)
#define PICK2                                                                                                          \
    {                                                                                                                  \
        .picks = 2                                                                                                     \
    }

#define CLAMPED                                                                                                        \
    {                                                                                                                  \
        .scale = 1.5F, .limit = 2                                                                                      \
    }

static const struct rule rules[] = {
    {AH_OP_ROUTE, PICK2, {F3(2, 4, 5)}, {SHARES, SLOTS, SOURCE, ENDS}, 10 * 40},
    {AH_OP_ROUTE_BWD, PICK2, {F3(2, 4, 5), SHARES, SHARES, SLOTS, ENDS}, {F3(2, 4, 5)}, 10 * 40},
    {AH_OP_DISPATCH, {0}, {X, SLOTS, SOURCE}, {W(16, 6)}, 0},
    {AH_OP_COMBINE, {0}, {W(16, 6), SLOTS, SOURCE}, {X}, 16 * 6},
    {AH_OP_SCALE_ROWS, {0}, {W(16, 6), SHARES, SOURCE}, {W(16, 6)}, 16 * 6},
    {AH_OP_SCALE_ROWS_BWD, {0}, {W(16, 6), W(16, 6), SHARES, SOURCE}, {W(16, 6), SHARES}, 3 * 16 * 6},
    {AH_OP_GATE_ROWS, {0}, {X, F3(2, 4, 1)}, {X}, 48},
    {AH_OP_GATE_ROWS_BWD, {0}, {X, X, F3(2, 4, 1)}, {X, F3(2, 4, 1)}, 3 * 48},
    {AH_OP_SILU_MUL_HALVES, {0}, {X}, {F3(2, 4, 3)}, 5 * 48},
    {AH_OP_SILU_MUL_HALVES_BWD, {0}, {F3(2, 4, 3), X}, {X}, 16 * 24},
    {AH_OP_GROUPED_LINEAR, {0}, {W(16, 6), F3(5, 7, 6), ENDS}, {W(16, 7)}, 2 * 16 * 42},
    {AH_OP_GROUPED_LINEAR, {0}, {W(16, 6), F3(5, 7, 6), ENDS, W(5, 7)}, {W(16, 7)}, 2 * 16 * 42 + 16 * 7},
    {AH_OP_GROUPED_LINEAR_BWD_B, {0}, {W(16, 7), ENDS}, {W(5, 7)}, 16 * 7},
    {AH_OP_SHARES, {0}, {F3(2, 4, 5), SHARES, SLOTS, ENDS}, {F3(2, 4, 5)}, 0},
    {AH_OP_SHARES_BWD, {0}, {F3(2, 4, 5), SLOTS, ENDS}, {SHARES}, 0},
    {AH_OP_SWIGLU_CLAMPED, CLAMPED, {X}, {F3(2, 4, 3)}, 7 * 48},
    {AH_OP_SWIGLU_CLAMPED_BWD, CLAMPED, {F3(2, 4, 3), X}, {X}, 20 * 24},
    {AH_OP_GROUPED_LINEAR_BWD_X, {0}, {W(16, 7), F3(5, 7, 6), ENDS}, {W(16, 6)}, 2 * 16 * 42},
    {AH_OP_GROUPED_LINEAR_BWD_W, {0}, {W(16, 7), W(16, 6), ENDS}, {F3(5, 7, 6)}, 2 * 16 * 42},
    {AH_OP_EMBEDDING, {0}, {W(10, 6), IDS}, {X}, 0},
    {AH_OP_ADD_POSITION, {0}, {X, W(5, 6)}, {X}, 48},
    {AH_OP_LAYERNORM, {0}, {X, N(6), N(6)}, {X, N(8), N(8)}, 8 * 48},
    {AH_OP_RMSNORM, {0}, {X, N(6)}, {X, N(8)}, 4 * 48},
    {AH_OP_RMSNORM, {0}, {X, N(2)}, {X, N(24)}, 4 * 48},
    {AH_OP_ADD_POSITION, {.first = 2}, {X, W(6, 6)}, {X}, 48},
    {AH_OP_LINEAR, {0}, {X, W(6, 5), N(5)}, {F3(2, 4, 5)}, 2 * 8 * 30 + 40},
    {AH_OP_LINEAR, {.out_in = true}, {X, W(5, 6)}, {F3(2, 4, 5)}, 2 * 8 * 30},
    {AH_OP_ATTENTION, {.heads = 2}, {F3(2, 4, 18)}, {X, F3(2, 2, 4)}, 2 * 2 * 4 * 4 * 6},
    {AH_OP_ROTARY, {.heads = 3, .theta = 1e4F}, {X}, {X}, 3 * 48},
    {AH_OP_ROTARY, {.heads = 2, .theta = 1e4F, .dims = 2}, {X}, {X}, 3 * 32},
    {AH_OP_ROTARY, {.heads = 2, .theta = 1e4F, .by_head = true, .dims = 2}, {F3(2, 4, 18)}, {F3(2, 4, 18)}, 3 * 64},
    {AH_OP_ROTARY, {.heads = 3, .theta = 1e4F, .factor = 2}, {X}, {X}, 3 * 48},
    {AH_OP_ATTENTION, {.heads = 2, .window = 2, .by_head = true}, {F3(2, 4, 18)}, {X, F3(2, 2, 4)}, 2 * 2 * 4 * 3 * 6},
    {AH_OP_ATTENTION_QKV, {.heads = 2, .kv_heads = 2, .window = 9}, {X, X, X}, {X, F3(2, 2, 4)}, 2 * 2 * 4 * 4 * 6},
    {AH_OP_ATTENTION_QKV, {.heads = 2, .kv_heads = 2}, {X, X, X}, {X, F3(2, 2, 4)}, 2 * 2 * 4 * 4 * 6},
    {AH_OP_ATTENTION_QKV, KV1, {X, KV, KV}, {X, F3(2, 3, 4)}, 2 * 2 * 4 * 4 * 6},
    {AH_OP_GELU, {0}, {X}, {X}, 12 * 48},
    {AH_OP_GELU_ERF, {0}, {X}, {X}, 12 * 48},
    {AH_OP_RELU, {0}, {X}, {X}, 48},
    {AH_OP_SILU_MUL, {0}, {X, X}, {X}, 10 * 48},
    {AH_OP_GELU_MUL, {0}, {X, X}, {X}, 13 * 48},
    {AH_OP_SCALE, {.scale = -2}, {X}, {X}, 48},
    {AH_OP_SOFT_CAP, {.cap = 2}, {X}, {X}, 5 * 48},
    {AH_OP_RMSNORM, {.offset = 1}, {X, N(6)}, {X, N(8)}, 4 * 48},
    {AH_OP_ADD, {0}, {X, X}, {X}, 48},
    {AH_OP_CROSS_ENTROPY, {0}, {F3(2, 4, 10), IDS}, {N(1), F3(2, 4, 10)}, 5 * 80},
    {AH_OP_LINEAR_CROSS_ENTROPY, {0}, {X, W(10, 6), IDS}, {N(1), W(8, 10), X, W(10, 6)}, 8 * 10 * (3 * 2 * 6 + 5)},
    {AH_OP_LINEAR_CROSS_ENTROPY,
     {0},
     {X, W(10, 6), IDS, N(1)},
     {N(1), W(8, 10), X, W(10, 6)},
     8 * 10 * (3 * 2 * 6 + 5)},
    {AH_OP_EMBEDDING_BWD, {0}, {X, IDS}, {W(10, 6)}, 48},
    {AH_OP_POSITION_BWD, {0}, {X}, {W(5, 6)}, 48},
    {AH_OP_LAYERNORM_BWD, {0}, {X, X, N(6), N(8), N(8)}, {X, N(6), N(6)}, 14 * 48},
    {AH_OP_RMSNORM_BWD, {0}, {X, X, N(6), N(8)}, {X, N(6)}, 10 * 48},
    {AH_OP_RMSNORM_BWD, {0}, {X, X, N(3), N(16)}, {X, N(3)}, 10 * 48},
    {AH_OP_ROTARY_BWD, {.heads = 3, .theta = 1e4F}, {X}, {X}, 3 * 48},
    {AH_OP_LINEAR_BWD_X, {0}, {F3(2, 4, 5), W(6, 5)}, {X}, 2 * 8 * 30},
    {AH_OP_LINEAR_BWD_X, {.out_in = true}, {F3(2, 4, 5), W(5, 6)}, {X}, 2 * 8 * 30},
    {AH_OP_LINEAR_BWD_W, {0}, {F3(2, 4, 5), X}, {W(6, 5)}, 2 * 8 * 30},
    {AH_OP_LINEAR_BWD_W, {.out_in = true}, {F3(2, 4, 5), X}, {W(5, 6)}, 2 * 8 * 30},
    {AH_OP_LINEAR_BWD_B, {0}, {F3(2, 4, 5)}, {N(5)}, 40},
    {AH_OP_ATTENTION_BWD, {.heads = 2}, {X, F3(2, 4, 18), X, F3(2, 2, 4)}, {F3(2, 4, 18)}, 5 * 2 * 4 * 4 * 6},
    {AH_OP_ATTENTION_QKV_BWD, KV1, {X, X, KV, KV, X, F3(2, 3, 4)}, {X, KV, KV}, 5 * 2 * 4 * 4 * 6},
    {AH_OP_ATTENTION_QKV, KV1, {X, KV, KV, {0}, N(3)}, {X, F3(2, 3, 4)}, 2 * 2 * 4 * 4 * 6},
    {AH_OP_SINKS_BWD, {0}, {X, X, F3(2, 3, 4), N(3)}, {N(3)}, 2 * 48},
    {AH_OP_SILU_MUL_BWD, {0}, {X, X, X}, {X, X}, 16 * 48},
    {AH_OP_GELU_MUL_BWD, {0}, {X, X, X}, {X, X}, 23 * 48},
    {AH_OP_GELU_BWD, {0}, {X, X}, {X}, 20 * 48},
    {AH_OP_GELU_ERF_BWD, {0}, {X, X}, {X}, 20 * 48},
    {AH_OP_RELU_BWD, {0}, {X, X}, {X}, 48},
    {AH_OP_COPY, {0}, {X}, {X}, 0},
    {AH_OP_CACHE_WRITE, {0}, {F3(2, 9, 4), KV, KV, IDS}, {F3(2, 9, 4)}, 0},
    {AH_OP_CACHE_WRITE, {.heads = 2}, {F3(2, 9, 12), F3(2, 4, 18)}, {F3(2, 9, 12)}, 0},
    {AH_OP_ATTENTION_CACHED, KV1, {F3(2, 9, 4), X, IDS}, {X}, 4 * 48 * 9},
    {AH_OP_ATTENTION_CACHED,
     {.heads = 2, .kv_heads = 2, .by_head = true, .window = 3},
     {F3(2, 9, 12), F3(2, 4, 18), IDS},
     {X},
     4 * 48 * 3},
    {AH_OP_ATTENTION, {.heads = 2}, {F3(2, 4, 18), IDS}, {X, F3(2, 2, 4)}, 2 * 2 * 4 * 4 * 6},
    {AH_OP_ROTARY, {.heads = 3, .theta = 1e4F}, {X, IDS}, {X}, 3 * 48},
    {AH_OP_EMBEDDING, {.first = 9}, {W(10, 6), IDS}, {X}, 0},
};

static void infers(void **state)
{
    bool covered[AH_OP_COUNT] = {0};
    for (size_t i = 0; i < AH_LENGTH(rules); i++) {
        const struct rule *rule = &rules[i];
        const struct ah_op_row *row = ah__op_table[rule->op];
        struct ah_meta out[AH_OP_MAX_OUTPUTS] = {0};
        if (row->out[0].given)
            out[0] = rule->out[0];
        assert_ok(row->infer(out, rule->in, &rule->attr));
        for (int j = 0; j < row->outputs; j++)
            if (out[j].dtype != rule->out[j].dtype || !ah__shape_equal(&out[j].shape, &rule->out[j].shape))
                fail_msg("%s: output %d", row->name, j);
        double flops = row->flops(rule->in, out, &rule->attr);
        if (flops < rule->flops || flops > rule->flops)
            fail_msg("%s: found %g flops, expected %g", row->name, flops, rule->flops);
        covered[rule->op] = true;
    }
    for (int op = 0; op < AH_OP_COUNT; op++)
        if (!covered[op])
            fail_msg("%s: no case here", ah__op_table[op]->name);
}

/* Any input that is absent or of the other kind (ids instead of floats, floats instead of ids) is refused. */
static void refuses_what_does_not_fit(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(rules); i++) {
        const struct rule *rule = &rules[i];
        const struct ah_op_row *row = ah__op_table[rule->op];
        for (int j = 0; j < row->inputs && rule->in[j].shape.rank; j++) {
            struct ah_meta in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS] = {0};
            memcpy(in, rule->in, sizeof in);
            if (row->out[0].given)
                out[0] = rule->out[0];
            in[j].dtype = in[j].dtype == AH_I32 ? AH_F32 : AH_I32;
            assert_int_equal(row->infer(out, in, &rule->attr), AH_EINPUT);
            in[j] = rule->in[j];
            in[j].shape.rank = 0;
            if (row->in[j].optional)
                continue;
            assert_int_equal(row->infer(out, in, &rule->attr), AH_EINPUT);
        }
    }
}

static void messages(void **state)
{
    struct ah_meta out[AH_OP_MAX_OUTPUTS] = {0}, in[AH_OP_MAX_INPUTS] = {f32(3, 2, 4, 6), f32(2, 5, 6, 0), absent};
    struct ah_attr attr = {0};
    assert_fails(ah__op_table[AH_OP_LINEAR]->infer(out, in, &attr), AH_EINPUT,
                 "weight is F32 [5,6], expected F32 [6,O]");
    attr.out_in = true;
    in[2] = f32(1, 6, 0, 0);
    assert_fails(ah__op_table[AH_OP_LINEAR]->infer(out, in, &attr), AH_EINPUT, "bias is F32 [6], expected F32 [5]");
    in[1] = f32(2, 3, 6, 0);
    assert_fails(ah__op_table[AH_OP_ADD_POSITION]->infer(out, in, &attr), AH_EINPUT, "expected F32 [P,6] with P >= 4");
    assert_fails(ah__op_table[AH_OP_ADD_POSITION]->infer(out, in, &(struct ah_attr){.first = 2}), AH_EINPUT,
                 "expected F32 [P,6] with P >= 6");
    assert_fails(ah__op_table[AH_OP_ADD_POSITION]->infer(out, in, &(struct ah_attr){.first = -1}), AH_EINPUT,
                 "first row: found -1, expected a number of at least 0");
    in[1] = f32(1, 4, 0, 0);
    assert_fails(ah__op_table[AH_OP_RMSNORM]->infer(out, in, &attr), AH_EINPUT,
                 "weight is F32 [4], expected F32 [C] or a divisor of C = 6");
    in[1] = i32(2, 3);
    assert_fails(ah__op_table[AH_OP_CROSS_ENTROPY]->infer(out, in, &attr), AH_EINPUT,
                 "targets is I32 [2,3], expected I32 [2,4]");
    out[0] = f32(2, 10, 7, 0);
    in[1] = i32(2, 4);
    assert_fails(ah__op_table[AH_OP_EMBEDDING_BWD]->infer(out, in, &attr), AH_EINPUT,
                 "dtable is F32 [10,7], expected F32 [10,6]");
}

static void caches(void **state)
{
    static const struct rule wrong[] = {
        {AH_OP_CACHE_WRITE, {0}, {F3(2, 3, 4), KV, KV}, {{0}}, 0},
        {AH_OP_CACHE_WRITE, {0}, {F3(1, 9, 4), KV, KV}, {{0}}, 0},
        {AH_OP_CACHE_WRITE, {0}, {F3(2, 9, 6), KV, KV}, {{0}}, 0},
        {AH_OP_CACHE_WRITE, {0}, {F3(2, 9, 4), KV, X}, {{0}}, 0},
        {AH_OP_CACHE_WRITE, {.heads = 2}, {F3(2, 9, 6), X}, {{0}}, 0},
        {AH_OP_CACHE_WRITE, {0}, {F3(2, 9, 5), KV, KV}, {{0}}, 0},
        {AH_OP_CACHE_WRITE, {0}, {F3(2, 9, 12), F3(2, 4, 18)}, {{0}}, 0},
        {AH_OP_CACHE_WRITE, {.heads = 4}, {F3(2, 9, 12), F3(2, 4, 18)}, {{0}}, 0},
        {AH_OP_CACHE_WRITE, {.heads = 2}, {F3(2, 9, 12), F3(2, 4, 12)}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, KV1, {F3(2, 9, 4), X}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, KV1, {F3(2, 9, 6), X, IDS}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, {.heads = 3}, {F3(2, 9, 4), X, IDS}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, KV1, {F3(2, 9, 4), F3(2, 4, 18), IDS}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, {.heads = 3, .kv_heads = 1, .window = -1}, {F3(2, 9, 4), X, IDS}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, {.heads = 3, .kv_heads = 2}, {F3(2, 9, 8), X, IDS}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, {.heads = 6, .kv_heads = 2}, {F3(2, 9, 6), X, IDS}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, {.heads = 1, .kv_heads = 1}, {F3(2, 9, 2), X, IDS}, {{0}}, 0},
        {AH_OP_ATTENTION_CACHED, KV1, {F3(2, 9, 4), X, IDS, N(2)}, {{0}}, 0},
        {AH_OP_ATTENTION_QKV, KV1, {X, KV, KV, {0}, N(2)}, {{0}}, 0},
        {AH_OP_SINKS_BWD, {0}, {X, X, F3(2, 3, 4), N(4)}, {{0}}, 0},
        {AH_OP_SINKS_BWD, {0}, {X, X, F3(2, 4, 3), N(3)}, {{0}}, 0},
        {AH_OP_SINKS_BWD, {0}, {X, KV, F3(2, 3, 4), N(3)}, {{0}}, 0},
    };
    for (size_t i = 0; i < AH_LENGTH(wrong); i++) {
        struct ah_meta out[AH_OP_MAX_OUTPUTS] = {0};
        if (ah__op_table[wrong[i].op]->infer(out, wrong[i].in, &wrong[i].attr) != AH_EINPUT)
            fail_msg("case %zu is taken", i);
    }
}

static void expect_refused(enum ah_op op, struct ah_attr attr, const char *words)
{
    struct ah_meta out[AH_OP_MAX_OUTPUTS] = {0}, in[AH_OP_MAX_INPUTS] = {X, X, X};
    assert_fails(ah__op_table[op]->infer(out, in, &attr), AH_EINPUT, words);
}

static void attributes(void **state)
{
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.theta = 1},
                   "x is F32 [2,4,6], expected [B,T,C] with C a multiple of 0 heads");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 4, .theta = 1}, "a multiple of 4 heads");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 2, .theta = 1}, "3 of 3 channels of a head rotate");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 2, .theta = 1, .dims = 4}, "4 of 3 channels");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 2, .theta = 1, .dims = -2}, "-2 of 3 channels");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 3}, "theta: found 0, expected a number above 0");
    expect_refused(AH_OP_ATTENTION_QKV, (struct ah_attr){.kv_heads = 1}, "a multiple of 0 heads");
    expect_refused(AH_OP_ATTENTION_QKV, (struct ah_attr){.heads = 3},
                   "heads: found 3, expected a multiple of 0 heads of keys and values");
    expect_refused(AH_OP_ATTENTION_QKV, (struct ah_attr){.heads = 3, .kv_heads = 2}, "a multiple of 2 heads of keys");
    expect_refused(AH_OP_ATTENTION_QKV, (struct ah_attr){.heads = 3, .kv_heads = 1},
                   "k is F32 [2,4,6], expected F32 [2,4,2]");
    expect_refused(AH_OP_ATTENTION_QKV, (struct ah_attr){.heads = 3, .kv_heads = 3, .window = -1},
                   "window: found -1, expected a number of at least 0");
    expect_refused(AH_OP_ATTENTION, (struct ah_attr){.heads = 2, .window = -1}, "window: found -1");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 4, .theta = 1, .by_head = true},
                   "expected [B,T,3C] with C a multiple of 4 heads");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 3, .theta = 1, .factor = -1},
                   "factor: found -1, expected a number of at least 0");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 3, .theta = 1, .factor = 2, .low = -1}, "low: found -1");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 3, .theta = 1, .factor = 2, .high = NAN}, "high: found");
    expect_refused(AH_OP_ROTARY,
                   (struct ah_attr){.heads = 3, .theta = 1, .factor = 2, .low = 4, .high = 4, .original = 9},
                   "found low 4, high 4 and 9 original positions, expected low below high");
    expect_refused(AH_OP_ROTARY, (struct ah_attr){.heads = 3, .theta = 1, .factor = 2, .low = 1, .high = 4},
                   "0 original positions");
}

static void expect_bytes(enum ah_op op, const struct ah_meta *in, const struct ah_meta *out, unsigned acc,
                         int64_t bytes)
{
    struct ah_attr attr = {.acc = acc};
    assert_int_equal((int64_t)ah__op_bytes(op, in, out, &attr), bytes);
}

static void bytes(void **state)
{
    const struct ah_meta x = f32(3, 2, 4, 6), ids = i32(2, 4), table = f32(2, 100, 6, 0), norm = f32(1, 6, 0, 0);
    int64_t x_bytes = 2 * 4 * 6 * 4, norm_bytes = 6 * 4;
    expect_bytes(AH_OP_EMBEDDING, (struct ah_meta[AH_OP_MAX_INPUTS]){table, ids}, &x, 0, 2 * x_bytes + 2 * 4 * 4);
    expect_bytes(AH_OP_ADD_POSITION, (struct ah_meta[AH_OP_MAX_INPUTS]){x, table}, &x, 0, 3 * x_bytes);
    expect_bytes(AH_OP_CACHE_WRITE, (struct ah_meta[AH_OP_MAX_INPUTS]){F3(2, 9, 4), KV, KV, ids},
                 &(struct ah_meta)F3(2, 9, 4), 0, 2 * 8 * 4 * 4);
    expect_bytes(AH_OP_ADD_POSITION, (struct ah_meta[AH_OP_MAX_INPUTS]){x, f32(2, 4, 6, 0)}, &x, 0,
                 2 * x_bytes + x_bytes / 2);
    struct ah_meta in[AH_OP_MAX_INPUTS] = {x, f32(2, 6, 6, 0), absent};
    expect_bytes(AH_OP_LINEAR, in, (struct ah_meta[AH_OP_MAX_OUTPUTS]){x}, 0, 2 * x_bytes + 6 * norm_bytes);
    in[2] = norm;
    expect_bytes(AH_OP_LINEAR, in, (struct ah_meta[AH_OP_MAX_OUTPUTS]){x}, 0, 2 * x_bytes + 7 * norm_bytes);
    in[0] = x;
    expect_bytes(AH_OP_LINEAR_BWD_B, in, (struct ah_meta[AH_OP_MAX_OUTPUTS]){norm}, 0, x_bytes + norm_bytes);
    expect_bytes(AH_OP_LINEAR_BWD_B, in, (struct ah_meta[AH_OP_MAX_OUTPUTS]){norm}, 1, x_bytes + 2 * norm_bytes);
}

/* The scratch of the fused loss is one chunk: bounded, a multiple of 16 tokens or all of them, and by shape alone. */
static void loss_chunks(void **state)
{
    static const struct {
        int64_t rows, vocab, channels, chunk;
    } cases[] = {{1024, 50257, 768, 256},   {1000, 50257, 768, 256}, {100, 50257, 768, 100}, {8192, 1 << 20, 64, 64},
                 {8192, 50257, 4096, 1184}, {8192, 256, 64, 4096},   {150, 120000, 3, 64},   {1, 7, 5, 1},
                 {300, 50257, 768, 160},    {1024, 256, 768, 1024}};
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_meta in[AH_OP_MAX_INPUTS] = {f32(3, 1, cases[i].rows, cases[i].channels),
                                               f32(2, cases[i].vocab, cases[i].channels, 0), i32(1, cases[i].rows)};
        struct ah_meta out[AH_OP_MAX_OUTPUTS] = {0};
        assert_ok(ah__op_table[AH_OP_LINEAR_CROSS_ENTROPY]->infer(out, in, &(struct ah_attr){0}));
        assert_int_equal(out[1].shape.dim[0], cases[i].chunk);
        assert_int_equal(out[1].shape.dim[1], cases[i].vocab);
    }
}

/* Without gradients it costs one product. */
static void loss_alone(void **state)
{
    const struct ah_op_row *row = ah__op_table[AH_OP_LINEAR_CROSS_ENTROPY];
    struct ah_meta in[AH_OP_MAX_INPUTS] = {f32(3, 2, 4, 6), f32(2, 10, 6, 0), i32(2, 4)}, out[AH_OP_MAX_OUTPUTS] = {0};
    struct ah_attr attr = {0};
    assert_ok(row->infer(out, in, &attr));
    int64_t x = 2 * 4 * 6 * 4, weight = 10 * 6 * 4, logits = 2 * 4 * 10 * 4, ids = 2 * 4 * 4;
    assert_int_equal((int64_t)row->bytes(in, out, &attr), 3 * x + 3 * weight + 5 * logits + ids);
    out[2] = out[3] = absent;
    assert_int_equal((int64_t)row->flops(in, out, &attr), 8 * 10 * (2 * 6 + 5));
    assert_int_equal((int64_t)row->bytes(in, out, &attr), x + weight + 3 * logits + ids);
}

static void shapes(void **state)
{
    char text[64], tiny[4];
    struct ah_meta meta = f32(3, 4, 256, 768);
    assert_string_equal(ah__shape_format(text, sizeof text, &meta.shape), "[4,256,768]");
    assert_string_equal(ah__shape_format(text, sizeof text, &absent.shape), "[]");
    assert_string_equal(ah__shape_format(tiny, sizeof tiny, &meta.shape), "[4,");
    assert_int_equal(ah__shape_count(&meta.shape), 4 * 256 * 768);
    assert_int_equal(ah__shape_rows(&meta.shape), 4 * 256);
    assert_int_equal(ah__dtype_bytes(AH_F32), 4);
    assert_int_equal(ah__dtype_bytes(AH_BF16), 2);
    assert_string_equal(ah__dtype_name(AH_BF16), "BF16");
    struct ah_meta other = f32(2, 4, 256, 768);
    assert_false(ah__shape_equal(&meta.shape, &other.shape));
}

AH_TEST_CASES("op/op", rows_are_complete, infers, caches, refuses_what_does_not_fit, messages, attributes, bytes,
              loss_chunks, loss_alone, shapes)
