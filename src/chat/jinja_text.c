/* Operations on strings. Their methods take the text as the call's self. */
#include "chat/jinja_text.h"

#include <stdint.h>
#include <string.h>

#include "chat/characters.h"
#include "chat/datum_print.h"

/* Costs of a character or a part, in bytes for ah__heap_touch. */
enum { CHARACTER_COST = 16, CASE_COST = 128 };

/* ---- splitting --------------------------------------------------------------------------------------------------- */

static int append(struct ah_datum *list, struct ah_heap *heap, const char *begin, const char *end)
{
    return ah__datum_append(list, heap, ah__datum_text(begin, (size_t)(end - begin)));
}

static void reverse(struct ah_datum_list *list)
{
    for (size_t i = 0; i < list->count / 2; i++) {
        struct ah_datum swapped = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = swapped;
    }
}

static int split_mark(struct ah_datum *list, struct ah_heap *heap, const char *at, const char *stop,
                      const struct ah_datum *mark, int64_t most)
{
    for (; most != 0; most--) {
        const char *found = ah__text_find(at, (size_t)(stop - at), mark->text, mark->length);
        if (!found)
            break;
        AH_TRY(append(list, heap, at, found));
        at = found + mark->length;
    }
    return append(list, heap, at, stop);
}

static int split_mark_right(struct ah_datum *list, struct ah_heap *heap, const char *at, const char *stop,
                            const struct ah_datum *mark, int64_t most)
{
    for (; most != 0; most--) {
        const char *found = ah__text_find_last(at, (size_t)(stop - at), mark->text, mark->length);
        if (!found)
            break;
        AH_TRY(append(list, heap, found + mark->length, stop));
        stop = found;
    }
    AH_TRY(append(list, heap, at, stop));
    reverse(list->list);
    return AH_OK;
}

/* Returns the bytes of the first run: of white space, or of other characters. */
static size_t run(const char *at, size_t length, bool space)
{
    size_t done = 0;
    while (done < length) {
        size_t bytes = ah__utf8_bytes(at[done]);
        if (ah__is_space(ah__utf8_code(at + done, bytes)) != space)
            break;
        done += bytes;
    }
    return done;
}

static int split_spaces(struct ah_datum *list, struct ah_heap *heap, const char *at, size_t length, int64_t most)
{
    for (;; most--) {
        size_t skipped = run(at, length, true);
        at += skipped;
        length -= skipped;
        if (!length)
            return AH_OK;
        size_t word = most == 0 ? length : run(at, length, false);
        AH_TRY(append(list, heap, at, at + word));
        at += word;
        length -= word;
    }
}

static int split_spaces_right(struct ah_datum *list, struct ah_heap *heap, const char *at, size_t length, int64_t most)
{
    for (;; most--) {
        ah__text_strip(&at, &length, NULL, 0, false, true);
        if (!length)
            break;
        size_t begin = length;
        while (begin && most != 0) {
            size_t before = begin - 1;
            while (before && ((unsigned char)at[before] & 0xc0) == 0x80)
                before--;
            if (ah__is_space(ah__utf8_code(at + before, begin - before)))
                break;
            begin = before;
        }
        begin = most == 0 ? 0 : begin;
        AH_TRY(append(list, heap, at + begin, at + length));
        length = most == 0 ? 0 : begin;
    }
    reverse(list->list);
    return AH_OK;
}

int ah__text_split(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, const struct ah_datum *mark,
                   int64_t most, bool from_right)
{
    const size_t cost =
        mark ? (from_right ? 2 : 1) * ah__text_find_cost(text.length, mark->length) : CHARACTER_COST * text.length;
    if (!ah__heap_touch(heap, cost))
        return ah__heap_check(heap);
    AH_TRY(ah__datum_list(out, heap, AH_DATUM_LIST));
    if (!mark)
        return (from_right ? split_spaces_right : split_spaces)(out, heap, text.text, text.length, most);
    if (!mark->length)
        return ah__fail(AH_EINPUT, "split found an empty separator");
    return (from_right ? split_mark_right : split_mark)(out, heap, text.text, text.text + text.length, mark, most);
}

/* ---- putting together -------------------------------------------------------------------------------------------- */

int ah__text_replace(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, struct ah_datum old,
                     struct ah_datum with, int64_t most)
{
    struct ah_buf buf = {0};
    size_t at = 0;
    if (!ah__heap_touch(heap, ah__text_find_cost(text.length, old.length)))
        return ah__heap_check(heap);
    for (; most != 0; most--) {
        const char *found = ah__text_find(text.text + at, text.length - at, old.text, old.length);
        if (!found || !ah__heap_touch(heap, CHARACTER_COST))
            break;
        ah__heap_put(heap, &buf, text.text + at, (size_t)(found - (text.text + at)));
        ah__heap_put(heap, &buf, with.text, with.length);
        at = (size_t)(found - text.text) + old.length;
        if (old.length)
            continue;
        if (at == text.length) /* an empty `old` matches before each character and at the end */
            break;
        size_t bytes = ah__utf8_bytes(text.text[at]);
        ah__heap_put(heap, &buf, text.text + at, bytes);
        at += bytes;
    }
    ah__heap_put(heap, &buf, text.text + at, text.length - at);
    return ah__call_take(out, heap, &buf);
}

int ah__text_join(struct ah_datum *out, struct ah_heap *heap, struct ah_datum mark, const struct ah_datum_list *items,
                  bool any)
{
    struct ah_buf buf = {0};
    int status = AH_OK;
    for (size_t i = 0; i < items->count && status == AH_OK && ah__heap_touch(heap, CHARACTER_COST); i++) {
        if (i)
            ah__heap_put(heap, &buf, mark.text, mark.length);
        if (!any && items->items[i].kind != AH_DATUM_TEXT)
            status =
                ah__fail(AH_EINPUT, "join found a %s at %zu, expected a string", ah__datum_type(items->items[i]), i);
        else
            status = ah__datum_str(heap, &buf, items->items[i]);
    }
    if (status == AH_OK)
        return ah__call_take(out, heap, &buf);
    ah__buf_free(&buf);
    return status;
}

int ah__text_repeat(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, int64_t times)
{
    char *copy;
    size_t count = times > 0 && text.length ? (size_t)times : 0;
    AH_TRY(ah__heap_text(heap, &copy, count > SIZE_MAX / (text.length + 1) ? SIZE_MAX : count * text.length));
    for (size_t i = 0; i < count; i++)
        memcpy(copy + i * text.length, text.text, text.length);
    *out = ah__datum_text(copy, count * text.length);
    return AH_OK;
}

int ah__text_cased(struct ah_datum *out, struct ah_heap *heap, struct ah_datum text, enum ah_case how)
{
    struct ah_buf buf = {0};
    if (!ah__heap_touch(heap, CASE_COST * text.length))
        return ah__heap_check(heap);
    ah__text_case(&buf, text.text, text.length, how);
    heap->used += buf.length; /* until ah__call_take frees it */
    return ah__call_take(out, heap, &buf);
}

int ah__text_stripped(struct ah_datum *text, struct ah_heap *heap, struct ah_datum set, bool left, bool right)
{
    const bool given = set.kind == AH_DATUM_TEXT;
    const size_t each = given ? set.length + 1 : CHARACTER_COST;
    if (!ah__heap_touch(heap, given ? text->length > SIZE_MAX / each ? SIZE_MAX : text->length * each : CHARACTER_COST))
        return ah__heap_check(heap);
    const size_t before = text->length;
    ah__text_strip(&text->text, &text->length, given ? set.text : NULL, set.length, left, right);
    return given || ah__heap_touch(heap, each * (before - text->length)) ? AH_OK : ah__heap_check(heap);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static int strip(struct ah_datum *out, const struct ah_call *call, bool left, bool right)
{
    struct ah_datum set = {0}, text = call->self;
    const struct ah_datum *given = call->given[0];
    if (given && given->kind != AH_DATUM_NONE)
        AH_TRY(ah__call_string(&set, call, 0));
    AH_TRY(ah__text_stripped(&text, call->heap, set, left, right));
    *out = text;
    return AH_OK;
}

static int strip_both(struct ah_datum *out, const struct ah_call *call)
{
    return strip(out, call, true, true);
}

static int strip_left(struct ah_datum *out, const struct ah_call *call)
{
    return strip(out, call, true, false);
}

static int strip_right(struct ah_datum *out, const struct ah_call *call)
{
    return strip(out, call, false, true);
}

static bool has_end(struct ah_heap *heap, struct ah_datum text, struct ah_datum part, bool start)
{
    return part.kind == AH_DATUM_TEXT && part.length <= text.length && ah__heap_touch(heap, part.length) &&
           memcmp(text.text + (start ? 0 : text.length - part.length), part.text, part.length) == 0;
}

/* Tests for one string, or for each of a tuple. */
static int ends(struct ah_datum *out, const struct ah_call *call, bool start)
{
    struct ah_datum part = *call->given[0];
    bool found = false;
    if (part.kind == AH_DATUM_TUPLE) {
        for (size_t i = 0; i < part.list->count && ah__heap_touch(call->heap, CHARACTER_COST); i++)
            found |= has_end(call->heap, call->self, part.list->items[i], start);
    } else if (part.kind != AH_DATUM_TEXT)
        return ah__fail(AH_EINPUT, "found a %s as an argument, expected a string or a tuple of them",
                        ah__datum_type(part));
    else
        found = has_end(call->heap, call->self, part, start);
    *out = ah__datum_bool(found);
    return AH_OK;
}

static int starts_with(struct ah_datum *out, const struct ah_call *call)
{
    return ends(out, call, true);
}

static int ends_with(struct ah_datum *out, const struct ah_call *call)
{
    return ends(out, call, false);
}

static int remove_end(struct ah_datum *out, const struct ah_call *call, bool start)
{
    struct ah_datum part, text = call->self;
    AH_TRY(ah__call_string(&part, call, 0));
    if (has_end(call->heap, text, part, start)) {
        text.text += start ? part.length : 0;
        text.length -= part.length;
    }
    *out = text;
    return AH_OK;
}

static int remove_prefix(struct ah_datum *out, const struct ah_call *call)
{
    return remove_end(out, call, true);
}

static int remove_suffix(struct ah_datum *out, const struct ah_call *call)
{
    return remove_end(out, call, false);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static int split(struct ah_datum *out, const struct ah_call *call, bool from_right)
{
    struct ah_datum mark;
    int64_t most = -1;
    bool none = !call->given[0] || call->given[0]->kind == AH_DATUM_NONE;
    if (!none)
        AH_TRY(ah__call_string(&mark, call, 0));
    AH_TRY(ah__call_int(&most, call, 1));
    return ah__text_split(out, call->heap, call->self, none ? NULL : &mark, most, from_right);
}

static int split_left(struct ah_datum *out, const struct ah_call *call)
{
    return split(out, call, false);
}

static int split_right(struct ah_datum *out, const struct ah_call *call)
{
    return split(out, call, true);
}

static int replace(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum old, with;
    int64_t most = -1;
    AH_TRY(ah__call_string(&old, call, 0));
    AH_TRY(ah__call_string(&with, call, 1));
    AH_TRY(ah__call_int(&most, call, 2));
    return ah__text_replace(out, call->heap, call->self, old, with, most);
}

static int join(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum_list items;
    AH_TRY(ah__datum_items(&items, call->heap, *call->given[0]));
    return ah__text_join(out, call->heap, call->self, &items, false);
}

/* ---- case -------------------------------------------------------------------------------------------------------- */

static int in_case(struct ah_datum *out, const struct ah_call *call, enum ah_case how)
{
    return ah__text_cased(out, call->heap, call->self, how);
}

#define BY(function, name, which)                                                                                      \
    static int name(struct ah_datum *out, const struct ah_call *call)                                                  \
    {                                                                                                                  \
        return function(out, call, which);                                                                             \
    }
BY(in_case, upper, AH_CASE_UPPER)
BY(in_case, lower, AH_CASE_LOWER)
BY(in_case, title, AH_CASE_TITLE)
BY(in_case, capitalize, AH_CASE_CAPITAL)
#undef BY

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const struct ah_call_row rows[] = {
    {"strip", strip_both, "chars", 0},
    {"lstrip", strip_left, "chars", 0},
    {"rstrip", strip_right, "chars", 0},
    {"startswith", starts_with, "prefix", 1},
    {"endswith", ends_with, "suffix", 1},
    {"removeprefix", remove_prefix, "prefix", 1},
    {"removesuffix", remove_suffix, "suffix", 1},
    {"split", split_left, "sep,maxsplit", 0},
    {"rsplit", split_right, "sep,maxsplit", 0},
    {"replace", replace, "old,new,count", 2},
    {"join", join, "iterable", 1},
    {"upper", upper, "", 0},
    {"lower", lower, "", 0},
    {"title", title, "", 0},
    {"capitalize", capitalize, "", 0},
};

const struct ah_call_row *ah__text_method(const char *name, size_t length)
{
    return ah__call_find(rows, AH_LENGTH(rows), name, length);
}
