/* Granite with experts: Granite's decoder whose feed-forward networks are mixtures of experts, fused in files as in
 * memory. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS,     AH_GRANITE_KEYS,       "attention_bias",
                                   "num_local_experts", "num_experts_per_tok", NULL};

static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__granite_parse(decoder, json));
    return ah__decoder_parse_experts(decoder, json);
}

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    AH_TRY(ah__granite_add(tree, decoder));
    return ah__decoder_add_experts(tree, decoder);
}

static const struct ah_decoder_experts experts = {.scope = "block_sparse_moe",
                                                  .router = "router.layer",
                                                  .gate = "input_linear",
                                                  .down = "output_linear",
                                                  .count_key = "num_local_experts"};

const struct ah_family ah__family_granitemoe =
    AH_DECODER_FAMILY("granitemoe", "GraniteMoeForCausalLM", keys,
                      {.attention_bias_key = true, .experts = &experts, .read = read, .write = write});
