/* Qwen3: the decoder with rmsnorm of each head of queries and keys. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS, AH_DECODER_LAYER_KEYS, "attention_bias", NULL};

const struct ah_family ah__family_qwen3 = AH_DECODER_FAMILY("qwen3", "Qwen3ForCausalLM", keys,
                                                            {.attention_bias_key = true,
                                                             .head_dim = 128,
                                                             .qk_norm = AH_QK_NORM_HEADS,
                                                             .read = ah__decoder_parse_layers,
                                                             .write = ah__decoder_add_layers});
