/* Converts tokenizers from the tables of other programs' files, GGUF's and SentencePiece's: tokens with scores and
 * types. Returns the text of an equivalent tokenizer.json, as the tokenizers library would write it, so that one reader
 * is enough and saved folders load in other programs. Knows no files. */
#ifndef AH_TOKENIZER_TABLES_H
#define AH_TOKENIZER_TABLES_H

#include "base/json.h"

/* Types, with the numbers of GGUF and of SentencePiece. */
enum ah_token_type {
    AH_TOKEN_NORMAL = 1,
    AH_TOKEN_UNKNOWN,
    AH_TOKEN_CONTROL, /* has no text */
    AH_TOKEN_USER,    /* found wherever its text occurs */
    AH_TOKEN_UNUSED,
    AH_TOKEN_BYTE, /* "<0x0A>" */
};

struct ah_token_row {
    const char *text; /* well-formed UTF-8 without zero bytes, not terminated */
    size_t length;
    float score; /* SentencePiece: higher scores merge first */
    enum ah_token_type type;
    int edges; /* for a token that is found anywhere: bits of tokenizer.h's enum ah_token_edges */
};

struct ah_token_tables {
    const char *path; /* for messages */
    const struct ah_token_row *rows;
    int32_t count;
    /* Byte-level BPE: llama.cpp's name for the way to split text ("llama-bpe"); null: BPE of SentencePiece. */
    const char *pre;
    const char *merges;    /* byte-level: elements of a JSON array of texts, "\"a b\",\"c d\"" */
    bool prefix;           /* SentencePiece: puts a space before the text */
    int32_t bos, eos;      /* tokens that begin and end texts; -1: none */
    bool add_bos, add_eos; /* put around a prompt */
};

/* Makes the text, freed with ah__free. AH_EINPUT names an unknown value; AH_ENOMEM. */
int ah__token_tables_json(char **text, const struct ah_token_tables *tables);
/* Counts the ways to join two tokens of SentencePiece to a third: these are its merges, in the order of scores.
 * AH_ENOMEM. */
int ah__token_tables_merges(int64_t *count, const struct ah_token_tables *tables);
/* Returns true if the way to split is known. *add_bos: texts begin with BOS unless the file says otherwise. */
bool ah__token_tables_pre(bool *add_bos, const char *pre);
/* Finds the name of the way to split that a tokenizer.json's normalizer, pre_tokenizer and ignore_merges describe.
 * *normalizes: the tokenizer also converts text to NFC, which llama.cpp does for no name. AH_EINPUT names a setting for
 * which llama.cpp has no name; `path` is for messages. */
int ah__token_tables_pre_of(const char **pre, bool *normalizes, const cJSON *tokenizer, const char *path);

#endif
