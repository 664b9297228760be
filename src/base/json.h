/* Reads JSON objects strictly, over cJSON. Every getter's failure is one line: FILE: key 'a.b': found X, expected Y.
 * Writers build cJSON trees directly and pass them to ah__json_save. 64-bit hashes are stored as 16 hex digits; callers
 * must not write int64_t values beyond 2^53 (no artefact holds one). Doubles round-trip (with 17 significant digits if
 * needed). */
#ifndef AH_BASE_JSON_H
#define AH_BASE_JSON_H

#include <cjson/cJSON.h>

#include "base/status.h"

struct ah_json {
    cJSON *node;       /* an object */
    const char *path;  /* the file's path, for messages */
    const char *where; /* dotted path of node inside the file, "" at the root */
    char *own;         /* the path, if ah__json_free frees it; else null */
};

/* Parses a whole file (at most 64 MiB) whose root is an object. Refuses a key that occurs twice in one object and every
 * fault that base/json_scan.h finds. AH_EIO, AH_EINPUT with line and column. Free the root with ah__json_free; `path`
 * must outlive it. */
int ah__json_load(struct ah_json *out, const char *path);
int ah__json_parse(struct ah_json *out, const char *text, size_t length, const char *path);
/* Loads FOLDER/name; the tree keeps the path. */
int ah__json_load_in(struct ah_json *out, const char *folder, const char *name);
/* Does the same if there is such a file; else, or without a folder (null), *out has no node. */
int ah__json_load_any(struct ah_json *out, const char *folder, const char *name);
void ah__json_free(struct ah_json *json);

/* Getters of required members. `min` to `max` are inclusive. Strings point into the tree. */
int ah__json_int(int64_t *out, const struct ah_json *json, const char *key, int64_t min, int64_t max);
int ah__json_double(double *out, const struct ah_json *json, const char *key, double min, double max);
int ah__json_bool(bool *out, const struct ah_json *json, const char *key);
int ah__json_string(const char **out, const struct ah_json *json, const char *key);
int ah__json_hash(uint64_t *out, const struct ah_json *json, const char *key);
/* Reads an array of at most `most` integers within min..max into out[most] (undefined after a failure); *count receives
 * their number. */
int ah__json_ints(int64_t *out, size_t *count, size_t most, const struct ah_json *json, const char *key, int64_t min,
                  int64_t max);
/* Gets a member that is an object: part of the same tree, not to be freed. */
int ah__json_object(struct ah_json *out, const struct ah_json *json, const char *key);
/* Returns true if the key is present and not null. */
bool ah__json_has(const struct ah_json *json, const char *key);
/* Refuses keys that are not in the null-terminated list: AH_EINPUT names the first of them. */
int ah__json_only(const struct ah_json *json, const char *const *keys);

/* Add a member; numbers round-trip, hashes are hexadecimal. For a null object or after a failed allocation they return
 * AH_ENOMEM. */
int ah__json_add_int(cJSON *object, const char *key, int64_t value);
int ah__json_add_double(cJSON *object, const char *key, double value);
int ah__json_add_hash(cJSON *object, const char *key, uint64_t value);
int ah__json_add_string(cJSON *object, const char *key, const char *value);
int ah__json_add_bool(cJSON *object, const char *key, bool value);
/* Pretty-prints to the file, atomically (base/file.h). Does not free the tree. */
int ah__json_save(const cJSON *tree, const char *path);
/* Prints the tree, pretty or on one line; the caller frees *out with free() (it is given to users). */
int ah__json_text(char **out, const cJSON *tree, bool one_line);

#endif
