/* Functions that the readers of tokenizer.json share (subword_json.c, subword_model.c). */
#ifndef AH_TOKENIZER_SUBWORD_JSON_H
#define AH_TOKENIZER_SUBWORD_JSON_H

#include "tokenizer/json_parts.h"
#include "tokenizer/subword.h"

/* Reads "model": the vocabulary, merges and the treatment of unknown characters. The unknown token points into the
 * tree. */
int ah__model_read(struct ah_subword_recipe *recipe, const struct ah_json *json);
/* Reads "post_processor". */
int ah__template_read(struct ah_subword_recipe *recipe, const struct ah_json *json);

#endif
