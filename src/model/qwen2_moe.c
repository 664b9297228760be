/* Qwen2 with experts: Qwen2's decoder whose feed-forward networks are mixtures of experts, with one more for all
 * tokens. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS,
                                   AH_DECODER_LAYER_KEYS,
                                   AH_DECODER_SPARSE_KEYS,
                                   "qkv_bias",
                                   "num_experts",
                                   "num_local_experts",
                                   "num_experts_per_tok",
                                   "moe_intermediate_size",
                                   "shared_expert_intermediate_size",
                                   "norm_topk_prob",
                                   NULL};

static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__config_bool(&decoder->qkv_bias, json, "qkv_bias"));
    AH_TRY(ah__decoder_parse_layers(decoder, json));
    AH_TRY(ah__decoder_parse_sparse(json));
    return ah__decoder_parse_experts(decoder, json);
}

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(ah__json_add_bool(tree, "qkv_bias", decoder->qkv_bias));
    AH_TRY(ah__decoder_add_layers(tree, decoder));
    AH_TRY(ah__decoder_add_sparse(tree));
    return ah__decoder_add_experts(tree, decoder);
}

static const struct ah_decoder_experts experts = {.scope = "mlp",
                                                  .router = "gate",
                                                  .gate = "experts.*.gate_proj",
                                                  .up = "experts.*.up_proj",
                                                  .down = "experts.*.down_proj",
                                                  .shared = "shared_expert",
                                                  .shared_gate = "shared_expert_gate",
                                                  .count_key = "num_experts",
                                                  .size_key = "moe_intermediate_size",
                                                  .shared_size_key = "shared_expert_intermediate_size",
                                                  .may_normalise = true};

const struct ah_family ah__family_qwen2_moe =
    AH_DECODER_FAMILY("qwen2_moe", "Qwen2MoeForCausalLM", keys,
                      {.qkv_bias = true, .alternates = true, .experts = &experts, .read = read, .write = write});
