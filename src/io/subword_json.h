/* What the readers of tokenizer.json share (subword_json.c, subword_model.c). */
#ifndef AH_IO_SUBWORD_JSON_H
#define AH_IO_SUBWORD_JSON_H

#include "io/subword.h"

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
/* {"String": text} or {"Regex": text}, not empty. */
int ah__pattern_read(const char **text, bool *literal, const struct ah_json *json, const char *key);

/* "model": the vocabulary, merges and what becomes of unknown characters. The unknown token points into the tree. */
int ah__model_read(struct ah_subword_recipe *recipe, const struct ah_json *json);
/* "post_processor". */
int ah__template_read(struct ah_subword_recipe *recipe, const struct ah_json *json);

#endif
