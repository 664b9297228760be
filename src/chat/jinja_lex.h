/* Jinja's lexer: turns a template's text into tokens. It handles white space as Python's jinja2 does with trim_blocks
 * and lstrip_blocks, and drops the last line break of the template. Knows no grammar. */
#ifndef AH_CHAT_JINJA_LEX_H
#define AH_CHAT_JINJA_LEX_H

#include "chat/datum.h"

enum ah_token_kind {
    AH_TOKEN_END, /* end of the template */
    AH_TOKEN_DATA,
    AH_TOKEN_BLOCK_BEGIN,
    AH_TOKEN_BLOCK_END,
    AH_TOKEN_PRINT_BEGIN,
    AH_TOKEN_PRINT_END,
    AH_TOKEN_NAME,
    AH_TOKEN_INT,
    AH_TOKEN_REAL,
    AH_TOKEN_STRING, /* text: the value, without quotes and escapes */
    AH_TOKEN_SIGN,   /* text: "==", "(", ... */
};

struct ah_token {
    enum ah_token_kind kind;
    int line;
    const char *text; /* points into the template or the heap */
    size_t length;
    int64_t integer;
    double real;
};

struct ah_tokens {
    struct ah_token *items; /* the last one is END */
    size_t count;
};

/* Reads the tokens of `source`, which is copied (line breaks become "
 * "). AH_EINPUT: "NAME: line N: ...". */
int ah__jinja_lex(struct ah_tokens *out, struct ah_heap *heap, const char *source, size_t length, const char *name);

#endif
