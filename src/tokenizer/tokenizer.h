/* Tokenizers convert text to token ids and back. They take bytes and return ids below vocab_size; they know no models
 * and no files of data. The files of a model's folder select the tokenizer: tokenizer.json, or vocab.json beside
 * merges.txt, or tokenizer.model; else tokens are bytes (source/model_tokenizer.h decides whether that is acceptable).
 * A new kind is one file, and its row in tokenizer.c.
 *
 * In text that is no UTF-8, tokenizers of characters read U+FFFD for each wrong part; byte-level tokens take every
 * byte. A tokenizer caches words, so it is used from one thread at a time. */
#ifndef AH_TOKENIZER_TOKENIZER_H
#define AH_TOKENIZER_TOKENIZER_H

#include "base/buf.h"

/* Rules for the text around an added token: it includes white space before it or after it, or counts only if it is a
 * word by itself. */
enum ah_token_edges { AH_EDGE_LEFT = 1, AH_EDGE_RIGHT = 2, AH_EDGE_WORD = 4 };

struct ah_tokenizer {
    const char *name;    /* "byte-level" */
    const char *unit;    /* name of the text of an id, for messages: "byte" */
    int32_t vocab_size;  /* all ids are less */
    bool text_is_ids;    /* the text's bytes are its ids, so that a file of text is usable without a copy */
    const char *missing; /* why no tokenizer could be read, so that no text becomes ids; null: there is one */
    uint64_t signature;  /* tells tokenizers apart on resume; 0: byte-level */
    bool has_bos, has_eos;
    bool end_given;       /* eos was set by ah__tokenizer_end_set */
    int32_t bos, eos;     /* tokens that begin and end a text, if it has them */
    const int32_t *stops; /* [stop_count] ids that end a model's answer */
    int32_t stop_count;
    /* For tokenizer.model: when its space is added to a text. */
    enum { AH_SPACE_ALWAYS, AH_SPACE_FIRST, AH_SPACE_NEVER } adds_space; /* first: not after added tokens */
    /* Encodes a document's text for training: adds no tokens around it, but finds special tokens in it. Makes a new
     * array of *count ids, which the caller frees with ah__free. AH_EINPUT, AH_ENOMEM. */
    int (*encode)(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text, size_t length);
    /* Encodes a prompt: adds the tokens that the tokenizer's template puts around a text for a model. */
    int (*encode_prompt)(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                         size_t length);
    /* Decodes count ids to a terminated text, which the caller frees with ah__free. It may contain zero bytes, so
     * *length is set too. AH_EINPUT names an id that is not below vocab_size. */
    int (*decode)(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids, int64_t count);
    /* Returns the bytes of one token, none for an id without a text; `first`: at the text's start. A character may go
     * on in the next token: ah__token_stream joins the parts. Valid as long as the tokenizer. */
    const char *(*piece)(size_t *length, const struct ah_tokenizer *tokenizer, int32_t id, bool first);
    /* Returns the token's text in the vocabulary, well-formed UTF-8; null: the id has none. */
    const char *(*token)(const struct ah_tokenizer *tokenizer, int32_t id);
    /* Returns true if the token has no text but marks a boundary or a role. */
    bool (*is_special)(const struct ah_tokenizer *tokenizer, int32_t id);
    /* Returns true if it is an added token, which is found wherever its text occurs; the tokenizer's model does not
     * make it. */
    bool (*is_added)(const struct ah_tokenizer *tokenizer, int32_t id);
    /* Returns bits of enum ah_token_edges for an added token, else 0. */
    int (*edges)(const struct ah_tokenizer *tokenizer, int32_t id);
    void (*close)(const struct ah_tokenizer *tokenizer);
};

extern const struct ah_tokenizer ah__tokenizer_bytes;
/* Makes a placeholder for a model whose tokenizer is missing: ids work, texts do not. `why` is copied. AH_ENOMEM. */
int ah__tokenizer_none(const struct ah_tokenizer **out, const char *why);
/* AH_EINPUT: the tokenizer is a placeholder; the message says why. */
int ah__tokenizer_check(const struct ah_tokenizer *tokenizer);

/* Opens the tokenizer of `model`: a folder, its config.json, or null. AH_EINPUT, AH_ENOMEM. */
int ah__tokenizer_open(const struct ah_tokenizer **out, const char *model);
/* Sets the token that ends texts: its text in the vocabulary, or its id. Call it before encoding. Null: changes
 * nothing. AH_EINPUT: there is no such token, or tokens are bytes. */
int ah__tokenizer_end_set(const struct ah_tokenizer *tokenizer, const char *token);
/* Takes bos_token_id and eos_token_id of a configuration's text if no other file has them; every eos_token_id ends a
 * model's answer. Byte-level tokens ignore them. AH_EINPUT, AH_ENOMEM. */
int ah__tokenizer_ids_take(const struct ah_tokenizer *tokenizer, const char *config, const char *path);
/* Frees the tokenizer; null is fine. */
void ah__tokenizer_close(const struct ah_tokenizer *tokenizer);

/* Decodes text token by token, in whole characters. Zero but for the tokenizer at the start. */
struct ah_token_stream {
    const struct ah_tokenizer *tokenizer;
    bool started;
    char held[4]; /* the first bytes of a character */
    size_t held_bytes;
};
/* Appends the text that the token completes. Bytes that can become no character are U+FFFD; bytes of byte-level tokens
 * are not changed. */
int ah__token_stream_next(struct ah_buf *to, struct ah_token_stream *stream, int32_t id);
/* Appends the bytes held back, if any. */
int ah__token_stream_end(struct ah_buf *to, struct ah_token_stream *stream);

/* Finds the folder for the files of the model's tokenizer; null: the model is neither a folder nor a config.json. Freed
 * with ah__free. AH_ENOMEM. */
int ah__tokenizer_folder(char **folder, const char *model);

#endif
