/* Tokenizers as other programs' files have them, GGUF's and SentencePiece's: tables of tokens with scores and types.
 * Takes such tables, gives the text of the tokenizer.json that says the same, as the tokenizers library would have it,
 * so that there is one reader and folders that are saved load elsewhere. Knows no files. */
#ifndef AH_TOKENIZER_TABLES_H
#define AH_TOKENIZER_TABLES_H

#include "base/json.h"

/* The numbers are those of GGUF and of SentencePiece. */
enum ah_token_type {
    AH_TOKEN_NORMAL = 1,
    AH_TOKEN_UNKNOWN,
    AH_TOKEN_CONTROL, /* stands for no text */
    AH_TOKEN_USER,    /* found wherever it stands */
    AH_TOKEN_UNUSED,
    AH_TOKEN_BYTE, /* "<0x0A>" */
};

struct ah_token_row {
    const char *text; /* well-formed UTF-8 without zero bytes, not terminated */
    size_t length;
    float score; /* of SentencePiece: higher ones merge first */
    enum ah_token_type type;
    int edges; /* of one that is found wherever it stands: bits of tokenizer.h's enum ah_token_edges */
};

struct ah_token_tables {
    const char *path; /* for messages */
    const struct ah_token_row *rows;
    int32_t count;
    /* Byte-level BPE: how text is split, by llama.cpp's name for it ("llama-bpe"); null: BPE of SentencePiece. */
    const char *pre;
    const char *merges;    /* byte-level: texts of an array of JSON, "\"a b\",\"c d\"" */
    bool prefix;           /* SentencePiece: a space before the text */
    int32_t bos, eos;      /* -1: none */
    bool add_bos, add_eos; /* around a prompt */
};

/* The text, freed with ah__free. AH_EINPUT names what is not known; AH_ENOMEM. */
int ah__token_tables_json(char **text, const struct ah_token_tables *tables);
/* How many ways there are to put a token of SentencePiece together of two others: its merges are those, in the order of
 * scores. AH_ENOMEM. */
int ah__token_tables_merges(int64_t *count, const struct ah_token_tables *tables);
/* Whether a way to split is known, and whether texts begin with BOS where nothing says it. */
bool ah__token_tables_pre(bool *add_bos, const char *pre);
/* The name of the way to split that a tokenizer.json's normalizer, pre_tokenizer and ignore_merges ask for.
 * *normalizes: it has text in NFC, too, which llama.cpp does not do, by any name. AH_EINPUT names what llama.cpp has no
 * name for; `path` is for messages. */
int ah__token_tables_pre_of(const char **pre, bool *normalizes, const cJSON *tokenizer, const char *path);

#endif
