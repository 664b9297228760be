/* What begins and ends texts, as GGUF files have it: tokens around a prompt, and those that end what a model writes. */
#ifndef AH_SOURCE_GGUF_AROUND_H
#define AH_SOURCE_GGUF_AROUND_H

#include "io/gguf_write.h"
#include "tokenizer/tokenizer.h"

/* tokenizer.ggml's ids of BOS and ends, and which of them stand around a prompt. `usual`: the end that llama.cpp has
 * where a file names none. Notes (source/gguf_by_name.h) what there are no keys for. AH_EINPUT, AH_ENOMEM. */
int ah__gguf_put_around(struct ah_gguf_writer *writer, struct ah_buf *notes, const struct ah_tokenizer *tokenizer,
                        int32_t usual);

#endif
