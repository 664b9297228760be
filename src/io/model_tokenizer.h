/* The tokenizer of a model, wherever it is kept: in the files of a folder, or in a GGUF file. */
#ifndef AH_IO_MODEL_TOKENIZER_H
#define AH_IO_MODEL_TOKENIZER_H

#include "tokenizer/tokenizer.h"

/* `model`: a folder, its config.json, a GGUF file, or null. AH_EINPUT, AH_ECORRUPT, AH_ENOMEM. */
int ah__model_tokenizer_open(const struct ah_tokenizer **out, const char *model);

#endif
