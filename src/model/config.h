/* Reading Hugging Face's config keys: what one family needs as well as the next. Each call reads some keys of a parsed
 * config.json; AH_EINPUT names file, key, found and expected. Knows no family. */
#ifndef AH_MODEL_CONFIG_H
#define AH_MODEL_CONFIG_H

#include "base/json.h"

struct ah_config_size {
    const char *key;
    int64_t *value, max;
};
struct ah_config_fixed {
    const char *key;
    bool expected;
};

/* The text at `key`, one of `words` (the last is null); it belongs to json. */
int ah__config_word(const char **out, const struct ah_json *json, const char *key, const char *const *words);
/* Integers from 1 to max, every one required. */
int ah__config_sizes(const struct ah_json *json, const struct ah_config_size *sizes, size_t count);
/* Switches that may be missing, and when they are there say what is expected. */
int ah__config_fixed(const struct ah_json *json, const struct ah_config_fixed *fixed, size_t count);
/* Rates of dropout, missing or 0; the last key is null. */
int ah__config_no_dropout(const struct ah_json *json, const char *const *keys);

#endif
