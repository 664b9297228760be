/* Gemma: the decoder with weights of norms around zero, a gelu gate and embeddings times the root of their width. */
#include "model/gemma.h"

/* Old files have hidden_activation beside hidden_act. */
static const char *const keys[] = {AH_DECODER_KEYS, "attention_bias", "hidden_activation", NULL};

static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    static const char *const tanh_form[] = {"gelu_pytorch_tanh", NULL};
    const char *word;
    (void)decoder;
    return ah__json_has(json, "hidden_activation") ? ah__config_word(&word, json, "hidden_activation", tanh_form)
                                                   : AH_OK;
}

const struct ah_family ah__family_gemma = AH_DECODER_FAMILY("gemma", "GemmaForCausalLM", keys,
                                                            {.attention_bias_key = true,
                                                             .pads_by_default = true,
                                                             .kv_heads = 16,
                                                             .head_dim = 256,
                                                             .norm_offset = 1,
                                                             .root_scale = true,
                                                             .gelu = true,
                                                             .tied = true,
                                                             .read = read});

/* ---- Gemma 2 and 3 ----------------------------------------------------------------------------------------------- */

int ah__gemma_read(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__decoder_parse_caps(decoder, json));
    AH_TRY(ah__decoder_parse_scalar(decoder, json));
    AH_TRY(ah__decoder_parse_types(decoder, json));
    AH_TRY(ah__decoder_parse_window(decoder, json));
    decoder->kind[1].window = decoder->kind[0].window;
    decoder->kind[0].window = 0;
    return AH_OK;
}

int ah__gemma_write(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(ah__decoder_add_caps(tree, decoder));
    AH_TRY(ah__decoder_add_scalar(tree, decoder));
    AH_TRY(ah__decoder_add_window(tree, decoder));
    return ah__decoder_add_types(tree, decoder);
}
