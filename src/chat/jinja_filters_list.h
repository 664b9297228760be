/* Filters that go through lists; and what filters see of an item: itself or an attribute. */
#ifndef AH_CHAT_JINJA_FILTERS_LIST_H
#define AH_CHAT_JINJA_FILTERS_LIST_H

#include "chat/jinja_call.h"

extern const struct ah_call_row ah__filters_list[];
extern const size_t ah__filters_list_count;

/* item.a.b for the path "a.b", numbers are indices; `absent`, where not null, for what is missing. */
int ah__filter_attribute(struct ah_datum *out, struct ah_heap *heap, struct ah_datum item, struct ah_datum path,
                         const struct ah_datum *absent);

#endif
