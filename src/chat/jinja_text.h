/* What Python does with strings and templates ask for, by filters and by methods. Results lie in the heap. */
#ifndef AH_CHAT_JINJA_TEXT_H
#define AH_CHAT_JINJA_TEXT_H

#include "chat/characters.h"
#include "chat/jinja_call.h"

/* str.split(mark, most), or rsplit. Without a mark (null) at runs of white space; most < 0: all. */
int ah__text_split(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, const struct ah_datum *mark,
                   int64_t most, bool from_right);
/* str.replace(old, with, most); most < 0: all. */
int ah__text_replace(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, struct ah_datum old,
                     struct ah_datum with, int64_t most);
/* mark.join(items), of str(item) where `any`, else AH_EINPUT for what is no text. */
int ah__text_join(struct ah_datum *out, struct ah_heap *heap, struct ah_datum mark, const struct ah_datum_list *items,
                  bool any);
/* The text in another case. */
int ah__text_cased(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, enum ah_case how);
/* Without what its ends have of white space or, where `set` is a text, of its characters. */
int ah__text_stripped(struct ah_datum *text, struct ah_heap *heap, struct ah_datum set, bool left, bool right);
/* The text `times` times. */
int ah__text_repeat(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, int64_t times);
/* The row of a string's method, null: none of that name. */
const struct ah_call_row *ah__text_method(const char *name, size_t length);

#endif
