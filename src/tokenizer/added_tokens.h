/* Added tokens: texts that are one token wherever they stand, found before (or, `normalized`, after) the text is
 * normalized. Takes well-formed UTF-8, gives parts of it. Knows no files. */
#ifndef AH_TOKENIZER_ADDED_TOKENS_H
#define AH_TOKENIZER_ADDED_TOKENS_H

#include "tokenizer/normalize.h"

/* Of one token: whatever the text, each of its bytes is compared with that many at most. */
enum { AH_ADDED_TOKEN_BYTES = 1024 };

struct ah_added_token {
    const char *content; /* terminated, not empty; outlives the set */
    int32_t id;
    bool single_word;    /* only where no letter, mark, digit or underscore stands beside it */
    bool lstrip, rstrip; /* takes the spaces before and behind it along */
    bool normalized;     /* is looked for in the normalized text */
    bool special;
};

struct ah_added_tokens;

/* Copies the tokens; those that are normalized go through `normalizer` first. AH_ENOMEM, AH_EINPUT. */
int ah__added_tokens_new(struct ah_added_tokens **out, const struct ah_added_token *tokens, size_t count,
                         const struct ah_normalizer *normalizer);
void ah__added_tokens_free(struct ah_added_tokens *added);
/* Cuts the text at the tokens of one kind, the longest of those that start first: calls `part` in order for each text
 * between them (id -1, at least one byte) and each token (text null), until it fails. */
int ah__added_tokens_split(const struct ah_added_tokens *added, bool normalized, const char *text, size_t length,
                           int (*part)(int32_t id, const char *text, size_t length, void *context), void *context);

#endif
