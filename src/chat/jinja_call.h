/* Calls filters, tests, methods and functions of the environment: binds arguments by place and by name to parameters,
 * and has helpers for texts. */
#ifndef AH_CHAT_JINJA_CALL_H
#define AH_CHAT_JINJA_CALL_H

#include <time.h>

#include "base/buf.h"
#include "chat/datum.h"

struct ah_keyword {
    const char *name;
    size_t length;
    struct ah_datum value;
};
struct ah_arguments {
    struct ah_datum *items;
    size_t count;
    struct ah_keyword *keywords;
    size_t keyword_count;
};

enum { AH_CALL_PARAMETERS = 6 };
struct ah_call {
    struct ah_heap *heap;
    const struct tm *now; /* local time for strftime_now */
    struct ah_datum self; /* the value that a filter, test or method is applied to */
    const struct ah_arguments *raw;
    const struct ah_datum *given[AH_CALL_PARAMETERS]; /* argument of each parameter; null: not given */
};
/* Writes the result to *out; its memory is in the call's heap. */
typedef int ah_call_function(struct ah_datum *out, const struct ah_call *call);

struct ah_call_row {
    const char *name;
    ah_call_function *function;
    const char *parameters; /* "a,b"; null: the function reads `raw` itself */
    int required;           /* number of required parameters, from the first on */
};

/* Returns the row of that name; null: not found. */
const struct ah_call_row *ah__call_find(const struct ah_call_row *rows, size_t count, const char *name, size_t length);
/* Binds the arguments and calls the function. `kind` is for messages: "filter". */
int ah__call_row(struct ah_datum *out, struct ah_call *call, const struct ah_call_row *row, const char *kind);
/* Returns the keyword argument of that name; null: not given. */
const struct ah_datum *ah__call_keyword(const struct ah_arguments *arguments, const char *name);

/* Makes str(value), or returns the value itself if it is a text. */
int ah__call_text(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value);
/* Copies the gathered text into the heap and frees the buffer. */
int ah__call_take(struct ah_datum *out, struct ah_heap *heap, struct ah_buf *buf);
/* Read a parameter that must be a text, a whole number. If it is absent, *out stays as it is. */
int ah__call_string(struct ah_datum *out, const struct ah_call *call, int parameter);
int ah__call_int(int64_t *out, const struct ah_call *call, int parameter);
bool ah__call_true(const struct ah_call *call, int parameter);

#endif
