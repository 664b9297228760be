/* Options as rows of options.def: their kinds, macros that expand rows, and their values as members of JSON objects. */
#ifndef AH_SESSION_OPTIONS_H
#define AH_SESSION_OPTIONS_H

#include "base/json.h"

enum ah_option_kind {
    AH_OPTION_COUNT,
    AH_OPTION_SIZE = AH_OPTION_COUNT,
    AH_OPTION_LIMIT = AH_OPTION_COUNT,
    AH_OPTION_RATE = AH_OPTION_COUNT,
    AH_OPTION_AUTO,
    AH_OPTION_INT,
    AH_OPTION_REAL,
    AH_OPTION_SEED,
    AH_OPTION_FLAG,
    AH_OPTION_TEXT,
    AH_OPTION_PATH,
    AH_OPTION_PATHS,
    AH_OPTION_SWITCH,
    AH_OPTION_KINDS
};
enum ah_option_resume { AH_RESUME_FREE, AH_RESUME_ANEW, AH_RESUME_KEPT };

#define AH_TYPE_COUNT int64_t
#define AH_TYPE_SIZE int64_t
#define AH_TYPE_AUTO int64_t
#define AH_TYPE_REAL double
#define AH_TYPE_SEED uint64_t
#define AH_TYPE_FLAG bool
#define AH_TYPE_LIMIT int64_t
#define AH_TYPE_RATE int64_t
#define AH_TYPE_INT int
#define AH_TYPE_TEXT const char *
#define AH_TYPE_PATH const char *
#define AH_TYPE_PATHS const char *
#define AH_TYPE_SWITCH const char *

#define AH_DEFAULT(value) value
#define AH_SILENT(value) value
#define AH_OPEN AH_UNSET
#define AH_RANGE(low, high) low, high
#define AH_WORDS(list) 0, 0
#define AH_ANY 0, 0

/* AH_OPTION for rows stored in state.json: AH_STORED(kind, field, default, resume, lowest, highest); other rows expand
 * to nothing. */
#define AH_OPTION_STORED(field, name, kind, group, users, meta, default_, limits, resume, stored, help)                \
    AH_IF_##stored(kind, field, default_, resume, limits)
#define AH_IF_STATE AH_STORED
#define AH_IF_NONE AH_SKIP
#define AH_IF_RUN(key) AH_SKIP
#define AH_IF_DATA(key) AH_SKIP
#define AH_SKIP(...)

/* Adds the value at an address, of that kind, to an object. AH_ENOMEM. */
int ah__option_add(cJSON *object, const char *key, enum ah_option_kind kind, const void *at);
/* Reads a value of that kind. Numbers except seeds must be from min to max; texts belong to the JSON. AH_EINPUT. */
int ah__option_read(void *at, const struct ah_json *json, const char *key, enum ah_option_kind kind, double min,
                    double max);

#endif
