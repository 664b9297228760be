/* The tokenizer of a model, from the files of a folder or from a GGUF file. */
#ifndef AH_SOURCE_MODEL_TOKENIZER_H
#define AH_SOURCE_MODEL_TOKENIZER_H

#include "tokenizer/tokenizer.h"

/* Opens the tokenizer. `model`: a folder, its config.json, a GGUF file, or null. Bytes, if there is no tokenizer's
 * file. AH_EINPUT, AH_ECORRUPT, AH_ENOMEM. */
int ah__model_tokenizer_open(const struct ah_tokenizer **out, const char *model);

/* Opens the tokenizer for the texts of a model, with the one rule for bytes: they are used if vocab_size is at most 256
 * and there is no tokenizer, or if they are asked for (`bytes`, or when the model was trained here), whatever tokenizer
 * there is. Any other model without a tokenizer gets ah__tokenizer_none, which fails with the files it looked for when
 * it encodes a text; so does vocab_size 0 (unknown), but not without a model. Fails likewise. */
int ah__text_tokenizer_open(const struct ah_tokenizer **out, const char *model, int64_t vocab_size, bool bytes);

/* Sets *out if `model` is the folder or checkpoint of a training here that reads its text as bytes; null is not. */
int ah__trained_on_bytes(bool *out, const char *model);

/* Returns true for the word of data_format that asks for bytes. */
#define AH_DATA_AS_BYTES "bytes"
bool ah__data_as_bytes(const char *data_format);

#endif
