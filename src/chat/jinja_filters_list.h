/* Filters of lists, and the attribute of an item that filters use. */
#ifndef AH_CHAT_JINJA_FILTERS_LIST_H
#define AH_CHAT_JINJA_FILTERS_LIST_H

#include "chat/jinja_call.h"

extern const struct ah_call_row ah__filters_list[];
extern const size_t ah__filters_list_count;

/* Returns item.a.b for the path "a.b"; numbers are indices. `absent`, if not null, replaces a missing value. */
int ah__filter_attribute(struct ah_datum *out, struct ah_heap *heap, struct ah_datum item, struct ah_datum path,
                         const struct ah_datum *absent);

#endif
