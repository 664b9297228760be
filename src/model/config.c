#include "model/config.h"

#include <string.h>

int ah__config_word(const char **out, const struct ah_json *json, const char *key, const char *const *words)
{
    char expected[256] = "";
    AH_TRY(ah__json_string(out, json, key));
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(*out, words[i]) == 0)
            return AH_OK;
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s'%s'", i ? " or " : "", words[i]);
    }
    return ah__fail(AH_EINPUT, "%s: key '%s': found '%.80s', expected %s", json->path, key, *out, expected);
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
        if (ah__json_has(json, fixed[i].key))
            AH_TRY(ah__json_bool(&value, json, fixed[i].key));
        if (value != fixed[i].expected)
            return ah__fail(AH_EINPUT, "%s: key '%s': found %s, expected %s", json->path, fixed[i].key,
                            value ? "true" : "false", fixed[i].expected ? "true" : "false");
    }
    return AH_OK;
}

int ah__config_no_dropout(const struct ah_json *json, const char *const *keys)
{
    for (size_t i = 0; keys[i]; i++) {
        double rate = 0;
        if (ah__json_has(json, keys[i]))
            AH_TRY(ah__json_double(&rate, json, keys[i], 0, 1));
        if (rate > 0)
            return ah__fail(AH_EINPUT, "%s: key '%s': found %g, expected 0: dropout is not supported", json->path,
                            keys[i], rate);
    }
    return AH_OK;
}
