#include "model/gpt2.h"

#include <math.h>

static struct ah_tensor norm(struct ah_graph *graph, const struct ah_gpt2 *config, const char *name, struct ah_tensor x)
{
    struct ah_shape shape = ah_shape1(config->n_embd);
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", shape, AH_INIT_ONES, 0);
    struct ah_tensor bias = ah_graph_param(graph, "bias", shape, AH_INIT_ZEROS, 0);
    x = ah_graph_layernorm(graph, x, weight, bias, (float)config->layer_norm_epsilon);
    ah_graph_scope_pop(graph);
    return x;
}

static struct ah_tensor linear(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t in, int64_t out, double std)
{
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape2(in, out), AH_INIT_NORMAL, (float)std);
    struct ah_tensor bias = ah_graph_param(graph, "bias", ah_shape1(out), AH_INIT_ZEROS, 0);
    x = ah_graph_linear(graph, x, weight, bias, false);
    ah_graph_scope_pop(graph);
    return x;
}

/* The residual stream is added onto the projection's result, so that the block's input stays whole for backward. */
static struct ah_tensor block(struct ah_graph *graph, const struct ah_gpt2 *config, struct ah_tensor x)
{
    int64_t c = config->n_embd;
    double std = config->initializer_range, residual_std = std / sqrt(2.0 * (double)config->n_layer);
    struct ah_tensor y = norm(graph, config, "ln_1", x);
    ah_graph_scope_push(graph, "attn");
    y = linear(graph, "c_attn", y, c, 3 * c, std);
    y = ah_graph_attention(graph, y, (int)config->n_head);
    y = linear(graph, "c_proj", y, c, c, residual_std);
    ah_graph_scope_pop(graph);
    x = ah_graph_add_inplace(graph, y, x);
    y = norm(graph, config, "ln_2", x);
    ah_graph_scope_push(graph, "mlp");
    y = linear(graph, "c_fc", y, c, config->n_inner, std);
    y = config->relu ? ah_graph_relu(graph, y) : ah_graph_gelu(graph, y);
    y = linear(graph, "c_proj", y, config->n_inner, c, residual_std);
    ah_graph_scope_pop(graph);
    return ah_graph_add_inplace(graph, y, x);
}

static struct ah_tensor table(struct ah_graph *graph, const struct ah_gpt2 *config, const char *scope, int64_t rows)
{
    ah_graph_scope_push(graph, "%s", scope);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape2(rows, config->n_embd), AH_INIT_NORMAL,
                                             (float)config->initializer_range);
    ah_graph_scope_pop(graph);
    return weight;
}

int ah__gpt2_record(struct ah_graph *graph, int64_t batch, int64_t seq, void *context)
{
    const struct ah_gpt2 *config = context;
    struct ah_tensor tokens = ah_graph_tokens(graph, batch, seq), targets = ah_graph_targets(graph, batch, seq);
    struct ah_tensor wte = table(graph, config, "transformer.wte", config->vocab_size);
    struct ah_tensor x = ah_graph_embedding(graph, wte, tokens);
    x = ah_graph_add_position(graph, x, table(graph, config, "transformer.wpe", config->n_positions));
    for (int64_t i = 0; i < config->n_layer; i++) {
        ah_graph_scope_push(graph, "transformer.h.%lld", (long long)i);
        x = block(graph, config, x);
        ah_graph_scope_pop(graph);
    }
    x = norm(graph, config, "transformer.ln_f", x);
    struct ah_tensor head = config->tied ? wte : table(graph, config, "lm_head", config->vocab_size);
    x = ah_graph_linear(graph, x, head, (struct ah_tensor){-1}, true);
    return ah_graph_finish(graph, ah_graph_cross_entropy(graph, x, targets));
}
