#include "session/options.h"

#include "base/alloc.h"
#include "base/file.h"

/* Checks that each row's kind is its member's type. */
#define AH_OPTION(field, name, kind, ...)                                                                              \
    _Static_assert(_Generic(((struct ah_train_options *)NULL)->field, AH_TYPE_##kind                                   \
                            : true, default                                                                            \
                            : false),                                                                                  \
                   "session/options.def: kind of " #field);
#include "session/options.def"

/* Adds the absolute path of what exists, else the path as it is. */
static int add_path(cJSON *object, const char *key, const char *path)
{
    char *real;
    AH_TRY(ah__path_real(&real, path));
    int status = ah__json_add_string(object, key, real ? real : path);
    ah__free(real);
    return status;
}

static int add_paths(cJSON *object, const char *key, const char *paths)
{
    char *real;
    AH_TRY(ah__paths_real(&real, paths));
    int status = ah__json_add_string(object, key, real);
    ah__free(real);
    return status;
}

int ah__option_add(cJSON *object, const char *key, enum ah_option_kind kind, const void *at)
{
    switch (kind) {
    case AH_OPTION_TEXT:
        return ah__json_add_string(object, key, *(const char *const *)at);
    case AH_OPTION_PATH:
        return add_path(object, key, *(const char *const *)at);
    case AH_OPTION_PATHS:
        return add_paths(object, key, *(const char *const *)at);
    case AH_OPTION_FLAG:
        return ah__json_add_bool(object, key, *(const bool *)at);
    case AH_OPTION_REAL:
        return ah__json_add_double(object, key, *(const double *)at);
    case AH_OPTION_SEED:
        return ah__json_add_hash(object, key, *(const uint64_t *)at);
    case AH_OPTION_INT:
        return ah__json_add_int(object, key, *(const int *)at);
    default:
        return ah__json_add_int(object, key, *(const int64_t *)at);
    }
}

int ah__option_read(void *at, const struct ah_json *json, const char *key, enum ah_option_kind kind, double min,
                    double max)
{
    int64_t value;
    switch (kind) {
    case AH_OPTION_TEXT:
    case AH_OPTION_PATH:
    case AH_OPTION_PATHS:
        return ah__json_string(at, json, key);
    case AH_OPTION_FLAG:
        return ah__json_bool(at, json, key);
    case AH_OPTION_REAL:
        return ah__json_double(at, json, key, min, max);
    case AH_OPTION_SEED:
        return ah__json_hash(at, json, key);
    case AH_OPTION_INT:
        AH_TRY(ah__json_int(&value, json, key, (int64_t)min, (int64_t)max));
        *(int *)at = (int)value;
        return AH_OK;
    default:
        return ah__json_int(at, json, key, (int64_t)min, (int64_t)max);
    }
}
