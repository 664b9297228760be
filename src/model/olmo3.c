/* OLMo 3: OLMo 2 with windows in most blocks, which no scaling of positions reaches. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

static const char *const keys[] = {AH_DECODER_KEYS, "attention_bias", "sliding_window", "layer_types", NULL};

static const double local_theta = 500000; /* what transformers takes where a flat rope_theta is read */

/* Without layer_types every fourth block sees all. */
static int parse_kinds(struct ah_decoder *decoder, const struct ah_json *json)
{
    double theta = decoder->kind[1].rope.theta;
    if (theta < local_theta || theta > local_theta)
        return ah__fail(AH_EINPUT, "%s: key 'rope_parameters.sliding_attention.rope_theta': found %g, expected %g",
                        json->path, theta, local_theta);
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, (i + 1) % 4 != 0);
    AH_TRY(ah__decoder_parse_types(decoder, json));
    AH_TRY(ah__decoder_parse_window(decoder, json));
    decoder->kind[1].window = decoder->kind[0].window;
    decoder->kind[0].window = 0;
    return AH_OK;
}

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {.eps = 1e-5,
                                 .theta = local_theta,
                                 .local_theta = local_theta,
                                 .norms = AH_NORMS_AFTER,
                                 .qk_norm = AH_QK_NORM_WHOLE};
    AH_TRY(ah__decoder_parse(&decoder, json));
    AH_TRY(parse_kinds(&decoder, json));
    AH_TRY(ah__config_bool(&decoder.qkv_bias, json, "attention_bias"));
    decoder.out_bias = decoder.qkv_bias;
    return ah__decoder_new(out, &decoder);
}

static int fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    AH_TRY(ah__decoder_add(tree, decoder));
    AH_TRY(ah__config_add_no_pad(tree));
    AH_TRY(ah__json_add_bool(tree, "attention_bias", decoder->qkv_bias));
    AH_TRY(ah__decoder_add_window(tree, decoder));
    return ah__decoder_add_types(tree, decoder);
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "Olmo3ForCausalLM", ah__family_olmo3.model_type, fill, config);
}

const struct ah_family ah__family_olmo3 = {
    .model_type = "olmo3",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
