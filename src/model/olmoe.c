/* OLMoE: the decoder with rmsnorm of all queries and all keys, and mixtures of experts. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS,       "attention_bias", "num_experts", "num_local_experts",
                                   "num_experts_per_tok", "norm_topk_prob", NULL};

static const struct ah_decoder_experts experts = {.scope = "mlp",
                                                  .router = "gate",
                                                  .gate = "experts.*.gate_proj",
                                                  .up = "experts.*.up_proj",
                                                  .down = "experts.*.down_proj",
                                                  .count_key = "num_experts",
                                                  .may_normalise = true};

const struct ah_family ah__family_olmoe = AH_DECODER_FAMILY("olmoe", "OlmoeForCausalLM", keys,
                                                            {.attention_bias_key = true,
                                                             .pads_by_default = true,
                                                             .eps = 1e-5,
                                                             .qk_norm = AH_QK_NORM_WHOLE,
                                                             .experts = &experts,
                                                             .read = ah__decoder_parse_experts,
                                                             .write = ah__decoder_add_experts});
