/* Qwen2 and Qwen2.5: the decoder with biases on queries, keys and values, whatever attention_bias
 * says: transformers does not read it either. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

static const char *const keys[] = {AH_DECODER_KEYS, AH_DECODER_LAYER_KEYS, "attention_bias", NULL};

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {0};
    AH_TRY(ah__decoder_parse(&decoder, json));
    AH_TRY(ah__decoder_parse_layers(&decoder, json));
    decoder.qkv_bias = true;
    return ah__decoder_new(out, &decoder);
}

static int fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    AH_TRY(ah__decoder_add(tree, decoder));
    return ah__decoder_add_layers(tree, decoder);
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "Qwen2ForCausalLM", ah__family_qwen2.model_type, fill, config);
}

const struct ah_family ah__family_qwen2 = {
    .model_type = "qwen2",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
