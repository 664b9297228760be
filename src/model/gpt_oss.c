/* gpt-oss: attention with sinks and, in every second block, a window; experts with biases and a clamped gate. */
#include <math.h>

#include "graph/graph.h"
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS,
                                   "attention_bias",
                                   "sliding_window",
                                   "layer_types",
                                   "num_local_experts",
                                   "num_experts",
                                   "swiglu_alpha",
                                   "swiglu_limit",
                                   "num_experts_per_tok",
                                   "experts_per_token",
                                   NULL};

#define THETA 150000.0

/* Its class scales positions if config.json says nothing of them. */
static const struct ah_rope usual = {.theta = THETA, .part = 1, .factor = 32, .low = 1, .high = 32, .original = 4096};

static void rope_default(struct ah_decoder *decoder, const struct ah_json *json)
{
    if (ah__json_has(json, "rope_parameters") || ah__json_has(json, "rope_scaling"))
        return;
    struct ah_rope rope = usual;
    rope.theta = decoder->kind[0].rope.theta;
    rope.magnitude = 0.1 * log(rope.factor) + 1;
    decoder->kind[0].rope = decoder->kind[1].rope = rope;
}

/* Reads experts_per_token, a second key for num_experts_per_tok in published folders. */
static int parse_twin(const struct ah_decoder *decoder, const struct ah_json *json)
{
    int64_t picks = decoder->picks;
    AH_TRY(ah__config_int(&picks, json, "experts_per_token", 1, AH_MOST_PICKS));
    return picks == decoder->picks
               ? AH_OK
               : ah__fail(AH_EINPUT,
                          "%s: key 'experts_per_token': found %lld, expected %lld, as num_experts_per_tok has",
                          json->path, (long long)picks, (long long)decoder->picks);
}

static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    rope_default(decoder, json);
    AH_TRY(ah__config_double(&decoder->gate_scale, json, "swiglu_alpha", 1e-3, 1e3));
    AH_TRY(ah__config_double(&decoder->gate_limit, json, "swiglu_limit", 1e-3, 1e6));
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, i % 2 == 0);
    AH_TRY(ah__decoder_parse_types(decoder, json));
    decoder->kind[1].window = 128;
    if (cJSON_HasObjectItem(json->node, "sliding_window")) { /* null: no window */
        AH_TRY(ah__decoder_parse_window(decoder, json));
        decoder->kind[1].window = decoder->kind[0].window;
        decoder->kind[0].window = 0;
    }
    AH_TRY(ah__decoder_parse_experts(decoder, json));
    return parse_twin(decoder, json);
}

/* Says that positions are not scaled, which a missing key would not. */
static int add_no_scaling(cJSON *tree, const struct ah_decoder *decoder)
{
    if (decoder->kind[0].rope.factor > 0 || decoder->kind[0].rope.dynamic > 0)
        return AH_OK;
    return ah__json_add_string(cJSON_AddObjectToObject(tree, "rope_scaling"), "rope_type", "default");
}

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(add_no_scaling(tree, decoder));
    AH_TRY(ah__config_add_real(tree, "swiglu_alpha", decoder->gate_scale));
    AH_TRY(ah__config_add_real(tree, "swiglu_limit", decoder->gate_limit));
    AH_TRY(ah__decoder_add_window(tree, decoder));
    AH_TRY(ah__decoder_add_types(tree, decoder));
    return ah__decoder_add_experts(tree, decoder);
}

static const struct ah_decoder_experts experts = {.scope = "mlp",
                                                  .router = "router",
                                                  .gate = "experts.gate_up_proj^T2",
                                                  .down = "experts.down_proj^T",
                                                  .count_key = "num_local_experts",
                                                  .biases = true};

const struct ah_family ah__family_gpt_oss = AH_DECODER_FAMILY("gpt_oss", "GptOssForCausalLM", keys,
                                                              {.attention_bias_key = true,
                                                               .qkv_bias = true,
                                                               .out_bias = true,
                                                               .eps = 1e-5,
                                                               .theta = THETA,
                                                               .kv_heads = 8,
                                                               .head_dim = 64,
                                                               .experts = &experts,
                                                               .gate_scale = 1.702,
                                                               .gate_limit = 7,
                                                               .sinks = true,
                                                               .read = read,
                                                               .write = write});
