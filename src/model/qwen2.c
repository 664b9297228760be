/* Qwen2 and Qwen2.5: the decoder with biases on queries, keys and values. attention_bias is ignored, as in
 * transformers. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS, AH_DECODER_LAYER_KEYS, "attention_bias", NULL};

const struct ah_family ah__family_qwen2 =
    AH_DECODER_FAMILY("qwen2", "Qwen2ForCausalLM", keys,
                      {.qkv_bias = true, .read = ah__decoder_parse_layers, .write = ah__decoder_add_layers});
