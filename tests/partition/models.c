#include "models.h"

#include "base/status.h"

enum { C = MODEL_EMBD };

struct ah_tensor model_linear(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t in, int64_t out)
{
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape2(in, out), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor bias = ah_graph_param(graph, "bias", ah_shape1(out), AH_INIT_ZEROS, 0);
    x = ah_graph_linear(graph, x, weight, bias, false);
    ah_graph_scope_pop(graph);
    return x;
}

struct ah_tensor model_norm(struct ah_graph *graph, const char *name, struct ah_tensor x)
{
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape1(C), AH_INIT_ONES, 0);
    struct ah_tensor bias = ah_graph_param(graph, "bias", ah_shape1(C), AH_INIT_ZEROS, 0);
    x = ah_graph_layernorm(graph, x, weight, bias, 1e-5f);
    ah_graph_scope_pop(graph);
    return x;
}

struct ah_tensor model_attention(struct ah_graph *graph, struct ah_tensor x, int heads)
{
    x = ah_graph_attention(graph, model_linear(graph, "qkv", x, C, 3 * C), heads, NULL);
    return model_linear(graph, "proj", x, C, C);
}

static struct ah_tensor mlp(struct ah_graph *graph, struct ah_tensor x)
{
    return model_linear(graph, "out", ah_graph_gelu(graph, model_linear(graph, "in", x, C, 2 * C)), 2 * C, C);
}

static struct ah_tensor gpt(struct ah_graph *graph, struct ah_tensor x, int number)
{
    x = ah_graph_add_inplace(graph, model_attention(graph, model_norm(graph, "ln_1", x), 2), x);
    return ah_graph_add_inplace(graph, mlp(graph, model_norm(graph, "ln_2", x)), x);
}

static struct ah_tensor parallel(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = model_norm(graph, "ln", x);
    struct ah_tensor sum = ah_graph_add_inplace(graph, model_attention(graph, y, 2), mlp(graph, y));
    return ah_graph_add_inplace(graph, sum, x);
}

static const struct ah_tensor none = {-1};

static struct ah_tensor rmsnorm(struct ah_graph *graph, const char *name, struct ah_tensor x)
{
    return ah_graph_rmsnorm(graph, x, ah_graph_param(graph, name, ah_shape1(C), AH_INIT_ONES, 0), 1e-5f);
}

static struct ah_tensor plain_linear(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t in,
                                     int64_t out)
{
    struct ah_tensor weight = ah_graph_param(graph, name, ah_shape2(out, in), AH_INIT_NORMAL, 0.02f);
    return ah_graph_linear(graph, x, weight, (struct ah_tensor){-1}, true);
}

/* 4 heads of 4 channels that share 2 heads of keys and values. */
struct ah_tensor model_llama(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = rmsnorm(graph, "norm_1", x);
    struct ah_tensor q = ah_graph_rotary(graph, plain_linear(graph, "q", y, C, C), 4, 1e4f, 0, NULL);
    struct ah_tensor k = ah_graph_rotary(graph, plain_linear(graph, "k", y, C, C / 2), 2, 1e4f, 0, NULL);
    y = ah_graph_attention_qkv(graph, q, k, plain_linear(graph, "v", y, C, C / 2), 4, 2, NULL);
    x = ah_graph_add_inplace(graph, plain_linear(graph, "o", y, C, C), x);
    y = rmsnorm(graph, "norm_2", x);
    struct ah_tensor gate = plain_linear(graph, "gate", y, C, 3 * C), up = plain_linear(graph, "up", y, C, 3 * C);
    y = plain_linear(graph, "down", ah_graph_silu_mul(graph, gate, up), 3 * C, C);
    return ah_graph_add_inplace(graph, y, x);
}

/* Rotated where it entered, and both sides of one product made of it. */
static struct ah_tensor rotary_first(struct ah_graph *graph, struct ah_tensor x, int number)
{
    x = ah_graph_rotary(graph, x, 2, 100, 6, NULL);
    struct ah_tensor y = plain_linear(graph, "y", x, C, C);
    return ah_graph_silu_mul(graph, rmsnorm(graph, "norm", x), y);
}

/* Written over the block's input: the sums must change sides. */
static struct ah_tensor over_input(struct ah_graph *graph, struct ah_tensor x, int number)
{
    x = ah_graph_add_inplace(graph, x, model_attention(graph, model_norm(graph, "ln_1", x), 2));
    return ah_graph_add_inplace(graph, x, mlp(graph, model_norm(graph, "ln_2", x)));
}

/* The other side of the sum is read by backward too: a copy must be made. */
static struct ah_tensor over_input_kept(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = ah_graph_attention(graph, model_linear(graph, "qkv", x, C, 3 * C), 4, NULL);
    return ah_graph_add_inplace(graph, x, y);
}

/* Backward of attention reads its result, which here is what leaves. */
static struct ah_tensor ends_in_attention(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return ah_graph_attention(graph, model_linear(graph, "qkv", x, C, 3 * C), 2, NULL);
}

static struct ah_tensor weight_twice(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape2(C, C), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor bias = ah_graph_param(graph, "bias", ah_shape1(C), AH_INIT_ZEROS, 0);
    struct ah_tensor y = ah_graph_relu(graph, ah_graph_linear(graph, x, weight, bias, false));
    return ah_graph_add_inplace(graph, ah_graph_linear(graph, y, weight, bias, true), x);
}

/* The sum hands one gradient to relu and to the residual: relu's backward may not write over it. */
static struct ah_tensor relu_at_sum(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return ah_graph_add_inplace(graph, ah_graph_relu(graph, model_linear(graph, "fc", x, C, C)), x);
}

/* No residual: the gradient of the input is written to the boundary, where the other is dead by then. */
static struct ah_tensor plain(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return model_linear(graph, "b", ah_graph_relu(graph, model_linear(graph, "a", x, C, C)), C, C);
}

/* One operator that is not in place: both gradients are alive at once. */
static struct ah_tensor single(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return model_linear(graph, "a", x, C, C);
}

static struct ah_tensor read_often(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor a = model_linear(graph, "a", x, C, C), b = model_linear(graph, "b", x, C, C);
    struct ah_tensor c = ah_graph_gelu(graph, x), sum = ah_graph_add_inplace(graph, a, b);
    sum = ah_graph_add_inplace(graph, sum, c);
    return ah_graph_add_inplace(graph, sum, x);
}

/* Multiplied where it entered and after a product of half a weight, whose other half is a gate's. */
static struct ah_tensor scaled(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor whole = ah_graph_param(graph, "w", ah_shape2(2 * C, C), AH_INIT_NORMAL, 0.02f), absent = {-1};
    x = ah_graph_scale(graph, x, 1.5f);
    struct ah_tensor gate = ah_graph_linear(graph, x, ah_graph_param_rows(graph, whole, C), absent, true);
    struct ah_tensor up = ah_graph_linear(graph, x, ah_graph_param_rows(graph, whole, C), absent, true);
    return ah_graph_gelu_mul(graph, gate, ah_graph_scale(graph, up, 0.25f));
}

/* A mixture of 3 experts, 2 for each token. */
static struct ah_tensor experts(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = rmsnorm(graph, "norm", x), router = plain_linear(graph, "router", y, C, 3);
    struct ah_routes routes = ah_graph_route(graph, router, 2, true);
    struct ah_tensor in = ah_graph_param(graph, "in", ah_shape3(3, 2 * C, C), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor out = ah_graph_param(graph, "out", ah_shape3(3, C, 2 * C), AH_INIT_NORMAL, 0.02f);
    y = ah_graph_grouped_linear(graph, ah_graph_dispatch(graph, y, &routes), in, none, &routes);
    y = ah_graph_scale_rows(graph, ah_graph_gelu(graph, y), &routes);
    y = ah_graph_combine(graph, ah_graph_grouped_linear(graph, y, out, none, &routes), &routes);
    return ah_graph_add_inplace(graph, y, x);
}

/* Two calls of attention, with and without a window, whose heads have the same sinks. */
static struct ah_tensor sinks(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor scores = ah_graph_param(graph, "sinks", ah_shape1(4), AH_INIT_NORMAL, 0.5f);
    const struct ah_attention_options options = {.window = 2, .sinks = &scores}, all = {.sinks = &scores};
    struct ah_tensor q = plain_linear(graph, "q", x, C, C), k = plain_linear(graph, "k", x, C, C / 2);
    struct ah_tensor y = ah_graph_attention_qkv(graph, q, k, plain_linear(graph, "v", x, C, C / 2), 4, 2, &options);
    q = plain_linear(graph, "q_2", y, C, C);
    y = ah_graph_attention_qkv(graph, q, k, plain_linear(graph, "v_2", x, C, C / 2), 4, 2, &all);
    return ah_graph_add_inplace(graph, plain_linear(graph, "o", y, C, C), x);
}

/* Experts whose matrices are fused, beside one of all tokens that a gate weighs. */
static struct ah_tensor shared_expert(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = rmsnorm(graph, "norm", x), router = plain_linear(graph, "router", y, C, 3);
    struct ah_routes routes = ah_graph_route(graph, router, 2, false);
    struct ah_tensor in = ah_graph_param(graph, "in", ah_shape3(3, 2 * C, C), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor out = ah_graph_param(graph, "out", ah_shape3(3, C, C), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor rows = ah_graph_grouped_linear(graph, ah_graph_dispatch(graph, y, &routes), in, none, &routes);
    rows = ah_graph_scale_rows(graph, ah_graph_silu_mul_halves(graph, rows), &routes);
    rows = ah_graph_combine(graph, ah_graph_grouped_linear(graph, rows, out, none, &routes), &routes);
    struct ah_tensor all = plain_linear(graph, "all", y, C, C), gate = plain_linear(graph, "gate", y, C, 1);
    rows = ah_graph_add_inplace(graph, rows, ah_graph_gate_rows(graph, all, gate));
    return ah_graph_add_inplace(graph, rows, x);
}

/* Experts with biases, as gpt_oss has them. */
static struct ah_tensor biased_experts(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = rmsnorm(graph, "norm", x), router = plain_linear(graph, "router", y, C, 3);
    struct ah_routes routes = ah_graph_route(graph, router, 2, true);
    struct ah_tensor in = ah_graph_param(graph, "in", ah_shape3(3, 2 * C, C), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor in_bias = ah_graph_param(graph, "in_bias", ah_shape2(3, 2 * C), AH_INIT_NORMAL, 0.5f);
    struct ah_tensor out = ah_graph_param(graph, "out", ah_shape3(3, C, C), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor out_bias = ah_graph_param(graph, "out_bias", ah_shape2(3, C), AH_INIT_NORMAL, 0.5f);
    struct ah_tensor rows = ah_graph_grouped_linear(graph, ah_graph_dispatch(graph, y, &routes), in, in_bias, &routes);
    rows = ah_graph_scale_rows(graph, ah_graph_swiglu_clamped(graph, rows, 1.5f, 0.75f), &routes);
    rows = ah_graph_combine(graph, ah_graph_grouped_linear(graph, rows, out, none, &routes), &routes);
    struct ah_tensor biases = ah_graph_linear(graph, ah_graph_shares(graph, router, &routes), out_bias, none, false);
    return ah_graph_add_inplace(graph, ah_graph_add_inplace(graph, rows, biases), x);
}

const struct model_case model_cases[] = {
    {"gpt", gpt, 0, 0},
    {"parallel", parallel, 0, 0},
    {"over_input", over_input, 0, 0},
    {"over_input_kept", over_input_kept, 1, 0},
    {"ends_in_attention", ends_in_attention, 1, 0},
    {"weight_twice", weight_twice, 0, 0},
    {"relu_at_sum", relu_at_sum, 0, 1},
    {"plain", plain, 0, 0},
    {"single", single, 0, 1},
    {"read_often", read_often, 0, 2},
    {"llama", model_llama, 0, 0},
    {"rotary_first", rotary_first, 1, 1},
    {"scaled", scaled, 1, 1},
    {"experts", experts, 0, 0},
    {"sinks", sinks, 0, 0},
    {"shared_expert", shared_expert, 0, 0},
    {"biased_experts", biased_experts, 0, 0},
};
const int model_case_count = AH_LENGTH(model_cases);

static struct ah_tensor table(struct ah_graph *graph, const char *name, int64_t rows)
{
    return ah_graph_param(graph, name, ah_shape2(rows, C), AH_INIT_NORMAL, 0.02f);
}

int model_record(struct ah_graph *graph, model_block block, int layers, bool tied)
{
    struct ah_tensor tokens = ah_graph_tokens(graph, MODEL_BATCH, MODEL_SEQ);
    struct ah_tensor targets = ah_graph_targets(graph, MODEL_BATCH, MODEL_SEQ);
    struct ah_tensor wte = table(graph, "wte", MODEL_VOCAB);
    struct ah_tensor x = ah_graph_embedding(graph, wte, tokens);
    x = ah_graph_add_position(graph, x, table(graph, "wpe", MODEL_SEQ + 3));
    for (int i = 0; i < layers; i++) {
        ah_graph_scope_push(graph, "h.%d", i);
        x = block(graph, x, i);
        ah_graph_scope_pop(graph);
    }
    x = model_norm(graph, "ln_f", x);
    struct ah_tensor head = tied ? wte : table(graph, "head", MODEL_VOCAB);
    return ah_graph_finish(graph, ah_graph_linear_cross_entropy(graph, x, head, targets));
}

struct ah_graph *model_graph_in(enum ah_dtype compute, model_block block, int layers, bool tied)
{
    struct ah_graph *graph;
    assert_ok(ah_graph_new(&graph, compute));
    assert_ok(model_record(graph, block, layers, tied));
    return graph;
}

struct ah_graph *model_graph(model_block block, int layers, bool tied)
{
    return model_graph_in(AH_F32, block, layers, tied);
}
