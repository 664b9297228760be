#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"

static const struct unit {
    const char *name;
    int64_t bytes;
} units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
    {"K", INT64_C(1) << 10},
    {"M", INT64_C(1) << 20},
    {"G", INT64_C(1) << 30},
    {"T", INT64_C(1) << 40},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", INT64_C(1000000000000)},
};

static int64_t unit_bytes(const char *name, size_t length)
{
    for (size_t i = 0; i < AH_LENGTH(units); i++)
        if (strlen(units[i].name) == length && strncmp(units[i].name, name, length) == 0)
            return units[i].bytes;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads decimal digits of text into *value; false on overflow. */
static bool digits_parse(int64_t *value, const char *text, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, text[i] - '0', &sum))
            return false;
    *value = sum;
    return true;
}

/* Returns unit * 0.DIGITS, rounded down; only the first 15 digits count, more than any size needs. */
static int64_t fraction_bytes(const char *digits, size_t count, int64_t unit)
{
    double scale = 1, sum = 0;
    for (size_t i = 0; i < count && i < 15; i++) {
        sum = sum * 10 + (digits[i] - '0');
        scale *= 10;
    }
    return (int64_t)(sum * (double)unit / scale);
}

static size_t digits_count(const char *text)
{
    size_t count = 0;
    while (is_digit(text[count]))
        count++;
    return count;
}

/* Parses the first `length` characters of text as a size. `rate` changes the message and refuses the ambiguous
 * "48G". */
static int size_parse(int64_t *bytes, const char *text, size_t length, bool rate)
{
    const char *expected = rate ? "a rate such as 4GB/s or 500MiB/s" : "a size such as 64MiB, 1.5GB or 4096";
    size_t whole = digits_count(text), at = whole, fraction = 0;
    if (whole && text[at] == '.') {
        fraction = digits_count(text + at + 1);
        at += fraction + 1;
    }
    bool malformed = !whole || at > length || (at > whole && !fraction);
    if (!malformed && at < length && text[at] == ' ')
        at++;
    /* "48G" is common for memory, but ambiguous for a rate (48 or 51.5 GB/s) */
    bool letter = length - at == 1 && text[at] != 'B';
    int64_t unit = malformed || (rate && letter) ? 0 : unit_bytes(text + at, length - at);
    if (!unit || (unit == 1 && fraction))
        return ah__fail(AH_EINPUT, "found '%s', expected %s", text, expected);
    int64_t sum;
    if (!digits_parse(&sum, text, whole) || __builtin_mul_overflow(sum, unit, &sum) ||
        __builtin_add_overflow(sum, fraction ? fraction_bytes(text + whole + 1, fraction, unit) : 0, &sum))
        return ah__fail(AH_EINPUT, "found '%s', expected %s below 8388608 TiB", text, expected);
    *bytes = sum;
    return AH_OK;
}

int ah_size_parse(int64_t *bytes, const char *text)
{
    return size_parse(bytes, text, strlen(text), false);
}

int ah_rate_parse(int64_t *bytes_per_s, const char *text)
{
    size_t length = strlen(text);
    if (length < 2 || strcmp(text + length - 2, "/s") != 0)
        return ah__fail(AH_EINPUT, "found '%s', expected a rate such as 4GB/s or 500MiB/s", text);
    return size_parse(bytes_per_s, text, length - 2, true);
}

char *ah_size_format(char *text, size_t size, int64_t bytes)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    size_t i = 0;
    if (bytes > -1024 && bytes < 1024) {
        snprintf(text, size, "%lld B", (long long)bytes);
        return text;
    }
    for (; i + 1 < AH_LENGTH(names) && (value >= 1023.95 || value <= -1023.95); i++)
        value /= 1024;
    ah__snprintf(text, size, "%.1f %s", value, names[i]);
    return text;
}

char *ah_count_format(char *text, size_t size, int64_t count)
{
    static const char prefixes[] = " KMGT";
    double value = (double)count;
    int unit = 0;
    for (; prefixes[unit + 1] && value >= 999.95; unit++)
        value /= 1000;
    if (unit == 0)
        snprintf(text, size, "%lld", (long long)count);
    else
        ah__snprintf(text, size, value < 10 ? "%.2f %c" : "%.1f %c", value, prefixes[unit]);
    return text;
}
