/* What the library's inside needs of models beyond autohete.h. */
#ifndef AH_MODEL_MODEL_H
#define AH_MODEL_MODEL_H

#include "base/status.h"

/* A model from config.json text in memory; `path` is for messages. AH_EINPUT, AH_ENOMEM. */
int ah__model_parse(struct ah_model **out, const char *text, size_t length, const char *path);
/* Where it is `strict`: AH_EINPUT when config.json has keys that are not known here, all of them by name. */
int ah__model_check(const struct ah_model *model, bool strict);

#endif
