/* GPT-NeoX, and Pythia, which has its model_type: attention and feed-forward network in parallel or one after the
 * other, rotation of a part of each head, and one product with queries, keys and values of each head together. */
#include <string.h>

#include "base/alloc.h"
#include "model/family.h"
#include "model/parts.h"
#include "model/rope.h"

enum { SIZES = 6 };

struct gpt_neox {
    int64_t vocab_size, hidden_size, intermediate_size, layers, heads, positions, rotary_dims;
    double eps, std;
    struct ah_rope rope;
    enum ah_activation activation;
    bool parallel, bias, tied; /* bias: of attention's products; the others always have one */
    struct ah_config_dropout dropout;
};

static const struct ah_rope_keys rope_keys = {.theta = "rotary_emb_base", .part = "rotary_pct"};
static const char *const dropouts[] = {"attention_dropout", "hidden_dropout", NULL};
static const char *const keys[] = {"vocab_size",
                                   "hidden_size",
                                   "intermediate_size",
                                   "num_hidden_layers",
                                   "num_attention_heads",
                                   "max_position_embeddings",
                                   "hidden_act",
                                   "layer_norm_eps",
                                   "initializer_range",
                                   "use_parallel_residual",
                                   "attention_bias",
                                   "tie_word_embeddings",
                                   "rotary_emb_base",
                                   "rotary_pct",
                                   "rope_theta",
                                   "partial_rotary_factor",
                                   "rope_scaling",
                                   "rope_parameters",
                                   "attention_dropout",
                                   "hidden_dropout",
                                   NULL};

/* ---- config.json -> configuration -------------------------------------------------------------------------------- */

static void sizes_of(struct ah_config_size sizes[SIZES], struct gpt_neox *neox)
{
    const struct ah_config_size all[SIZES] = {
        {"vocab_size", &neox->vocab_size, 1 << 24},
        {"hidden_size", &neox->hidden_size, 1 << 20},
        {"intermediate_size", &neox->intermediate_size, 1 << 22},
        {"num_hidden_layers", &neox->layers, 1 << 12},
        {"num_attention_heads", &neox->heads, 1 << 16},
        {"max_position_embeddings", &neox->positions, 1 << 24},
    };
    memcpy(sizes, all, sizeof all);
}

static int parse_sizes(struct gpt_neox *neox, const struct ah_json *json)
{
    struct ah_config_size sizes[SIZES];
    sizes_of(sizes, neox);
    AH_TRY(ah__config_sizes(json, sizes, SIZES));
    if (neox->hidden_size % neox->heads != 0)
        return ah__fail(AH_EINPUT, "%s: key 'num_attention_heads': found %lld, expected a divisor of hidden_size %lld",
                        json->path, (long long)neox->heads, (long long)neox->hidden_size);
    neox->rope = (struct ah_rope){.theta = 10000, .part = 0.25};
    AH_TRY(ah__rope_parse(&neox->rope, json, &rope_keys, neox->positions));
    return ah__rope_dims(&neox->rotary_dims, &neox->rope, json, &rope_keys, neox->hidden_size / neox->heads);
}

static int parse(void **out, const struct ah_family *family, const struct ah_json *json)
{
    struct gpt_neox neox = {.eps = 1e-5, .std = 0.02, .activation = AH_ACTIVATION_GELU, .parallel = true, .bias = true};
    struct gpt_neox *copy;
    (void)family;
    AH_TRY(parse_sizes(&neox, json));
    AH_TRY(ah__config_double(&neox.eps, json, "layer_norm_eps", 1e-12, 1));
    AH_TRY(ah__config_double(&neox.std, json, "initializer_range", 0, 10));
    AH_TRY(ah__config_activation(&neox.activation, json, "hidden_act"));
    AH_TRY(ah__config_bool(&neox.parallel, json, "use_parallel_residual"));
    AH_TRY(ah__config_bool(&neox.bias, json, "attention_bias"));
    AH_TRY(ah__config_bool(&neox.tied, json, "tie_word_embeddings"));
    AH_TRY(ah__config_dropout(&neox.dropout, json, dropouts));
    AH_TRY(ah__new(&copy, 1, sizeof *copy));
    *copy = neox;
    *out = copy;
    return AH_OK;
}

static void describe(struct ah_model_def *def, const void *config)
{
    const struct gpt_neox *neox = config;
    def->vocab_size = neox->vocab_size;
    def->max_seq = neox->positions;
    def->layers = (int)neox->layers;
    def->switch_seq = ah__rope_switch(&neox->rope);
    def->dropout_key = neox->dropout.key;
    def->dropout = neox->dropout.rate;
}

/* ---- configuration -> config.json -------------------------------------------------------------------------------- */

static int fill(cJSON *tree, const void *config)
{
    struct gpt_neox neox = *(const struct gpt_neox *)config;
    struct ah_config_size sizes[SIZES];
    sizes_of(sizes, &neox);
    AH_TRY(ah__config_add_sizes(tree, sizes, SIZES));
    AH_TRY(ah__json_add_string(tree, "hidden_act", ah__config_activation_word(neox.activation)));
    AH_TRY(ah__config_add_real(tree, "layer_norm_eps", neox.eps));
    AH_TRY(ah__config_add_real(tree, "initializer_range", neox.std));
    AH_TRY(ah__json_add_bool(tree, "use_parallel_residual", neox.parallel));
    AH_TRY(ah__json_add_bool(tree, "attention_bias", neox.bias));
    AH_TRY(ah__json_add_bool(tree, "tie_word_embeddings", neox.tied));
    AH_TRY(ah__rope_add(tree, &neox.rope, &rope_keys));
    return ah__config_add_zeros(tree, dropouts);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static struct ah_tensor linear(struct ah_graph *graph, const struct gpt_neox *neox, const char *name,
                               struct ah_tensor x, int64_t in, int64_t out, bool bias)
{
    return ah__part_linear(graph, name, x,
                           &(struct ah_part_linear){.in = in, .out = out, .std = neox->std, .bias = bias});
}

static struct ah_tensor norm(struct ah_graph *graph, const struct gpt_neox *neox, const char *name, struct ah_tensor x)
{
    return ah__part_layernorm(graph, name, x, neox->hidden_size, neox->eps);
}

static struct ah_tensor attention(struct ah_graph *graph, const struct gpt_neox *neox, struct ah_tensor x)
{
    int64_t c = neox->hidden_size;
    const struct ah_attention_options options = {.by_head = true};
    ah_graph_scope_push(graph, "attention");
    x = linear(graph, neox, "query_key_value", x, c, 3 * c, neox->bias);
    x = ah__rope_record(graph, x, neox->heads, neox->rotary_dims, &neox->rope, true);
    x = ah_graph_attention(graph, x, (int)neox->heads, &options);
    x = linear(graph, neox, "dense", x, c, c, neox->bias);
    ah_graph_scope_pop(graph);
    return x;
}

static struct ah_tensor feed_forward(struct ah_graph *graph, const struct gpt_neox *neox, struct ah_tensor x)
{
    int64_t c = neox->hidden_size, inner = neox->intermediate_size;
    ah_graph_scope_push(graph, "mlp");
    x = ah__part_activation(graph, neox->activation, linear(graph, neox, "dense_h_to_4h", x, c, inner, true));
    x = linear(graph, neox, "dense_4h_to_h", x, inner, c, true);
    ah_graph_scope_pop(graph);
    return x;
}

/* Adds the residual stream onto results, so that the block's input stays whole for backward. */
static struct ah_tensor block(struct ah_graph *graph, const struct gpt_neox *neox, struct ah_tensor x)
{
    struct ah_tensor y = attention(graph, neox, norm(graph, neox, "input_layernorm", x)), stream = x;
    if (!neox->parallel)
        stream = y = ah_graph_add_inplace(graph, y, x);
    struct ah_tensor z = feed_forward(graph, neox, norm(graph, neox, "post_attention_layernorm", stream));
    z = ah_graph_add_inplace(graph, z, y);
    return neox->parallel ? ah_graph_add_inplace(graph, z, x) : z;
}

static int record(struct ah_graph *graph, int64_t batch, int64_t seq, void *config)
{
    const struct gpt_neox *neox = config;
    int64_t vocab = neox->vocab_size, c = neox->hidden_size;
    struct ah_tensor tokens = ah_graph_tokens(graph, batch, seq), targets = ah_graph_targets(graph, batch, seq);
    struct ah_tensor table = ah__part_table(graph, "gpt_neox.embed_in", vocab, c, neox->std), head = table;
    struct ah_tensor x = ah_graph_embedding(graph, table, tokens);
    for (int64_t i = 0; i < neox->layers; i++) {
        ah_graph_scope_push(graph, "gpt_neox.layers.%lld", (long long)i);
        x = block(graph, neox, x);
        ah_graph_scope_pop(graph);
    }
    x = norm(graph, neox, "gpt_neox.final_layer_norm", x);
    if (!neox->tied)
        head = ah__part_table(graph, "embed_out", vocab, c, neox->std);
    return ah_graph_finish(graph, ah_graph_linear_cross_entropy(graph, x, head, targets));
}

const struct ah_family ah__family_gpt_neox = {
    .model_type = "gpt_neox",
    .architecture = "GPTNeoXForCausalLM",
    .keys = keys,
    .parse = parse,
    .describe = describe,
    .write = fill,
    .record = record,
};
