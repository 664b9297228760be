/* Decoders join the texts of tokens. They take ids and a map, and return bytes. They know no files. */
#ifndef AH_TOKENIZER_TOKEN_DECODE_H
#define AH_TOKENIZER_TOKEN_DECODE_H

#include "base/buf.h"
#include "tokenizer/token_map.h"

struct ah_decode_replace {
    const char *from, *to; /* from is not empty */
};
enum { AH_DECODE_REPLACES = 8 };

struct ah_token_decoder_options {
    enum {
        AH_DECODE_WORDS,      /* no decoder: a space between tokens */
        AH_DECODE_BYTE_LEVEL, /* characters stand for bytes, as in GPT-2 */
        AH_DECODE_PIECES,     /* by the members below */
    } kind;
    struct ah_decode_replace replaces[AH_DECODE_REPLACES]; /* applied to each token, in order */
    int replace_count;
    bool byte_fallback; /* <0x41> is a byte; each of a run of bytes that is no UTF-8 becomes U+FFFD */
    char mark[5];       /* becomes a space; in the first token, if mark_drops, nothing; "": no mark */
    bool mark_drops;
    char strip[5]; /* a character removed from the text's start, at most strip_most times */
    int strip_most;
    /* SentencePiece's rules. by_piece: one `strip` is removed from the front of a token while the text is empty, only
     * from the first such token unless `strip_all`, and never from the token `unknown`; of byte tokens in a row
     * well-formed characters are kept, even if other bytes are wrong. */
    bool by_piece, strip_all;
    int32_t unknown;
};

struct ah_token_decoder;

/* Makes a decoder. `own`: texts of added tokens by id, which take precedence over `vocab`. Both are read only during
 * the call. AH_ENOMEM. */
int ah__token_decoder_new(struct ah_token_decoder **out, const struct ah_token_decoder_options *options,
                          const struct ah_token_map *vocab, const struct ah_token_map *own);
void ah__token_decoder_free(struct ah_token_decoder *decoder);
/* Appends the text of all the ids together, well-formed UTF-8. An id without a text adds nothing. */
int ah__token_decoder_text(struct ah_buf *to, const struct ah_token_decoder *decoder, const int32_t *ids,
                           int64_t count);
/* Returns the bytes of one token; `first`: at the text's start. A character may go on in the next token. Valid as long
 * as the decoder. */
const char *ah__token_decoder_piece(size_t *length, const struct ah_token_decoder *decoder, int32_t id, bool first);

/* Returns the byte of one of GPT-2's characters for bytes, or -1. */
int ah__byte_of_char(uint32_t code);
/* Appends the bytes of a text of such characters. False: it has another character. */
bool ah__bytes_of_text(struct ah_buf *to, const char *text, size_t length);

#endif
