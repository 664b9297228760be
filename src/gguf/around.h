/* Begin and end of texts in GGUF files: tokens around a prompt, and tokens that end generated text. */
#ifndef AH_GGUF_AROUND_H
#define AH_GGUF_AROUND_H

#include "gguf/write.h"
#include "tokenizer/tokenizer.h"

/* Writes tokenizer.ggml's ids of BOS and ends, and whether they are around a prompt. `usual`: llama.cpp's end for a
 * file without one. Notes (gguf/by_name.h) what GGUF has no keys for. AH_EINPUT, AH_ENOMEM. */
int ah__gguf_put_around(struct ah_gguf_writer *writer, struct ah_buf *notes, const struct ah_tokenizer *tokenizer,
                        int32_t usual);

#endif
