/* Calls of what the environment has (filters, tests, methods, functions): arguments by place and by name, bound to
 * parameters; and what most of them do with texts. */
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
    const struct tm *now; /* what strftime_now says */
    struct ah_datum self; /* of filters, tests and methods */
    const struct ah_arguments *raw;
    const struct ah_datum *given[AH_CALL_PARAMETERS]; /* by parameter; null: not given */
};
/* Into *out, which lies in the call's heap. */
typedef int ah_call_function(struct ah_datum *out, const struct ah_call *call);

struct ah_call_row {
    const char *name;
    ah_call_function *function;
    const char *parameters; /* "a,b"; null: the function looks at raw itself */
    int required;           /* of the parameters, from the first on */
};

/* The row of that name; null: none. */
const struct ah_call_row *ah__call_find(const struct ah_call_row *rows, size_t count, const char *name, size_t length);
/* Binds and calls. `kind` for messages: "filter". */
int ah__call_row(struct ah_datum *out, struct ah_call *call, const struct ah_call_row *row, const char *kind);
/* The keyword argument of that name; null: not given. */
const struct ah_datum *ah__call_keyword(const struct ah_arguments *arguments, const char *name);

/* str(value), which is the value itself where it is a text. */
int ah__call_text(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value);
/* The text that was gathered, copied into the heap; frees the buffer. */
int ah__call_take(struct ah_datum *out, struct ah_heap *heap, struct ah_buf *buf);
/* A parameter that must be a text, a whole number; absent: as it was before. */
int ah__call_string(struct ah_datum *out, const struct ah_call *call, int parameter);
int ah__call_int(int64_t *out, const struct ah_call *call, int parameter);
bool ah__call_true(const struct ah_call *call, int parameter);

#endif
