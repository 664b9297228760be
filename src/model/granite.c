/* Granite: Llama with four factors. Logits are divided by theirs: here what the head reads is. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

static const char *const keys[] = {
    AH_DECODER_KEYS,       "attention_bias",       "mlp_bias",       "embedding_multiplier",
    "residual_multiplier", "attention_multiplier", "logits_scaling", NULL};

static int parse_factors(struct ah_decoder *decoder, const struct ah_json *json)
{
    double divisor = 1;
    decoder->attention_scale = 1;
    AH_TRY(ah__config_double(&decoder->embedding_scale, json, "embedding_multiplier", 1e-6, 1e6));
    AH_TRY(ah__config_double(&decoder->residual_scale, json, "residual_multiplier", 1e-6, 1e6));
    AH_TRY(ah__config_double(&decoder->attention_scale, json, "attention_multiplier", 1e-6, 1e6));
    AH_TRY(ah__config_double(&divisor, json, "logits_scaling", 1e-6, 1e6));
    decoder->logit_scale = 1 / divisor;
    return AH_OK;
}

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {0};
    AH_TRY(ah__decoder_parse(&decoder, json));
    AH_TRY(ah__config_bool(&decoder.qkv_bias, json, "attention_bias"));
    AH_TRY(ah__config_bool(&decoder.mlp_bias, json, "mlp_bias"));
    decoder.out_bias = decoder.qkv_bias;
    AH_TRY(parse_factors(&decoder, json));
    return ah__decoder_new(out, &decoder);
}

static double scale_of(double scaling)
{
    return 1 / scaling;
}

static int fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    AH_TRY(ah__decoder_add(tree, decoder));
    AH_TRY(ah__json_add_bool(tree, "attention_bias", decoder->qkv_bias));
    AH_TRY(ah__json_add_bool(tree, "mlp_bias", decoder->mlp_bias));
    AH_TRY(ah__config_add_real(tree, "embedding_multiplier", decoder->embedding_scale));
    AH_TRY(ah__config_add_real(tree, "residual_multiplier", decoder->residual_scale));
    AH_TRY(ah__config_add_real(tree, "attention_multiplier", decoder->attention_scale));
    return ah__config_add_real(tree, "logits_scaling",
                               ah__config_origin(decoder->logit_scale, 1 / decoder->logit_scale, scale_of));
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "GraniteForCausalLM", ah__family_granite.model_type, fill, config);
}

const struct ah_family ah__family_granite = {
    .model_type = "granite",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
