/* Scores of SentencePiece's tokens for GGUF files, computed from the merges of a tokenizer.json. Knows no files. */
#ifndef AH_GGUF_SCORES_H
#define AH_GGUF_SCORES_H

#include "base/json.h"
#include "tokenizer/tables.h"

struct ah_gguf_token {
    char *text;
    enum ah_token_type type;
    float score; /* score of a piece: the earlier its merge, the higher */
};

/* Sets the scores of tokens [rows] that merges make. AH_EINPUT: merges that one score a token cannot express, or fewer
 * than llama.cpp would do; AH_ENOMEM. `path` is for messages. */
int ah__gguf_scores_find(struct ah_gguf_token *tokens, int32_t rows, const cJSON *merges, const char *path);

#endif
