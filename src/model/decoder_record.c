/* Records the decoder, with Hugging Face's names and layouts. */
#include <math.h>

#include "graph/graph.h"
#include "model/decoder.h"
#include "model/parts.h"
#include "op/bf16.h"

static struct ah_tensor linear(struct ah_graph *graph, const struct ah_decoder *decoder, const char *name,
                               struct ah_tensor x, int64_t in, int64_t out, bool bias)
{
    return ah__part_linear(graph, name, x,
                           &(struct ah_part_linear){.in = in, .out = out, .std = decoder->std, .bias = bias});
}

/* Normalizes and rotates queries or keys, a vector for each head, for their product. */
static struct ah_tensor heads(struct ah_graph *graph, const struct ah_decoder *decoder,
                              const struct ah_decoder_kind *kind, const char *norm, struct ah_tensor x, int64_t count)
{
    int64_t width = decoder->qk_norm == AH_QK_NORM_WHOLE ? count * decoder->head_dim : decoder->head_dim;
    if (decoder->qk_norm != AH_QK_NORM_NONE)
        x = ah__part_rmsnorm(graph, norm, x, width, decoder->eps, decoder->norm_offset);
    return ah__rope_record(graph, x, count, kind->still ? -1 : decoder->rotary_dims, &kind->rope, false);
}

/* Multiplies x by the next rows of a weight that several products share. */
static struct ah_tensor product_with(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight, int64_t rows)
{
    return ah_graph_linear(graph, x, ah_graph_param_rows(graph, weight, rows), (struct ah_tensor){-1}, true);
}

/* Records queries, keys and values of x. */
static void qkv(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x, struct ah_tensor out[3])
{
    static const char *const names[] = {"q_proj", "k_proj", "v_proj"};
    int64_t hidden = decoder->hidden_size, keys = decoder->kv_heads * decoder->head_dim;
    const int64_t width[] = {decoder->heads * decoder->head_dim, keys, keys};
    struct ah_tensor whole = {-1};
    if (decoder->fused)
        whole = ah__part_table(graph, "qkv_proj", width[0] + 2 * keys, hidden, decoder->std);
    for (int i = 0; i < 3; i++)
        out[i] = decoder->fused ? product_with(graph, x, whole, width[i])
                                : linear(graph, decoder, names[i], x, hidden, width[i], decoder->qkv_bias);
}

static struct ah_tensor attention(struct ah_graph *graph, const struct ah_decoder *decoder,
                                  const struct ah_decoder_kind *kind, struct ah_tensor x)
{
    struct ah_attention_options options = {
        .window = (int)kind->window, .scale = (float)decoder->attention_scale, .cap = (float)decoder->attention_cap};
    struct ah_tensor part[3], sinks;
    ah_graph_scope_push(graph, "self_attn");
    if (decoder->sinks) {
        ah_graph_scope_push(graph, "sinks^");
        sinks = ah_graph_param(graph, "weight", ah_shape1(decoder->heads), AH_INIT_NORMAL, (float)decoder->std);
        ah_graph_scope_pop(graph);
        options.sinks = &sinks;
    }
    qkv(graph, decoder, x, part);
    part[0] = heads(graph, decoder, kind, "q_norm", part[0], decoder->heads);
    part[1] = heads(graph, decoder, kind, "k_norm", part[1], decoder->kv_heads);
    x = ah_graph_attention_qkv(graph, part[0], part[1], part[2], (int)decoder->heads, (int)decoder->kv_heads, &options);
    x = linear(graph, decoder, "o_proj", x, decoder->heads * decoder->head_dim, decoder->hidden_size,
               decoder->out_bias);
    ah_graph_scope_pop(graph);
    return x;
}

struct ah_tensor ah__decoder_record_gated(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x,
                                          int64_t inner)
{
    int64_t hidden = decoder->hidden_size;
    bool bias = decoder->mlp_bias;
    struct ah_tensor gate, up;
    if (decoder->fused) {
        struct ah_tensor whole = ah__part_table(graph, "gate_up_proj", 2 * inner, hidden, decoder->std);
        gate = product_with(graph, x, whole, inner);
        up = product_with(graph, x, whole, inner);
    } else {
        gate = linear(graph, decoder, "gate_proj", x, hidden, inner, bias);
        up = linear(graph, decoder, "up_proj", x, hidden, inner, bias);
    }
    x = decoder->gelu ? ah_graph_gelu_mul(graph, gate, up) : ah_graph_silu_mul(graph, gate, up);
    return linear(graph, decoder, "down_proj", x, inner, hidden, bias);
}

static struct ah_tensor feed_forward(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x)
{
    if (decoder->experts)
        return ah__decoder_record_experts(graph, decoder, x);
    ah_graph_scope_push(graph, "mlp");
    x = ah__decoder_record_gated(graph, decoder, x, decoder->intermediate_size);
    ah_graph_scope_pop(graph);
    return x;
}

static struct ah_tensor scaled(struct ah_graph *graph, struct ah_tensor x, double factor)
{
    return factor > 1 || factor < 1 ? ah_graph_scale(graph, x, (float)factor) : x;
}

/* Records a norm; without a name returns x. */
static struct ah_tensor norm(struct ah_graph *graph, const struct ah_decoder *decoder, const char *name,
                             struct ah_tensor x)
{
    return name ? ah__part_rmsnorm(graph, name, x, decoder->hidden_size, decoder->eps, decoder->norm_offset) : x;
}

/* Adds the residual stream x onto y, a result, and not the other way round, so that the block's input stays whole for
 * backward. */
static struct ah_tensor joined(struct ah_graph *graph, const struct ah_decoder *decoder, const char *after,
                               struct ah_tensor y, struct ah_tensor x)
{
    y = scaled(graph, norm(graph, decoder, after, y), decoder->residual_scale);
    return ah_graph_add_inplace(graph, y, x);
}

static struct ah_tensor block(struct ah_graph *graph, const struct ah_decoder *decoder,
                              const struct ah_decoder_kind *kind, struct ah_tensor x)
{
    static const struct {
        const char *before_attention, *after_attention, *before_feed_forward, *after_feed_forward;
    } names[] = {
        [AH_NORMS_BEFORE] = {"input_layernorm", NULL, "post_attention_layernorm", NULL},
        [AH_NORMS_AFTER] = {NULL, "post_attention_layernorm", NULL, "post_feedforward_layernorm"},
        [AH_NORMS_BOTH] = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                           "post_feedforward_layernorm"},
    };
    struct ah_tensor y =
        attention(graph, decoder, kind, norm(graph, decoder, names[decoder->norms].before_attention, x));
    x = joined(graph, decoder, names[decoder->norms].after_attention, y, x);
    y = feed_forward(graph, decoder, norm(graph, decoder, names[decoder->norms].before_feed_forward, x));
    return joined(graph, decoder, names[decoder->norms].after_feed_forward, y, x);
}

/* Returns the factor of embeddings. The root is rounded to the compute dtype, as in transformers. */
static double embedding_scale(const struct ah_graph *graph, const struct ah_decoder *decoder)
{
    float root = sqrtf((float)decoder->hidden_size);
    if (!decoder->root_scale)
        return decoder->embedding_scale;
    return graph->compute == AH_BF16 ? (double)ah__bf16_value(ah__bf16_of(root)) : (double)root;
}

int ah__decoder_record(struct ah_graph *graph, int64_t batch, int64_t seq, void *context)
{
    const struct ah_decoder *decoder = context;
    int64_t vocab = decoder->vocab_size, hidden = decoder->hidden_size;
    struct ah_tensor tokens = ah_graph_tokens(graph, batch, seq), targets = ah_graph_targets(graph, batch, seq);
    struct ah_tensor table = ah__part_table(graph, "model.embed_tokens", vocab, hidden, decoder->std), head = table;
    struct ah_tensor x = scaled(graph, ah_graph_embedding(graph, table, tokens), embedding_scale(graph, decoder));
    for (int64_t i = 0; i < decoder->layers; i++) {
        ah_graph_scope_push(graph, "model.layers.%lld", (long long)i);
        x = block(graph, decoder, &decoder->kind[ah__decoder_is_other(decoder, i)], x);
        ah_graph_scope_pop(graph);
    }
    x = scaled(graph, norm(graph, decoder, "model.norm", x), decoder->logit_scale);
    if (!decoder->tied)
        head = ah__part_table(graph, "lm_head", vocab, hidden, decoder->std);
    x = ah_graph_linear_cross_entropy_capped(graph, x, head, targets, (float)decoder->logit_cap);
    return ah_graph_finish(graph, x);
}
