/* Jinja templates as chat templates use them: parsed once, rendered often. They render as in Python's jinja2 in the
 * environment of transformers' apply_chat_template: sandboxed and immutable, trim_blocks and lstrip_blocks, loop
 * controls, {% generation %}, tojson, raise_exception, strftime_now. Steps, depth, values and output are bounded.
 * Unknown syntax, filters, tests and methods are errors that name them. */
#ifndef AH_CHAT_JINJA_H
#define AH_CHAT_JINJA_H

#include <time.h>

#include "base/buf.h"
#include "chat/datum.h"

struct ah_jinja;

/* Parses a template. `name` is for messages, and copied. AH_EINPUT: "NAME: line N: found ..., expected ...". */
int ah__jinja_open(const struct ah_jinja **out, const char *source, size_t length, const char *name);
/* Frees the template; null is fine. */
void ah__jinja_close(const struct ah_jinja *jinja);

/* Returns true if the template reads a variable of this name or, if `inside`, a member: m.name, m['name']. */
bool ah__jinja_reads(const struct ah_jinja *jinja, const char *name, size_t length, bool inside);

/* A part of the rendered text, in bytes. */
struct ah_text_span {
    size_t begin, end;
};
struct ah_rendered {
    struct ah_buf text;         /* terminated; null is possible if empty */
    struct ah_text_span *spans; /* [span_count] generation blocks, in order */
    size_t span_count, span_room;
    bool spans_hidden; /* some blocks are in macros or set blocks, where their place in the text is unknown */
};
/* Renders the template. `variables`: a DICT. New values are put into the heap. `now`: local time for strftime_now.
 * AH_EINPUT: "NAME: line N: ..."; an error that the template itself raises is "the template refuses: ...". `out` is
 * zero before and freed by ah__rendered_free, whatever is returned. */
int ah__jinja_render(struct ah_rendered *out, const struct ah_jinja *jinja, struct ah_heap *heap,
                     struct ah_datum variables, const struct tm *now);
void ah__rendered_free(struct ah_rendered *rendered);

#endif
