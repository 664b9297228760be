/* Writes a tokenizer into a GGUF file: tokenizer.json, or without it the pieces of tokenizer.model, and the template of
 * tokenizer_config.json become its keys. Knows no models. */
#ifndef AH_GGUF_TOKENIZER_H
#define AH_GGUF_TOKENIZER_H

#include "gguf/write.h"
#include "tokenizer/tokenizer.h"

/* `json` is null if the folder has no tokenizer.json: then `pieces` [pieces_length] is SentencePiece's file. `rows`:
 * rows of the embedding; missing tokens are padded up to there, as in llama.cpp. `config` may be null, and so may
 * `template`, the text of chat_template.jinja, which precedes the config's. AH_EINPUT names `path`, key and what
 * llama.cpp has nothing for; AH_ENOMEM. */
struct ah_gguf_tokenizer {
    const char *path, *json, *config, *template;
    const char *pieces;
    size_t pieces_length;
    const struct ah_tokenizer *tokenizer; /* the opened tokenizer */
    int64_t rows;
};
/* Writes the tokenizer. Adds to notes, clause by clause (gguf/by_name.h), what llama.cpp does differently. */
int ah__gguf_put_tokenizer(struct ah_gguf_writer *writer, struct ah_buf *notes, const struct ah_gguf_tokenizer *from);

#endif
