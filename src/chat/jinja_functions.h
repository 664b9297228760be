/* The environment's functions: range, dict, namespace, raise_exception, strftime_now. */
#ifndef AH_CHAT_JINJA_FUNCTIONS_H
#define AH_CHAT_JINJA_FUNCTIONS_H

#include "chat/jinja_call.h"

/* Returns a FUNCTION, or UNDEFINED if there is no function of that name. */
int ah__function_find(struct ah_datum *out, const char *name, size_t length);
/* Calls `function`, which is a FUNCTION. */
int ah__function_call(struct ah_datum *out, struct ah_call *call, struct ah_datum function);

#endif
