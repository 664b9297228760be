/* What llama.cpp decides by names and not by keys: by a file's general.name which added tokens take white space beside
 * them along, by a token's text whether it is special. Takes names and tokens, gives what it does with them, and a name
 * by which it does what a tokenizer does. Knows no files. */
#ifndef AH_SOURCE_GGUF_BY_NAME_H
#define AH_SOURCE_GGUF_BY_NAME_H

#include "tokenizer/tokenizer.h"

/* What llama.cpp does at the edges of an added token in a file of that name (null: none): bits of enum
 * ah_token_edges. */
int ah__gguf_edges_named(const char *name, const char *token);
/* The name, or one like it by which llama.cpp treats more of the tokenizer's added tokens as the tokenizer does, and
 * without which it might not load the file; freed with ah__free. Notes another name, and tokens that it treats
 * otherwise by any. AH_ENOMEM. */
int ah__gguf_name_settle(char **settled, struct ah_buf *notes, const struct ah_tokenizer *tokenizer, const char *name);

/* Whether llama.cpp takes a token for one that stands for no text, whatever its type is, by its text alone. */
bool ah__gguf_control_named(const char *token);
/* The same notes, ready for a clause: "; " behind the one before. */
struct ah_buf *ah__gguf_clause(struct ah_buf *notes);

#endif
