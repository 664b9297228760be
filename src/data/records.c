#include "data/records.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json_python.h"

enum { LOOKED_AT = 1 << 20, RECORD_MOST = 256 << 20 };

/* ---- content of a file ------------------------------------------------------------------------------------------- */

static bool ends_with(const char *name, size_t length, const char *end)
{
    size_t tail = strlen(end);
    return length >= tail && strncasecmp(name + length - tail, end, tail) == 0;
}

/* Returns true if the name has one of the endings, before .gz or .zst. */
static bool is_named(const char *name, const char *const *endings, size_t count)
{
    static const char *const packed[] = {".gz", ".zst"};
    size_t end = strlen(name);
    for (size_t i = 0; i < AH_LENGTH(packed); i++)
        if (ends_with(name, end, packed[i])) {
            end -= strlen(packed[i]);
            break;
        }
    for (size_t i = 0; i < count; i++)
        if (ends_with(name, end, endings[i]))
            return true;
    return false;
}

/* The text under examination, the beginning of a file. */
struct look {
    const char *text;
    size_t length;
};

static char character(const struct look *look, size_t at)
{
    return at < look->length ? look->text[at] : 0;
}

static size_t blank_end(const struct look *look, size_t at)
{
    return at + ah__json_blank(look->text + at, look->length - at);
}

/* Returns true for '{' and a key, or '{' and '}', with which no prose begins. */
static bool is_object_start(const struct look *look, size_t at)
{
    struct ah_json_members members = {.text = look->text + at, .length = look->length - at};
    struct ah_json_fault fault;
    bool more;
    return character(look, at) == '{' && ah__json_members_next(&more, &members, &fault) == AH_OK;
}

static bool is_array_start(const struct look *look, size_t at)
{
    size_t first = blank_end(look, at + 1);
    return character(look, at) == '[' && (is_object_start(look, first) || character(look, first) == ']');
}

/* Returns the position after the bracket of the array that is the member "data" of the object at `at`; 0 if it has
 * none, or is itself a record. */
static size_t data_array(const struct look *look, size_t at, bool (*is_record_key)(const char *key, size_t length))
{
    struct ah_json_members members = {.text = look->text + at, .length = look->length - at};
    struct ah_json_fault fault;
    size_t found = 0;
    bool more;
    while (ah__json_members_next(&more, &members, &fault) == AH_OK && more) {
        if (is_record_key(members.key, members.key_length))
            return 0;
        if (members.key_length == 4 && memcmp(members.key, "data", 4) == 0 && is_array_start(look, at + members.value))
            found = at + members.value + 1;
        if (ah__json_value_end(&members.at, members.text, members.length, &fault) != AH_OK)
            break;
    }
    return found;
}

/* Returns true if the line at `at` is an object and nothing else, as far as it is visible; *next: start of the next
 * line. */
static bool is_object_line(size_t *next, const struct look *look, size_t at)
{
    const char *end = at < look->length ? memchr(look->text + at, '\n', look->length - at) : NULL;
    size_t length = end ? (size_t)(end - look->text) : look->length, stop = at;
    struct ah_json_fault fault;
    *next = end ? length + 1 : length;
    if (character(look, at) != '{')
        return false;
    if (ah__json_value_end(&stop, look->text, length, &fault) != AH_OK)
        return !end && look->length >= LOOKED_AT && is_object_start(look, at); /* longer than the text that was read */
    return stop + ah__json_blank(look->text + stop, length - stop) == length;
}

/* Returns true if the first line is an object, and the second, too, if there is one. */
static bool is_lines(const struct look *look, size_t at, bool named)
{
    size_t second, third;
    if (!is_object_line(&second, look, at))
        return false;
    second = blank_end(look, second);
    return named || second == look->length || is_object_line(&third, look, second);
}

enum ah_records_kind ah__records_sniff(size_t *start, const char *name, bool forced, const char *text, size_t length,
                                       bool (*is_record_key)(const char *key, size_t length))
{
    static const char *const lines[] = {".jsonl", ".ndjson", ".jsonlines"}, *const json[] = {".json"};
    const bool of_lines = is_named(name, lines, AH_LENGTH(lines));
    const bool named = forced || of_lines || is_named(name, json, AH_LENGTH(json));
    const struct look look = {text, length};
    size_t mark = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0, at = blank_end(&look, mark), data;
    *start = mark;
    if (character(&look, at) == '[' && (named || is_array_start(&look, at))) {
        *start = at + 1;
        return AH_RECORDS_ARRAY;
    }
    if (character(&look, at) != '{')
        return named ? AH_RECORDS_LINES : AH_RECORDS_NONE;
    if (!of_lines && (data = data_array(&look, at, is_record_key)) > 0) {
        *start = data;
        return AH_RECORDS_ARRAY;
    }
    if (is_lines(&look, at, named))
        return AH_RECORDS_LINES;
    return !named ? AH_RECORDS_NONE : of_lines ? AH_RECORDS_LINES : AH_RECORDS_VALUES;
}

/* ---- one after the other ----------------------------------------------------------------------------------------- */

void ah__records_begin(struct ah_records *records, enum ah_records_kind kind, size_t start, const char *path,
                       struct ah_reader *reader)
{
    *records = (struct ah_records){.kind = kind, .start = start, .path = path, .reader = reader};
}

const char *ah__records_where(struct ah_records *records)
{
    if (records->kind == AH_RECORDS_ALONE)
        snprintf(records->where, sizeof records->where, "%.600s", records->path);
    else if (records->kind == AH_RECORDS_LINES)
        snprintf(records->where, sizeof records->where, "%.560s: line %lld", records->path, (long long)records->line);
    else
        snprintf(records->where, sizeof records->where, "%.560s: record %lld, line %lld", records->path,
                 (long long)records->count, (long long)records->line);
    return records->where;
}

static int64_t lines_in(const char *text, size_t length)
{
    int64_t count = 0;
    for (const char *at = text, *end = text + length; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        count++;
    return count;
}

int ah__records_fault(struct ah_records *records, const struct ah_json_fault *fault)
{
    size_t start = fault->at;
    while (start > 0 && records->text[start - 1] != '\n')
        start--;
    return ah__fail(AH_EINPUT, "%s: line %lld, column %zu: found %s, expected JSON", records->path,
                    (long long)(records->line + lines_in(records->text, start)),
                    fault->at - start + (start ? 0 : records->column) + 1, fault->found);
}

/* Returns the text that is not used yet. */
static const char *rest(const struct ah_records *records, size_t *length)
{
    *length = records->reader->length - records->reader->used;
    return records->reader->text + records->reader->used;
}

static void give(struct ah_records *records, size_t length)
{
    size_t all;
    const char *text = rest(records, &all), *line = length ? memrchr(text, '\n', length) : NULL;
    records->behind += line ? lines_in(text, length) : 0;
    records->behind_column = line ? (size_t)(text + length - line) - 1 : records->behind_column + length;
    records->reader->used += length;
}

/* Reads on to twice as much unused text, at most one byte more than a record may have. */
static int read_more(struct ah_records *records)
{
    size_t length;
    rest(records, &length);
    if (length > RECORD_MOST)
        return ah__fail(AH_EINPUT, "%s: line %lld: found a record of more than %d MiB, expected a smaller one",
                        records->path, (long long)records->behind + 1, RECORD_MOST >> 20);
    size_t wanted = length < LOOKED_AT ? LOOKED_AT : 2 * length;
    return ah__reader_want(records->reader, wanted < RECORD_MOST ? wanted : RECORD_MOST + 1);
}

/* Skips white space and gives the next character, 0 at the file's end. */
static int next_character(char *out, struct ah_records *records)
{
    for (;;) {
        size_t length, blank;
        const char *text = rest(records, &length);
        blank = ah__json_blank(text, length);
        give(records, blank);
        *out = blank == length ? 0 : text[blank] ? text[blank] : '?'; /* a zero byte is not the end */
        if (blank < length || records->reader->ended)
            return AH_OK;
        AH_TRY(read_more(records));
    }
}

/* Takes the unused text's first `length` bytes as the last record. */
static void record_set(struct ah_records *records, size_t length)
{
    size_t all;
    records->text = rest(records, &all);
    records->length = length;
    records->line = records->behind + 1;
    records->column = records->behind_column;
    records->count++;
}

static int fail_expected(struct ah_records *records, const char *expected)
{
    size_t length, shown = 0;
    const char *text = rest(records, &length);
    while (shown < length && shown < 20 && (unsigned char)text[shown] >= 0x20 && (unsigned char)text[shown] < 0x7f)
        shown++;
    if (length == 0)
        return ah__fail(AH_EINPUT, "%s: line %lld: found the end of the file, expected %s", records->path,
                        (long long)records->behind + 1, expected);
    return ah__fail(AH_EINPUT, "%s: line %lld: found '%.*s', expected %s", records->path,
                    (long long)records->behind + 1, (int)shown, text, expected);
}

/* Takes the object that begins here, whole. */
static int value_take(struct ah_records *records)
{
    for (;;) {
        struct ah_json_fault fault;
        size_t length, end = 0;
        const char *text = rest(records, &length);
        if (ah__json_value_end(&end, text, length, &fault) == AH_OK) {
            record_set(records, end);
            give(records, end);
            return AH_OK;
        }
        if (!fault.cut || records->reader->ended) {
            record_set(records, length);
            return ah__records_fault(records, &fault);
        }
        AH_TRY(read_more(records));
    }
}

static int value_next(bool *more, struct ah_records *records)
{
    char c;
    AH_TRY(next_character(&c, records));
    *more = c != 0;
    if (!*more)
        return AH_OK;
    return c == '{' ? value_take(records) : fail_expected(records, "an object");
}

/* Skips a value that is not a record, in an object around the array of records. */
static int value_skip(struct ah_records *records)
{
    char c;
    AH_TRY(next_character(&c, records));
    for (;;) {
        struct ah_json_fault fault;
        size_t length, end = 0;
        const char *text = rest(records, &length);
        int status = ah__json_value_end(&end, text, length, &fault);
        bool open = status == AH_OK ? end == length : fault.cut; /* a number may continue */
        if (open && !records->reader->ended) {
            AH_TRY(read_more(records));
            continue;
        }
        if (status != AH_OK) {
            record_set(records, length);
            return ah__records_fault(records, &fault);
        }
        give(records, end);
        return AH_OK;
    }
}

static int character_take(struct ah_records *records, char wanted, const char *expected)
{
    char c;
    AH_TRY(next_character(&c, records));
    if (c != wanted)
        return fail_expected(records, expected);
    give(records, 1);
    return AH_OK;
}

/* Skips the members after the array, up to the object's brace. */
static int members_skip(struct ah_records *records)
{
    char c;
    for (;;) {
        AH_TRY(next_character(&c, records));
        if (c != ',')
            return character_take(records, '}', "',' or '}' behind the array");
        give(records, 1);
        AH_TRY(next_character(&c, records));
        if (c != '"')
            return fail_expected(records, "a key behind the array");
        AH_TRY(value_skip(records));
        AH_TRY(character_take(records, ':', "':' behind a key"));
        AH_TRY(value_skip(records));
    }
}

/* Checks that only white space follows the array, or the object around it. */
static int end_check(struct ah_records *records)
{
    char c;
    if (records->enclosed)
        AH_TRY(members_skip(records));
    AH_TRY(next_character(&c, records));
    return c ? fail_expected(records, records->enclosed ? "nothing behind the object" : "nothing behind the array")
             : AH_OK;
}

/* Takes a comma or the array's end. */
static int separator_take(bool *more, struct ah_records *records)
{
    char c;
    AH_TRY(next_character(&c, records));
    *more = c != ']';
    if (records->count == 0 && *more)
        return AH_OK;
    if (c != ',' && c != ']')
        return fail_expected(records, "',' or ']' behind a record of an array");
    give(records, 1);
    records->ended = !*more;
    return *more ? AH_OK : end_check(records);
}

static int element_next(bool *more, struct ah_records *records)
{
    char c;
    *more = false;
    if (records->ended)
        return AH_OK;
    AH_TRY(separator_take(more, records));
    if (!*more)
        return AH_OK;
    AH_TRY(next_character(&c, records));
    return c == '{' ? value_take(records) : fail_expected(records, "an object, as every record of an array is one");
}

/* Finds the next line that is not blank, without its end. */
static int line_find(bool *more, size_t *length, struct ah_records *records)
{
    char c;
    AH_TRY(next_character(&c, records));
    *more = c != 0;
    if (!*more)
        return AH_OK;
    for (;;) {
        size_t all;
        const char *text = rest(records, &all), *end = memchr(text, '\n', all);
        *length = end ? (size_t)(end - text) : all;
        if (end || records->reader->ended)
            return AH_OK;
        AH_TRY(read_more(records));
    }
}

static int line_next(bool *more, struct ah_records *records)
{
    size_t length = 0, end = 0;
    struct ah_json_fault fault;
    AH_TRY(line_find(more, &length, records));
    if (!*more)
        return AH_OK;
    record_set(records, length);
    if (records->text[0] != '{')
        return fail_expected(records, "an object");
    int status = ah__json_value_end(&end, records->text, length, &fault);
    size_t behind = status == AH_OK ? end + ah__json_blank(records->text + end, length - end) : 0;
    if (status == AH_OK && behind < length) {
        fault = (struct ah_json_fault){.at = behind, .found = "more text behind the object"};
        status = AH_EINPUT;
    }
    if (status != AH_OK)
        return ah__records_fault(records, &fault);
    records->length = end;
    give(records, length);
    return AH_OK;
}

static int start_skip(struct ah_records *records)
{
    size_t length;
    if (records->reader->length < records->start)
        AH_TRY(ah__reader_want(records->reader, records->start));
    records->enclosed = memchr(rest(records, &length), '{', records->start) != NULL;
    give(records, records->start);
    records->start = 0;
    return AH_OK;
}

int ah__records_next(bool *more, struct ah_records *records)
{
    if (records->start)
        AH_TRY(start_skip(records));
    switch (records->kind) {
    case AH_RECORDS_LINES:
        return line_next(more, records);
    case AH_RECORDS_ARRAY:
        return element_next(more, records);
    default:
        return value_next(more, records);
    }
}
