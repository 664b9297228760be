/* Reading JSON objects strictly, over cJSON. Every getter's failure is one line: FILE: key 'a.b': found X, expected Y.
 * Writers build cJSON trees directly and hand them to ah__json_save. 64-bit hashes are stored as 16 hex digits, int64_t
 * values beyond 2^53 are refused by writers' callers (no artefact holds one). Doubles round-trip (17 significant digits
 * at need). */
#ifndef AH_BASE_JSON_H
#define AH_BASE_JSON_H

#include <cjson/cJSON.h>

#include "base/status.h"

struct ah_json {
    cJSON *node;       /* an object */
    const char *path;  /* of the file, for messages */
    const char *where; /* dotted path of node inside the file, "" at the root */
};

/* Parses a whole file (at most 64 MiB) whose root is an object; a key twice in one object is refused, and so is what
 * base/json_scan.h finds. AH_EIO, AH_EINPUT with line and column. Free the root with ah__json_free; `path` must outlive
 * it. */
int ah__json_load(struct ah_json *out, const char *path);
int ah__json_parse(struct ah_json *out, const char *text, size_t length, const char *path);
void ah__json_free(struct ah_json *json);

/* Required members. `min`..`max` inclusive. Strings point into the tree. */
int ah__json_int(int64_t *out, const struct ah_json *json, const char *key, int64_t min, int64_t max);
int ah__json_double(double *out, const struct ah_json *json, const char *key, double min, double max);
int ah__json_bool(bool *out, const struct ah_json *json, const char *key);
int ah__json_string(const char **out, const struct ah_json *json, const char *key);
int ah__json_hash(uint64_t *out, const struct ah_json *json, const char *key);
/* An array of at most `most` integers within min..max into out[most] (undefined after a failure); *count of them. */
int ah__json_ints(int64_t *out, size_t *count, size_t most, const struct ah_json *json, const char *key, int64_t min,
                  int64_t max);
/* A member that is an object: part of the same tree, not to be freed. */
int ah__json_object(struct ah_json *out, const struct ah_json *json, const char *key);
/* Whether the key is present and not null. */
bool ah__json_has(const struct ah_json *json, const char *key);
/* AH_EINPUT naming the first key of json that is not in the null-terminated list. */
int ah__json_only(const struct ah_json *json, const char *const *keys);

/* Numbers that round-trip; hash as hex. All tolerate a null object or failed allocation and return AH_ENOMEM. */
int ah__json_add_int(cJSON *object, const char *key, int64_t value);
int ah__json_add_double(cJSON *object, const char *key, double value);
int ah__json_add_hash(cJSON *object, const char *key, uint64_t value);
int ah__json_add_string(cJSON *object, const char *key, const char *value);
int ah__json_add_bool(cJSON *object, const char *key, bool value);
/* Pretty-prints to the file, atomically (base/file.h). Does not free the tree. */
int ah__json_save(const cJSON *tree, const char *path);
/* Pretty / one-line text; the caller frees *out with free() (it is handed to users). */
int ah__json_text(char **out, const cJSON *tree, bool one_line);

#endif
