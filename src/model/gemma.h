/* What Gemma 2 and Gemma 3 share: keys of their configurations, both ways. Takes and gives JSON; knows no weights. */
#ifndef AH_MODEL_GEMMA_H
#define AH_MODEL_GEMMA_H

#include "model/decoder.h"

/* Reads the keys that both have, but which blocks have windows. AH_EINPUT. */
int ah__gemma_parse(struct ah_decoder *decoder, const struct ah_json *json);
/* Reads layer_types and sliding_window: the second kind of block has the window, the first sees all. AH_EINPUT. */
int ah__gemma_parse_windows(struct ah_decoder *decoder, const struct ah_json *json);
/* Writes the configuration of a struct ah_decoder. AH_ENOMEM. */
int ah__gemma_fill(cJSON *tree, const void *config);

#endif
