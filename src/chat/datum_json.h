/* Values of JSON that was read, as Python's reader gives them: whole numbers and others are told apart. */
#ifndef AH_CHAT_DATUM_JSON_H
#define AH_CHAT_DATUM_JSON_H

#include <cjson/cJSON.h>

#include "chat/datum.h"

/* A copy of the tree, null for a null one; at most as deep as base/json_python.h builds. AH_EINPUT: a string that is no
 * UTF-8, a whole number beyond 64 bits; AH_ENOMEM. */
int ah__datum_from_json(struct ah_datum *out, struct ah_heap *heap, const cJSON *node);

#endif
