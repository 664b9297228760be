/* GPT-2: reads Hugging Face's config keys strictly, writes them canonically and records the model, with the names and
 * layouts of GPT2LMHeadModel checkpoints (linear weights [in, out]). */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "model/family.h"
#include "model/parts.h"

enum { SIZES = 5 };

struct gpt2 {
    int64_t vocab_size, n_positions, n_embd, n_layer, n_head, n_inner;
    double layer_norm_epsilon, initializer_range;
    enum ah_activation activation;
    bool tied; /* tie_word_embeddings: the head uses wte */
    struct ah_config_dropout dropout;
};

static const char *const dropouts[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop", NULL};

/* ---- config.json -> configuration -------------------------------------------------------------------------------- */

static const char *const keys[] = {"vocab_size",
                                   "n_positions",
                                   "n_embd",
                                   "n_layer",
                                   "n_head",
                                   "n_inner",
                                   "activation_function",
                                   "layer_norm_epsilon",
                                   "tie_word_embeddings",
                                   "initializer_range",
                                   "scale_attn_weights",
                                   "resid_pdrop",
                                   "embd_pdrop",
                                   "attn_pdrop",
                                   "reorder_and_upcast_attn",
                                   "scale_attn_by_inverse_layer_idx",
                                   "add_cross_attention",
                                   NULL};

static void sizes_of(struct ah_config_size sizes[SIZES], struct gpt2 *config)
{
    const struct ah_config_size all[SIZES] = {
        {"vocab_size", &config->vocab_size, 1 << 24}, {"n_positions", &config->n_positions, 1 << 24},
        {"n_embd", &config->n_embd, 1 << 20},         {"n_layer", &config->n_layer, 1 << 12},
        {"n_head", &config->n_head, 1 << 16},
    };
    memcpy(sizes, all, sizeof all);
}

static int parse_sizes(struct gpt2 *out, const struct ah_json *json)
{
    struct ah_config_size sizes[SIZES];
    sizes_of(sizes, out);
    AH_TRY(ah__config_sizes(json, sizes, SIZES));
    if (out->n_embd % out->n_head != 0)
        return ah__fail(AH_EINPUT, "%s: key 'n_head': found %lld, expected a divisor of n_embd %lld", json->path,
                        (long long)out->n_head, (long long)out->n_embd);
    out->n_inner = 4 * out->n_embd;
    return ah__config_int(&out->n_inner, json, "n_inner", 1, 1 << 22);
}

static int parse(void **out, const struct ah_family *family, const struct ah_json *json)
{
    static const struct ah_config_fixed fixed[] = {
        {"scale_attn_weights", true},
        {"reorder_and_upcast_attn", false},
        {"scale_attn_by_inverse_layer_idx", false},
        {"add_cross_attention", false},
    };
    struct gpt2 config = {.layer_norm_epsilon = 1e-5, .initializer_range = 0.02, .tied = true}, *copy;
    (void)family;
    config.activation = AH_ACTIVATION_GELU_TANH;
    AH_TRY(parse_sizes(&config, json));
    AH_TRY(ah__config_dropout(&config.dropout, json, dropouts));
    AH_TRY(ah__config_fixed(json, fixed, AH_LENGTH(fixed)));
    AH_TRY(ah__config_bool(&config.tied, json, "tie_word_embeddings"));
    AH_TRY(ah__config_double(&config.layer_norm_epsilon, json, "layer_norm_epsilon", 1e-12, 1));
    AH_TRY(ah__config_double(&config.initializer_range, json, "initializer_range", 0, 10));
    AH_TRY(ah__config_activation(&config.activation, json, "activation_function"));
    AH_TRY(ah__new(&copy, 1, sizeof *copy));
    *copy = config;
    *out = copy;
    return AH_OK;
}

static void describe(struct ah_model_def *def, const void *context)
{
    const struct gpt2 *config = context;
    def->vocab_size = config->vocab_size;
    def->max_seq = config->n_positions;
    def->layers = (int)config->n_layer;
    def->dropout_key = config->dropout.key;
    def->dropout = config->dropout.rate;
}

/* ---- configuration -> config.json -------------------------------------------------------------------------------- */

static int fill(cJSON *tree, const void *context)
{
    struct gpt2 config = *(const struct gpt2 *)context;
    struct ah_config_size sizes[SIZES];
    sizes_of(sizes, &config);
    AH_TRY(ah__config_add_sizes(tree, sizes, SIZES));
    AH_TRY(ah__json_add_int(tree, "n_inner", config.n_inner));
    AH_TRY(ah__json_add_string(tree, "activation_function", ah__config_activation_word(config.activation)));
    AH_TRY(ah__config_add_real(tree, "layer_norm_epsilon", config.layer_norm_epsilon));
    AH_TRY(ah__config_add_real(tree, "initializer_range", config.initializer_range));
    AH_TRY(ah__json_add_bool(tree, "tie_word_embeddings", config.tied));
    return ah__config_add_zeros(tree, dropouts);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static struct ah_tensor norm(struct ah_graph *graph, const struct gpt2 *config, const char *name, struct ah_tensor x)
{
    return ah__part_layernorm(graph, name, x, config->n_embd, config->layer_norm_epsilon);
}

static struct ah_tensor linear(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t in, int64_t out,
                               double std)
{
    const struct ah_part_linear how = {.in = in, .out = out, .std = std, .bias = true, .in_first = true};
    return ah__part_linear(graph, name, x, &how);
}

/* The residual stream is added onto the projection's result, so that the block's input stays whole for backward. */
static struct ah_tensor block(struct ah_graph *graph, const struct gpt2 *config, struct ah_tensor x)
{
    int64_t c = config->n_embd;
    double std = config->initializer_range, residual_std = std / sqrt(2.0 * (double)config->n_layer);
    struct ah_tensor y = norm(graph, config, "ln_1", x);
    ah_graph_scope_push(graph, "attn");
    y = linear(graph, "c_attn", y, c, 3 * c, std);
    y = ah_graph_attention(graph, y, (int)config->n_head, NULL);
    y = linear(graph, "c_proj", y, c, c, residual_std);
    ah_graph_scope_pop(graph);
    x = ah_graph_add_inplace(graph, y, x);
    y = norm(graph, config, "ln_2", x);
    ah_graph_scope_push(graph, "mlp");
    y = linear(graph, "c_fc", y, c, config->n_inner, std);
    y = ah__part_activation(graph, config->activation, y);
    y = linear(graph, "c_proj", y, config->n_inner, c, residual_std);
    ah_graph_scope_pop(graph);
    return ah_graph_add_inplace(graph, y, x);
}

static struct ah_tensor table(struct ah_graph *graph, const struct gpt2 *config, const char *scope, int64_t rows)
{
    return ah__part_table(graph, scope, rows, config->n_embd, config->initializer_range);
}

static int record(struct ah_graph *graph, int64_t batch, int64_t seq, void *context)
{
    const struct gpt2 *config = context;
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
    return ah_graph_finish(graph, ah_graph_linear_cross_entropy(graph, x, head, targets));
}

const struct ah_family ah__family_gpt2 = {
    .model_type = "gpt2",
    .architecture = "GPT2LMHeadModel",
    .keys = keys,
    .parse = parse,
    .describe = describe,
    .write = fill,
    .record = record,
};
