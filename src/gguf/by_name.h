/* Rules by which llama.cpp decides by names instead of keys: by a file's general.name which added tokens take adjacent
 * white space along, by a token's text whether it is special. Takes names and tokens, gives llama.cpp's treatment, and
 * a name under which it treats a tokenizer rightly. Knows no files. */
#ifndef AH_GGUF_BY_NAME_H
#define AH_GGUF_BY_NAME_H

#include "tokenizer/tokenizer.h"

/* Returns the edges of an added token that llama.cpp strips in a file of that name (null: no name): bits of enum
 * ah_token_edges. */
int ah__gguf_edges_named(const char *name, const char *token);
/* Gives the name, or a similar one under which llama.cpp treats more of the added tokens as the tokenizer does, and
 * without which it might not load the file; freed with ah__free. Notes a changed name, and tokens that it treats
 * differently under any name. AH_ENOMEM. */
int ah__gguf_name_settle(char **settled, struct ah_buf *notes, const struct ah_tokenizer *tokenizer, const char *name);

/* Returns true if llama.cpp takes a token for one without text by its text alone, whatever its type. */
bool ah__gguf_control_named(const char *token);
/* Begins a new clause of the notes: adds "; " after an earlier one and returns them. */
struct ah_buf *ah__gguf_clause(struct ah_buf *notes);

#endif
