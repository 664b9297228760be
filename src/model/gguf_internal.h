/* What reading (gguf.c) and writing (gguf_write.c) models' keys in GGUF files share. */
#ifndef AH_MODEL_GGUF_INTERNAL_H
#define AH_MODEL_GGUF_INTERNAL_H

#include "base/json.h"

struct ah_gguf_arch {
    const char *name, *model_type; /* in the file; in config.json */
    bool permuted;                 /* queries and keys, for rotations of neighbours */
    bool states_bias;              /* config.json says whether there are biases */
};
/* The architecture of a model_type, null: none. */
const struct ah_gguf_arch *ah__gguf_arch_of(const char *model_type);

enum { AH_GGUF_KEY_SIZE = 128 };
/* "ARCH.key" into room; returns it. */
const char *ah__gguf_key_of(char room[AH_GGUF_KEY_SIZE], const struct ah_gguf_arch *arch, const char *key);

/* Llama 3's factor of the i-th of `pairs` frequencies, as the model's authors publish it. */
struct ah_gguf_llama3 {
    double theta, factor, low, high, original;
};
double ah__gguf_llama3(const struct ah_gguf_llama3 *rope, int64_t i, int64_t pairs);

#endif
