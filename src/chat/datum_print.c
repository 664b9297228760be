/* Writes values as str(), repr() and json.dumps() do. */
#include "chat/datum_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "chat/characters.h"

/* Costs of a character, a real number and a code, in bytes for ah__heap_touch. */
enum { CHARACTER_COST = 64, REAL_COST = 16384, CODE_COST = 512 };

static void put(struct ah_heap *heap, struct ah_buf *to, const char *words)
{
    ah__heap_put(heap, to, words, strlen(words));
}

static void put_code(struct ah_heap *heap, struct ah_buf *to, const char *format, unsigned code)
{
    char text[16];
    if (!ah__heap_touch(heap, CODE_COST))
        return;
    snprintf(text, sizeof text, format, code);
    put(heap, to, text);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static void add(struct ah_buf *to, const char *words)
{
    ah__buf_add(to, words, strlen(words));
}

/* Writes the fewest digits that read back as the number: "d.dddde+xx". For a normal number it starts at 15 digits,
 * since digits that it does not need are zeros then, which the caller drops. */
static void shortest(char *text, size_t size, double value)
{
    enum { DIGITS_MOST = 17, DIGITS_SAFE = 14 };
    for (int digits = isnormal(value) ? DIGITS_SAFE : 0; digits < DIGITS_MOST; digits++) {
        ah__snprintf(text, size, "%.*e", digits, value);
        if (ah__strtod(text, NULL) == value)
            return;
    }
}

/* Appends the fewest digits that read back as the number, as Python writes floats. */
static void real_repr(struct ah_buf *to, double value)
{
    enum { FIXED_LEAST = -4, FIXED_BELOW = 16 }; /* exponents of numbers that are written without one */
    char text[40], digits[24];
    int count = 0;
    if (isnan(value) || isinf(value)) {
        add(to, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    shortest(text, sizeof text, value);
    char *mark = strchr(text, 'e');
    int exponent = (int)strtol(mark + 1, NULL, 10);
    for (const char *c = text; c < mark; c++)
        if (*c >= '0' && *c <= '9')
            digits[count++] = *c;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    if (text[0] == '-')
        add(to, "-");
    if (exponent < FIXED_LEAST || exponent >= FIXED_BELOW) {
        ah__buf_add(to, digits, 1);
        if (count > 1)
            ah__buf_printf(to, ".%.*s", count - 1, digits + 1);
        ah__buf_printf(to, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
        return;
    }
    if (exponent < 0)
        add(to, "0.");
    for (int i = exponent < 0 ? exponent + 1 : 0; i < count || i <= exponent; i++) {
        add(to, i == exponent + 1 && exponent >= 0 ? "." : "");
        ah__buf_add(to, i >= 0 && i < count ? digits + i : "0", 1);
    }
    if (exponent >= 0 && count <= exponent + 1)
        add(to, ".0");
}

/* ---- str and repr ------------------------------------------------------------------------------------------------ */

static void repr_character(struct ah_heap *heap, struct ah_buf *to, const char *at, size_t bytes, char quote)
{
    uint32_t code = ah__utf8_code(at, bytes);
    if (code == '\n' || code == '\r' || code == '\t')
        put(heap, to, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
    else if (code == '\\' || code == (unsigned char)quote)
        put_code(heap, to, "\\%c", code);
    else if (ah__is_printable(code))
        ah__heap_put(heap, to, at, bytes);
    else
        put_code(heap, to, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
}

static void repr_text(struct ah_heap *heap, struct ah_buf *to, const char *text, size_t length)
{
    char quote = length && memchr(text, '\'', length) && !memchr(text, '"', length) ? '"' : '\'';
    if (!ah__heap_touch(heap, CHARACTER_COST * length))
        return;
    ah__heap_put(heap, to, &quote, 1);
    for (size_t at = 0; at < length && !heap->excess;) {
        size_t bytes = ah__utf8_bytes(text[at]);
        repr_character(heap, to, text + at, bytes, quote);
        at += bytes;
    }
    ah__heap_put(heap, to, &quote, 1);
}

static int repr_list(struct ah_heap *heap, struct ah_buf *to, const struct ah_datum_list *list, bool tuple)
{
    put(heap, to, tuple ? "(" : "[");
    for (size_t i = 0; i < list->count; i++) {
        put(heap, to, i ? ", " : "");
        AH_TRY(ah__datum_repr(heap, to, list->items[i]));
    }
    put(heap, to, tuple && list->count == 1 ? ",)" : tuple ? ")" : "]");
    return AH_OK;
}

static int repr_dict(struct ah_heap *heap, struct ah_buf *to, const struct ah_datum_dict *dict)
{
    put(heap, to, "{");
    for (size_t i = 0; i < dict->count; i++) {
        put(heap, to, i ? ", " : "");
        AH_TRY(ah__datum_repr(heap, to, dict->pairs[i].key));
        put(heap, to, ": ");
        AH_TRY(ah__datum_repr(heap, to, dict->pairs[i].value));
    }
    put(heap, to, "}");
    return AH_OK;
}

static int print(struct ah_heap *heap, struct ah_buf *to, struct ah_datum value)
{
    char digits[24];
    AH_TRY(ah__heap_check(heap));
    switch (value.kind) {
    case AH_DATUM_NONE:
        put(heap, to, "None");
        return AH_OK;
    case AH_DATUM_BOOL:
        put(heap, to, value.truth ? "True" : "False");
        return AH_OK;
    case AH_DATUM_INT:
        snprintf(digits, sizeof digits, "%" PRId64, value.integer);
        put(heap, to, digits);
        return AH_OK;
    case AH_DATUM_REAL:
        if (ah__heap_touch(heap, REAL_COST))
            real_repr(to, value.real);
        return AH_OK;
    case AH_DATUM_LIST:
    case AH_DATUM_TUPLE:
        return repr_list(heap, to, value.list, value.kind == AH_DATUM_TUPLE);
    case AH_DATUM_DICT:
        return repr_dict(heap, to, value.dict);
    default:
        return ah__fail(AH_EINPUT, "found a %s to be printed, expected a value", ah__datum_type(value));
    }
}

int ah__datum_str(struct ah_heap *heap, struct ah_buf *to, struct ah_datum value)
{
    if (value.kind == AH_DATUM_TEXT)
        ah__heap_put(heap, to, value.text, value.length);
    else if (value.kind != AH_DATUM_UNDEFINED)
        AH_TRY(print(heap, to, value));
    return to->status;
}

int ah__datum_repr(struct ah_heap *heap, struct ah_buf *to, struct ah_datum value)
{
    if (value.kind == AH_DATUM_UNDEFINED)
        put(heap, to, "Undefined");
    else if (value.kind != AH_DATUM_TEXT)
        AH_TRY(print(heap, to, value));
    else if (value.safe) {
        put(heap, to, "Markup(");
        repr_text(heap, to, value.text, value.length);
        put(heap, to, ")");
    } else
        repr_text(heap, to, value.text, value.length);
    return to->status;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

struct json_writer {
    struct ah_buf *to;
    struct ah_heap *heap;
    const struct ah_json_style *style;
    int level;
};

static int json_value(struct json_writer *writer, struct ah_datum value);

static void json_unicode(struct ah_heap *heap, struct ah_buf *to, uint32_t code)
{
    enum { ASTRAL = 0x10000 };
    if (code < ASTRAL) {
        put_code(heap, to, "\\u%04x", code);
        return;
    }
    code -= ASTRAL;
    put_code(heap, to, "\\u%04x", 0xd800 + (code >> 10));
    put_code(heap, to, "\\u%04x", 0xdc00 + (code & 0x3ff));
}

static void json_text(struct json_writer *writer, const char *text, size_t length)
{
    static const char plain[] = "\b\f\n\r\t\"\\", letter[] = "bfnrt\"\\";
    enum { DELETE = 0x7f };
    struct ah_buf *to = writer->to;
    struct ah_heap *heap = writer->heap;
    if (!ah__heap_touch(heap, CHARACTER_COST * length))
        return;
    put(heap, to, "\"");
    for (size_t at = 0; at < length && !heap->excess;) {
        size_t bytes = ah__utf8_bytes(text[at]);
        uint32_t code = ah__utf8_code(text + at, bytes);
        const char *escape = code && code < DELETE ? strchr(plain, (int)code) : NULL;
        if (escape)
            put_code(heap, to, "\\%c", (unsigned char)letter[escape - plain]);
        else if (code < ' ' || (writer->style->ascii && code > DELETE))
            json_unicode(writer->heap, to, code);
        else
            ah__heap_put(heap, to, text + at, bytes);
        at += bytes;
    }
    put(heap, to, "\"");
}

/* Writes a line break and the level's indent, if the style is indented. Called before each item and behind the last. */
static void json_line(struct json_writer *writer)
{
    if (!writer->style->indented)
        return;
    put(writer->heap, writer->to, "\n");
    for (int i = 0; i < writer->level; i++)
        ah__heap_put(writer->heap, writer->to, writer->style->indent.text, writer->style->indent.length);
}

static void json_between(struct json_writer *writer, size_t index)
{
    if (index)
        ah__heap_put(writer->heap, writer->to, writer->style->item_mark.text, writer->style->item_mark.length);
    json_line(writer);
}

static int json_list(struct json_writer *writer, const struct ah_datum_list *list)
{
    put(writer->heap, writer->to, "[");
    writer->level++;
    for (size_t i = 0; i < list->count; i++) {
        json_between(writer, i);
        AH_TRY(json_value(writer, list->items[i]));
    }
    writer->level--;
    if (list->count)
        json_line(writer);
    put(writer->heap, writer->to, "]");
    return AH_OK;
}

static int json_key(struct json_writer *writer, struct ah_datum key)
{
    if (key.kind == AH_DATUM_TEXT) {
        json_text(writer, key.text, key.length);
        return AH_OK;
    }
    if (!ah__datum_is_number(key) && key.kind != AH_DATUM_NONE)
        return ah__fail(AH_EINPUT, "tojson found a %s as a key, expected a string", ah__datum_type(key));
    put(writer->heap, writer->to, "\"");
    AH_TRY(json_value(writer, key));
    put(writer->heap, writer->to, "\"");
    return AH_OK;
}

/* Sorts by key; stable. */
static int json_sort(struct ah_heap *heap, struct ah_datum_pair *pairs, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0; k--) {
            int order;
            AH_TRY(ah__datum_order(&order, heap, pairs[k - 1].key, pairs[k].key, "<"));
            if (order <= 0)
                break;
            struct ah_datum_pair swapped = pairs[k];
            pairs[k] = pairs[k - 1];
            pairs[k - 1] = swapped;
        }
    return AH_OK;
}

static int json_dict(struct json_writer *writer, const struct ah_datum_dict *dict)
{
    struct ah_datum_pair *pairs = dict->pairs;
    if (writer->style->sorted && dict->count) {
        AH_TRY(ah__heap_new(writer->heap, &pairs, dict->count, sizeof *pairs));
        memcpy(pairs, dict->pairs, dict->count * sizeof *pairs);
        AH_TRY(json_sort(writer->heap, pairs, dict->count));
    }
    put(writer->heap, writer->to, "{");
    writer->level++;
    for (size_t i = 0; i < dict->count; i++) {
        json_between(writer, i);
        AH_TRY(json_key(writer, pairs[i].key));
        ah__heap_put(writer->heap, writer->to, writer->style->pair_mark.text, writer->style->pair_mark.length);
        AH_TRY(json_value(writer, pairs[i].value));
    }
    writer->level--;
    if (dict->count)
        json_line(writer);
    put(writer->heap, writer->to, "}");
    return AH_OK;
}

static int json_value(struct json_writer *writer, struct ah_datum value)
{
    struct ah_buf *to = writer->to;
    struct ah_heap *heap = writer->heap;
    AH_TRY(ah__heap_check(heap));
    switch (value.kind) {
    case AH_DATUM_NONE:
        put(heap, to, "null");
        return AH_OK;
    case AH_DATUM_BOOL:
        put(heap, to, value.truth ? "true" : "false");
        return AH_OK;
    case AH_DATUM_REAL:
        if (isnan(value.real) || isinf(value.real)) {
            put(heap, to, isnan(value.real) ? "NaN" : value.real < 0 ? "-Infinity" : "Infinity");
            return AH_OK;
        }
        return print(heap, to, value);
    case AH_DATUM_INT:
        return print(heap, to, value);
    case AH_DATUM_TEXT:
        json_text(writer, value.text, value.length);
        return AH_OK;
    case AH_DATUM_LIST:
    case AH_DATUM_TUPLE:
        return json_list(writer, value.list);
    case AH_DATUM_DICT:
        return json_dict(writer, value.dict);
    default:
        return ah__fail(AH_EINPUT, "tojson found a value that is %s, expected one that JSON has",
                        value.kind == AH_DATUM_UNDEFINED ? "undefined" : ah__datum_type(value));
    }
}

int ah__datum_json(struct ah_buf *to, struct ah_heap *heap, struct ah_datum value, const struct ah_json_style *style)
{
    struct json_writer writer = {to, heap, style, 0};
    AH_TRY(json_value(&writer, value));
    return to->status;
}
