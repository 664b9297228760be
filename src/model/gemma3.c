/* Gemma 3, its language model alone: Gemma with norms before and after, rmsnorm of each head of queries and keys, and
 * windows with a rotation of their own in most blocks. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"
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

/* Without layer_types every sixth block, or as the pattern says, sees all. */
static int parse_kinds(struct ah_decoder *decoder, const struct ah_json *json)
{
    int64_t pattern = 6;
    AH_TRY(ah__config_int(&pattern, json, "_sliding_window_pattern", 1, AH_DECODER_MOST_LAYERS));
    AH_TRY(ah__config_int(&pattern, json, "sliding_window_pattern", 1, AH_DECODER_MOST_LAYERS));
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, (i + 1) % pattern != 0);
    return ah__gemma_parse_windows(decoder, json);
}

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {.kv_heads = 4,
                                 .head_dim = 256,
                                 .theta = 1000000,
                                 .local_theta_key = "rope_local_base_freq",
                                 .local_theta = 10000,
                                 .norms = AH_NORMS_BOTH,
                                 .qk_norm = AH_QK_NORM_HEADS,
                                 .norm_offset = 1,
                                 .root_scale = true,
                                 .gelu = true,
                                 .activation_key = "hidden_activation",
                                 .tied = true};
    AH_TRY(ah__gemma_parse(&decoder, json));
    AH_TRY(parse_kinds(&decoder, json));
    return ah__decoder_new(out, &decoder);
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "Gemma3ForCausalLM", ah__family_gemma3_text.model_type, ah__gemma_fill, config);
}

const struct ah_family ah__family_gemma3_text = {
    .model_type = "gemma3_text",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
