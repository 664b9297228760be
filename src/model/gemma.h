/* Keys that the configurations of Gemma 2 and Gemma 3 share, both ways. Takes and gives JSON; knows no weights. */
#ifndef AH_MODEL_GEMMA_H
#define AH_MODEL_GEMMA_H

#include "model/decoder.h"

/* Reads caps, the factor of scores, layer_types and sliding_window: blocks of the second kind have the window. The
 * caller has set the kinds that apply without layer_types. AH_EINPUT. */
int ah__gemma_read(struct ah_decoder *decoder, const struct ah_json *json);
/* Writes these keys. AH_ENOMEM. */
int ah__gemma_write(cJSON *tree, const struct ah_decoder *decoder);
/* The members in which both families differ from the plain decoder. */
#define AH_GEMMA_DECODER                                                                                               \
    .attention_bias_key = true, .pads_by_default = true, .kv_heads = 4, .head_dim = 256, .norms = AH_NORMS_BOTH,       \
    .norm_offset = 1, .root_scale = true, .gelu = true, .activation_key = "hidden_activation", .tied = true,           \
    .write = ah__gemma_write

#endif
