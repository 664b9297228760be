/* Tokenizers: text to token ids and back. Takes bytes, gives ids below vocab_size; knows no models and no files of
 * data. Which one a model has is said by its folder: tokenizer.json, or vocab.json beside merges.txt, or
 * tokenizer.model; of a folder that says nothing byte-level tokens are given (source/model_tokenizer.h: whether they
 * will do). A new kind is one file, and its row in tokenizer.c.
 *
 * Text that is no UTF-8 is read as U+FFFD for each wrong part by tokenizers that know characters; byte-level tokens
 * take every byte. A tokenizer remembers words, so it is used from one thread at a time. */
#ifndef AH_TOKENIZER_TOKENIZER_H
#define AH_TOKENIZER_TOKENIZER_H

#include "base/buf.h"

/* What an added token does to the text beside it: takes white space before it or behind it along; is a token only where
 * it stands alone as a word. */
enum ah_token_edges { AH_EDGE_LEFT = 1, AH_EDGE_RIGHT = 2, AH_EDGE_WORD = 4 };

struct ah_tokenizer {
    const char *name;    /* "byte-level" */
    const char *unit;    /* what an id stands for in a text, for messages: "byte" */
    int32_t vocab_size;  /* ids are below it */
    bool text_is_ids;    /* the text's bytes are its ids, so that a file of text can be used as it lies */
    const char *missing; /* why there is none, and no text becomes ids; null: there is one */
    uint64_t signature;  /* tells tokenizers apart on resume; 0: byte-level */
    bool has_bos, has_eos;
    bool end_given;       /* eos is what the caller said (ah__tokenizer_end_set) */
    int32_t bos, eos;     /* what begins and ends a text, where it has them */
    const int32_t *stops; /* [stop_count] ids that end what a model writes */
    int32_t stop_count;
    /* Of tokenizer.model: where the space that it adds to texts comes. */
    enum { AH_SPACE_ALWAYS, AH_SPACE_FIRST, AH_SPACE_NEVER } adds_space; /* first: not behind added tokens */
    /* A document's text, as it is learned: no token is put around it, but special tokens that stand in it are found. A
     * new array of ids, which the caller frees with ah__free, and how many. AH_EINPUT, AH_ENOMEM. */
    int (*encode)(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text, size_t length);
    /* The same with what the tokenizer's template puts around a text that is handed to a model. */
    int (*encode_prompt)(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                         size_t length);
    /* The text of count ids, terminated, which the caller frees with ah__free; it may hold zero bytes, so its length
     * too. AH_EINPUT names an id that is not below vocab_size. */
    int (*decode)(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids, int64_t count);
    /* The bytes of one token, `first` at the text's start; characters may go on in the next one: ah__token_stream puts
     * them together. Of an id without a text none. Valid as long as the tokenizer. */
    const char *(*piece)(size_t *length, const struct ah_tokenizer *tokenizer, int32_t id, bool first);
    /* The token as the vocabulary has it, well-formed UTF-8; null: that id has none. */
    const char *(*token)(const struct ah_tokenizer *tokenizer, int32_t id);
    /* Whether it stands for no text but for a boundary or a role. */
    bool (*is_special)(const struct ah_tokenizer *tokenizer, int32_t id);
    /* Whether it is a token wherever its text stands, added to those that the model of the tokenizer makes. */
    bool (*is_added)(const struct ah_tokenizer *tokenizer, int32_t id);
    /* Of one that is, bits of enum ah_token_edges; else 0. */
    int (*edges)(const struct ah_tokenizer *tokenizer, int32_t id);
    void (*close)(const struct ah_tokenizer *tokenizer);
};

extern const struct ah_tokenizer ah__tokenizer_bytes;
/* In place of a tokenizer that a model should have: ids pass, texts do not. `why` is copied. AH_ENOMEM. */
int ah__tokenizer_none(const struct ah_tokenizer **out, const char *why);
/* AH_EINPUT says why there is none. */
int ah__tokenizer_check(const struct ah_tokenizer *tokenizer);

/* The tokenizer of the model at `model`: a folder, its config.json or null. AH_EINPUT, AH_ENOMEM. */
int ah__tokenizer_open(const struct ah_tokenizer **out, const char *model);
/* From now on texts end with this token: its text as the vocabulary has it, or its id. Before anything was encoded.
 * Null: nothing changes. AH_EINPUT: there is none, or tokens are bytes. */
int ah__tokenizer_end_set(const struct ah_tokenizer *tokenizer, const char *token);
/* Takes what bos_token_id and eos_token_id of a configuration's text say where nothing else does; every eos_token_id
 * ends what a model writes. Bytes have none. AH_EINPUT, AH_ENOMEM. */
int ah__tokenizer_ids_take(const struct ah_tokenizer *tokenizer, const char *config, const char *path);
/* Null is fine. */
void ah__tokenizer_close(const struct ah_tokenizer *tokenizer);

/* Text that is told token by token: whole characters only. Zero but for the tokenizer at the start. */
struct ah_token_stream {
    const struct ah_tokenizer *tokenizer;
    bool started;
    char held[4]; /* the start of a character */
    size_t held_bytes;
};
/* Appends what the token adds; what can become no character is U+FFFD. Bytes of byte-level tokens pass as they are. */
int ah__token_stream_next(struct ah_buf *to, struct ah_token_stream *stream, int32_t id);
/* Appends what is held back, if anything. */
int ah__token_stream_end(struct ah_buf *to, struct ah_token_stream *stream);

/* The folder in which the files of the model's tokenizer would be; null: the model is no folder and no config.json.
 * Freed with ah__free. AH_ENOMEM. */
int ah__tokenizer_folder(char **folder, const char *model);

#endif
