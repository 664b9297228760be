/* OLMo 2: the decoder with rmsnorm after attention and feed-forward network, and of all queries and all keys. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS, "attention_bias", NULL};

const struct ah_family ah__family_olmo2 = AH_DECODER_FAMILY("olmo2", "Olmo2ForCausalLM", keys,
                                                            {.attention_bias_key = true,
                                                             .pads_by_default = true,
                                                             .eps = 1e-5,
                                                             .norms = AH_NORMS_AFTER,
                                                             .qk_norm = AH_QK_NORM_WHOLE});
