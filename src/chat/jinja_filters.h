/* Jinja's filters: x|NAME(arguments), as Python's jinja2 has them, `tojson` as transformers has it. */
#ifndef AH_CHAT_JINJA_FILTERS_H
#define AH_CHAT_JINJA_FILTERS_H

#include "chat/jinja_call.h"

/* Of the call: heap, self and raw. AH_EINPUT: no filter of that name is known here. */
int ah__filter_call(struct ah_datum *out, struct ah_call *call, const char *name, size_t length);

#endif
