/* The tokenizer of a model, wherever it is kept: in the files of a folder, or in a GGUF file. */
#ifndef AH_SOURCE_MODEL_TOKENIZER_H
#define AH_SOURCE_MODEL_TOKENIZER_H

#include "tokenizer/tokenizer.h"

/* `model`: a folder, its config.json, a GGUF file, or null. Bytes, where no file says more. AH_EINPUT, AH_ECORRUPT,
 * AH_ENOMEM. */
int ah__model_tokenizer_open(const struct ah_tokenizer **out, const char *model);

/* The one that makes ids of the texts of a model, and the one rule of when that may be bytes: where vocab_size is at
 * most 256, or where it is asked for (`bytes`, or when the model was trained here), whatever tokenizer there is. Any
 * other model without a tokenizer gets ah__tokenizer_none, which says what was looked for once it is handed a text;
 * vocab_size 0 (not known) too, but not without a model. Fails likewise. */
int ah__text_tokenizer_open(const struct ah_tokenizer **out, const char *model, int64_t vocab_size, bool bytes);

/* Whether a training here whose folder or checkpoint this is (null: none) was asked to read its text as bytes. */
int ah__trained_on_bytes(bool *out, const char *model);

/* The word for data (data_format) that asks for it. */
#define AH_DATA_AS_BYTES "bytes"
bool ah__data_as_bytes(const char *data_format);

#endif
