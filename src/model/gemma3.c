/* Gemma 3, its language model alone: Gemma with norms before and after, rmsnorm of each head of queries and keys, and
 * windows with a rotation of their own in most blocks. */
#include "model/gemma.h"

static const char *const keys[] = {AH_DECODER_KEYS,
                                   AH_DECODER_CAP_KEYS,
                                   "attention_bias",
                                   "hidden_activation",
                                   "query_pre_attn_scalar",
                                   "sliding_window",
                                   "sliding_window_pattern",
                                   "_sliding_window_pattern",
                                   "layer_types",
                                   "rope_local_base_freq",
                                   NULL};

/* Without layer_types every sixth block, or every n-th by sliding_window_pattern, has full attention. */
static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    int64_t pattern = 6;
    AH_TRY(ah__config_int(&pattern, json, "_sliding_window_pattern", 1, AH_DECODER_MOST_LAYERS));
    AH_TRY(ah__config_int(&pattern, json, "sliding_window_pattern", 1, AH_DECODER_MOST_LAYERS));
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, (i + 1) % pattern != 0);
    return ah__gemma_read(decoder, json);
}

const struct ah_family ah__family_gemma3_text =
    AH_DECODER_FAMILY("gemma3_text", "Gemma3ForCausalLM", keys,
                      {AH_GEMMA_DECODER, .theta = 1000000, .local_theta_key = "rope_local_base_freq",
                       .local_theta = 10000, .qk_norm = AH_QK_NORM_HEADS, .read = read});
