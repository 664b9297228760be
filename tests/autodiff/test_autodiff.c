/* The gradient rule of each operator on a graph of that operator alone. */
#include <string.h>

#include "autodiff/autodiff.h"
#include "test.h"

/* B 2, T 4, C 6, 2 heads, V 10 */
struct single {
    enum ah_op op;
    struct ah_attr attr;
    struct ah_shape in[AH_OP_MAX_INPUTS];
};
#define S3(a, b, c)                                                                                                    \
    {                                                                                                                  \
        3,                                                                                                             \
        {                                                                                                              \
            a, b, c, 0                                                                                                 \
        }                                                                                                              \
    }
#define S2(a, b)                                                                                                       \
    {                                                                                                                  \
        2,                                                                                                             \
        {                                                                                                              \
            a, b, 0, 0                                                                                                 \
        }                                                                                                              \
    }
#define S1(a)                                                                                                          \
    {                                                                                                                  \
        1,                                                                                                             \
        {                                                                                                              \
            a, 0, 0, 0                                                                                                 \
        }                                                                                                              \
    }

static const struct single singles[] = {
    {AH_OP_EMBEDDING, {0}, {S2(10, 6), S2(2, 4)}},
    {AH_OP_ADD_POSITION, {0}, {S3(2, 4, 6), S2(5, 6)}},
    {AH_OP_LAYERNORM, {.eps = 1e-5F}, {S3(2, 4, 6), S1(6), S1(6)}},
    {AH_OP_LAYERNORM, {.eps = 1e-5F}, {S3(2, 4, 6), S1(6)}},
    {AH_OP_RMSNORM, {.eps = 1e-5F}, {S3(2, 4, 6), S1(6)}},
    {AH_OP_RMSNORM, {.eps = 1e-5F}, {S3(2, 4, 6), S1(2)}},
    {AH_OP_ADD_POSITION, {.first = 1}, {S3(2, 4, 6), S2(5, 6)}},
    {AH_OP_LINEAR, {0}, {S3(2, 4, 6), S2(6, 5), S1(5)}},
    {AH_OP_LINEAR, {.out_in = true}, {S3(2, 4, 6), S2(5, 6)}},
    {AH_OP_ATTENTION, {.heads = 2}, {S3(2, 4, 18)}},
    {AH_OP_ROTARY, {.heads = 3, .theta = 1e4F}, {S3(2, 4, 6)}},
    {AH_OP_ATTENTION_QKV, {.heads = 3, .kv_heads = 1}, {S3(2, 4, 6), S3(2, 4, 2), S3(2, 4, 2)}},
    {AH_OP_ATTENTION_QKV, {.heads = 3, .kv_heads = 1}, {S3(2, 4, 6), S3(2, 4, 2), S3(2, 4, 2), {0}, S1(3)}},
    {AH_OP_GELU, {0}, {S3(2, 4, 6)}},
    {AH_OP_GELU_ERF, {0}, {S3(2, 4, 6)}},
    {AH_OP_RELU, {0}, {S3(2, 4, 6)}},
    {AH_OP_SILU_MUL, {0}, {S3(2, 4, 6), S3(2, 4, 6)}},
    {AH_OP_GELU_MUL, {0}, {S3(2, 4, 6), S3(2, 4, 6)}},
    {AH_OP_SCALE, {.scale = 0.5F}, {S3(2, 4, 6)}},
    {AH_OP_ADD, {0}, {S3(2, 4, 6), S3(2, 4, 6)}},
    {AH_OP_COPY, {0}, {S3(2, 4, 6)}},
    {AH_OP_ROUTE, {.picks = 2}, {S3(2, 4, 5)}},
    {AH_OP_ROUTE, {.picks = 3, .normalised = true}, {S2(8, 5)}},
    {AH_OP_DISPATCH, {0}, {S3(2, 4, 6), S3(2, 4, 2), S1(16)}},
    {AH_OP_COMBINE, {0}, {S2(16, 6), S3(2, 4, 2), S1(16)}},
    {AH_OP_SCALE_ROWS, {0}, {S2(16, 6), S3(2, 4, 2), S1(16)}},
    {AH_OP_GROUPED_LINEAR, {0}, {S2(16, 6), S3(5, 7, 6), S1(5)}},
    {AH_OP_GROUPED_LINEAR, {0}, {S2(16, 6), S3(5, 7, 6), S1(5), S2(5, 7)}},
    {AH_OP_SHARES, {0}, {S3(2, 4, 5), S3(2, 4, 2), S3(2, 4, 2), S1(5)}},
    {AH_OP_SWIGLU_CLAMPED, {.scale = 1.5F, .limit = 2}, {S3(2, 4, 6)}},
    {AH_OP_GATE_ROWS, {0}, {S3(2, 4, 6), S3(2, 4, 1)}},
    {AH_OP_SILU_MUL_HALVES, {0}, {S3(2, 4, 6)}},
    {AH_OP_CROSS_ENTROPY, {0}, {S3(2, 4, 10), S2(2, 4)}},
    {AH_OP_LINEAR_CROSS_ENTROPY, {0}, {S3(2, 4, 6), S2(10, 6), S2(2, 4)}},
};

struct differentiated {
    struct ah_graph *graph;
    struct ah_autodiff diff;
    struct ah_autodiff_param params[AH_OP_MAX_INPUTS];
    struct ah_node node;
};

static struct ah_value entering(const struct single *c, int i)
{
    static const enum ah_value_kind kinds[] = {
        [AH_OPERAND_ACTIVATION] = AH_VALUE_ACTIVATION, [AH_OPERAND_PARAM] = AH_VALUE_PARAM,
        [AH_OPERAND_TOKENS] = AH_VALUE_TOKENS,         [AH_OPERAND_TARGETS] = AH_VALUE_TARGETS,
        [AH_OPERAND_INDEX] = AH_VALUE_ACTIVATION,      [AH_OPERAND_SHARE] = AH_VALUE_ACTIVATION,
    };
    enum ah_operand_kind of = ah__op_table[c->op]->in[i].kind;
    enum ah_value_kind kind = kinds[of];
    bool ids = kind == AH_VALUE_TOKENS || kind == AH_VALUE_TARGETS || of == AH_OPERAND_INDEX;
    return (struct ah_value){.meta = {ids ? AH_I32 : AH_F32, c->in[i]}, .kind = kind};
}

/* `wanted`: the input whose gradient is asked for, -1: none. `written`: parameters have gradients from before. */
static void differentiate(struct differentiated *d, const struct single *c, int wanted, bool written)
{
    int in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS], count = 0;
    *d = (struct differentiated){.diff = {.output = -1, .loss = -1, .input = -1, .forward_count = 1}};
    assert_ok(ah_graph_new(&d->graph, AH_F32));
    for (; count < ah__op_table[c->op]->inputs; count++) {
        in[count] = -1;
        if (!c->in[count].rank)
            continue;
        struct ah_value value = entering(c, count);
        assert_ok(ah__graph_value(d->graph, &in[count], &value));
        if (value.kind == AH_VALUE_PARAM)
            d->params[d->diff.param_count++] = (struct ah_autodiff_param){in[count], written, false};
    }
    assert_ok(ah__graph_node(d->graph, c->op, &c->attr, (struct ah_values){in, count}, NULL, out));
    d->node = d->graph->nodes[0];
    d->diff.graph = d->graph;
    d->diff.params = d->params;
    *(ah__op_table[c->op]->out[0].kind == AH_OPERAND_LOSS ? &d->diff.loss : &d->diff.output) = out[0];
    d->diff.input = wanted < 0 ? -1 : in[wanted];
    assert_ok(ah__autodiff(&d->diff));
}

static void differentiated_fini(struct differentiated *d)
{
    ah__free(d->diff.grads);
    ah_graph_free(d->graph);
}

static void every_operator_has_a_rule(void **state)
{
    bool covered[AH_OP_COUNT] = {0};
    for (size_t i = 0; i < AH_LENGTH(singles); i++)
        covered[singles[i].op] = true; /* the tests below run its rule */
#define CHECK(id, name)                                                                                                \
    if (!covered[AH_OP_##id])                                                                                          \
        fail_msg("%s: no case here", #name);
    AH_OP_FORWARD_LIST(CHECK)
#undef CHECK
}

static bool is_read(const struct differentiated *d, int value)
{
    for (size_t n = 1; n < d->graph->node_count; n++)
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
            if (d->graph->nodes[n].in[i] == value)
                return true;
    return d->diff.din == value;
}

/* What a row says that backward reads is what its rule reads: no more, or memory is wasted; no less, or it is gone. */
static void reads_what_the_row_says(void **state)
{
    for (size_t c = 0; c < AH_LENGTH(singles); c++) {
        struct differentiated d;
        differentiate(&d, &singles[c], ah__op_table[singles[c].op]->in[0].kind == AH_OPERAND_ACTIVATION ? 0 : -1,
                      false);
        const struct ah_op_row *row = ah__op_table[singles[c].op];
        for (int i = 0; i < row->inputs; i++)
            if (d.node.in[i] >= 0 && is_read(&d, d.node.in[i]) != row->in[i].backward_reads)
                fail_msg("%s: input %s", row->name, row->in[i].name);
        for (int i = 0; i < row->outputs; i++)
            if (is_read(&d, d.node.out[i]) != row->out[i].backward_reads)
                fail_msg("%s: output %s", row->name, row->out[i].name);
        differentiated_fini(&d);
    }
}

static void expect_like(const struct differentiated *d, int grad, int value)
{
    assert_true(grad >= 0);
    const struct ah_meta *a = &d->graph->values[grad].meta, *b = &d->graph->values[value].meta;
    assert_int_equal(a->dtype, b->dtype);
    assert_true(ah__shape_equal(&a->shape, &b->shape));
}

/* Every activation and every parameter gets one gradient of its shape. */
static void all_inputs_have_gradients(void **state)
{
    for (size_t c = 0; c < AH_LENGTH(singles); c++)
        for (int i = 0; i < ah__op_table[singles[c].op]->inputs; i++) {
            struct differentiated d;
            enum ah_operand_kind kind = ah__op_table[singles[c].op]->in[i].kind;
            if (kind != AH_OPERAND_ACTIVATION && kind != AH_OPERAND_SHARE)
                continue;
            if (singles[c].op == AH_OP_SHARES && i == 0) /* only its type and shape count */
                continue;
            differentiate(&d, &singles[c], i, false);
            expect_like(&d, d.diff.din, d.node.in[i]);
            assert_int_equal(d.diff.grad_count, d.diff.param_count);
            for (size_t g = 0; g < d.diff.grad_count; g++)
                expect_like(&d, d.diff.grads[g].value, d.params[d.diff.grads[g].param].value);
            differentiated_fini(&d);
        }
}

/* The first gradient of a parameter overwrites what is there, the next is added. */
static void adds_to_what_is_written(void **state)
{
    for (size_t c = 0; c < AH_LENGTH(singles); c++)
        for (int written = 0; written < 2; written++) {
            struct differentiated d;
            differentiate(&d, &singles[c], -1, written);
            for (size_t g = 0; g < d.diff.grad_count; g++) {
                const struct ah_node *node = &d.graph->nodes[d.graph->values[d.diff.grads[g].value].producer];
                int output = 0;
                while (node->out[output] != d.diff.grads[g].value)
                    output++;
                assert_int_equal(node->attr.acc >> output & 1, written);
                assert_int_equal(ah__op_table[node->op]->out[output].kind, AH_OPERAND_PARAM_GRADIENT);
                assert_true(d.params[d.diff.grads[g].param].written);
            }
            differentiated_fini(&d);
        }
}

static void result_without_gradient(void **state)
{
    struct ah_graph *graph;
    int x, a[AH_OP_MAX_OUTPUTS], b[AH_OP_MAX_OUTPUTS];
    struct ah_value value = {.meta = {AH_F32, S1(3)}, .kind = AH_VALUE_ACTIVATION};
    assert_ok(ah_graph_new(&graph, AH_F32));
    assert_ok(ah__graph_value(graph, &x, &value));
    assert_ok(ah__graph_node(graph, AH_OP_RELU, &(struct ah_attr){0}, ah__values(x), NULL, a));
    assert_ok(ah__graph_node(graph, AH_OP_GELU, &(struct ah_attr){0}, ah__values(x), NULL, b));
    struct ah_autodiff diff = {.graph = graph, .forward_count = 2, .output = a[0], .loss = -1, .input = x};
    assert_fails(ah__autodiff(&diff), AH_EINTERNAL, "gelu: no gradient reaches value %2");
    ah__free(diff.grads);
    ah_graph_free(graph);
}

/* relu of x plus x: relu's backward may not write over the gradient that the other side holds too. */
static void shared_gradient_is_copied(void **state)
{
    struct ah_graph *graph;
    int x, y[AH_OP_MAX_OUTPUTS], sum[AH_OP_MAX_OUTPUTS];
    struct ah_value value = {.meta = {AH_F32, S1(3)}, .kind = AH_VALUE_ACTIVATION};
    static const enum ah_op expected[] = {AH_OP_RELU, AH_OP_ADD, AH_OP_COPY, AH_OP_RELU_BWD, AH_OP_ADD};
    assert_ok(ah_graph_new(&graph, AH_F32));
    assert_ok(ah__graph_value(graph, &x, &value));
    assert_ok(ah__graph_node(graph, AH_OP_RELU, &(struct ah_attr){0}, ah__values(x), NULL, y));
    assert_ok(ah__graph_node(graph, AH_OP_ADD, &(struct ah_attr){0}, ah__values(y[0], x), NULL, sum));
    struct ah_autodiff diff = {.graph = graph, .forward_count = 2, .output = sum[0], .loss = -1, .input = x};
    assert_ok(ah__autodiff(&diff));
    assert_int_equal(graph->node_count, AH_LENGTH(expected));
    for (size_t n = 0; n < AH_LENGTH(expected); n++)
        assert_int_equal(graph->nodes[n].op, expected[n]);
    assert_true(diff.din >= 0 && diff.dout >= 0);
    ah__free(diff.grads);
    ah_graph_free(graph);
}

AH_TEST_CASES("autodiff/autodiff", every_operator_has_a_rule, reads_what_the_row_says, all_inputs_have_gradients,
              adds_to_what_is_written, result_without_gradient, shared_gradient_is_copied)
