/* Gemma 2: Gemma with norms before and after, soft caps on scores and logits, and windows in every other block. */
#include "model/gemma.h"

static const char *const keys[] = {AH_DECODER_KEYS,         AH_DECODER_CAP_KEYS, "attention_bias", "hidden_activation",
                                   "query_pre_attn_scalar", "sliding_window",    "layer_types",    NULL};

/* Without layer_types the first block, the third and so on have windows. */
static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, i % 2 == 0);
    return ah__gemma_read(decoder, json);
}

const struct ah_family ah__family_gemma2 = AH_DECODER_FAMILY(
    "gemma2", "Gemma2ForCausalLM", keys, {AH_GEMMA_DECODER, .attention_cap = 50, .logit_cap = 30, .read = read});
