/* Reads and writes Hugging Face's config keys that several families need. Each reading call reads some keys of a parsed
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
/* Dropout that the configuration asks for: the first such key and its rate; null and 0 without dropout. The key is a
 * literal of the family. */
struct ah_config_dropout {
    const char *key;
    double rate;
};
/* Functions between the two halves of a feed-forward network. */
enum ah_activation { AH_ACTIVATION_GELU, AH_ACTIVATION_GELU_TANH, AH_ACTIVATION_RELU };

/* Gets the text at `key`, one of `words` (null-terminated); it belongs to json. */
int ah__config_word(const char **out, const struct ah_json *json, const char *key, const char *const *words);
/* Reads required integers from 1 to max. */
int ah__config_sizes(const struct ah_json *json, const struct ah_config_size *sizes, size_t count);
/* Checks switches: each may be missing, else it must have the expected value. */
int ah__config_fixed(const struct ah_json *json, const struct ah_config_fixed *fixed, size_t count);
/* Read keys that may be missing or null: *value is then unchanged. */
int ah__config_int(int64_t *value, const struct ah_json *json, const char *key, int64_t min, int64_t max);
int ah__config_double(double *value, const struct ah_json *json, const char *key, double min, double max);
int ah__config_bool(bool *value, const struct ah_json *json, const char *key);
int ah__config_activation(enum ah_activation *value, const struct ah_json *json, const char *key);
/* Reads the rates of dropout at `keys` (null-terminated), each of which may be missing. */
int ah__config_dropout(struct ah_config_dropout *out, const struct ah_json *json, const char *const *keys);

/* Returns "gelu", "gelu_new" or "relu". */
const char *ah__config_activation_word(enum ah_activation activation);
int ah__config_add_sizes(cJSON *tree, const struct ah_config_size *sizes, size_t count);
/* Adds "pad_token_id": null for a class whose default may be beyond the vocabulary. */
int ah__config_add_no_pad(cJSON *tree);
/* Add a number that its class declares as a float, which transformers 5 checks: 50 is written as 50.0. */
int ah__config_add_real(cJSON *tree, const char *key, double value);
int ah__config_append_real(cJSON *array, double value);
/* Returns the number of the fewest digits, a rounding of `near`, for which `make` returns `made`; `near` itself if
 * there is no such number. */
double ah__config_origin(double made, double near, double (*make)(double));
/* Adds each of these keys as 0.0. */
int ah__config_add_zeros(cJSON *tree, const char *const *keys);
/* Makes the text of a configuration: the class that reads it (its architecture), its model_type and the keys that
 * `fill` adds. The caller frees *out with ah__free. AH_ENOMEM. */
int ah__config_text(char **out, const char *architecture, const char *model_type,
                    int (*fill)(cJSON *tree, const void *config), const void *config);

#endif
