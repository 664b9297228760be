/* Mixtral: Mistral's decoder whose feed-forward networks are mixtures of experts. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS, "sliding_window", "num_local_experts", "num_experts_per_tok", NULL};

static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__config_int(&decoder->kind[0].window, json, "sliding_window", 1, 1 << 24));
    return ah__decoder_parse_experts(decoder, json);
}

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    if (decoder->kind[0].window > 0)
        AH_TRY(ah__json_add_int(tree, "sliding_window", decoder->kind[0].window));
    return ah__decoder_add_experts(tree, decoder);
}

static const struct ah_decoder_experts experts = {.scope = "block_sparse_moe",
                                                  .router = "gate",
                                                  .gate = "experts.*.w1",
                                                  .up = "experts.*.w3",
                                                  .down = "experts.*.w2",
                                                  .count_key = "num_local_experts"};

const struct ah_family ah__family_mixtral =
    AH_DECODER_FAMILY("mixtral", "MixtralForCausalLM", keys,
                      {.eps = 1e-5, .theta = 1e6, .kv_heads = 8, .experts = &experts, .read = read, .write = write});
