#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/format.h"
#include "base/text.h"

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
