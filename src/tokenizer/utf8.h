/* Reads UTF-8 that may be wrong or cut off. Takes and returns bytes; zero bytes are characters. Knows no tokenizers. */
#ifndef AH_TOKENIZER_UTF8_H
#define AH_TOKENIZER_UTF8_H

#include "base/buf.h"

enum ah_utf8 {
    AH_UTF8_WHOLE, /* a well-formed character */
    AH_UTF8_WRONG, /* the longest start of a character that the next byte breaks, or a byte that starts none */
    AH_UTF8_CUT,   /* the start of a character at the text's end */
};

/* Returns what the text of length >= 1 begins with; *bytes: its length, 1 to 4. */
enum ah_utf8 ah__utf8_look(size_t *bytes, const char *text, size_t length);
/* Returns the code of a well-formed character of 1 to 4 `bytes`. */
uint32_t ah__utf8_code(const char *text, size_t bytes);
/* Returns the bytes of the character with this first byte, in well-formed text. */
static inline size_t ah__utf8_bytes(char first)
{
    unsigned char byte = (unsigned char)first;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
/* Writes a character to bytes[4] and returns its length. `code` is below 0x110000 and no surrogate. */
size_t ah__utf8_put(char *bytes, uint32_t code);
/* Returns true if the whole text is well-formed. */
bool ah__utf8_good(const char *text, size_t length);
/* Appends the text with one U+FFFD for each wrong or cut part, as Python's and Rust's lossy readers do. */
void ah__utf8_repair(struct ah_buf *to, const char *text, size_t length);

#endif
