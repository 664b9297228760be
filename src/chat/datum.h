/* What the expressions of a template give: Python's values, as far as templates know them. Small structs passed by
 * value; what they point to lies in the arena of one rendering, whose size is bounded, and is not changed once others
 * can see it (namespaces and generators excepted). Knows no syntax. */
#ifndef AH_CHAT_DATUM_H
#define AH_CHAT_DATUM_H

#include "base/alloc.h"
#include "base/buf.h"

/* The memory of one rendering or one template, and what was done with it. */
struct ah_heap {
    struct ah_arena arena;
    size_t used, most;  /* bytes of values and of text that is gathered */
    size_t touched;     /* bytes that were looked at or written; slow ones count as many */
    const char *excess; /* what there is too much of; null: nothing */
};
/* Zeroed memory for count objects; AH_EINPUT beyond the bound, AH_ENOMEM. Freed with the heap's arena. */
int ah__heap_new(struct ah_heap *heap, void *out, size_t count, size_t size);
/* Counts work that is worth looking at so many bytes. False: there was too much, now or before; whoever loops ends, and
 * whatever it found does not count, since ah__heap_check fails. A null heap counts nothing. */
bool ah__heap_touch(struct ah_heap *heap, size_t bytes);
/* Appends text that is gathered in the heap's rendering; nothing once there is too much of anything. */
void ah__heap_put(struct ah_heap *heap, struct ah_buf *to, const char *text, size_t length);
/* AH_EINPUT: there was too much. */
int ah__heap_check(const struct ah_heap *heap);
/* Room for a text; AH_EINPUT: a text of so many bytes is too long. */
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
    AH_DATUM_ITER, /* what filters like select give: true even when empty, without a length, told once */
    AH_DATUM_DICT,
    AH_DATUM_NAMESPACE,
    AH_DATUM_LOOP,
    AH_DATUM_MACRO,
    AH_DATUM_FUNCTION, /* one of the environment's */
    AH_DATUM_METHOD,   /* of a value, which it holds */
};

struct ah_datum_list;
struct ah_datum_dict;
struct ah_datum_method;

struct ah_datum {
    enum ah_datum_kind kind;
    bool safe; /* of a text: marked by the filter `safe` or `escape` */
    union {
        bool truth;
        int64_t integer;
        double real;
        struct {
            const char *text; /* well-formed UTF-8, not terminated; of UNDEFINED: the name that had no value */
            size_t length;    /* bytes */
        };
        struct ah_datum_list *list; /* LIST, TUPLE, ITER */
        struct ah_datum_dict *dict; /* DICT, NAMESPACE */
        const struct ah_datum_method *method;
        const void *inner; /* LOOP, MACRO, FUNCTION: the evaluator's */
    };
};

struct ah_datum_list {
    struct ah_datum *items;
    size_t count, room;
    size_t told; /* ITER: items that were taken already */
    int depth;   /* of lists and dicts in it, 0: none */
};

struct ah_datum_pair {
    struct ah_datum key, value;
};
struct ah_datum_dict {
    struct ah_datum_pair *pairs; /* in the order in which keys came */
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
/* The text is not copied. */
struct ah_datum ah__datum_text(const char *text, size_t length);
struct ah_datum ah__datum_words(const char *terminated);
/* A value that is missing; `name` for messages. */
struct ah_datum ah__datum_undefined(const char *name, size_t length);
/* A copy of the text in the heap. */
int ah__datum_copy(struct ah_datum *out, struct ah_heap *heap, const char *text, size_t length);
/* An empty LIST, TUPLE or ITER; an empty DICT or NAMESPACE. */
int ah__datum_list(struct ah_datum *out, struct ah_heap *heap, enum ah_datum_kind kind);
int ah__datum_dict(struct ah_datum *out, struct ah_heap *heap, enum ah_datum_kind kind);
/* Both refuse values that are nested more than AH_DATUM_DEPTH deep (AH_EINPUT), so that others may recurse. */
enum { AH_DATUM_DEPTH = 200 };
int ah__datum_append(struct ah_datum *list, struct ah_heap *heap, struct ah_datum item);
/* Sets or replaces. AH_EINPUT: the key is none (a list, a dict). */
int ah__datum_set(struct ah_datum *dict, struct ah_heap *heap, struct ah_datum key, struct ah_datum value);

/* ---- asking: the heap counts what is looked at ------------------------------------------------------------------- */

bool ah__datum_is_number(struct ah_datum value); /* BOOL too, as in Python */
double ah__datum_as_real(struct ah_datum number);
/* Of BOOL and INT. */
int64_t ah__datum_as_int(struct ah_datum value);
bool ah__datum_is(struct ah_datum text, const char *terminated);
/* Python's name of the kind: "str". */
const char *ah__datum_type(struct ah_datum value);
bool ah__datum_true(struct ah_datum value);
bool ah__datum_equal(struct ah_heap *heap, struct ah_datum a, struct ah_datum b);
/* -1, 0, 1 into *order; AH_EINPUT: Python does not compare them. `sign` for the message: "<". */
int ah__datum_order(int *order, struct ah_heap *heap, struct ah_datum a, struct ah_datum b, const char *sign);
/* Null: no such key. */
const struct ah_datum *ah__datum_get(struct ah_heap *heap, struct ah_datum dict, struct ah_datum key);
const struct ah_datum *ah__datum_member(struct ah_heap *heap, struct ah_datum dict, const char *key);
/* len(): characters, items, keys. AH_EINPUT: has none. */
int ah__datum_length(int64_t *length, struct ah_heap *heap, struct ah_datum value);
/* Whether `item in value`. */
int ah__datum_contains(bool *found, struct ah_heap *heap, struct ah_datum value, struct ah_datum item);
/* What `for` goes through, as a list that may be the value's own: characters of a text, keys of a dict, nothing of
 * UNDEFINED. Takes what an ITER has left. AH_EINPUT: cannot be gone through. */
int ah__datum_items(struct ah_datum_list *out, struct ah_heap *heap, struct ah_datum value);

#endif
