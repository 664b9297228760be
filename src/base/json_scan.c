#include "base/json_scan.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* A scan of a text; the part between `at` and `end` is still to be read. */
struct scan {
    const char *path, *start, *at, *end;
    struct ah_json_fault *fault; /* receives a fault, instead of a message; text is then read as Python reads it */
};

static int fail_saying(const char *path, const char *text, const char *at, const char *found, const char *but)
{
    size_t line = 1, column = 1;
    for (; text < at; text++) {
        column = *text == '\n' ? 1 : column + 1;
        line += *text == '\n';
    }
    return ah__fail(AH_EINPUT, "%s: line %zu, column %zu: found %s, %s", path, line, column, found, but);
}

int ah__json_fail_at(const char *path, const char *text, const char *at, const char *found)
{
    return fail_saying(path, text, at, found, "expected JSON");
}

int ah__json_unread_at(const char *path, const char *text, const char *at, const char *found)
{
    return fail_saying(path, text, at, found, "which is JSON but is not read");
}

static int fail_at(const struct scan *scan, const char *at, const char *found)
{
    if (scan->fault) {
        enum { ESCAPES_MOST = 12 }; /* bytes of the two escapes of a surrogate pair */
        *scan->fault = (struct ah_json_fault){.at = (size_t)(at - scan->start), .cut = scan->end - at < ESCAPES_MOST};
        snprintf(scan->fault->found, sizeof scan->fault->found, "%s", found);
        return AH_EINPUT;
    }
    return ah__json_fail_at(scan->path, scan->start, at, found);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the character at `at`; zero at the text's end, since no valid text contains a zero byte. */
static char peek(const struct scan *scan, const char *at)
{
    return at < scan->end ? *at : 0;
}

static int fail_byte(const struct scan *scan, const char *what)
{
    char found[64];
    snprintf(found, sizeof found, "%s 0x%02x", what, (unsigned)(unsigned char)*scan->at);
    return fail_at(scan, scan->at, found);
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

/* Reads four hexadecimal digits; -1 for other characters. */
static int code_read(const struct scan *scan, const char *at)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        char c = peek(scan, at + i);
        const char *digit = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
        if (!digit)
            return -1;
        code = code << 4 | (int)(digit - digits);
    }
    return code;
}

/* Scans an escape \uXXXX, or a surrogate pair of them for a character beyond 0xffff. */
static int scan_code(struct scan *scan)
{
    int code = code_read(scan, scan->at + 2);
    if (code < 0)
        return fail_at(scan, scan->at, "\\u without four hexadecimal digits");
    if (scan->fault) {
        scan->at += 6;
        return AH_OK;
    }
    if (code == 0)
        return ah__json_unread_at(scan->path, scan->start, scan->at, "\\u0000 in a string");
    bool high = code >= 0xd800 && code < 0xdc00, low = code >= 0xdc00 && code < 0xe000;
    if (high && peek(scan, scan->at + 6) == '\\' && peek(scan, scan->at + 7) == 'u') {
        int second = code_read(scan, scan->at + 8);
        low = second < 0xdc00 || second >= 0xe000;
        scan->at += 6;
    } else {
        low = low || high;
    }
    if (low)
        return ah__json_unread_at(scan->path, scan->start, scan->at, "half of a surrogate pair");
    scan->at += 6;
    return AH_OK;
}

static int scan_escape(struct scan *scan)
{
    char c = peek(scan, scan->at + 1);
    if (c == 'u')
        return scan_code(scan);
    if (!c || !strchr("\"\\/bfnrt", c))
        return fail_at(scan, scan->at, "an unknown escape in a string");
    scan->at += 2;
    return AH_OK;
}

static int scan_string(struct scan *scan)
{
    for (scan->at++; scan->at < scan->end && *scan->at != '"';) {
        size_t length = ah__utf8_length((const unsigned char *)scan->at, (size_t)(scan->end - scan->at));
        if (*scan->at == '\\')
            AH_TRY(scan_escape(scan));
        else if ((unsigned char)*scan->at < 0x20)
            return fail_byte(scan, "in a string the control character");
        else if (!length)
            return fail_byte(scan, "in a string what is no UTF-8, byte");
        else
            scan->at += length;
    }
    if (scan->at == scan->end)
        return fail_at(scan, scan->at, "a string without its end");
    scan->at++;
    return AH_OK;
}

/* ---- numbers and words ------------------------------------------------------------------------------------------- */

static const char *digits_skip(const struct scan *scan, const char *at)
{
    while (is_digit(peek(scan, at)))
        at++;
    return at;
}

/* Returns the end of the number at the current position; null if it is not a number of JSON. */
static const char *number_end(const struct scan *scan)
{
    const char *at = scan->at + (*scan->at == '-'), *whole = at, *part;
    at = digits_skip(scan, at);
    if (at == whole || (*whole == '0' && at > whole + 1))
        return NULL;
    if (peek(scan, at) == '.') {
        part = at + 1;
        at = digits_skip(scan, part);
        if (at == part)
            return NULL;
    }
    if (peek(scan, at) == 'e' || peek(scan, at) == 'E') {
        part = at + 1;
        part += peek(scan, part) == '+' || peek(scan, part) == '-';
        at = digits_skip(scan, part);
        if (at == part)
            return NULL;
    }
    return at;
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("+-._", c));
}

/* Scans a number, true, false or null, up to the next character that cannot be part of one. */
static int scan_word(struct scan *scan)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    enum { OF_JSON = 3 };
    const size_t count = scan->fault ? AH_LENGTH(words) : OF_JSON;
    const char *end = scan->at;
    while (is_word(peek(scan, end)))
        end++;
    size_t length = (size_t)(end - scan->at);
    bool good = (*scan->at == '-' || is_digit(*scan->at)) && number_end(scan) == end;
    for (size_t i = 0; i < count; i++)
        good = good || (length == strlen(words[i]) && memcmp(words[i], scan->at, length) == 0);
    if (!good) {
        char found[64];
        snprintf(found, sizeof found, "'%.*s'", length < 40 ? (int)length : 40, scan->at);
        int status = fail_at(scan, scan->at, found);
        if (scan->fault)
            scan->fault->cut |= end == scan->end;
        return status;
    }
    scan->at = end;
    return AH_OK;
}

int ah__json_scan_atom(size_t *at, const char *text, size_t length, struct ah_json_fault *fault)
{
    struct scan scan = {NULL, text, text + *at, text + length, fault};
    int status = scan.at == scan.end ? fail_at(&scan, scan.at, "the end of the text")
                 : *scan.at == '"'   ? scan_string(&scan)
                 : is_word(*scan.at) ? scan_word(&scan)
                                     : fail_byte(&scan, "the byte");
    *at = (size_t)(scan.at - text);
    return status;
}

int ah__json_scan(const char *text, size_t length, const char *path)
{
    struct scan scan = {path, text, text, text + length, NULL};
    while (scan.at < scan.end) {
        if (*scan.at == '"')
            AH_TRY(scan_string(&scan));
        else if (is_word(*scan.at))
            AH_TRY(scan_word(&scan));
        else if (*scan.at && strchr(" \t\r\n{}[],:", *scan.at))
            scan.at++;
        else
            return fail_byte(&scan, "the byte");
    }
    return AH_OK;
}
