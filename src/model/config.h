/* Reading and writing Hugging Face's config keys: what one family needs as well as the next. Each reading call reads
 * some keys of a parsed config.json; AH_EINPUT names file, key, found and expected. Knows no family. */
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
/* What training would drop at random: the first key that asks for it and its rate; null and 0: nothing. The key is a
 * literal of the family. */
struct ah_config_dropout {
    const char *key;
    double rate;
};
/* Functions between the two halves of a feed-forward network. */
enum ah_activation { AH_ACTIVATION_GELU, AH_ACTIVATION_GELU_TANH, AH_ACTIVATION_RELU };

/* The text at `key`, one of `words` (the last is null); it belongs to json. */
int ah__config_word(const char **out, const struct ah_json *json, const char *key, const char *const *words);
/* Integers from 1 to max, every one required. */
int ah__config_sizes(const struct ah_json *json, const struct ah_config_size *sizes, size_t count);
/* Switches that may be missing, and when they are there say what is expected. */
int ah__config_fixed(const struct ah_json *json, const struct ah_config_fixed *fixed, size_t count);
/* Keys that may be missing or null: the value then stays what it is. */
int ah__config_int(int64_t *value, const struct ah_json *json, const char *key, int64_t min, int64_t max);
int ah__config_double(double *value, const struct ah_json *json, const char *key, double min, double max);
int ah__config_bool(bool *value, const struct ah_json *json, const char *key);
int ah__config_activation(enum ah_activation *value, const struct ah_json *json, const char *key);
/* Rates of dropout, which may be missing; the last key is null. */
int ah__config_dropout(struct ah_config_dropout *out, const struct ah_json *json, const char *const *keys);

/* "gelu", "gelu_new" or "relu". */
const char *ah__config_activation_word(enum ah_activation activation);
int ah__config_add_sizes(cJSON *tree, const struct ah_config_size *sizes, size_t count);
/* "pad_token_id": null, where a class would take one that may lie beyond the vocabulary. */
int ah__config_add_no_pad(cJSON *tree);
/* A number that its class declares as a float, which transformers 5 checks: of a whole one 50.0 is written, not 50. */
int ah__config_add_real(cJSON *tree, const char *key, double value);
int ah__config_append_real(cJSON *array, double value);
/* The number of the fewest digits that `make` makes `made` of, `near` it; `near` itself where there is none. */
double ah__config_origin(double made, double near, double (*make)(double));
/* Each as 0.0. */
int ah__config_add_zeros(cJSON *tree, const char *const *keys);
/* The text of a configuration: the class that reads it (its architecture), its model_type and what `fill` adds. The
 * caller frees *out with ah__free. AH_ENOMEM. */
int ah__config_text(char **out, const char *architecture, const char *model_type,
                    int (*fill)(cJSON *tree, const void *config), const void *config);

#endif
