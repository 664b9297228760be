/* Reads objects of tokenizer.json whose "type" says what they are, and arrays of them. Knows no types: the caller
 * passes the readers, and the recipe that they fill. */
#ifndef AH_TOKENIZER_JSON_PARTS_H
#define AH_TOKENIZER_JSON_PARTS_H

#include "base/json.h"

struct ah_subword_recipe;

/* A type of object: the keys it may have, and its reader. */
struct ah_part_kind {
    const char *type;
    const char *const *keys; /* null-terminated, including "type" */
    int (*read)(struct ah_subword_recipe *recipe, const struct ah_json *json);
};
/* Reads an object of one of the kinds. AH_EINPUT: its type is none of them. */
int ah__part_read(struct ah_subword_recipe *recipe, const struct ah_json *json, const struct ah_part_kind *kinds,
                  size_t count);
/* Reads each object of the array json.key. */
int ah__json_each(struct ah_subword_recipe *recipe, const struct ah_json *json, const char *key,
                  int (*read)(struct ah_subword_recipe *recipe, const struct ah_json *json));

#endif
