#include "base/json_python.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/format.h"

enum { NESTED_MOST = 4096, BUILT_MOST = 100 };

size_t ah__json_blank(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && text[at] && strchr(" \t\r\n", text[at]))
        at++;
    return at;
}

static int fault_set(struct ah_json_fault *fault, size_t at, size_t length, const char *format, const char *what)
{
    *fault = (struct ah_json_fault){.at = at, .cut = at == length};
    if (at == length)
        snprintf(fault->found, sizeof fault->found, "a syntax error at the end of the text");
    else
        snprintf(fault->found, sizeof fault->found, format, what);
    return AH_EINPUT;
}

static int syntax_fault(struct ah_json_fault *fault, const char *text, size_t at, size_t length)
{
    char byte[8];
    unsigned char c = at < length ? (unsigned char)text[at] : 0;
    snprintf(byte, sizeof byte, c > 0x20 && c < 0x7f ? "'%c'" : "0x%02x", c);
    return fault_set(fault, at, length, "a syntax error at %s", byte);
}

/* ---- end of a value ---------------------------------------------------------------------------------------------- */

/* The token that may come next. FIRST: the bracket may also close at once. */
enum state { VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, AFTER };

/* The open brackets. */
struct nest {
    unsigned char object[NESTED_MOST / 8]; /* one bit for each bracket: an object, else an array */
    size_t depth;
};

static bool in_object(const struct nest *nest)
{
    size_t top = nest->depth - 1;
    return nest->object[top / 8] >> top % 8 & 1;
}

static int nest_open(struct nest *nest, bool object)
{
    if (nest->depth == NESTED_MOST)
        return AH_EINPUT;
    unsigned char bit = (unsigned char)(1 << nest->depth % 8);
    nest->object[nest->depth / 8] &= (unsigned char)~bit;
    nest->object[nest->depth / 8] |= object ? bit : 0;
    nest->depth++;
    return AH_OK;
}

/* Reads a comma or the closing bracket. */
static int separator_step(enum state *state, struct nest *nest, char c)
{
    bool object = in_object(nest);
    if (*state == AFTER && c == ',')
        *state = object ? KEY : VALUE;
    else if (c == (object ? '}' : ']') && *state != VALUE && *state != KEY && *state != COLON)
        *state = AFTER, nest->depth--;
    else
        return AH_EINPUT;
    return AH_OK;
}

/* Reads one bracket, comma, colon, string, number or word. */
static int step(enum state *state, struct nest *nest, size_t *at, const char *text, size_t length,
                struct ah_json_fault *fault)
{
    char c = text[*at];
    bool value = *state == VALUE || *state == FIRST_VALUE, key = *state == KEY || *state == FIRST_KEY;
    if (value && (c == '{' || c == '[')) {
        if (nest_open(nest, c == '{') != AH_OK)
            return fault_set(fault, *at, length, "more than %s values in one another", "4096");
        *state = c == '{' ? FIRST_KEY : FIRST_VALUE;
    } else if (*state == COLON && c == ':') {
        *state = VALUE;
    } else if ((value && !strchr("}],:", c)) || (key && c == '"')) {
        *state = key ? COLON : AFTER;
        return ah__json_scan_atom(at, text, length, fault);
    } else if (nest->depth == 0 || separator_step(state, nest, c) != AH_OK) {
        return syntax_fault(fault, text, *at, length);
    }
    ++*at;
    return AH_OK;
}

int ah__json_value_end(size_t *at, const char *text, size_t length, struct ah_json_fault *fault)
{
    struct nest nest = {.depth = 0};
    enum state state = VALUE;
    do {
        *at += nest.depth ? ah__json_blank(text + *at, length - *at) : 0;
        if (*at == length || !text[*at])
            return syntax_fault(fault, text, *at, length);
        AH_TRY(step(&state, &nest, at, text, length, fault));
    } while (nest.depth > 0);
    return AH_OK;
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

static void blank_skip(struct ah_json_members *members)
{
    members->at += ah__json_blank(members->text + members->at, members->length - members->at);
}

static char here(const struct ah_json_members *members)
{
    return members->at < members->length ? members->text[members->at] : 0;
}

int ah__json_members_next(bool *more, struct ah_json_members *members, struct ah_json_fault *fault)
{
    bool first = members->at == 0;
    members->at += first; /* the brace */
    blank_skip(members);
    *more = here(members) != '}';
    if (!*more) {
        members->at++;
        return AH_OK;
    }
    if (!first && here(members) != ',')
        return syntax_fault(fault, members->text, members->at, members->length);
    members->at += !first;
    blank_skip(members);
    size_t key = members->at;
    if (here(members) != '"')
        return syntax_fault(fault, members->text, members->at, members->length);
    AH_TRY(ah__json_scan_atom(&members->at, members->text, members->length, fault));
    members->key = members->text + key + 1;
    members->key_length = members->at - key - 2;
    blank_skip(members);
    if (here(members) != ':')
        return syntax_fault(fault, members->text, members->at, members->length);
    members->at++;
    blank_skip(members);
    members->value = members->at;
    return members->at < members->length ? AH_OK : syntax_fault(fault, members->text, members->at, members->length);
}

/* ---- a tree ------------------------------------------------------------------------------------------------------ */

struct builder {
    const char *text;
    size_t length, at;
    struct ah_json_fault *fault;
};

static int node_take(cJSON **out, cJSON *node)
{
    *out = node;
    return node ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: reading JSON");
}

static unsigned code_at(const char *at)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)at[i];
        code = code << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
}

static void utf8_add(struct ah_buf *buf, unsigned code)
{
    char bytes[4];
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = count; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    bytes[0] = (char)(leads[count] | code);
    ah__buf_add(buf, bytes, count);
}

/* Adds the character of an escape \uXXXX, or of two that form a surrogate pair. */
static int code_build(struct ah_buf *buf, struct builder *builder)
{
    const char *at = builder->text + builder->at;
    unsigned code = code_at(at + 2), low = 0;
    size_t used = 6;
    if (code >= 0xd800 && code < 0xdc00 && at[6] == '\\' && at[7] == 'u')
        low = code_at(at + 8);
    if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        used = 12;
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000))
        return fault_set(builder->fault, builder->at, builder->length, "in a string %s",
                         code ? "half of a surrogate pair" : "\\u0000");
    utf8_add(buf, code);
    builder->at += used;
    return AH_OK;
}

static int string_read(struct ah_buf *buf, struct builder *builder)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    ah__buf_add(buf, "", 0);
    for (builder->at++; builder->text[builder->at] != '"';) {
        const char *at = builder->text + builder->at;
        size_t plain = 0;
        while (at[plain] != '"' && at[plain] != '\\')
            plain++;
        ah__buf_add(buf, at, plain);
        builder->at += plain;
        if (at[plain] == '"')
            break;
        if (at[plain + 1] == 'u') {
            AH_TRY(code_build(buf, builder));
            continue;
        }
        ah__buf_add(buf, &meant[strchr(escapes, at[plain + 1]) - escapes], 1);
        builder->at += 2;
    }
    builder->at++;
    return buf->status;
}

static int string_build(cJSON **out, struct builder *builder)
{
    struct ah_buf buf = {0};
    int status = string_read(&buf, builder);
    if (status == AH_OK)
        status = node_take(out, cJSON_CreateString(buf.text ? buf.text : ""));
    ah__buf_free(&buf);
    return status;
}

/* Keeps a number's own text, which tells 1 and 1.0 apart; freed with the node, like a string's. */
static int number_text(cJSON *node, const char *text, size_t length)
{
    node->valuestring = cJSON_malloc(length + 1);
    if (!node->valuestring)
        return ah__fail(AH_ENOMEM, "out of host memory: reading JSON");
    memcpy(node->valuestring, text, length);
    node->valuestring[length] = 0;
    return AH_OK;
}

static int word_build(cJSON **out, struct builder *builder)
{
    const char *text = builder->text + builder->at;
    char number[64];
    size_t length = 0;
    while (builder->at + length < builder->length && !strchr(" \t\r\n,]}", text[length]))
        length++;
    builder->at += length;
    if (text[0] == 't' || text[0] == 'f')
        return node_take(out, cJSON_CreateBool(text[0] == 't'));
    if (text[0] == 'n')
        return node_take(out, cJSON_CreateNull());
    bool kept = length < sizeof number; /* a longer number becomes NaN: no member that is read needs so many digits */
    snprintf(number, sizeof number, "%.*s", kept ? (int)length : 0, text);
    cJSON *node;
    AH_TRY(node_take(&node, cJSON_CreateNumber(kept ? ah__strtod(number, NULL) : (double)NAN)));
    int status = number_text(node, text, length);
    if (status == AH_OK)
        *out = node;
    else
        cJSON_Delete(node);
    return status;
}

static int build(cJSON **out, struct builder *builder, int depth);

/* Adds a member or element. If a key occurs twice, the last value counts, as in Python. */
static int child_add(cJSON *parent, const char *key, cJSON *child)
{
    bool good = !key ? cJSON_AddItemToArray(parent, child)
                : cJSON_GetObjectItemCaseSensitive(parent, key)
                    ? cJSON_ReplaceItemInObjectCaseSensitive(parent, key, child)
                    : cJSON_AddItemToObject(parent, key, child);
    if (!good)
        cJSON_Delete(child);
    return good ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: reading JSON");
}

static void builder_blank(struct builder *builder)
{
    builder->at += ah__json_blank(builder->text + builder->at, builder->length - builder->at);
}

static int member_build(cJSON *parent, struct builder *builder, int depth)
{
    struct ah_buf key = {0};
    cJSON *child = NULL;
    int status = AH_OK;
    if (cJSON_IsObject(parent)) {
        status = string_read(&key, builder);
        builder_blank(builder);
        builder->at++; /* the colon */
        builder_blank(builder);
    }
    if (status == AH_OK)
        status = build(&child, builder, depth + 1);
    if (status == AH_OK)
        status = child_add(parent, cJSON_IsObject(parent) ? key.text ? key.text : "" : NULL, child);
    ah__buf_free(&key);
    return status;
}

static int children_build(cJSON *parent, struct builder *builder, int depth)
{
    if (depth == BUILT_MOST)
        return fault_set(builder->fault, builder->at, builder->length, "more than %s values in one another", "100");
    builder->at++; /* the bracket */
    builder_blank(builder);
    while (builder->text[builder->at] != ']' && builder->text[builder->at] != '}') {
        AH_TRY(member_build(parent, builder, depth));
        builder_blank(builder);
        builder->at += builder->text[builder->at] == ',';
        builder_blank(builder);
    }
    builder->at++;
    return AH_OK;
}

static int build(cJSON **out, struct builder *builder, int depth)
{
    char c = builder->text[builder->at];
    if (c == '"')
        return string_build(out, builder);
    if (c != '{' && c != '[')
        return word_build(out, builder);
    cJSON *node;
    AH_TRY(node_take(&node, c == '{' ? cJSON_CreateObject() : cJSON_CreateArray()));
    int status = children_build(node, builder, depth);
    if (status == AH_OK)
        *out = node;
    else
        cJSON_Delete(node);
    return status;
}

int ah__json_value_build(cJSON **out, const char *text, size_t length, struct ah_json_fault *fault)
{
    struct builder builder = {text, length, 0, fault};
    return build(out, &builder, 0);
}

int ah__json_value_parse(cJSON **out, const char *text, size_t length, const char *name)
{
    struct ah_json_fault fault;
    size_t at = ah__json_blank(text, length), end = at;
    int status = ah__json_value_end(&end, text, length, &fault);
    size_t behind = status == AH_OK ? end + ah__json_blank(text + end, length - end) : 0;
    if (status == AH_OK && behind < length)
        return ah__json_fail_at(name, text, text + behind, "more text behind the value");
    if (status == AH_EINPUT)
        return ah__json_fail_at(name, text, text + fault.at, fault.found);
    if (status == AH_OK)
        status = ah__json_value_build(out, text + at, end - at, &fault);
    return status == AH_EINPUT ? ah__json_unread_at(name, text, text + at + fault.at, fault.found) : status;
}
