/* OPT: learned positions, layernorm before attention and feed-forward network, relu, and a head that is tied to the
 * embedding by default. */
#include <string.h>

#include "base/alloc.h"
#include "model/family.h"
#include "model/parts.h"

enum { SIZES = 6, FIRST_POSITION = 2 }; /* rows of the position table before it are never read */
static const double norm_eps = 1e-5;    /* not a key of the configuration */

struct opt {
    int64_t vocab_size, hidden_size, ffn_dim, layers, heads, positions;
    double std;
    enum ah_activation activation;
    bool bias, tied;
    struct ah_config_dropout dropout;
};

static const char *const dropouts[] = {"dropout", "attention_dropout", "layerdrop", NULL};
static const char *const keys[] = {"vocab_size",
                                   "hidden_size",
                                   "ffn_dim",
                                   "num_hidden_layers",
                                   "num_attention_heads",
                                   "max_position_embeddings",
                                   "init_std",
                                   "activation_function",
                                   "enable_bias",
                                   "tie_word_embeddings",
                                   "do_layer_norm_before",
                                   "_remove_final_layer_norm",
                                   "layer_norm_elementwise_affine",
                                   "word_embed_proj_dim",
                                   "dropout",
                                   "attention_dropout",
                                   "layerdrop",
                                   NULL};

/* ---- config.json -> configuration -------------------------------------------------------------------------------- */

static void sizes_of(struct ah_config_size sizes[SIZES], struct opt *opt)
{
    const struct ah_config_size all[SIZES] = {
        {"vocab_size", &opt->vocab_size, 1 << 24},     {"hidden_size", &opt->hidden_size, 1 << 20},
        {"ffn_dim", &opt->ffn_dim, 1 << 22},           {"num_hidden_layers", &opt->layers, 1 << 12},
        {"num_attention_heads", &opt->heads, 1 << 16}, {"max_position_embeddings", &opt->positions, 1 << 24},
    };
    memcpy(sizes, all, sizeof all);
}

static int parse_sizes(struct opt *opt, const struct ah_json *json)
{
    struct ah_config_size sizes[SIZES];
    sizes_of(sizes, opt);
    AH_TRY(ah__config_sizes(json, sizes, SIZES));
    if (opt->hidden_size % opt->heads != 0)
        return ah__fail(AH_EINPUT, "%s: key 'num_attention_heads': found %lld, expected a divisor of hidden_size %lld",
                        json->path, (long long)opt->heads, (long long)opt->hidden_size);
    int64_t width = opt->hidden_size;
    AH_TRY(ah__config_int(&width, json, "word_embed_proj_dim", 1, 1 << 20));
    if (width != opt->hidden_size)
        return ah__fail(AH_EINPUT, "%s: key 'word_embed_proj_dim': found %lld, expected hidden_size %lld", json->path,
                        (long long)width, (long long)opt->hidden_size);
    return AH_OK;
}

static int parse(void **out, const struct ah_family *family, const struct ah_json *json)
{
    static const struct ah_config_fixed fixed[] = {
        {"do_layer_norm_before", true}, {"_remove_final_layer_norm", false}, {"layer_norm_elementwise_affine", true}};
    struct opt opt = {.std = 0.02, .activation = AH_ACTIVATION_RELU, .bias = true, .tied = true}, *copy;
    (void)family;
    AH_TRY(parse_sizes(&opt, json));
    AH_TRY(ah__config_fixed(json, fixed, AH_LENGTH(fixed)));
    AH_TRY(ah__config_double(&opt.std, json, "init_std", 0, 10));
    AH_TRY(ah__config_activation(&opt.activation, json, "activation_function"));
    AH_TRY(ah__config_bool(&opt.bias, json, "enable_bias"));
    AH_TRY(ah__config_bool(&opt.tied, json, "tie_word_embeddings"));
    AH_TRY(ah__config_dropout(&opt.dropout, json, dropouts));
    AH_TRY(ah__new(&copy, 1, sizeof *copy));
    *copy = opt;
    *out = copy;
    return AH_OK;
}

static void describe(struct ah_model_def *def, const void *config)
{
    const struct opt *opt = config;
    def->vocab_size = opt->vocab_size;
    def->max_seq = opt->positions;
    def->layers = (int)opt->layers;
    def->dropout_key = opt->dropout.key;
    def->dropout = opt->dropout.rate;
}

/* ---- configuration -> config.json -------------------------------------------------------------------------------- */

static int fill(cJSON *tree, const void *config)
{
    struct opt opt = *(const struct opt *)config;
    struct ah_config_size sizes[SIZES];
    sizes_of(sizes, &opt);
    AH_TRY(ah__config_add_sizes(tree, sizes, SIZES));
    AH_TRY(ah__json_add_int(tree, "word_embed_proj_dim", opt.hidden_size));
    AH_TRY(ah__config_add_real(tree, "init_std", opt.std));
    AH_TRY(ah__json_add_string(tree, "activation_function", ah__config_activation_word(opt.activation)));
    AH_TRY(ah__json_add_bool(tree, "do_layer_norm_before", true));
    AH_TRY(ah__json_add_bool(tree, "enable_bias", opt.bias));
    AH_TRY(ah__json_add_bool(tree, "tie_word_embeddings", opt.tied));
    return ah__config_add_zeros(tree, dropouts);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static struct ah_tensor linear(struct ah_graph *graph, const struct opt *opt, const char *name, struct ah_tensor x,
                               int64_t in, int64_t out)
{
    return ah__part_linear(graph, name, x,
                           &(struct ah_part_linear){.in = in, .out = out, .std = opt->std, .bias = opt->bias});
}

static struct ah_tensor attention(struct ah_graph *graph, const struct opt *opt, struct ah_tensor x)
{
    int64_t c = opt->hidden_size;
    ah_graph_scope_push(graph, "self_attn");
    struct ah_tensor q = linear(graph, opt, "q_proj", x, c, c), k = linear(graph, opt, "k_proj", x, c, c);
    struct ah_tensor v = linear(graph, opt, "v_proj", x, c, c);
    x = ah_graph_attention_qkv(graph, q, k, v, (int)opt->heads, (int)opt->heads, NULL);
    x = linear(graph, opt, "out_proj", x, c, c);
    ah_graph_scope_pop(graph);
    return x;
}

static struct ah_tensor block(struct ah_graph *graph, const struct opt *opt, struct ah_tensor x)
{
    int64_t c = opt->hidden_size;
    struct ah_tensor y = ah__part_layernorm(graph, "self_attn_layer_norm", x, c, norm_eps);
    x = ah_graph_add_inplace(graph, attention(graph, opt, y), x);
    y = ah__part_layernorm(graph, "final_layer_norm", x, c, norm_eps);
    y = ah__part_activation(graph, opt->activation, linear(graph, opt, "fc1", y, c, opt->ffn_dim));
    return ah_graph_add_inplace(graph, linear(graph, opt, "fc2", y, opt->ffn_dim, c), x);
}

static int record(struct ah_graph *graph, int64_t batch, int64_t seq, void *config)
{
    const struct opt *opt = config;
    int64_t c = opt->hidden_size, rows = opt->positions + FIRST_POSITION;
    struct ah_tensor tokens = ah_graph_tokens(graph, batch, seq), targets = ah_graph_targets(graph, batch, seq);
    struct ah_tensor table = ah__part_table(graph, "model.decoder.embed_tokens", opt->vocab_size, c, opt->std);
    struct ah_tensor x = ah_graph_embedding(graph, table, tokens), head = table;
    struct ah_tensor positions = ah__part_table(graph, "model.decoder.embed_positions", rows, c, opt->std);
    x = ah_graph_add_position_from(graph, x, positions, FIRST_POSITION);
    for (int64_t i = 0; i < opt->layers; i++) {
        ah_graph_scope_push(graph, "model.decoder.layers.%lld", (long long)i);
        x = block(graph, opt, x);
        ah_graph_scope_pop(graph);
    }
    x = ah__part_layernorm(graph, "model.decoder.final_layer_norm", x, c, norm_eps);
    if (!opt->tied)
        head = ah__part_table(graph, "lm_head", opt->vocab_size, c, opt->std);
    return ah_graph_finish(graph, ah_graph_linear_cross_entropy(graph, x, head, targets));
}

const struct ah_family ah__family_opt = {
    .model_type = "opt",
    .architecture = "OPTForCausalLM",
    .keys = keys,
    .parse = parse,
    .describe = describe,
    .write = fill,
    .record = record,
};
