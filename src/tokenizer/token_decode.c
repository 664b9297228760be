#include "tokenizer/token_decode.h"

#include <string.h>

#include "base/alloc.h"
#include "tokenizer/utf8.h"

/* Most bytes of one token's text, and of all together. */
enum { PIECE_MOST = 1 << 20, PIECES_MOST = 1 << 28 };

struct piece {
    size_t at; /* place in the decoder's text */
    uint32_t length;
    bool is_byte, present;
};

struct ah_token_decoder {
    struct ah_token_decoder_options options;
    struct piece *pieces, *firsts; /* [size] by id; firsts: at a text's start, null: the same as pieces */
    int32_t size;
    struct ah_buf text; /* texts of the pieces */
};

/* ---- GPT-2's bytes ----------------------------------------------------------------------------------------------- */

int ah__byte_of_char(uint32_t code)
{
    /* characters of the other bytes are 256, 257, ... in the order of the bytes */
    if ((code >= 33 && code <= 126) || (code >= 161 && code <= 172) || (code >= 174 && code <= 255))
        return (int)code;
    if (code < 256 || code > 323)
        return -1;
    int nth = (int)code - 256;
    return nth <= 32 ? nth : nth <= 66 ? nth - 33 + 127 : 173;
}

bool ah__bytes_of_text(struct ah_buf *to, const char *text, size_t length)
{
    size_t bytes;
    for (size_t at = 0; at < length; at += bytes) {
        bytes = ah__utf8_bytes(text[at]);
        int byte = ah__byte_of_char(ah__utf8_code(text + at, bytes));
        if (byte < 0)
            return false;
        ah__buf_add(to, &(char){(char)byte}, 1);
    }
    return true;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Appends the text with replacements. Stops as soon as the result is too long. */
static void replaced_add(struct ah_buf *to, const char *text, size_t length, const struct ah_decode_replace *replace)
{
    size_t from_length = strlen(replace->from), done = 0;
    for (const char *found; (found = memmem(text + done, length - done, replace->from, from_length));) {
        size_t at = (size_t)(found - text);
        ah__buf_add(to, text + done, at - done);
        ah__buf_add(to, replace->to, strlen(replace->to));
        done = at + from_length;
        if (to->length > PIECES_MOST + PIECE_MOST)
            return;
    }
    ah__buf_add(to, text + done, length - done);
}

/* Returns the value of <0x41>; -1: the text has another form. */
static int byte_token(const char *text, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    int value = 0;
    if (length != 6 || strncmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        char c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] - 'A' + 'a') : text[i];
        const char *digit = c ? strchr(digits, c) : NULL;
        if (!digit)
            return -1;
        value = value * 16 + (int)(digit - digits);
    }
    return value;
}

static int replace_all(struct ah_buf *text, const struct ah_token_decoder *decoder)
{
    for (int i = 0; i < decoder->options.replace_count; i++) {
        struct ah_buf next = {0};
        replaced_add(&next, text->text ? text->text : "", text->length, &decoder->options.replaces[i]);
        ah__buf_free(text);
        *text = next;
        if (text->length > PIECE_MOST)
            return ah__fail(AH_EINPUT,
                            "the tokenizer's decoder makes over %d bytes of one token, expected at most that",
                            PIECE_MOST);
    }
    return text->status;
}

/* Appends the text with a space for each mark, or nothing for it at a text's start if mark_drops. */
static void marked_add(struct ah_buf *to, const struct ah_token_decoder *decoder, const char *text, size_t length,
                       bool first)
{
    struct ah_decode_replace replace = {decoder->options.mark, first && decoder->options.mark_drops ? "" : " "};
    if (replace.from[0])
        replaced_add(to, text, length, &replace);
    else
        ah__buf_add(to, text, length);
}

static size_t stripped_bytes(const struct ah_token_decoder *decoder, const char *text, size_t length)
{
    size_t bytes = strlen(decoder->options.strip), at = 0;
    for (int i = 0; i < decoder->options.strip_most && length - at >= bytes; i++, at += bytes)
        if (memcmp(text + at, decoder->options.strip, bytes) != 0)
            break;
    return at;
}

static bool strips_of(const struct ah_token_decoder *decoder, int32_t id)
{
    return !decoder->options.by_piece || id != decoder->options.unknown;
}

static int piece_init(struct ah_token_decoder *decoder, struct piece *piece, const char *text, size_t length,
                      bool first, bool strips)
{
    struct ah_buf *to = &decoder->text, work = {0};
    size_t at = to->length;
    ah__buf_add(&work, text, length);
    int status = work.status == AH_OK ? replace_all(&work, decoder) : work.status;
    int byte = status == AH_OK && decoder->options.byte_fallback ? byte_token(work.text, work.length) : -1;
    if (status == AH_OK && decoder->options.kind == AH_DECODE_BYTE_LEVEL && !ah__bytes_of_text(to, text, length)) {
        to->length = at;
        ah__buf_add(to, text, length);
    } else if (byte >= 0) {
        ah__buf_add(to, &(char){(char)byte}, 1);
    } else if (status == AH_OK && decoder->options.kind != AH_DECODE_BYTE_LEVEL) {
        marked_add(to, decoder, work.text ? work.text : "", work.length, first);
    }
    ah__buf_free(&work);
    AH_TRY(status);
    AH_TRY(to->status);
    if (to->length > PIECES_MOST)
        return ah__fail(AH_EINPUT, "the tokenizer's decoder makes over %d bytes of all tokens, expected at most that",
                        PIECES_MOST);
    size_t skipped = first && strips ? stripped_bytes(decoder, to->text + at, to->length - at) : 0;
    *piece = (struct piece){at + skipped, (uint32_t)(to->length - at - skipped), byte >= 0, true};
    return AH_OK;
}

static int pieces_init(struct ah_token_decoder *decoder, const struct ah_token_map *vocab,
                       const struct ah_token_map *own)
{
    bool differ = decoder->options.mark_drops || decoder->options.strip_most > 0;
    decoder->size = vocab->size > own->size ? vocab->size : own->size;
    AH_TRY(ah__new(&decoder->pieces, (size_t)decoder->size, sizeof *decoder->pieces));
    if (differ)
        AH_TRY(ah__new(&decoder->firsts, (size_t)decoder->size, sizeof *decoder->firsts));
    for (int32_t id = 0; id < decoder->size; id++) {
        size_t length;
        const char *text = ah__token_map_text(&length, own, id);
        if (!text)
            text = ah__token_map_text(&length, vocab, id);
        if (!text)
            continue;
        AH_TRY(piece_init(decoder, &decoder->pieces[id], text, length, false, false));
        if (differ)
            AH_TRY(piece_init(decoder, &decoder->firsts[id], text, length, true, strips_of(decoder, id)));
    }
    return AH_OK;
}

int ah__token_decoder_new(struct ah_token_decoder **out, const struct ah_token_decoder_options *options,
                          const struct ah_token_map *vocab, const struct ah_token_map *own)
{
    struct ah_token_decoder *decoder;
    AH_TRY(ah__new(&decoder, 1, sizeof *decoder));
    decoder->options = *options;
    int status = pieces_init(decoder, vocab, own);
    if (status != AH_OK) {
        ah__token_decoder_free(decoder);
        return status;
    }
    *out = decoder;
    return AH_OK;
}

void ah__token_decoder_free(struct ah_token_decoder *decoder)
{
    if (!decoder)
        return;
    ah__free(decoder->pieces);
    ah__free(decoder->firsts);
    ah__buf_free(&decoder->text);
    ah__free(decoder);
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static const struct piece *piece_at(const struct ah_token_decoder *decoder, int32_t id, bool first)
{
    static const struct piece none;
    if (id < 0 || id >= decoder->size)
        return &none;
    return first ? &decoder->firsts[id] : &decoder->pieces[id];
}

const char *ah__token_decoder_piece(size_t *length, const struct ah_token_decoder *decoder, int32_t id, bool first)
{
    const struct piece *piece = piece_at(decoder, id, first && decoder->firsts);
    *length = piece->length;
    return piece->length ? decoder->text.text + piece->at : "";
}

/* Appends the bytes of byte tokens in a row: as text if they are well-formed, else U+FFFD for each byte. */
static void run_end(struct ah_buf *to, const struct ah_buf *run)
{
    if (run->length && ah__utf8_good(run->text, run->length))
        ah__buf_add(to, run->text, run->length);
    else
        for (size_t i = 0; i < run->length; i++)
            ah__buf_add(to, "\xef\xbf\xbd", 3);
}

/* Appends the bytes of byte tokens in a row by characters, with U+FFFD for each byte that belongs to none. */
static void run_end_characters(struct ah_buf *to, const struct ah_buf *run)
{
    size_t bytes;
    for (size_t at = 0; at < run->length; at += bytes)
        if (ah__utf8_look(&bytes, run->text + at, run->length - at) == AH_UTF8_WHOLE) {
            ah__buf_add(to, run->text + at, bytes);
        } else {
            ah__buf_add(to, "\xef\xbf\xbd", 3);
            bytes = 1;
        }
}

static void by_piece_text(struct ah_buf *to, struct ah_buf *run, const struct ah_token_decoder *decoder,
                          const int32_t *ids, int64_t count)
{
    size_t start = to->length;
    bool strips = true;
    for (int64_t i = 0; i < count; i++) {
        const struct piece *piece = piece_at(decoder, ids[i], false);
        const char *text = piece->length ? decoder->text.text + piece->at : "";
        if (piece->is_byte) {
            ah__buf_add(run, text, piece->length);
            continue;
        }
        run_end_characters(to, run);
        run->length = 0;
        strips = strips && to->length == start;
        size_t skipped = strips && strips_of(decoder, ids[i]) ? stripped_bytes(decoder, text, piece->length) : 0;
        ah__buf_add(to, text + skipped, piece->length - skipped);
        strips = strips && (!skipped || decoder->options.strip_all);
    }
    run_end_characters(to, run);
}

static void pieces_text(struct ah_buf *to, struct ah_buf *run, const struct ah_token_decoder *decoder,
                        const int32_t *ids, int64_t count)
{
    bool first = true;
    for (int64_t i = 0; i < count; i++) {
        const struct piece *piece = piece_at(decoder, ids[i], first && decoder->options.mark_drops);
        if (!piece->present)
            continue;
        if (!piece->is_byte) {
            run_end(to, run);
            run->length = 0;
        }
        if (!first && decoder->options.kind == AH_DECODE_WORDS)
            ah__buf_add(to, " ", 1);
        if (piece->length)
            ah__buf_add(piece->is_byte ? run : to, decoder->text.text + piece->at, piece->length);
        first = false;
    }
    run_end(to, run);
}

int ah__token_decoder_text(struct ah_buf *to, const struct ah_token_decoder *decoder, const int32_t *ids, int64_t count)
{
    struct ah_buf work = {0}; /* byte-level: all bytes; else bytes of byte tokens in a row */
    size_t start = to->length;
    if (decoder->options.by_piece) {
        by_piece_text(to, &work, decoder, ids, count);
    } else if (decoder->options.kind == AH_DECODE_BYTE_LEVEL) {
        pieces_text(&work, &(struct ah_buf){0}, decoder, ids, count);
        if (work.status == AH_OK && work.length)
            ah__utf8_repair(to, work.text, work.length);
    } else {
        pieces_text(to, &work, decoder, ids, count);
        if (to->status == AH_OK && to->length > start) {
            size_t skipped = stripped_bytes(decoder, to->text + start, to->length - start);
            to->length -= skipped;
            memmove(to->text + start, to->text + start + skipped, to->length - start);
        }
    }
    int status = work.status == AH_OK ? to->status : work.status;
    ah__buf_free(&work);
    return status;
}
