/* Finds added tokens: texts that are one token wherever they occur. They are found before the text is normalized, or,
 * if `normalized`, after. Takes well-formed UTF-8, returns parts of it. Knows no files. */
#ifndef AH_TOKENIZER_ADDED_TOKENS_H
#define AH_TOKENIZER_ADDED_TOKENS_H

#include "tokenizer/normalize.h"

/* Most bytes of a token. No byte of a text is compared more often than that. */
enum { AH_ADDED_TOKEN_BYTES = 1024 };

struct ah_added_token {
    const char *content; /* terminated, not empty; must outlive the set */
    int32_t id;
    bool single_word;    /* counts only if no letter, mark, digit or underscore is next to it */
    bool lstrip, rstrip; /* the token includes the spaces before or after it */
    bool normalized;     /* is looked for in the normalized text */
    bool special;
};

struct ah_added_tokens;

/* Copies the tokens. `normalizer` is applied to tokens that are `normalized`. AH_ENOMEM, AH_EINPUT. */
int ah__added_tokens_new(struct ah_added_tokens **out, const struct ah_added_token *tokens, size_t count,
                         const struct ah_normalizer *normalizer);
void ah__added_tokens_free(struct ah_added_tokens *added);
/* Cuts the text at the tokens of one kind; of tokens that start at the same place the longest counts. Calls `part` in
 * order for each text between tokens (id -1, at least one byte) and for each token (text null), until it fails. */
int ah__added_tokens_split(const struct ah_added_tokens *added, bool normalized, const char *text, size_t length,
                           int (*part)(int32_t id, const char *text, size_t length, void *context), void *context);

#endif
