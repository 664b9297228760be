/* Which keys of a config.json matter: three kinds, told apart by tables.
 *
 * A key that the family reads is the family's. A key that is known to change the arithmetic of some model must hold
 * what is computed here, else the model is refused. Keys that never do (names, token ids, training and generation
 * settings) are passed over; every other key is noted by name. Knows no family. */
#ifndef AH_MODEL_KEYS_H
#define AH_MODEL_KEYS_H

#include "base/json.h"

/* Holds the keys of a config.json against those that its family reads (null-terminated). *note: one line naming the
 * keys that nobody knows, or null; the caller frees it with ah__free. AH_EINPUT names every key, with found and
 * expected, that asks for other arithmetic; *note is then left alone. AH_ENOMEM. */
int ah__config_check(char **note, const struct ah_json *json, const char *const *read);

#endif
