#include "model/config.h"

#include <string.h>

#include "base/alloc.h"
#include "base/format.h"

int ah__config_word(const char **out, const struct ah_json *json, const char *key, const char *const *words)
{
    char expected[512] = "";
    AH_TRY(ah__json_string(out, json, key));
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(*out, words[i]) == 0)
            return AH_OK;
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s'%s'", i ? " or " : "", words[i]);
    }
    return ah__fail(AH_EINPUT, "%s: key '%s%s%s': found '%.80s', expected %s", json->path, json->where,
                    json->where[0] ? "." : "", key, *out, expected);
}

int ah__config_sizes(const struct ah_json *json, const struct ah_config_size *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        AH_TRY(ah__json_int(sizes[i].value, json, sizes[i].key, 1, sizes[i].max));
    return AH_OK;
}

int ah__config_fixed(const struct ah_json *json, const struct ah_config_fixed *fixed, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool value = fixed[i].expected;
        AH_TRY(ah__config_bool(&value, json, fixed[i].key));
        if (value != fixed[i].expected)
            return ah__fail(AH_EINPUT, "%s: key '%s': found %s, expected %s", json->path, fixed[i].key,
                            value ? "true" : "false", fixed[i].expected ? "true" : "false");
    }
    return AH_OK;
}

int ah__config_int(int64_t *value, const struct ah_json *json, const char *key, int64_t min, int64_t max)
{
    return ah__json_has(json, key) ? ah__json_int(value, json, key, min, max) : AH_OK;
}

int ah__config_double(double *value, const struct ah_json *json, const char *key, double min, double max)
{
    return ah__json_has(json, key) ? ah__json_double(value, json, key, min, max) : AH_OK;
}

int ah__config_bool(bool *value, const struct ah_json *json, const char *key)
{
    return ah__json_has(json, key) ? ah__json_bool(value, json, key) : AH_OK;
}

/* Words for activation functions. For each function the first one is written; the others are read as synonyms. */
static const struct {
    const char *word;
    enum ah_activation activation;
} activations[] = {
    {"gelu", AH_ACTIVATION_GELU},
    {"gelu_new", AH_ACTIVATION_GELU_TANH},
    {"relu", AH_ACTIVATION_RELU},
    {"gelu_fast", AH_ACTIVATION_GELU_TANH},
    {"gelu_pytorch_tanh", AH_ACTIVATION_GELU_TANH},
};

int ah__config_activation(enum ah_activation *value, const struct ah_json *json, const char *key)
{
    const char *words[AH_LENGTH(activations) + 1] = {NULL}, *found;
    if (!ah__json_has(json, key))
        return AH_OK;
    for (size_t i = 0; i < AH_LENGTH(activations); i++)
        words[i] = activations[i].word;
    AH_TRY(ah__config_word(&found, json, key, words));
    for (size_t i = 0; i < AH_LENGTH(activations); i++)
        if (strcmp(found, activations[i].word) == 0)
            *value = activations[i].activation;
    return AH_OK;
}

int ah__config_dropout(struct ah_config_dropout *out, const struct ah_json *json, const char *const *keys)
{
    for (size_t i = 0; keys[i]; i++) {
        double rate = 0;
        AH_TRY(ah__config_double(&rate, json, keys[i], 0, 1));
        if (rate > 0 && !out->key)
            *out = (struct ah_config_dropout){keys[i], rate};
    }
    return AH_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

const char *ah__config_activation_word(enum ah_activation activation)
{
    return activations[activation].word;
}

int ah__config_add_sizes(cJSON *tree, const struct ah_config_size *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        AH_TRY(ah__json_add_int(tree, sizes[i].key, *sizes[i].value));
    return AH_OK;
}

static int no_memory(void)
{
    return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

int ah__config_add_no_pad(cJSON *tree)
{
    return cJSON_AddNullToObject(tree, "pad_token_id") ? AH_OK : no_memory();
}

/* Gives a whole number a text with a decimal point, stored in its node: base/json.c writes that text. */
static int real_text(cJSON *number)
{
    char *text;
    AH_TRY(ah__json_text(&text, number, true));
    bool whole = !strpbrk(text, ".e");
    int status = whole ? ah__sprintf(&number->valuestring, "%s.0", text) : AH_OK;
    ah__free(text);
    return status;
}

int ah__config_add_real(cJSON *tree, const char *key, double value)
{
    AH_TRY(ah__json_add_double(tree, key, value));
    return real_text(cJSON_GetObjectItemCaseSensitive(tree, key));
}

int ah__config_append_real(cJSON *array, double value)
{
    cJSON *number = cJSON_CreateNumber(value);
    if (cJSON_AddItemToArray(array, number))
        return real_text(number);
    cJSON_Delete(number);
    return no_memory();
}

double ah__config_origin(double made, double near, double (*make)(double))
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        ah__snprintf(text, sizeof text, "%.*g", digits, near);
        double origin = ah__strtod(text, NULL), again = make(origin);
        if (memcmp(&again, &made, sizeof made) == 0)
            return origin;
    }
    return near;
}

int ah__config_add_zeros(cJSON *tree, const char *const *keys)
{
    for (size_t i = 0; keys[i]; i++)
        AH_TRY(ah__config_add_real(tree, keys[i], 0));
    return AH_OK;
}

static int add_names(cJSON *tree, const char *architecture, const char *model_type)
{
    cJSON *architectures = cJSON_CreateStringArray(&architecture, 1);
    if (!cJSON_AddItemToObject(tree, "architectures", architectures)) {
        cJSON_Delete(architectures);
        return no_memory();
    }
    return ah__json_add_string(tree, "model_type", model_type);
}

int ah__config_text(char **out, const char *architecture, const char *model_type,
                    int (*fill)(cJSON *tree, const void *config), const void *config)
{
    cJSON *tree = cJSON_CreateObject();
    if (!tree)
        return no_memory();
    int status = add_names(tree, architecture, model_type);
    if (status == AH_OK)
        status = fill(tree, config);
    if (status == AH_OK)
        status = ah__json_text(out, tree, false);
    cJSON_Delete(tree);
    return status;
}
