#include "base/text.h"

#include <string.h>

/* Well-formed UTF-8: for each range of the first byte the range of the second byte and the character's length in
 * bytes. */
static const struct form {
    unsigned char first, last, second_first, second_last, length;
} forms[] = {{0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
             {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
             {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};

/* Returns true if the text begins with a character of this form, or ends within one. */
static bool has_form(const struct form *form, const unsigned char *text, size_t length)
{
    if (text[0] < form->first || text[0] > form->last)
        return false;
    if (form->length > 1 && length > 1 && (text[1] < form->second_first || text[1] > form->second_last))
        return false;
    for (size_t i = 2; i < form->length && i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return false;
    return true;
}

size_t ah_text_character(bool *control, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    *control = false;
    for (size_t i = 0; i < AH_LENGTH(forms); i++) {
        if (!has_form(&forms[i], at, length))
            continue;
        if (forms[i].length == 1)
            *control = at[0] < 0x20 || at[0] == 0x7f;
        else if (length > 1)
            *control = at[0] == 0xc2 && at[1] < 0xa0;
        return forms[i].length;
    }
    return 0;
}

size_t ah__utf8_length(const unsigned char *text, size_t length)
{
    bool control;
    size_t bytes = length && *text ? ah_text_character(&control, (const char *)text, length) : 0;
    return bytes <= length ? bytes : 0;
}

char *ah_text_plain(char *text)
{
    bool control;
    for (size_t left = strlen(text), done = 0, bytes; left > 0; left -= bytes, done += bytes) {
        bytes = ah_text_character(&control, text + done, left);
        bool good = bytes > 0 && bytes <= left;
        bytes = good ? bytes : 1;
        if (!good || control)
            memset(text + done, good ? ' ' : '?', bytes);
    }
    return text;
}
