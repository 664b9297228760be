/* Models: functions for the rest of the library, beyond autohete.h. */
#ifndef AH_MODEL_MODEL_H
#define AH_MODEL_MODEL_H

#include "base/status.h"

/* Makes a model from config.json text in memory; `path` is for messages. AH_EINPUT, AH_ENOMEM. */
int ah__model_parse(struct ah_model **out, const char *text, size_t length, const char *path);
/* If `strict`, fails with AH_EINPUT when config.json has unknown keys, and names them all. */
int ah__model_check(const struct ah_model *model, bool strict);

#endif
