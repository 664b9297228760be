/* Granite: Llama with four factors. Its configuration divides logits by their factor; here the head's input is
 * divided. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS, AH_GRANITE_KEYS, "attention_bias", "mlp_bias", NULL};

int ah__granite_parse(struct ah_decoder *decoder, const struct ah_json *json)
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

static double scale_of(double scaling)
{
    return 1 / scaling;
}

int ah__granite_add(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(ah__config_add_real(tree, "embedding_multiplier", decoder->embedding_scale));
    AH_TRY(ah__config_add_real(tree, "residual_multiplier", decoder->residual_scale));
    AH_TRY(ah__config_add_real(tree, "attention_multiplier", decoder->attention_scale));
    return ah__config_add_real(tree, "logits_scaling",
                               ah__config_origin(decoder->logit_scale, 1 / decoder->logit_scale, scale_of));
}

const struct ah_family ah__family_granite = AH_DECODER_FAMILY(
    "granite", "GraniteForCausalLM", keys,
    {.attention_bias_key = true, .mlp_bias_key = true, .read = ah__granite_parse, .write = ah__granite_add});
