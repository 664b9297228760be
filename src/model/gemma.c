/* Gemma: the decoder with norms of weights around zero, a gelu gate and embeddings times the root of their width. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

/* hidden_activation is hidden_act's other name in old files. */
static const char *const keys[] = {AH_DECODER_KEYS, "attention_bias", "hidden_activation", NULL};

static int parse(void **out, const struct ah_json *json)
{
    static const char *const tanh_form[] = {"gelu_pytorch_tanh", NULL};
    struct ah_decoder decoder = {
        .kv_heads = 16, .head_dim = 256, .norm_offset = 1, .root_scale = true, .gelu = true, .tied = true};
    const char *word;
    AH_TRY(ah__decoder_parse(&decoder, json));
    if (ah__json_has(json, "hidden_activation"))
        AH_TRY(ah__config_word(&word, json, "hidden_activation", tanh_form));
    AH_TRY(ah__config_bool(&decoder.qkv_bias, json, "attention_bias"));
    decoder.out_bias = decoder.qkv_bias;
    return ah__decoder_new(out, &decoder);
}

static int fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    AH_TRY(ah__decoder_add(tree, decoder));
    AH_TRY(ah__config_add_no_pad(tree));
    return ah__json_add_bool(tree, "attention_bias", decoder->qkv_bias);
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "GemmaForCausalLM", ah__family_gemma.model_type, fill, config);
}

const struct ah_family ah__family_gemma = {
    .model_type = "gemma",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
