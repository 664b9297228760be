/* Words, numbers and signs of PTX text, one after the other. */
#ifndef PTX_TEXT_H
#define PTX_TEXT_H

#include "inside.h"

enum { WORD_BYTES = 512 };

struct ptx_text {
    const char *at;
    int line;
    const char *name; /* of the file, in messages */
    char *error;
    jmp_buf stop;
    char word[WORD_BYTES]; /* the token that was read last; "" at the end */
};

_Noreturn void ptx_text_stop(struct ptx_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads the next token to t->word: a word of letters, digits, "._$%" and "::", a quoted text, or one sign. */
const char *ptx_text_next(struct ptx_text *t);
/* Reads it only if it is `token`. */
bool ptx_text_take(struct ptx_text *t, const char *token);
void ptx_text_expect(struct ptx_text *t, const char *token);
/* The token that follows, without reading it. */
char ptx_text_peek(struct ptx_text *t);
/* The number that t->word is: whole, "0f" or "0d" with bits. False: it is none. */
bool ptx_text_number(const char *word, uint64_t *out);
/* Reads a whole number. */
long ptx_text_whole(struct ptx_text *t);
/* Skips to the end of the line, or what braces hold. */
void ptx_text_skip_line(struct ptx_text *t);
void ptx_text_skip_braces(struct ptx_text *t);

#endif
