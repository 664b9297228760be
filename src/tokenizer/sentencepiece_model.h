/* What a file of SentencePiece ("tokenizer.model") says: a message of protocol buffers, whose fields are those of
 * sentencepiece_model.proto as it is published. Takes the file's bytes, which may be anything; knows not how text is
 * cut. */
#ifndef AH_TOKENIZER_SENTENCEPIECE_MODEL_H
#define AH_TOKENIZER_SENTENCEPIECE_MODEL_H

#include "tokenizer/tables.h"

/* Bytes of one piece: whatever the text, from each of its characters on that many are looked at. */
enum { AH_PIECE_BYTES = 1024 };

struct ah_sentencepiece_text {
    const char *text; /* not terminated; part of the file */
    size_t length;
};

struct ah_sentencepiece_model {
    struct ah_token_row *rows; /* [count]; not empty, well-formed, without zero bytes, at most AH_PIECE_BYTES */
    size_t count, room;
    int32_t unknown; /* the one piece of that type */
    /* how it was trained */
    bool unigram; /* else BPE */
    bool byte_fallback;
    bool space_behind;                         /* the space that is added comes after the text */
    struct ah_sentencepiece_text unknown_text; /* what an unknown piece decodes to */
    struct ah_sentencepiece_text bos, eos;     /* pieces, which may be none of the vocabulary */
    /* how text is normalized */
    bool adds_space, removes_spaces, escapes_spaces;
    struct ah_sentencepiece_text rules; /* replacements of characters, compiled; empty: none */
};

/* The file must outlive the model. AH_EINPUT names what is wrong, and `path`; AH_ENOMEM. On failure there is nothing to
 * free. */
int ah__sentencepiece_model_read(struct ah_sentencepiece_model *model, const char *file, size_t length,
                                 const char *path);
void ah__sentencepiece_model_free(struct ah_sentencepiece_model *model);
/* The control piece of this text; -1: there is none. */
int32_t ah__sentencepiece_control(const struct ah_sentencepiece_model *model, const struct ah_sentencepiece_text *text);
/* The byte that a piece like "<0x0A>" stands for; -1: none. */
int ah__sentencepiece_byte(const struct ah_token_row *row);

#endif
