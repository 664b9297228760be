#include "model/decoder.h"

#include <string.h>

#include "base/alloc.h"
#include "model/parts.h"

static const char *const attention_dropout[] = {"attention_dropout", NULL};
enum { SIZES = 6 };

/* ---- config.json -> configuration -------------------------------------------------------------------------------- */

static void sizes_of(struct ah_config_size sizes[SIZES], struct ah_decoder *decoder)
{
    const struct ah_config_size all[SIZES] = {
        {"vocab_size", &decoder->vocab_size, 1 << 24},
        {"hidden_size", &decoder->hidden_size, 1 << 20},
        {"intermediate_size", &decoder->intermediate_size, 1 << 22},
        {"num_hidden_layers", &decoder->layers, 1 << 12},
        {"num_attention_heads", &decoder->heads, 1 << 16},
        {"max_position_embeddings", &decoder->positions, 1 << 24},
    };
    memcpy(sizes, all, sizeof all);
}

static int parse_heads(struct ah_decoder *decoder, const struct ah_json *json)
{
    decoder->kv_heads = decoder->heads;
    AH_TRY(ah__config_int(&decoder->kv_heads, json, "num_key_value_heads", 1, 1 << 16));
    if (decoder->heads % decoder->kv_heads != 0)
        return ah__fail(AH_EINPUT,
                        "%s: key 'num_key_value_heads': found %lld, expected a divisor of "
                        "num_attention_heads %lld",
                        json->path, (long long)decoder->kv_heads, (long long)decoder->heads);
    AH_TRY(ah__config_int(&decoder->head_dim, json, "head_dim", 1, 1 << 16));
    if (decoder->head_dim == 0 && decoder->hidden_size % decoder->heads != 0)
        return ah__fail(AH_EINPUT,
                        "%s: key 'num_attention_heads': found %lld, expected a divisor of hidden_size %lld "
                        "or head_dim",
                        json->path, (long long)decoder->heads, (long long)decoder->hidden_size);
    if (decoder->head_dim == 0)
        decoder->head_dim = decoder->hidden_size / decoder->heads;
    return AH_OK;
}

static const char *const *dropouts_of(const struct ah_decoder *decoder)
{
    return decoder->dropouts ? decoder->dropouts : attention_dropout;
}

static struct ah_rope_keys rope_keys_of(const struct ah_decoder *decoder)
{
    return (struct ah_rope_keys){.theta = "rope_theta", .part = decoder->partial ? "partial_rotary_factor" : NULL};
}

static int parse_rope(struct ah_decoder *decoder, const struct ah_json *json)
{
    struct ah_rope_keys keys = rope_keys_of(decoder);
    decoder->rope = (struct ah_rope){.theta = 10000, .part = 1};
    AH_TRY(ah__rope_parse(&decoder->rope, json, &keys, decoder->positions));
    return ah__rope_dims(&decoder->rotary_dims, &decoder->rope, json, &keys, decoder->head_dim);
}

int ah__decoder_parse(struct ah_decoder *decoder, const struct ah_json *json)
{
    static const char *const silu[] = {"silu", "swish", NULL};
    struct ah_config_size sizes[SIZES];
    const char *word;
    decoder->eps = decoder->eps > 0 ? decoder->eps : 1e-6;
    decoder->std = 0.02;
    sizes_of(sizes, decoder);
    AH_TRY(ah__config_sizes(json, sizes, SIZES));
    AH_TRY(parse_heads(decoder, json));
    AH_TRY(parse_rope(decoder, json));
    if (ah__json_has(json, "hidden_act"))
        AH_TRY(ah__config_word(&word, json, "hidden_act", silu));
    AH_TRY(ah__config_double(&decoder->eps, json, "rms_norm_eps", 1e-12, 1));
    AH_TRY(ah__config_double(&decoder->std, json, "initializer_range", 0, 10));
    AH_TRY(ah__config_bool(&decoder->tied, json, "tie_word_embeddings"));
    return ah__config_dropout(&decoder->dropout, json, dropouts_of(decoder));
}

int ah__decoder_parse_window(struct ah_decoder *decoder, const struct ah_json *json)
{
    decoder->window = cJSON_HasObjectItem(json->node, "sliding_window") ? 0 : 4096;
    return ah__config_int(&decoder->window, json, "sliding_window", 1, 1 << 24);
}

/* How many of the layers have a window: none or all; -1: they differ, or there are not as many. */
static int64_t sliding_layers(const cJSON *types, int64_t layers)
{
    int64_t full = 0, sliding = 0;
    const cJSON *type;
    cJSON_ArrayForEach(type, types)
    {
        full += cJSON_IsString(type) && strcmp(type->valuestring, "full_attention") == 0;
        sliding += cJSON_IsString(type) && strcmp(type->valuestring, "sliding_attention") == 0;
    }
    if (full + sliding != layers || cJSON_GetArraySize(types) != layers || (full && sliding))
        return -1;
    return sliding;
}

static int fail_differ(const struct ah_json *json, const char *key)
{
    return ah__fail(AH_EINPUT, "%s: key '%s': found blocks with and without a window, expected all %s", json->path, key,
                    "num_hidden_layers of them alike");
}

int ah__decoder_parse_layers(struct ah_decoder *decoder, const struct ah_json *json)
{
    bool sliding = false;
    int64_t full_layers = 28, layers = decoder->layers, sliding_count;
    AH_TRY(ah__config_bool(&sliding, json, "use_sliding_window"));
    AH_TRY(ah__decoder_parse_window(decoder, json));
    AH_TRY(ah__config_int(&full_layers, json, "max_window_layers", 0, 1 << 24));
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(json->node, "layer_types");
    const char *key = "layer_types";
    if (types && !cJSON_IsNull(types))
        sliding_count = sliding_layers(types, layers);
    else {
        key = "max_window_layers";
        sliding_count = full_layers == 0 ? layers : full_layers >= layers ? 0 : -1;
        sliding_count = sliding ? sliding_count : 0;
    }
    if (sliding_count < 0)
        return fail_differ(json, key);
    decoder->window = sliding && sliding_count ? decoder->window : 0;
    return AH_OK;
}

/* ---- configuration -> config.json -------------------------------------------------------------------------------- */

int ah__decoder_add_layers(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(ah__json_add_bool(tree, "use_sliding_window", decoder->window > 0));
    if (decoder->window == 0)
        return AH_OK;
    AH_TRY(ah__json_add_int(tree, "sliding_window", decoder->window));
    return ah__json_add_int(tree, "max_window_layers", 0);
}

int ah__decoder_add(cJSON *tree, const struct ah_decoder *decoder)
{
    struct ah_decoder copy = *decoder;
    struct ah_rope_keys keys = rope_keys_of(decoder);
    struct ah_config_size sizes[SIZES];
    sizes_of(sizes, &copy);
    AH_TRY(ah__config_add_sizes(tree, sizes, SIZES));
    AH_TRY(ah__json_add_int(tree, "num_key_value_heads", decoder->kv_heads));
    AH_TRY(ah__json_add_int(tree, "head_dim", decoder->head_dim));
    AH_TRY(ah__json_add_string(tree, "hidden_act", "silu"));
    AH_TRY(ah__json_add_double(tree, "rms_norm_eps", decoder->eps));
    AH_TRY(ah__json_add_double(tree, "initializer_range", decoder->std));
    AH_TRY(ah__json_add_bool(tree, "tie_word_embeddings", decoder->tied));
    AH_TRY(ah__rope_add(tree, &decoder->rope, &keys));
    return ah__config_add_zeros(tree, dropouts_of(decoder));
}

void ah__decoder_describe(struct ah_model_def *def, const void *context)
{
    const struct ah_decoder *decoder = context;
    def->vocab_size = decoder->vocab_size;
    def->max_seq = decoder->positions;
    def->layers = (int)decoder->layers;
    def->dropout_key = decoder->dropout.key;
    def->dropout = decoder->dropout.rate;
}

int ah__decoder_new(void **out, const struct ah_decoder *decoder)
{
    struct ah_decoder *copy;
    AH_TRY(ah__new(&copy, 1, sizeof *copy));
    *copy = *decoder;
    *out = copy;
    return AH_OK;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static struct ah_tensor linear(struct ah_graph *graph, const struct ah_decoder *decoder, const char *name,
                               struct ah_tensor x, int64_t in, int64_t out, bool bias)
{
    return ah__part_linear(graph, name, x,
                           &(struct ah_part_linear){.in = in, .out = out, .std = decoder->std, .bias = bias});
}

/* Queries or keys as the product gives them: of each head one vector, at the length and angle in which they meet. */
static struct ah_tensor heads(struct ah_graph *graph, const struct ah_decoder *decoder, const char *norm,
                              struct ah_tensor x, int64_t count)
{
    if (decoder->qk_norm)
        x = ah__part_rmsnorm(graph, norm, x, decoder->head_dim, decoder->eps);
    return ah__rope_record(graph, x, count, decoder->rotary_dims, &decoder->rope, false);
}

/* The next rows of a weight that several products share. */
static struct ah_tensor product_with(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight, int64_t rows)
{
    return ah_graph_linear(graph, x, ah_graph_param_rows(graph, weight, rows), (struct ah_tensor){-1}, true);
}

/* Queries, keys and values of x. */
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

static struct ah_tensor attention(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x)
{
    struct ah_attention_options options = {.window = (int)decoder->window};
    struct ah_tensor part[3];
    ah_graph_scope_push(graph, "self_attn");
    qkv(graph, decoder, x, part);
    part[0] = heads(graph, decoder, "q_norm", part[0], decoder->heads);
    part[1] = heads(graph, decoder, "k_norm", part[1], decoder->kv_heads);
    x = ah_graph_attention_qkv(graph, part[0], part[1], part[2], (int)decoder->heads, (int)decoder->kv_heads, &options);
    x = linear(graph, decoder, "o_proj", x, decoder->heads * decoder->head_dim, decoder->hidden_size,
               decoder->out_bias);
    ah_graph_scope_pop(graph);
    return x;
}

static struct ah_tensor feed_forward(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x)
{
    int64_t hidden = decoder->hidden_size, inner = decoder->intermediate_size;
    bool bias = decoder->mlp_bias;
    struct ah_tensor gate, up;
    ah_graph_scope_push(graph, "mlp");
    if (decoder->fused) {
        struct ah_tensor whole = ah__part_table(graph, "gate_up_proj", 2 * inner, hidden, decoder->std);
        gate = product_with(graph, x, whole, inner);
        up = product_with(graph, x, whole, inner);
    } else {
        gate = linear(graph, decoder, "gate_proj", x, hidden, inner, bias);
        up = linear(graph, decoder, "up_proj", x, hidden, inner, bias);
    }
    x = linear(graph, decoder, "down_proj", ah_graph_silu_mul(graph, gate, up), inner, hidden, bias);
    ah_graph_scope_pop(graph);
    return x;
}

/* The residual stream is added onto the projection's result, so that the block's input stays whole for backward. */
static struct ah_tensor block(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x)
{
    int64_t hidden = decoder->hidden_size;
    struct ah_tensor y = ah__part_rmsnorm(graph, "input_layernorm", x, hidden, decoder->eps);
    x = ah_graph_add_inplace(graph, attention(graph, decoder, y), x);
    y = ah__part_rmsnorm(graph, "post_attention_layernorm", x, hidden, decoder->eps);
    return ah_graph_add_inplace(graph, feed_forward(graph, decoder, y), x);
}

int ah__decoder_record(struct ah_graph *graph, int64_t batch, int64_t seq, void *context)
{
    const struct ah_decoder *decoder = context;
    int64_t vocab = decoder->vocab_size, hidden = decoder->hidden_size;
    struct ah_tensor tokens = ah_graph_tokens(graph, batch, seq), targets = ah_graph_targets(graph, batch, seq);
    struct ah_tensor table = ah__part_table(graph, "model.embed_tokens", vocab, hidden, decoder->std), head = table;
    struct ah_tensor x = ah_graph_embedding(graph, table, tokens);
    for (int64_t i = 0; i < decoder->layers; i++) {
        ah_graph_scope_push(graph, "model.layers.%lld", (long long)i);
        x = block(graph, decoder, x);
        ah_graph_scope_pop(graph);
    }
    x = ah__part_rmsnorm(graph, "model.norm", x, hidden, decoder->eps);
    if (!decoder->tied)
        head = ah__part_table(graph, "lm_head", vocab, hidden, decoder->std);
    return ah_graph_finish(graph, ah_graph_linear_cross_entropy(graph, x, head, targets));
}
