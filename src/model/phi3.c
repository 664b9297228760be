/* Phi-3 and Phi-4: the decoder with fused weights and, in some, heads that rotate in part. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

static const char *const keys[] = {AH_DECODER_KEYS,
                                   "partial_rotary_factor",
                                   "original_max_position_embeddings",
                                   "sliding_window",
                                   "resid_pdrop",
                                   "embd_pdrop",
                                   NULL};
static const char *const dropouts[] = {"attention_dropout", "resid_pdrop", "embd_pdrop", NULL};

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {.eps = 1e-5, .partial = true, .original = 4096, .fused = true, .dropouts = dropouts};
    AH_TRY(ah__decoder_parse(&decoder, json));
    AH_TRY(ah__config_int(&decoder.kind[0].window, json, "sliding_window", 1, 1 << 24));
    return ah__decoder_new(out, &decoder);
}

static int fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    AH_TRY(ah__decoder_add(tree, decoder));
    AH_TRY(ah__config_add_no_pad(tree));
    return decoder->kind[0].window ? ah__json_add_int(tree, "sliding_window", decoder->kind[0].window) : AH_OK;
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "Phi3ForCausalLM", ah__family_phi3.model_type, fill, config);
}

const struct ah_family ah__family_phi3 = {
    .model_type = "phi3",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
