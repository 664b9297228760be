/* Values of the expressions of a template: Python's, as far as templates use them. They are small structs, passed by
 * value. They point into the arena of one rendering, whose size is bounded. Memory that others can see is not changed
 * any more (except namespaces and generators). Knows no syntax. */
#ifndef AH_CHAT_DATUM_H
#define AH_CHAT_DATUM_H

#include "base/alloc.h"
#include "base/buf.h"

/* The memory of one rendering or one template, and a count of the work done with it. */
struct ah_heap {
    struct ah_arena arena;
    size_t used, most;  /* bytes of values and of text being gathered */
    size_t touched;     /* bytes read or written; slow operations count several bytes for each */
    const char *excess; /* the kind of resource that ran out; null: none did */
};
/* Makes zeroed memory for count objects. AH_EINPUT: beyond the bound; AH_ENOMEM. Freed with the heap's arena. */
int ah__heap_new(struct ah_heap *heap, void *out, size_t count, size_t size);
/* Counts work that costs as much as looking at so many bytes. Returns false if the limit is exceeded, now or before:
 * the caller's loop must end, and its result does not count, since ah__heap_check fails. A null heap counts nothing. */
bool ah__heap_touch(struct ah_heap *heap, size_t bytes);
/* Appends text being gathered in the heap's rendering. Appends nothing once a limit is exceeded. */
void ah__heap_put(struct ah_heap *heap, struct ah_buf *to, const char *text, size_t length);
/* AH_EINPUT: a limit was exceeded. */
int ah__heap_check(const struct ah_heap *heap);
/* Makes room for a text and a zero byte. AH_EINPUT: a text of so many bytes is too long. */
int ah__heap_text(struct ah_heap *heap, char **out, size_t length);

enum ah_datum_kind {
    AH_DATUM_UNDEFINED,
    AH_DATUM_NONE,
    AH_DATUM_BOOL,
    AH_DATUM_INT,
    AH_DATUM_REAL,
    AH_DATUM_TEXT,
    AH_DATUM_LIST,
    AH_DATUM_TUPLE,
    AH_DATUM_ITER, /* result of filters like select: true even when empty, has no length, can be read once */
    AH_DATUM_DICT,
    AH_DATUM_NAMESPACE,
    AH_DATUM_LOOP,
    AH_DATUM_MACRO,
    AH_DATUM_FUNCTION, /* a function of the environment */
    AH_DATUM_METHOD,   /* a method together with its value */
};

struct ah_datum_list;
struct ah_datum_dict;
struct ah_datum_method;

struct ah_datum {
    enum ah_datum_kind kind;
    bool safe; /* a text that the filter `safe` or `escape` marked */
    union {
        bool truth;
        int64_t integer;
        double real;
        struct {
            const char *text; /* well-formed UTF-8, not terminated; UNDEFINED: the name that had no value */
            size_t length;    /* bytes */
        };
        struct ah_datum_list *list; /* LIST, TUPLE, ITER */
        struct ah_datum_dict *dict; /* DICT, NAMESPACE */
        const struct ah_datum_method *method;
        const void *inner; /* LOOP, MACRO, FUNCTION: a struct of the evaluator */
    };
};

struct ah_datum_list {
    struct ah_datum *items;
    size_t count, room;
    size_t told; /* ITER: number of items already taken */
    int depth;   /* nesting of lists and dicts in it, 0: it has none */
};

struct ah_datum_pair {
    struct ah_datum key, value;
};
struct ah_datum_dict {
    struct ah_datum_pair *pairs; /* in the order of insertion */
    size_t count, room;
    int depth;
};
struct ah_datum_method {
    struct ah_datum self;
    const char *name;
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static inline struct ah_datum ah__datum_none(void)
{
    return (struct ah_datum){.kind = AH_DATUM_NONE};
}
static inline struct ah_datum ah__datum_bool(bool truth)
{
    return (struct ah_datum){.kind = AH_DATUM_BOOL, .truth = truth};
}
static inline struct ah_datum ah__datum_int(int64_t integer)
{
    return (struct ah_datum){.kind = AH_DATUM_INT, .integer = integer};
}
static inline struct ah_datum ah__datum_real(double real)
{
    return (struct ah_datum){.kind = AH_DATUM_REAL, .real = real};
}
/* Returns a text that points to the caller's bytes. */
struct ah_datum ah__datum_text(const char *text, size_t length);
struct ah_datum ah__datum_words(const char *terminated);
/* Returns a missing value; `name` is for messages. */
struct ah_datum ah__datum_undefined(const char *name, size_t length);
/* Copies the text into the heap. */
int ah__datum_copy(struct ah_datum *out, struct ah_heap *heap, const char *text, size_t length);
/* The first makes an empty LIST, TUPLE or ITER, the second an empty DICT or NAMESPACE. */
int ah__datum_list(struct ah_datum *out, struct ah_heap *heap, enum ah_datum_kind kind);
int ah__datum_dict(struct ah_datum *out, struct ah_heap *heap, enum ah_datum_kind kind);
/* ah__datum_append and ah__datum_set refuse values that are nested more than AH_DATUM_DEPTH deep (AH_EINPUT), so that
 * other functions may recurse. */
enum { AH_DATUM_DEPTH = 200 };
int ah__datum_append(struct ah_datum *list, struct ah_heap *heap, struct ah_datum item);
/* Sets or replaces a value. AH_EINPUT: a list or dict cannot be a key. */
int ah__datum_set(struct ah_datum *dict, struct ah_heap *heap, struct ah_datum key, struct ah_datum value);

/* ---- reading: the heap counts the bytes that are looked at ------------------------------------------------------- */

bool ah__datum_is_number(struct ah_datum value); /* also true for BOOL, as in Python */
double ah__datum_as_real(struct ah_datum number);
/* Returns the value of a BOOL or an INT. */
int64_t ah__datum_as_int(struct ah_datum value);
bool ah__datum_is(struct ah_datum text, const char *terminated);
/* Returns Python's name of the kind: "str". */
const char *ah__datum_type(struct ah_datum value);
bool ah__datum_true(struct ah_datum value);
bool ah__datum_equal(struct ah_heap *heap, struct ah_datum a, struct ah_datum b);
/* Sets *order to -1, 0 or 1. AH_EINPUT: Python does not compare such values. `sign` is for the message: "<". */
int ah__datum_order(int *order, struct ah_heap *heap, struct ah_datum a, struct ah_datum b, const char *sign);
/* Returns the value of a key, null: no such key. */
const struct ah_datum *ah__datum_get(struct ah_heap *heap, struct ah_datum dict, struct ah_datum key);
const struct ah_datum *ah__datum_member(struct ah_heap *heap, struct ah_datum dict, const char *key);
/* Sets *length to len(): the number of characters, items or keys. AH_EINPUT: the value has no length. */
int ah__datum_length(int64_t *length, struct ah_heap *heap, struct ah_datum value);
/* Sets *found to `item in value`. */
int ah__datum_contains(bool *found, struct ah_heap *heap, struct ah_datum value, struct ah_datum item);
/* Returns the items that `for` visits, as a list that may be the value's own: characters of a text, keys of a dict,
 * none for UNDEFINED. Takes the remaining items of an ITER. AH_EINPUT: the value has no items. */
int ah__datum_items(struct ah_datum_list *out, struct ah_heap *heap, struct ah_datum value);

#endif
