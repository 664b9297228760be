/* Phi-3 and Phi-4: the decoder with fused weights and, in some, heads that rotate in part. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS,
                                   "partial_rotary_factor",
                                   "original_max_position_embeddings",
                                   "sliding_window",
                                   "resid_pdrop",
                                   "embd_pdrop",
                                   NULL};
static const char *const dropouts[] = {"attention_dropout", "resid_pdrop", "embd_pdrop", NULL};

static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    return ah__config_int(&decoder->kind[0].window, json, "sliding_window", 1, 1 << 24);
}

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    int64_t window = decoder->kind[0].window;
    return window ? ah__json_add_int(tree, "sliding_window", window) : AH_OK;
}

const struct ah_family ah__family_phi3 = AH_DECODER_FAMILY("phi3", "Phi3ForCausalLM", keys,
                                                           {.pads_by_default = true,
                                                            .eps = 1e-5,
                                                            .partial = true,
                                                            .original = 4096,
                                                            .fused = true,
                                                            .dropouts = dropouts,
                                                            .read = read,
                                                            .write = write});
