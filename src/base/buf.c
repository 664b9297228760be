#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/format.h"

static bool buf_reserve(struct ah_buf *buf, size_t more)
{
    if (buf->status == AH_OK)
        buf->status = ah__grow(&buf->text, &buf->capacity, buf->length + more + 1, 1);
    return buf->status == AH_OK;
}

void ah__buf_add(struct ah_buf *buf, const char *text, size_t length)
{
    if (!buf_reserve(buf, length))
        return;
    if (length)
        memcpy(buf->text + buf->length, text, length);
    buf->length += length;
    buf->text[buf->length] = 0;
}

void ah__buf_printf(struct ah_buf *buf, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = ah__vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 && buf->status == AH_OK)
        buf->status = ah__fail(AH_EINTERNAL, "cannot format '%s'", format);
    if (length < 0 || !buf_reserve(buf, (size_t)length))
        return;
    va_start(arguments, format);
    ah__vsnprintf(buf->text + buf->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buf->length += (size_t)length;
}

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

/* Adds text, with each ASCII character replaced by what `escape` returns (null: unchanged); a byte that is not UTF-8
 * becomes U+FFFD. */
static void buf_escape(struct ah_buf *buf, const char *text, const char *(*escape)(unsigned char c, char *room))
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        char room[8];
        size_t length = ah__utf8_length(at, 4); /* stops at the terminating zero byte */
        const char *spelled = length == 1 ? escape(*at, room) : length ? NULL : "\xef\xbf\xbd";
        if (spelled)
            ah__buf_add(buf, spelled, strlen(spelled));
        else
            ah__buf_add(buf, (const char *)at, length);
        at += length ? length : 1;
    }
}

static const char *json_escape(unsigned char c, char *room)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        break;
    }
    if (c >= 0x20)
        return NULL;
    snprintf(room, 8, "\\u%04x", c);
    return room;
}

static const char *xml_escape(unsigned char c, char *room)
{
    (void)room;
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\n':
    case '\r':
    case '\t':
        return NULL;
    default:
        break;
    }
    return c < 0x20 ? "\xef\xbf\xbd" : NULL;
}

void ah__buf_json(struct ah_buf *buf, const char *text)
{
    buf_escape(buf, text, json_escape);
}

void ah__buf_xml(struct ah_buf *buf, const char *text)
{
    buf_escape(buf, text, xml_escape);
}

void ah__buf_free(struct ah_buf *buf)
{
    ah__free(buf->text);
    *buf = (struct ah_buf){0};
}
