/* Llama, and TinyLlama, SmolLM and others that say they are it: the decoder with optional biases. pretraining_tp cuts
 * products into parts of the same sum. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

static const char *const keys[] = {AH_DECODER_KEYS, "attention_bias", "mlp_bias", NULL};

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {0};
    AH_TRY(ah__decoder_parse(&decoder, json));
    AH_TRY(ah__config_bool(&decoder.qkv_bias, json, "attention_bias"));
    AH_TRY(ah__config_bool(&decoder.mlp_bias, json, "mlp_bias"));
    decoder.out_bias = decoder.qkv_bias;
    return ah__decoder_new(out, &decoder);
}

static int fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    AH_TRY(ah__decoder_add(tree, decoder));
    AH_TRY(ah__json_add_bool(tree, "attention_bias", decoder->qkv_bias));
    return ah__json_add_bool(tree, "mlp_bias", decoder->mlp_bias);
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "LlamaForCausalLM", ah__family_llama.model_type, fill, config);
}

const struct ah_family ah__family_llama = {
    .model_type = "llama",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
