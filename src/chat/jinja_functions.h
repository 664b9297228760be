/* The environment's functions: range, dict, namespace, raise_exception, strftime_now. */
#ifndef AH_CHAT_JINJA_FUNCTIONS_H
#define AH_CHAT_JINJA_FUNCTIONS_H

#include "chat/jinja_call.h"

/* A FUNCTION, or UNDEFINED. */
int ah__function_find(struct ah_datum *out, const char *name, size_t length);
/* `function` is a FUNCTION. */
int ah__function_call(struct ah_datum *out, struct ah_call *call, struct ah_datum function);

#endif
