/* String operations of Python that templates use, as filters and as methods. Results are in the heap. */
#ifndef AH_CHAT_JINJA_TEXT_H
#define AH_CHAT_JINJA_TEXT_H

#include "chat/characters.h"
#include "chat/jinja_call.h"

/* Computes str.split(mark, most), or rsplit. If `mark` is null, splits at runs of white space; most < 0: no limit. */
int ah__text_split(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, const struct ah_datum *mark,
                   int64_t most, bool from_right);
/* Computes str.replace(old, with, most); most < 0: no limit. */
int ah__text_replace(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, struct ah_datum old,
                     struct ah_datum with, int64_t most);
/* Computes mark.join(items). If `any`, items become str(item); else an item that is no text is AH_EINPUT. */
int ah__text_join(struct ah_datum *out, struct ah_heap *heap, struct ah_datum mark, const struct ah_datum_list *items,
                  bool any);
/* Converts the text to another case. */
int ah__text_cased(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, enum ah_case how);
/* Removes white space from the ends of the text; if `set` is a text, its characters instead. */
int ah__text_stripped(struct ah_datum *text, struct ah_heap *heap, struct ah_datum set, bool left, bool right);
/* Repeats the text `times` times. */
int ah__text_repeat(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, int64_t times);
/* Returns the row of a string's method, null: there is no method of that name. */
const struct ah_call_row *ah__text_method(const char *name, size_t length);

#endif
