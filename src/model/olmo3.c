/* OLMo 3: OLMo 2 with windows in most blocks; scaling of positions does not apply to these blocks. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS, "attention_bias", "sliding_window", "layer_types", NULL};

#define LOCAL_THETA 500000.0 /* the theta that transformers uses for configurations with a flat rope_theta */

/* Without layer_types every fourth block has full attention. */
static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    double theta = decoder->kind[1].rope.theta;
    if (theta < LOCAL_THETA || theta > LOCAL_THETA)
        return ah__fail(AH_EINPUT, "%s: key 'rope_parameters.sliding_attention.rope_theta': found %g, expected %g",
                        json->path, theta, LOCAL_THETA);
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, (i + 1) % 4 != 0);
    AH_TRY(ah__decoder_parse_types(decoder, json));
    AH_TRY(ah__decoder_parse_window(decoder, json));
    decoder->kind[1].window = decoder->kind[0].window;
    decoder->kind[0].window = 0;
    return AH_OK;
}

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(ah__decoder_add_window(tree, decoder));
    return ah__decoder_add_types(tree, decoder);
}

const struct ah_family ah__family_olmo3 = AH_DECODER_FAMILY("olmo3", "Olmo3ForCausalLM", keys,
                                                            {.attention_bias_key = true,
                                                             .pads_by_default = true,
                                                             .eps = 1e-5,
                                                             .theta = LOCAL_THETA,
                                                             .local_theta = LOCAL_THETA,
                                                             .norms = AH_NORMS_AFTER,
                                                             .qk_norm = AH_QK_NORM_WHOLE,
                                                             .read = read,
                                                             .write = write});
