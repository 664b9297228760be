/* Gemma: the decoder with norms of weights around zero, a gelu gate and embeddings times the root of their width. */
#include "model/gemma.h"

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

/* ---- what Gemma 2 and 3 share ------------------------------------------------------------------------------------ */

int ah__gemma_parse(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__decoder_parse(decoder, json));
    AH_TRY(ah__decoder_parse_caps(decoder, json));
    AH_TRY(ah__config_bool(&decoder->qkv_bias, json, "attention_bias"));
    decoder->out_bias = decoder->qkv_bias;
    return ah__decoder_parse_scalar(decoder, json);
}

int ah__gemma_parse_windows(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__decoder_parse_types(decoder, json));
    AH_TRY(ah__decoder_parse_window(decoder, json));
    decoder->kind[1].window = decoder->kind[0].window;
    decoder->kind[0].window = 0;
    return AH_OK;
}

int ah__gemma_fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    AH_TRY(ah__decoder_add(tree, decoder));
    AH_TRY(ah__decoder_add_caps(tree, decoder));
    AH_TRY(ah__config_add_no_pad(tree));
    AH_TRY(ah__json_add_bool(tree, "attention_bias", decoder->qkv_bias));
    AH_TRY(ah__decoder_add_scalar(tree, decoder));
    AH_TRY(ah__decoder_add_window(tree, decoder));
    return ah__decoder_add_types(tree, decoder);
}
