/* Values as text: str() and repr() of Python, and json.dumps(). */
#ifndef AH_CHAT_DATUM_PRINT_H
#define AH_CHAT_DATUM_PRINT_H

#include "base/buf.h"
#include "chat/datum.h"

/* Appends str(value), "" of UNDEFINED. AH_EINPUT: of what has no text that would mean something (a macro). */
int ah__datum_str(struct ah_heap *heap, struct ah_buf *to, struct ah_datum value);
/* Appends repr(value): strings in quotes. */
int ah__datum_repr(struct ah_heap *heap, struct ah_buf *to, struct ah_datum value);
/* Shortest digits that are the number again, as Python writes floats. */
void ah__real_repr(struct ah_buf *to, double value);

struct ah_json_style {
    bool ascii, sorted;
    bool indented;
    struct ah_datum indent;               /* a text put once for each level, where `indented` */
    struct ah_datum item_mark, pair_mark; /* between items, ", ", and behind keys, ": " */
};
/* Appends json.dumps(value). AH_EINPUT: cannot be written. */
int ah__datum_json(struct ah_buf *to, struct ah_heap *heap, struct ah_datum value, const struct ah_json_style *style);

#endif
