/* Tokenizers: text to token ids and back. Takes bytes, gives ids below vocab_size; knows no models and no files of
 * data. Which one a model has is said by its folder; a folder that says nothing has byte-level tokens, the first
 * member: an id is a byte of the text. A new kind is one file, and its row in tokenizer.c. */
#ifndef AH_IO_TOKENIZER_H
#define AH_IO_TOKENIZER_H

#include "base/status.h"

struct ah_tokenizer {
    const char *name;   /* "byte-level" */
    const char *unit;   /* what an id stands for in a text, for messages: "byte" */
    int32_t vocab_size; /* ids are below it */
    bool text_is_ids;   /* the text's bytes are its ids, so that a file of text can be used as it lies */
    uint64_t signature; /* tells tokenizers apart on resume; 0: byte-level */
    /* A new array of ids, which the caller frees with ah__free, and how many. AH_EINPUT, AH_ENOMEM. */
    int (*encode)(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text, size_t length);
    /* The text of count ids, terminated, which the caller frees with ah__free; it may hold zero bytes, so its length
     * too. AH_EINPUT names an id that is not below vocab_size. */
    int (*decode)(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids, int64_t count);
    void (*close)(const struct ah_tokenizer *tokenizer);
};

extern const struct ah_tokenizer ah__tokenizer_bytes;

/* The tokenizer of the model at `model`: a folder, its config.json or null. AH_EINPUT, AH_ENOMEM. */
int ah__tokenizer_open(const struct ah_tokenizer **out, const char *model);
/* Null is fine. */
void ah__tokenizer_close(const struct ah_tokenizer *tokenizer);

#endif
