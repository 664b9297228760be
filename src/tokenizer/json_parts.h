/* Objects of tokenizer.json that say by their "type" what they are, and arrays of them. Knows no type; what reads one
 * is handed in, with the recipe that it fills. */
#ifndef AH_TOKENIZER_JSON_PARTS_H
#define AH_TOKENIZER_JSON_PARTS_H

#include "base/json.h"

struct ah_subword_recipe;

/* A part by its "type": which keys it may have, and what reads it. */
struct ah_part_kind {
    const char *type;
    const char *const *keys; /* null-terminated, with "type" */
    int (*read)(struct ah_subword_recipe *recipe, const struct ah_json *json);
};
/* AH_EINPUT when the type is none of them. */
int ah__part_read(struct ah_subword_recipe *recipe, const struct ah_json *json, const struct ah_part_kind *kinds,
                  size_t count);
/* Reads each object of the array json.key. */
int ah__json_each(struct ah_subword_recipe *recipe, const struct ah_json *json, const char *key,
                  int (*read)(struct ah_subword_recipe *recipe, const struct ah_json *json));

#endif
