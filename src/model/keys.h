/* Judges the keys of a config.json, of three kinds told apart by tables.
 *
 * A key that the family reads is the family's. A key that is known to change the computation of some model must have a
 * value that is supported here, else the model is refused. Keys that never do (names, token ids, training and
 * generation settings) are ignored; every other key is noted by name. Knows no family. */
#ifndef AH_MODEL_KEYS_H
#define AH_MODEL_KEYS_H

#include "base/json.h"

/* Compares the keys of a config.json with those that its family reads (null-terminated). *note: one line with the names
 * of unknown keys, or null; the caller frees it with ah__free. AH_EINPUT names every key that asks for another
 * computation, with found and expected; *note is then unchanged. AH_ENOMEM. */
int ah__config_check(char **note, const struct ah_json *json, const char *const *read);

#endif
