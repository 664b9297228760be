/* Jinja's lexer: a template's text to tokens, with white space handled as the options trim_blocks and lstrip_blocks of
 * Python's jinja2 say, both on, and the last line break of the template dropped. Knows no grammar. */
#ifndef AH_CHAT_JINJA_LEX_H
#define AH_CHAT_JINJA_LEX_H

#include "chat/datum.h"

enum ah_token_kind {
    AH_TOKEN_END, /* of the template */
    AH_TOKEN_DATA,
    AH_TOKEN_BLOCK_BEGIN,
    AH_TOKEN_BLOCK_END,
    AH_TOKEN_PRINT_BEGIN,
    AH_TOKEN_PRINT_END,
    AH_TOKEN_NAME,
    AH_TOKEN_INT,
    AH_TOKEN_REAL,
    AH_TOKEN_STRING, /* text: what it means, without quotes */
    AH_TOKEN_SIGN,   /* text: "==", "(", ... */
};

struct ah_token {
    enum ah_token_kind kind;
    int line;
    const char *text; /* in the template or the heap */
    size_t length;
    int64_t integer;
    double real;
};

struct ah_tokens {
    struct ah_token *items; /* the last one is END */
    size_t count;
};

/* `source` is copied (line breaks become "\n"). AH_EINPUT: "NAME: line N: ...". */
int ah__jinja_lex(struct ah_tokens *out, struct ah_heap *heap, const char *source, size_t length, const char *name);

#endif
