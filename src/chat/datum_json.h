/* Makes values of parsed JSON, as Python's reader does: it tells whole numbers from others. */
#ifndef AH_CHAT_DATUM_JSON_H
#define AH_CHAT_DATUM_JSON_H

#include <cjson/cJSON.h>

#include "chat/datum.h"

/* Copies the tree; null becomes NONE. It is at most as deep as base/json_python.h builds. AH_EINPUT: a string that is
 * no UTF-8, a whole number beyond 64 bits; AH_ENOMEM. */
int ah__datum_from_json(struct ah_datum *out, struct ah_heap *heap, const cJSON *node);

#endif
