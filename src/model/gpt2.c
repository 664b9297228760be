/* GPT-2: Hugging Face's config keys, read strictly and written canonically, and the model as recording calls, with the
 * names and layouts of GPT2LMHeadModel checkpoints (linear weights [in, out]). */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "model/config.h"
#include "model/family.h"

struct gpt2 {
    int64_t vocab_size, n_positions, n_embd, n_layer, n_head, n_inner;
    double layer_norm_epsilon, initializer_range;
    bool relu; /* activation_function "relu" rather than "gelu_new" */
    bool tied; /* tie_word_embeddings: the head reads wte */
};

static const char *const dropouts[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop", NULL};

/* ---- config.json -> configuration -------------------------------------------------------------------------------- */

/* Keys that change nothing here are accepted, so that a folder saved by other tools can be read. */
static const char *const known_keys[] = {
    "model_type", "vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner", "activation_function",
    "layer_norm_epsilon", "tie_word_embeddings", "initializer_range", "scale_attn_weights", "resid_pdrop", "embd_pdrop",
    "attn_pdrop", "reorder_and_upcast_attn", "scale_attn_by_inverse_layer_idx",
    /* without effect */
    "_name_or_path", "architectures", "bos_token_id", "eos_token_id", "pad_token_id", "n_ctx", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "task_specific_params",
    "torch_dtype", "dtype", "transformers_version", "use_cache", NULL};

static int parse_sizes(struct gpt2 *out, const struct ah_json *json)
{
    const struct ah_config_size sizes[] = {
        {"vocab_size", &out->vocab_size, 1 << 24}, {"n_positions", &out->n_positions, 1 << 24},
        {"n_embd", &out->n_embd, 1 << 20},         {"n_layer", &out->n_layer, 1 << 12},
        {"n_head", &out->n_head, 1 << 16},
    };
    AH_TRY(ah__config_sizes(json, sizes, AH_LENGTH(sizes)));
    if (out->n_embd % out->n_head != 0)
        return ah__fail(AH_EINPUT, "%s: key 'n_head': found %lld, expected a divisor of n_embd %lld", json->path,
                        (long long)out->n_head, (long long)out->n_embd);
    out->n_inner = 4 * out->n_embd;
    if (ah__json_has(json, "n_inner"))
        AH_TRY(ah__json_int(&out->n_inner, json, "n_inner", 1, 1 << 22));
    return AH_OK;
}

static int parse_switches(struct gpt2 *out, const struct ah_json *json)
{
    static const struct ah_config_fixed fixed[] = {
        {"scale_attn_weights", true},
        {"reorder_and_upcast_attn", false},
        {"scale_attn_by_inverse_layer_idx", false},
    };
    AH_TRY(ah__config_fixed(json, fixed, AH_LENGTH(fixed)));
    out->tied = true;
    if (ah__json_has(json, "tie_word_embeddings"))
        AH_TRY(ah__json_bool(&out->tied, json, "tie_word_embeddings"));
    return AH_OK;
}

static int parse_numbers(struct gpt2 *out, const struct ah_json *json)
{
    out->layer_norm_epsilon = 1e-5;
    out->initializer_range = 0.02;
    if (ah__json_has(json, "layer_norm_epsilon"))
        AH_TRY(ah__json_double(&out->layer_norm_epsilon, json, "layer_norm_epsilon", 1e-12, 1));
    if (ah__json_has(json, "initializer_range"))
        AH_TRY(ah__json_double(&out->initializer_range, json, "initializer_range", 0, 10));
    return AH_OK;
}

static int parse_activation(struct gpt2 *out, const struct ah_json *json)
{
    static const char *const activations[] = {"gelu_new", "relu", NULL};
    const char *word;
    if (!ah__json_has(json, "activation_function"))
        return AH_OK;
    AH_TRY(ah__config_word(&word, json, "activation_function", activations));
    out->relu = strcmp(word, "relu") == 0;
    return AH_OK;
}

static int parse(void **out, const struct ah_json *json)
{
    struct gpt2 config = {0}, *copy;
    AH_TRY(ah__json_only(json, known_keys));
    AH_TRY(parse_sizes(&config, json));
    AH_TRY(ah__config_no_dropout(json, dropouts));
    AH_TRY(parse_switches(&config, json));
    AH_TRY(parse_numbers(&config, json));
    AH_TRY(parse_activation(&config, json));
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
}

/* ---- configuration -> config.json -------------------------------------------------------------------------------- */

static int fill_text(cJSON *tree, const struct gpt2 *config)
{
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {
        {"vocab_size", config->vocab_size}, {"n_positions", config->n_positions}, {"n_embd", config->n_embd},
        {"n_layer", config->n_layer},       {"n_head", config->n_head},           {"n_inner", config->n_inner},
    };
    static const char *const architecture = "GPT2LMHeadModel";
    cJSON *architectures = cJSON_CreateStringArray(&architecture, 1);
    if (!cJSON_AddItemToObject(tree, "architectures", architectures)) {
        cJSON_Delete(architectures);
        return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    }
    AH_TRY(ah__json_add_string(tree, "model_type", ah__family_gpt2.model_type));
    for (size_t i = 0; i < AH_LENGTH(sizes); i++)
        AH_TRY(ah__json_add_int(tree, sizes[i].key, sizes[i].value));
    AH_TRY(ah__json_add_string(tree, "activation_function", config->relu ? "relu" : "gelu_new"));
    AH_TRY(ah__json_add_double(tree, "layer_norm_epsilon", config->layer_norm_epsilon));
    AH_TRY(ah__json_add_double(tree, "initializer_range", config->initializer_range));
    AH_TRY(ah__json_add_bool(tree, "tie_word_embeddings", config->tied));
    for (size_t i = 0; dropouts[i]; i++)
        AH_TRY(ah__json_add_int(tree, dropouts[i], 0));
    return AH_OK;
}

static int text(char **out, const void *context)
{
    cJSON *tree = cJSON_CreateObject();
    if (!tree)
        return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    int status = fill_text(tree, context);
    if (status == AH_OK)
        status = ah__json_text(out, tree, false);
    cJSON_Delete(tree);
    return status;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static struct ah_tensor norm(struct ah_graph *graph, const struct gpt2 *config, const char *name, struct ah_tensor x)
{
    struct ah_shape shape = ah_shape1(config->n_embd);
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", shape, AH_INIT_ONES, 0);
    struct ah_tensor bias = ah_graph_param(graph, "bias", shape, AH_INIT_ZEROS, 0);
    x = ah_graph_layernorm(graph, x, weight, bias, (float)config->layer_norm_epsilon);
    ah_graph_scope_pop(graph);
    return x;
}

static struct ah_tensor linear(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t in, int64_t out,
                               double std)
{
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape2(in, out), AH_INIT_NORMAL, (float)std);
    struct ah_tensor bias = ah_graph_param(graph, "bias", ah_shape1(out), AH_INIT_ZEROS, 0);
    x = ah_graph_linear(graph, x, weight, bias, false);
    ah_graph_scope_pop(graph);
    return x;
}

/* The residual stream is added onto the projection's result, so that the block's input stays whole for backward. */
static struct ah_tensor block(struct ah_graph *graph, const struct gpt2 *config, struct ah_tensor x)
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

static struct ah_tensor table(struct ah_graph *graph, const struct gpt2 *config, const char *scope, int64_t rows)
{
    ah_graph_scope_push(graph, "%s", scope);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape2(rows, config->n_embd), AH_INIT_NORMAL,
                                             (float)config->initializer_range);
    ah_graph_scope_pop(graph);
    return weight;
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
    .parse = parse,
    .describe = describe,
    .text = text,
    .record = record,
    .free = ah__free,
};
