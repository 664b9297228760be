/* Writes values as text: str() and repr() of Python, and json.dumps(). */
#ifndef AH_CHAT_DATUM_PRINT_H
#define AH_CHAT_DATUM_PRINT_H

#include "base/buf.h"
#include "chat/datum.h"

/* Appends str(value), or "" for UNDEFINED. AH_EINPUT: the value has no useful text (a macro). */
int ah__datum_str(struct ah_heap *heap, struct ah_buf *to, struct ah_datum value);
/* Appends repr(value): it quotes strings. */
int ah__datum_repr(struct ah_heap *heap, struct ah_buf *to, struct ah_datum value);

struct ah_json_style {
    bool ascii, sorted;
    bool indented;
    struct ah_datum indent;               /* text for each level, if `indented` */
    struct ah_datum item_mark, pair_mark; /* text between items (", ") and after keys (": ") */
};
/* Appends json.dumps(value). AH_EINPUT: JSON cannot hold the value. */
int ah__datum_json(struct ah_buf *to, struct ah_heap *heap, struct ah_datum value, const struct ah_json_style *style);

#endif
