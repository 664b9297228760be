#include "tokenizer/utf8.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* For a range of first bytes: the range of the second byte, and the character's length. No other byte begins a
 * character of several bytes. */
struct lead {
    unsigned char first, last, second_first, second_last, length;
};

static const struct lead leads[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
    {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};

enum ah_utf8 ah__utf8_look(size_t *bytes, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    *bytes = 1;
    if (at[0] < 0x80)
        return AH_UTF8_WHOLE;
    for (size_t i = 0; i < AH_LENGTH(leads); i++) {
        const struct lead *lead = &leads[i];
        if (at[0] < lead->first || at[0] > lead->last)
            continue;
        for (; *bytes < lead->length; (*bytes)++) {
            if (*bytes == length)
                return AH_UTF8_CUT;
            unsigned char byte = at[*bytes];
            if (*bytes == 1 ? byte < lead->second_first || byte > lead->second_last : (byte & 0xc0) != 0x80)
                return AH_UTF8_WRONG;
        }
        return AH_UTF8_WHOLE;
    }
    return AH_UTF8_WRONG;
}

uint32_t ah__utf8_code(const char *text, size_t bytes)
{
    static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)text[0] & lead_bits[bytes];
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

size_t ah__utf8_put(char *bytes, uint32_t code)
{
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(marks[length] | code);
    return length;
}

/* Returns the number of ASCII bytes at the start. Looks at eight bytes at a time. */
static size_t ascii_length(const char *text, size_t length)
{
    size_t at = 0;
    uint64_t word;
    for (; at + sizeof word <= length; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (at < length && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

/* Returns the number of well-formed bytes at the start. */
static size_t good_length(const char *text, size_t length)
{
    size_t bytes;
    for (size_t at = 0; at < length; at += bytes) {
        at += ascii_length(text + at, length - at);
        if (at == length || ah__utf8_look(&bytes, text + at, length - at) != AH_UTF8_WHOLE)
            return at;
    }
    return length;
}

bool ah__utf8_good(const char *text, size_t length)
{
    return good_length(text, length) == length;
}

void ah__utf8_repair(struct ah_buf *to, const char *text, size_t length)
{
    size_t bytes;
    for (size_t at = 0; at < length; at += bytes) {
        bytes = good_length(text + at, length - at);
        ah__buf_add(to, text + at, bytes);
        at += bytes;
        if (at == length)
            break;
        ah__utf8_look(&bytes, text + at, length - at);
        ah__buf_add(to, replacement, sizeof replacement - 1);
    }
}
