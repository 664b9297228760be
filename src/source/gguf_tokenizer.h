/* Writes a tokenizer into a GGUF file: tokenizer.json, or without one the pieces of tokenizer.model, and the template
 * of tokenizer_config.json become its keys. Knows no models. */
#ifndef AH_SOURCE_GGUF_TOKENIZER_H
#define AH_SOURCE_GGUF_TOKENIZER_H

#include "io/gguf_write.h"
#include "tokenizer/tokenizer.h"

/* `json` is null where the folder has none: `pieces` [pieces_length], SentencePiece's file, then. `rows`: of the
 * embedding; tokens up to there that the tokenizer does not have are padded, as llama.cpp does. `config` may be null,
 * and so may `template`, of chat_template.jinja, which comes before the config's. AH_EINPUT names `path`, key and what
 * llama.cpp has nothing for; AH_ENOMEM. */
struct ah_gguf_tokenizer {
    const char *path, *json, *config, *template;
    const char *pieces;
    size_t pieces_length;
    const struct ah_tokenizer *tokenizer; /* the same, open */
    int64_t rows;
};
/* Adds to notes, clause by clause (source/gguf_by_name.h), what llama.cpp does otherwise than the tokenizer. */
int ah__gguf_put_tokenizer(struct ah_gguf_writer *writer, struct ah_buf *notes, const struct ah_gguf_tokenizer *from);

#endif
