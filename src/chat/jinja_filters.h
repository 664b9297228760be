/* Jinja's filters: x|NAME(arguments), as in Python's jinja2; `tojson` is as in transformers. */
#ifndef AH_CHAT_JINJA_FILTERS_H
#define AH_CHAT_JINJA_FILTERS_H

#include "chat/jinja_call.h"

/* Calls a filter. The call has heap, self and raw. AH_EINPUT: this library has no filter of that name. */
int ah__filter_call(struct ah_datum *out, struct ah_call *call, const char *name, size_t length);

#endif
