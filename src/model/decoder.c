#include "model/decoder.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

static const char *const attention_dropout[] = {"attention_dropout", NULL};
enum { SIZES = 6 };

/* ---- config.json -> configuration -------------------------------------------------------------------------------- */

static void sizes_of(struct ah_config_size sizes[SIZES], struct ah_decoder *decoder)
{
    const struct ah_config_size all[SIZES] = {
        {"vocab_size", &decoder->vocab_size, 1 << 24},
        {"hidden_size", &decoder->hidden_size, 1 << 20},
        {"intermediate_size", &decoder->intermediate_size, 1 << 22},
        {"num_hidden_layers", &decoder->layers, AH_DECODER_MOST_LAYERS},
        {"num_attention_heads", &decoder->heads, 1 << 16},
        {"max_position_embeddings", &decoder->positions, 1 << 24},
    };
    memcpy(sizes, all, sizeof all);
}

static int parse_heads(struct ah_decoder *decoder, const struct ah_json *json)
{
    decoder->kv_heads = decoder->kv_heads > 0 && !cJSON_HasObjectItem(json->node, "num_key_value_heads")
                            ? decoder->kv_heads
                            : decoder->heads;
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
    return (struct ah_rope_keys){.theta = "rope_theta",
                                 .part = decoder->partial ? "partial_rotary_factor" : NULL,
                                 .original = decoder->original ? "original_max_position_embeddings" : NULL};
}

/* Reads the rotation of blocks with a window, if the family has a separate one for them. */
static int parse_local_rope(struct ah_decoder *decoder, const struct ah_json *json)
{
    struct ah_rope_keys keys = {.theta = decoder->local_theta_key, .type = "sliding_attention", .local = true};
    struct ah_rope rope = {.theta = decoder->local_theta, .part = 1};
    if (!(decoder->local_theta > 0))
        return AH_OK;
    AH_TRY(ah__rope_parse(&rope, json, &keys, decoder->positions));
    if (rope.factor > 0 || rope.dynamic > 0 || rope.stretches > 0)
        return ah__fail(AH_EINPUT,
                        "%s: key 'rope_parameters.sliding_attention.rope_type': found a scaling, expected 'default'",
                        json->path);
    decoder->kind[1].rope = rope;
    return AH_OK;
}

static int parse_rope(struct ah_decoder *decoder, const struct ah_json *json)
{
    struct ah_rope_keys keys = rope_keys_of(decoder);
    keys.type = decoder->local_theta > 0 ? "full_attention" : NULL;
    struct ah_rope rope = {.theta = decoder->theta > 0 ? decoder->theta : 10000, .part = 1};
    rope.original = decoder->original;
    AH_TRY(ah__rope_parse(&rope, json, &keys, decoder->positions));
    decoder->kind[0].rope = decoder->kind[1].rope = rope;
    AH_TRY(parse_local_rope(decoder, json));
    return ah__rope_dims(&decoder->rotary_dims, &rope, json, &keys, decoder->head_dim);
}

static const char *activation_key_of(const struct ah_decoder *decoder)
{
    return decoder->activation_key ? decoder->activation_key : "hidden_act";
}

/* Checks the word for the gate's activation function. */
static int parse_activation(const struct ah_decoder *decoder, const struct ah_json *json)
{
    static const char *const silu[] = {"silu", "swish", NULL}, *const gelu[] = {"gelu_pytorch_tanh", "gelu_new", NULL};
    static const char *const legacy[] = {"gelu_pytorch_tanh", "gelu_new", "gelu", NULL}; /* for hidden_act */
    const char *word, *key = activation_key_of(decoder);
    return ah__json_has(json, key) ? ah__config_word(&word, json, key,
                                                     !decoder->gelu            ? silu
                                                     : decoder->activation_key ? gelu
                                                                               : legacy)
                                   : AH_OK;
}

static int parse_biases(struct ah_decoder *decoder, const struct ah_json *json)
{
    if (decoder->attention_bias_key) {
        AH_TRY(ah__config_bool(&decoder->qkv_bias, json, "attention_bias"));
        decoder->out_bias = decoder->qkv_bias;
    }
    return decoder->mlp_bias_key ? ah__config_bool(&decoder->mlp_bias, json, "mlp_bias") : AH_OK;
}

/* Reads a decoder's keys. A missing key leaves the family's default, if that is not 0. */
static int parse(struct ah_decoder *decoder, const struct ah_json *json)
{
    struct ah_config_size sizes[SIZES];
    decoder->eps = decoder->eps > 0 ? decoder->eps : 1e-6;
    decoder->std = 0.02;
    decoder->embedding_scale = decoder->residual_scale = decoder->logit_scale = 1;
    sizes_of(sizes, decoder);
    AH_TRY(ah__config_sizes(json, sizes, SIZES));
    AH_TRY(parse_heads(decoder, json));
    AH_TRY(parse_rope(decoder, json));
    AH_TRY(parse_activation(decoder, json));
    AH_TRY(ah__config_double(&decoder->eps, json, "rms_norm_eps", 1e-12, 1));
    AH_TRY(ah__config_double(&decoder->std, json, "initializer_range", 0, 10));
    AH_TRY(ah__config_bool(&decoder->tied, json, "tie_word_embeddings"));
    AH_TRY(ah__config_dropout(&decoder->dropout, json, dropouts_of(decoder)));
    AH_TRY(parse_biases(decoder, json));
    return decoder->read ? decoder->read(decoder, json) : AH_OK;
}

int ah__decoder_new(void **out, const struct ah_family *family, const struct ah_json *json)
{
    struct ah_decoder *decoder;
    AH_TRY(ah__new(&decoder, 1, sizeof *decoder));
    *decoder = *family->decoder;
    int status = parse(decoder, json);
    *out = decoder;
    if (status != AH_OK)
        ah__free(decoder);
    return status;
}

static int parse_cap(double *cap, const struct ah_json *json, const char *key)
{
    *cap = cJSON_HasObjectItem(json->node, key) ? 0 : *cap;
    return ah__config_double(cap, json, key, 1e-3, 1e6);
}

static double scale_of(double scalar)
{
    return 1 / sqrt(scalar);
}

int ah__decoder_parse_scalar(struct ah_decoder *decoder, const struct ah_json *json)
{
    double scalar = 256;
    AH_TRY(ah__config_double(&scalar, json, "query_pre_attn_scalar", 1, 1e6));
    decoder->attention_scale = scale_of(scalar);
    return AH_OK;
}

int ah__decoder_parse_caps(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(parse_cap(&decoder->attention_cap, json, "attn_logit_softcapping"));
    return parse_cap(&decoder->logit_cap, json, "final_logit_softcapping");
}

/* ---- configuration -> config.json -------------------------------------------------------------------------------- */

int ah__decoder_write(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    struct ah_decoder copy = *decoder;
    struct ah_rope_keys keys = rope_keys_of(decoder);
    struct ah_config_size sizes[SIZES];
    sizes_of(sizes, &copy);
    AH_TRY(ah__config_add_sizes(tree, sizes, SIZES));
    AH_TRY(ah__json_add_int(tree, "num_key_value_heads", decoder->kv_heads));
    AH_TRY(ah__json_add_int(tree, "head_dim", decoder->head_dim));
    AH_TRY(ah__json_add_string(tree, activation_key_of(decoder), decoder->gelu ? "gelu_pytorch_tanh" : "silu"));
    AH_TRY(ah__config_add_real(tree, "rms_norm_eps", decoder->eps));
    AH_TRY(ah__config_add_real(tree, "initializer_range", decoder->std));
    AH_TRY(ah__json_add_bool(tree, "tie_word_embeddings", decoder->tied));
    AH_TRY(ah__rope_add(tree, &decoder->kind[0].rope, &keys));
    if (decoder->local_theta_key)
        AH_TRY(ah__config_add_real(tree, decoder->local_theta_key, decoder->kind[1].rope.theta));
    AH_TRY(ah__config_add_zeros(tree, dropouts_of(decoder)));
    if (decoder->pads_by_default)
        AH_TRY(ah__config_add_no_pad(tree));
    if (decoder->attention_bias_key)
        AH_TRY(ah__json_add_bool(tree, "attention_bias", decoder->qkv_bias));
    if (decoder->mlp_bias_key)
        AH_TRY(ah__json_add_bool(tree, "mlp_bias", decoder->mlp_bias));
    return decoder->write ? decoder->write(tree, decoder) : AH_OK;
}

static int add_cap(cJSON *tree, const char *key, double cap)
{
    if (cap > 0)
        return ah__config_add_real(tree, key, cap);
    return cJSON_AddNullToObject(tree, key) ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

int ah__decoder_add_caps(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(add_cap(tree, "attn_logit_softcapping", decoder->attention_cap));
    return add_cap(tree, "final_logit_softcapping", decoder->logit_cap);
}

int ah__decoder_add_scalar(cJSON *tree, const struct ah_decoder *decoder)
{
    double scale = decoder->attention_scale;
    return ah__json_add_double(tree, "query_pre_attn_scalar", ah__config_origin(scale, 1 / (scale * scale), scale_of));
}

void ah__decoder_describe(struct ah_model_def *def, const void *context)
{
    const struct ah_decoder *decoder = context;
    def->vocab_size = decoder->vocab_size;
    def->max_seq = decoder->positions;
    def->layers = (int)decoder->layers;
    def->switch_seq = ah__rope_switch(&decoder->kind[0].rope);
    def->dropout_key = decoder->dropout.key;
    def->dropout = decoder->dropout.rate;
}
