/* OLMo 2: the decoder with rmsnorm after attention and feed-forward network, and of all queries and all keys. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

static const char *const keys[] = {AH_DECODER_KEYS, "attention_bias", NULL};

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {.eps = 1e-5, .norms = AH_NORMS_AFTER, .qk_norm = AH_QK_NORM_WHOLE};
    AH_TRY(ah__decoder_parse(&decoder, json));
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
    return ah__config_text(out, "Olmo2ForCausalLM", ah__family_olmo2.model_type, fill, config);
}

const struct ah_family ah__family_olmo2 = {
    .model_type = "olmo2",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
