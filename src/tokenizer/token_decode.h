/* Decoders: what texts of tokens are put together to. Takes ids and a map, gives bytes. Knows no files. */
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
        AH_DECODE_BYTE_LEVEL, /* characters stand for bytes, as GPT-2 has it */
        AH_DECODE_PIECES,     /* as below */
    } kind;
    struct ah_decode_replace replaces[AH_DECODE_REPLACES]; /* in each token, one after the other */
    int replace_count;
    bool byte_fallback; /* <0x41> is a byte; bytes in a row that are no UTF-8 become U+FFFD each */
    char mark[5];       /* becomes a space; "": none. In the first token, where mark_drops, nothing */
    bool mark_drops;
    char strip[5]; /* a character that is taken away at the text's start, at most strip_most times */
    int strip_most;
    /* As SentencePiece has it. by_piece: one `strip` is taken from the front of a token where the text is empty so far,
     * and only from the first that has it unless `strip_all`, but never from the token `unknown`; byte tokens have
     * their characters where other bytes are wrong. */
    bool by_piece, strip_all;
    int32_t unknown;
};

struct ah_token_decoder;

/* `own`: texts of added tokens by id, which count before those of `vocab`. Both are only read during the call.
 * AH_ENOMEM. */
int ah__token_decoder_new(struct ah_token_decoder **out, const struct ah_token_decoder_options *options,
                          const struct ah_token_map *vocab, const struct ah_token_map *own);
void ah__token_decoder_free(struct ah_token_decoder *decoder);
/* Appends the text of all the ids together, well-formed UTF-8; an id without a text adds nothing. */
int ah__token_decoder_text(struct ah_buf *to, const struct ah_token_decoder *decoder, const int32_t *ids,
                           int64_t count);
/* The bytes of one token: `first` at the text's start. Characters may go on in the next token. Valid as long as the
 * decoder. */
const char *ah__token_decoder_piece(size_t *length, const struct ah_token_decoder *decoder, int32_t id, bool first);

/* GPT-2's characters for bytes: the byte, or -1. */
int ah__byte_of_char(uint32_t code);
/* The bytes that a text of such characters stands for, appended; false: another character is among them. */
bool ah__bytes_of_text(struct ah_buf *to, const char *text, size_t length);

#endif
