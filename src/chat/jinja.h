/* Jinja templates as chat templates are written: parsed once, rendered often. As Python's jinja2 renders them in the
 * environment of transformers' apply_chat_template: sandboxed and immutable, trim_blocks and lstrip_blocks, loop
 * controls, {% generation %}, tojson, raise_exception, strftime_now. Bounded in steps, depth, values and output; what
 * is not known here is refused by name. */
#ifndef AH_CHAT_JINJA_H
#define AH_CHAT_JINJA_H

#include <time.h>

#include "base/buf.h"
#include "chat/datum.h"

struct ah_jinja;

/* `name` for messages, copied. AH_EINPUT: "NAME: line N: found ..., expected ...". */
int ah__jinja_open(const struct ah_jinja **out, const char *source, size_t length, const char *name);
/* Null is fine. */
void ah__jinja_close(const struct ah_jinja *jinja);
/* Whether it has {% generation %} blocks. */
bool ah__jinja_is_marked(const struct ah_jinja *jinja);

/* Whether it has this name as a variable's or, `inside`, as that of what is in another value: m.name, m['name']. */
bool ah__jinja_reads(const struct ah_jinja *jinja, const char *name, size_t length, bool inside);

/* A part of the rendered text, in bytes. */
struct ah_text_span {
    size_t begin, end;
};
struct ah_rendered {
    struct ah_buf text;         /* terminated, maybe null where empty */
    struct ah_text_span *spans; /* [span_count] of generation blocks, in order */
    size_t span_count, span_room;
    bool spans_hidden; /* some lie in macros or set blocks, where they have no place in the text */
};
/* `variables`: a DICT; values that are made go to the heap too. `now`: local time of strftime_now. AH_EINPUT:
 * "NAME: line N: ..."; what the template itself raises is "the template refuses: ...". `out` is zero before and freed
 * by ah__rendered_free, whatever is returned. */
int ah__jinja_render(struct ah_rendered *out, const struct ah_jinja *jinja, struct ah_heap *heap,
                     struct ah_datum variables, const struct tm *now);
void ah__rendered_free(struct ah_rendered *rendered);

#endif
