/* Keys of an architecture, read from a file and added to a configuration. */
#include <math.h>
#include <string.h>

#include "base/format.h"
#include "gguf/arch_internal.h"

const char *ah__gguf_key_of(char room[AH_GGUF_KEY_SIZE], const struct ah_gguf_arch *arch, const char *key)
{
    snprintf(room, AH_GGUF_KEY_SIZE, "%s.%s", arch->name, key);
    return room;
}

double ah__gguf_shortest(double value)
{
    char text[64];
    for (int digits = 1; digits < 9; digits++) {
        ah__snprintf(text, sizeof text, "%.*g", digits, value);
        double back = ah__strtod(text, NULL);
        if (!((float)back < (float)value || (float)back > (float)value))
            return back;
    }
    return value;
}

int ah__gguf_read_int(int64_t *out, const struct ah_gguf_config *config, const char *key)
{
    char room[AH_GGUF_KEY_SIZE];
    *out = -1;
    return ah__gguf_int(out, config->file, ah__gguf_key_of(room, config->arch, key), 0, INT32_MAX);
}

int ah__gguf_add_int(const struct ah_gguf_config *config, const char *key, const char *as)
{
    int64_t value;
    char room[AH_GGUF_KEY_SIZE];
    AH_TRY(ah__gguf_read_int(&value, config, key));
    if (value < 0)
        return ah__fail(AH_EINPUT, "%s: key '%s': found nothing, expected an integer", ah__gguf_path(config->file),
                        ah__gguf_key_of(room, config->arch, key));
    return ah__json_add_int(config->tree, as, value);
}

int ah__gguf_add_double(const struct ah_gguf_config *config, const char *key, const char *as)
{
    char room[AH_GGUF_KEY_SIZE];
    double value = 0;
    if (!ah__gguf_has(config->file, ah__gguf_key_of(room, config->arch, key)))
        return AH_OK;
    AH_TRY(ah__gguf_double(&value, config->file, room, -1e30, 1e30));
    return ah__json_add_double(config->tree, as, ah__gguf_shortest(value));
}

int ah__gguf_add_needed(const struct ah_gguf_config *config, const char *key, const char *as)
{
    char room[AH_GGUF_KEY_SIZE];
    if (ah__gguf_has(config->file, ah__gguf_key_of(room, config->arch, key)))
        return ah__gguf_add_double(config, key, as);
    return ah__fail(AH_EINPUT, "%s: key '%s': found nothing, expected a number", ah__gguf_path(config->file), room);
}

double ah__gguf_part(int64_t dims, int64_t size)
{
    double part = (double)dims / (double)size;
    return (int64_t)((double)size * part) < dims ? nextafter(part, 2) : part;
}

int ah__gguf_def_open(struct ah_json *json, const struct ah_model_def *def)
{
    return ah__json_parse(json, def->config, strlen(def->config), def->name);
}
