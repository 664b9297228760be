/* Reads a file of SentencePiece ("tokenizer.model"): a message of protocol buffers with the fields of the published
 * sentencepiece_model.proto. Takes the file's bytes, which may be anything; knows not how text is cut. */
#ifndef AH_TOKENIZER_SENTENCEPIECE_MODEL_H
#define AH_TOKENIZER_SENTENCEPIECE_MODEL_H

#include "tokenizer/tables.h"

/* Most bytes of a piece. No more bytes of a text are looked at from any one of its characters. */
enum { AH_PIECE_BYTES = 1024 };

struct ah_sentencepiece_text {
    const char *text; /* not terminated; points into the file */
    size_t length;
};

struct ah_sentencepiece_model {
    struct ah_token_row *rows; /* [count]; not empty, well-formed, without zero bytes, at most AH_PIECE_BYTES */
    size_t count, room;
    int32_t unknown; /* id of the only piece of type unknown */
    /* from the trainer's settings */
    bool unigram; /* else BPE */
    bool byte_fallback;
    bool space_behind;                         /* the added space comes after the text */
    struct ah_sentencepiece_text unknown_text; /* decoded text of an unknown piece */
    struct ah_sentencepiece_text bos, eos;     /* texts of pieces, which need not be in the vocabulary */
    /* from the normalizer's settings */
    bool adds_space, removes_spaces, escapes_spaces;
    struct ah_sentencepiece_text rules; /* compiled replacements of characters; empty: no replacements */
};

/* Reads a model. The file must outlive it. AH_EINPUT names the fault and `path`; AH_ENOMEM. On failure there is nothing
 * to free. */
int ah__sentencepiece_model_read(struct ah_sentencepiece_model *model, const char *file, size_t length,
                                 const char *path);
void ah__sentencepiece_model_free(struct ah_sentencepiece_model *model);
/* Returns the control piece of this text; -1: there is none. */
int32_t ah__sentencepiece_control(const struct ah_sentencepiece_model *model, const struct ah_sentencepiece_text *text);
/* Returns the byte of a piece like "<0x0A>"; -1: it is no such piece. */
int ah__sentencepiece_byte(const struct ah_token_row *row);

#endif
