/* Llama, and TinyLlama, SmolLM and others with its model_type: the decoder with optional biases. pretraining_tp splits
 * products into parts of the same sum. */
#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS, "attention_bias", "mlp_bias", NULL};

const struct ah_family ah__family_llama =
    AH_DECODER_FAMILY("llama", "LlamaForCausalLM", keys, {.attention_bias_key = true, .mlp_bias_key = true});
