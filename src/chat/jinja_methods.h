/* Attributes and items of values, and the methods that Python's strings, lists and dicts have. */
#ifndef AH_CHAT_JINJA_METHODS_H
#define AH_CHAT_JINJA_METHODS_H

#include "chat/jinja_call.h"

/* Evaluates value.name: a method of that name, else the item, else UNDEFINED. AH_EINPUT: `value` is UNDEFINED. The
 * evaluator handles loops itself. */
int ah__attribute(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, const char *name, size_t length);
/* Evaluates value[key]: the item, or for a text the method of that name. */
int ah__item(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, struct ah_datum key);
/* Evaluates value[start:stop:step]; an omitted bound is NONE. */
int ah__slice(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, const struct ah_datum bounds[3]);
/* Calls the method that is the call's self. */
int ah__method_call(struct ah_datum *out, struct ah_call *call);

#endif
