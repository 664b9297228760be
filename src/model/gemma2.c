/* Gemma 2: Gemma with norms before and after, soft caps on scores and logits, and windows in every other block. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"
#include "model/gemma.h"

static const char *const keys[] = {AH_DECODER_KEYS,         AH_DECODER_CAP_KEYS, "attention_bias", "hidden_activation",
                                   "query_pre_attn_scalar", "sliding_window",    "layer_types",    NULL};

/* Without layer_types the first block, the third and so on have windows. */
static int parse_kinds(struct ah_decoder *decoder, const struct ah_json *json)
{
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, i % 2 == 0);
    return ah__gemma_parse_windows(decoder, json);
}

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {.kv_heads = 4,
                                 .head_dim = 256,
                                 .norms = AH_NORMS_BOTH,
                                 .norm_offset = 1,
                                 .root_scale = true,
                                 .gelu = true,
                                 .activation_key = "hidden_activation",
                                 .attention_cap = 50,
                                 .logit_cap = 30,
                                 .tied = true};
    AH_TRY(ah__gemma_parse(&decoder, json));
    AH_TRY(parse_kinds(&decoder, json));
    return ah__decoder_new(out, &decoder);
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "Gemma2ForCausalLM", ah__family_gemma2.model_type, ah__gemma_fill, config);
}

const struct ah_family ah__family_gemma2 = {
    .model_type = "gemma2",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
