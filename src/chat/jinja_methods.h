/* Attributes and items of values, and the methods that Python's strings, lists and dicts have. */
#ifndef AH_CHAT_JINJA_METHODS_H
#define AH_CHAT_JINJA_METHODS_H

#include "chat/jinja_call.h"

/* value.name: a method of that name, else the item; UNDEFINED: neither. AH_EINPUT: of UNDEFINED. Loops are the
 * evaluator's. */
int ah__attribute(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, const char *name, size_t length);
/* value[key]: the item, else for a text the method of that name. */
int ah__item(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, struct ah_datum key);
/* value[start:stop:step], NONE where nothing stands. */
int ah__slice(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, const struct ah_datum bounds[3]);
/* The call's self is the method. */
int ah__method_call(struct ah_datum *out, struct ah_call *call);

#endif
