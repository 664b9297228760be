/* Qwen3 with experts: Qwen3's decoder whose feed-forward networks are mixtures of experts. */
#include "model/decoder.h"

static const char *const keys[] = {
    AH_DECODER_KEYS,       AH_DECODER_LAYER_KEYS,   "attention_bias", "num_experts",          "num_local_experts",
    "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob", AH_DECODER_SPARSE_KEYS, NULL};

static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__decoder_parse_layers(decoder, json));
    AH_TRY(ah__decoder_parse_sparse(json));
    return ah__decoder_parse_experts(decoder, json);
}

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(ah__decoder_add_layers(tree, decoder));
    AH_TRY(ah__decoder_add_sparse(tree));
    return ah__decoder_add_experts(tree, decoder);
}

static const struct ah_decoder_experts experts = {.scope = "mlp",
                                                  .router = "gate",
                                                  .gate = "experts.*.gate_proj",
                                                  .up = "experts.*.up_proj",
                                                  .down = "experts.*.down_proj",
                                                  .count_key = "num_experts",
                                                  .size_key = "moe_intermediate_size",
                                                  .may_normalise = true};

const struct ah_family ah__family_qwen3_moe = AH_DECODER_FAMILY(
    "qwen3_moe", "Qwen3MoeForCausalLM", keys,
    {.attention_bias_key = true, .qk_norm = AH_QK_NORM_HEADS, .experts = &experts, .read = read, .write = write});
