/* Text and tokens, and what a trained model is asked: text. */
#ifndef AUTOHETE_GENERATE_H
#define AUTOHETE_GENERATE_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

/* Text to token ids and back. Remembers words it has seen: for one thread at a time. */
struct ah_tokenizer;

/* The tokenizer of a model's folder or its config.json: tokenizer.json, else vocab.json and merges.txt; a model without
 * them has byte-level tokens, whose ids are the bytes. AH_EINPUT: what they ask for is not known here, or wrong. */
AH_API int ah_tokenizer_open(const struct ah_tokenizer **tokenizer, const char *model_path);
AH_API void ah_tokenizer_close(const struct ah_tokenizer *tokenizer);
/* How it was told: "tokenizer.json", "vocab.json and merges.txt" or "byte-level". As long as the tokenizer. */
AH_API const char *ah_tokenizer_name(const struct ah_tokenizer *tokenizer);
/* Ids are below it. */
AH_API int32_t ah_tokenizer_vocab_size(const struct ah_tokenizer *tokenizer);
/* The ids of a text of `length` bytes, and how many; the caller frees *ids with free(). `prompt`: with what the
 * tokenizer's template puts around a text that a model is asked; documents to learn from go without. What is no UTF-8
 * is read as U+FFFD, but by byte-level tokens. */
AH_API int ah_tokenizer_encode(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                               size_t length, bool prompt);
/* The text of `count` ids, terminated, and its length, since it may hold zero bytes; the caller frees *text with
 * free(). `skip_special`: without special tokens. AH_EINPUT: an id that is not below the vocabulary. */
AH_API int ah_tokenizer_decode(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids,
                               int64_t count, bool skip_special);
/* The token as the vocabulary writes it; null: the id has none. Until the next call. */
AH_API const char *ah_tokenizer_token(const struct ah_tokenizer *tokenizer, int32_t id);

/* ---- generation -------------------------------------------------------------------------------------------------- */

struct ah_generate_options {
    const char *model_dir; /* a checkpoint, or a training's folder (its newest) */
    const char *prompt;    /* text; null or empty: a newline */
    int64_t tokens;        /* how many to add */
    double temperature;    /* 0: the likeliest */
    int top_k;             /* 0: all */
    uint64_t seed;
    const char *device;    /* as for ah_dev_open; default "auto" */
    int threads;           /* of the CPU; 0: one per core */
    /* Each new token with the text it adds: whole characters, so none where one goes on in the next token; none either
     * for special tokens. Valid during the call; may hold zero bytes. Nonzero stops. */
    int (*on_token)(int token, const char *text, size_t length, void *context);
    void *context;
};
/* Continues the prompt until there are so many tokens, or one that ends a text by the model's tokenizer_config.json,
 * generation_config.json or config.json. Without a tokenizer in the folder tokens are bytes (AH_EINPUT for a vocabulary
 * beyond 256). Same tokens for any number of threads. */
AH_API int ah_generate(const struct ah_generate_options *options);

#ifdef __cplusplus
}
#endif
#endif
