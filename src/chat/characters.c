/* Characters, white space and case, over utf8proc. */
#include "chat/characters.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

size_t ah__characters(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

size_t ah__characters_at(const char *text, size_t length, size_t index)
{
    size_t at = 0;
    for (; index && at < length; index--)
        at += ah__utf8_bytes(text[at]);
    return at;
}

const char *ah__text_find(const char *text, size_t length, const char *part, size_t part_length)
{
    return part_length ? memmem(text, length, part, part_length) : text;
}

const char *ah__text_find_last(const char *text, size_t length, const char *part, size_t part_length)
{
    for (size_t at = length >= part_length ? length - part_length + 1 : 0; at > 0; at--)
        if (memcmp(text + at - 1, part, part_length) == 0)
            return text + at - 1;
    return NULL;
}

size_t ah__text_find_cost(size_t length, size_t part_length)
{
    enum { WORD = 16 };
    size_t each = 2 + part_length / WORD;
    return length > SIZE_MAX / each ? SIZE_MAX : length * each;
}

bool ah__is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

static bool is_stripped(const char *character, size_t bytes, const char *set, size_t set_length)
{
    if (!set)
        return ah__is_space(ah__utf8_code(character, bytes));
    for (size_t at = 0; at < set_length; at += ah__utf8_bytes(set[at]))
        if (ah__utf8_bytes(set[at]) == bytes && memcmp(set + at, character, bytes) == 0)
            return true;
    return false;
}

void ah__text_strip(const char **text, size_t *length, const char *set, size_t set_length, bool left, bool right)
{
    while (left && *length) {
        size_t bytes = ah__utf8_bytes(**text);
        if (!is_stripped(*text, bytes, set, set_length))
            break;
        *text += bytes;
        *length -= bytes;
    }
    while (right && *length) {
        size_t at = *length - 1;
        while (at && ((unsigned char)(*text)[at] & 0xc0) == 0x80)
            at--;
        if (!is_stripped(*text + at, *length - at, set, set_length))
            break;
        *length = at;
    }
}

/* ---- case -------------------------------------------------------------------------------------------------------- */

static void put(struct ah_buf *to, utf8proc_int32_t code)
{
    char bytes[4];
    ah__buf_add(to, bytes, ah__utf8_put(bytes, (uint32_t)code));
}

/* Appends the character in upper or title case. Sharp s becomes two characters. Other characters with long forms do not
 * occur in real texts and become one character. */
static void put_upper(struct ah_buf *to, utf8proc_int32_t code, bool title)
{
    enum { SHARP_S = 0xdf };
    if (code == SHARP_S)
        ah__buf_add(to, title ? "Ss" : "SS", 2);
    else
        put(to, title ? utf8proc_totitle(code) : utf8proc_toupper(code));
}

static bool is_cased(utf8proc_int32_t code)
{
    if (code < 0x80)
        return (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
    utf8proc_category_t category = utf8proc_category(code);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

/* Appends the character in lower case. Greek's small sigma has another form at the end of a word. */
static void put_lower(struct ah_buf *to, utf8proc_int32_t code, bool after_letter, bool before_letter)
{
    enum { SIGMA = 0x3a3, SIGMA_FINAL = 0x3c2 };
    put(to, code == SIGMA && after_letter && !before_letter ? SIGMA_FINAL : utf8proc_tolower(code));
}

void ah__text_case(struct ah_buf *to, const char *text, size_t length, enum ah_case how)
{
    bool after_letter = false, first = true;
    for (size_t at = 0; at < length;) {
        size_t bytes = ah__utf8_bytes(text[at]), next = at + bytes;
        utf8proc_int32_t code = (utf8proc_int32_t)ah__utf8_code(text + at, bytes);
        bool before_letter =
            next < length && is_cased((utf8proc_int32_t)ah__utf8_code(text + next, ah__utf8_bytes(text[next])));
        bool up = how == AH_CASE_UPPER || (how == AH_CASE_TITLE && !after_letter) || (how == AH_CASE_CAPITAL && first);
        if (up)
            put_upper(to, code, how == AH_CASE_TITLE || how == AH_CASE_CAPITAL);
        else
            put_lower(to, code, after_letter, before_letter);
        after_letter = is_cased(code);
        first = false;
        at = next;
    }
}

bool ah__is_printable(uint32_t code)
{
    if (code < 0x7f)
        return code >= ' ';
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return code == ' ';
    default:
        return true;
    }
}
