/* Makes values and reads them. Lists and dicts grow in the arena: their old arrays stay there until the arena is
 * freed. */
#include "chat/datum.h"

#include <math.h>
#include <string.h>

#include "chat/characters.h"

/* Text longer than TEXT_MOST bytes is of no use. Looking at TOUCHED_MOST bytes takes a second or two. */
enum { TEXT_MOST = 1 << 26, ITEM_COST = 32 };
static const size_t TOUCHED_MOST = (size_t)1 << 32;
static const char too_long[] = "text", too_much[] = "values", too_slow[] = "work";

bool ah__heap_touch(struct ah_heap *heap, size_t bytes)
{
    if (!heap)
        return true;
    if (bytes > TOUCHED_MOST - heap->touched && !heap->excess)
        heap->excess = too_slow;
    heap->touched += heap->excess ? 0 : bytes;
    return !heap->excess;
}

int ah__heap_check(const struct ah_heap *heap)
{
    if (!heap->excess)
        return AH_OK;
    if (heap->excess == too_slow)
        return ah__fail(AH_EINPUT, "found a template that looks at more than %zu MiB of values, expected one that ends",
                        TOUCHED_MOST >> 20);
    return ah__fail(AH_EINPUT, "found more than %zu bytes of %s, expected at most so many in one rendering",
                    heap->excess == too_long ? (size_t)TEXT_MOST : heap->most, heap->excess);
}

void ah__heap_put(struct ah_heap *heap, struct ah_buf *to, const char *text, size_t length)
{
    if (!ah__heap_touch(heap, length))
        return;
    if (length > TEXT_MOST - (to->length < TEXT_MOST ? to->length : TEXT_MOST))
        heap->excess = too_long;
    else if (length > heap->most - heap->used)
        heap->excess = too_much;
    else {
        heap->used += length;
        ah__buf_add(to, text, length);
    }
}

int ah__heap_text(struct ah_heap *heap, char **out, size_t length)
{
    if (length > TEXT_MOST)
        heap->excess = too_long;
    AH_TRY(ah__heap_check(heap));
    return ah__heap_new(heap, out, length + 1, 1);
}

int ah__heap_new(struct ah_heap *heap, void *out, size_t count, size_t size)
{
    enum { ROUNDING = 16 };
    AH_TRY(ah__heap_check(heap));
    size_t left = heap->most - heap->used;
    if (size && count > (left > ROUNDING ? left - ROUNDING : 0) / size)
        return ah__fail(AH_EINPUT, "found values of more than %zu bytes, expected at most so many in one rendering",
                        heap->most);
    heap->used += count * size + ROUNDING;
    return ah__arena_new(&heap->arena, out, count, size);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

struct ah_datum ah__datum_text(const char *text, size_t length)
{
    return (struct ah_datum){.kind = AH_DATUM_TEXT, .text = text, .length = length};
}

struct ah_datum ah__datum_words(const char *terminated)
{
    return ah__datum_text(terminated, strlen(terminated));
}

struct ah_datum ah__datum_undefined(const char *name, size_t length)
{
    return (struct ah_datum){.kind = AH_DATUM_UNDEFINED, .text = name, .length = length};
}

int ah__datum_copy(struct ah_datum *out, struct ah_heap *heap, const char *text, size_t length)
{
    char *copy;
    AH_TRY(ah__heap_text(heap, &copy, length));
    if (length)
        memcpy(copy, text, length);
    *out = ah__datum_text(copy, length);
    return AH_OK;
}

int ah__datum_list(struct ah_datum *out, struct ah_heap *heap, enum ah_datum_kind kind)
{
    struct ah_datum_list *list;
    AH_TRY(ah__heap_new(heap, &list, 1, sizeof *list));
    *out = (struct ah_datum){.kind = kind, .list = list};
    return AH_OK;
}

int ah__datum_dict(struct ah_datum *out, struct ah_heap *heap, enum ah_datum_kind kind)
{
    struct ah_datum_dict *dict;
    AH_TRY(ah__heap_new(heap, &dict, 1, sizeof *dict));
    *out = (struct ah_datum){.kind = kind, .dict = dict};
    return AH_OK;
}

/* Makes room for one more element behind `count`. */
static int grow(struct ah_heap *heap, void *elements, size_t *room, size_t count, size_t size)
{
    enum { FIRST_ROOM = 4 };
    if (count < *room)
        return AH_OK;
    void *old, *wider;
    size_t more = *room ? *room * 2 : FIRST_ROOM;
    memcpy(&old, elements, sizeof old);
    AH_TRY(ah__heap_new(heap, &wider, more, size));
    if (count)
        memcpy(wider, old, count * size);
    memcpy(elements, &wider, sizeof wider);
    *room = more;
    return AH_OK;
}

/* Returns how deep the value is nested. Namespaces count as 0, since no function recurses through them. */
static int depth_of(struct ah_datum value)
{
    switch (value.kind) {
    case AH_DATUM_LIST:
    case AH_DATUM_TUPLE:
    case AH_DATUM_ITER:
        return value.list->depth + 1;
    case AH_DATUM_DICT:
        return value.dict->depth + 1;
    default:
        return 0;
    }
}

static int deepen(int *depth, struct ah_datum inner)
{
    int inside = depth_of(inner);
    if (inside > AH_DATUM_DEPTH)
        return ah__fail(AH_EINPUT, "found values nested more than %d deep", AH_DATUM_DEPTH);
    *depth = inside > *depth ? inside : *depth;
    return AH_OK;
}

int ah__datum_append(struct ah_datum *list, struct ah_heap *heap, struct ah_datum item)
{
    struct ah_datum_list *to = list->list;
    AH_TRY(ah__heap_check(heap));
    AH_TRY(deepen(&to->depth, item));
    AH_TRY(grow(heap, &to->items, &to->room, to->count, sizeof *to->items));
    to->items[to->count++] = item;
    return AH_OK;
}

static struct ah_datum *find(struct ah_heap *heap, const struct ah_datum_dict *dict, struct ah_datum key)
{
    for (size_t i = 0; i < dict->count; i++)
        if (ah__datum_equal(heap, dict->pairs[i].key, key))
            return &dict->pairs[i].value;
    return NULL;
}

int ah__datum_set(struct ah_datum *dict, struct ah_heap *heap, struct ah_datum key, struct ah_datum value)
{
    struct ah_datum_dict *to = dict->dict;
    struct ah_datum *known = find(heap, to, key);
    AH_TRY(ah__heap_check(heap));
    if (key.kind == AH_DATUM_LIST || key.kind == AH_DATUM_DICT || key.kind == AH_DATUM_UNDEFINED)
        return ah__fail(AH_EINPUT, "found a %s as a key, expected a string or a number", ah__datum_type(key));
    AH_TRY(deepen(&to->depth, key));
    if (dict->kind == AH_DATUM_DICT)
        AH_TRY(deepen(&to->depth, value));
    if (known) {
        *known = value;
        return AH_OK;
    }
    AH_TRY(grow(heap, &to->pairs, &to->room, to->count, sizeof *to->pairs));
    to->pairs[to->count++] = (struct ah_datum_pair){key, value};
    return AH_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool ah__datum_is_number(struct ah_datum value)
{
    return value.kind == AH_DATUM_BOOL || value.kind == AH_DATUM_INT || value.kind == AH_DATUM_REAL;
}

int64_t ah__datum_as_int(struct ah_datum value)
{
    return value.kind == AH_DATUM_BOOL ? value.truth : value.integer;
}

double ah__datum_as_real(struct ah_datum number)
{
    return number.kind == AH_DATUM_REAL ? number.real : (double)ah__datum_as_int(number);
}

bool ah__datum_is(struct ah_datum text, const char *terminated)
{
    return text.kind == AH_DATUM_TEXT && text.length == strlen(terminated) &&
           memcmp(text.text, terminated, text.length) == 0;
}

const char *ah__datum_type(struct ah_datum value)
{
    static const char *const names[] = {
        [AH_DATUM_UNDEFINED] = "Undefined", [AH_DATUM_NONE] = "NoneType",
        [AH_DATUM_BOOL] = "bool",           [AH_DATUM_INT] = "int",
        [AH_DATUM_REAL] = "float",          [AH_DATUM_TEXT] = "str",
        [AH_DATUM_LIST] = "list",           [AH_DATUM_TUPLE] = "tuple",
        [AH_DATUM_ITER] = "generator",      [AH_DATUM_DICT] = "dict",
        [AH_DATUM_NAMESPACE] = "Namespace", [AH_DATUM_LOOP] = "LoopContext",
        [AH_DATUM_MACRO] = "Macro",         [AH_DATUM_FUNCTION] = "function",
        [AH_DATUM_METHOD] = "method",
    };
    return names[value.kind];
}

bool ah__datum_true(struct ah_datum value)
{
    switch (value.kind) {
    case AH_DATUM_UNDEFINED:
    case AH_DATUM_NONE:
        return false;
    case AH_DATUM_BOOL:
        return value.truth;
    case AH_DATUM_INT:
        return value.integer != 0;
    case AH_DATUM_REAL:
        return value.real != 0;
    case AH_DATUM_TEXT:
        return value.length > 0;
    case AH_DATUM_LIST:
    case AH_DATUM_TUPLE:
        return value.list->count > 0;
    case AH_DATUM_DICT:
        return value.dict->count > 0;
    default:
        return true;
    }
}

static bool lists_equal(struct ah_heap *heap, const struct ah_datum_list *a, const struct ah_datum_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!ah__datum_equal(heap, a->items[i], b->items[i]))
            return false;
    return true;
}

static bool dicts_equal(struct ah_heap *heap, const struct ah_datum_dict *a, const struct ah_datum_dict *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct ah_datum *other = find(heap, b, a->pairs[i].key);
        if (!other || !ah__datum_equal(heap, a->pairs[i].value, *other))
            return false;
    }
    return true;
}

bool ah__datum_equal(struct ah_heap *heap, struct ah_datum a, struct ah_datum b)
{
    bool texts = a.kind == AH_DATUM_TEXT && b.kind == AH_DATUM_TEXT && a.length == b.length;
    if (!ah__heap_touch(heap, ITEM_COST + (texts ? a.length : 0)))
        return false;
    if (ah__datum_is_number(a) && ah__datum_is_number(b))
        return a.kind == AH_DATUM_REAL || b.kind == AH_DATUM_REAL ? ah__datum_as_real(a) == ah__datum_as_real(b)
                                                                  : ah__datum_as_int(a) == ah__datum_as_int(b);
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case AH_DATUM_TEXT:
        return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
    case AH_DATUM_LIST:
    case AH_DATUM_TUPLE:
        return lists_equal(heap, a.list, b.list);
    case AH_DATUM_DICT:
        return dicts_equal(heap, a.dict, b.dict);
    case AH_DATUM_UNDEFINED:
    case AH_DATUM_NONE:
        return true;
    default:
        return a.inner == b.inner;
    }
}

static int texts_order(struct ah_datum a, struct ah_datum b)
{
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = memcmp(a.text, b.text, shorter); /* the byte order of UTF-8 is the order of characters */
    if (order == 0)
        return (a.length > b.length) - (a.length < b.length);
    return order < 0 ? -1 : 1;
}

static int lists_order(int *order, struct ah_heap *heap, const struct ah_datum_list *a, const struct ah_datum_list *b,
                       const char *sign)
{
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (!ah__datum_equal(heap, a->items[i], b->items[i]))
            return ah__datum_order(order, heap, a->items[i], b->items[i], sign);
    *order = (a->count > b->count) - (a->count < b->count);
    return AH_OK;
}

int ah__datum_order(int *order, struct ah_heap *heap, struct ah_datum a, struct ah_datum b, const char *sign)
{
    bool texts = a.kind == AH_DATUM_TEXT && b.kind == AH_DATUM_TEXT;
    if (!ah__heap_touch(heap, ITEM_COST + (texts ? a.length < b.length ? a.length : b.length : 0)))
        return ah__heap_check(heap);
    if (ah__datum_is_number(a) && ah__datum_is_number(b)) {
        if (a.kind != AH_DATUM_REAL && b.kind != AH_DATUM_REAL) {
            int64_t left = ah__datum_as_int(a), right = ah__datum_as_int(b);
            *order = (left > right) - (left < right);
            return AH_OK;
        }
        double left = ah__datum_as_real(a), right = ah__datum_as_real(b);
        *order = (left > right) - (left < right);
        return AH_OK;
    }
    if (texts) {
        *order = texts_order(a, b);
        return AH_OK;
    }
    if (a.kind == b.kind && (a.kind == AH_DATUM_LIST || a.kind == AH_DATUM_TUPLE))
        return lists_order(order, heap, a.list, b.list, sign);
    return ah__fail(AH_EINPUT, "'%s' found between %s and %s, expected numbers or strings", sign, ah__datum_type(a),
                    ah__datum_type(b));
}

const struct ah_datum *ah__datum_get(struct ah_heap *heap, struct ah_datum dict, struct ah_datum key)
{
    return find(heap, dict.dict, key);
}

const struct ah_datum *ah__datum_member(struct ah_heap *heap, struct ah_datum dict, const char *key)
{
    if (dict.kind != AH_DATUM_DICT && dict.kind != AH_DATUM_NAMESPACE)
        return NULL;
    return find(heap, dict.dict, ah__datum_words(key));
}

int ah__datum_length(int64_t *length, struct ah_heap *heap, struct ah_datum value)
{
    switch (value.kind) {
    case AH_DATUM_UNDEFINED:
        *length = 0;
        return AH_OK;
    case AH_DATUM_TEXT:
        if (!ah__heap_touch(heap, value.length))
            return ah__heap_check(heap);
        *length = (int64_t)ah__characters(value.text, value.length);
        return AH_OK;
    case AH_DATUM_LIST:
    case AH_DATUM_TUPLE:
        *length = (int64_t)value.list->count;
        return AH_OK;
    case AH_DATUM_DICT:
        *length = (int64_t)value.dict->count;
        return AH_OK;
    default:
        return ah__fail(AH_EINPUT, "found a %s, expected something with a length", ah__datum_type(value));
    }
}

int ah__datum_contains(bool *found, struct ah_heap *heap, struct ah_datum value, struct ah_datum item)
{
    *found = false;
    if (value.kind == AH_DATUM_TEXT) {
        if (item.kind != AH_DATUM_TEXT)
            return ah__fail(AH_EINPUT, "'in' found a %s before a string, expected a string", ah__datum_type(item));
        if (!ah__heap_touch(heap, ah__text_find_cost(value.length, item.length)))
            return ah__heap_check(heap);
        *found = ah__text_find(value.text, value.length, item.text, item.length) != NULL;
        return AH_OK;
    }
    if (value.kind == AH_DATUM_DICT) {
        *found = find(heap, value.dict, item) != NULL;
        return AH_OK;
    }
    if (value.kind == AH_DATUM_LIST || value.kind == AH_DATUM_TUPLE || value.kind == AH_DATUM_ITER) {
        struct ah_datum_list *list = value.list;
        for (size_t i = list->told; i < list->count && !*found; i++) {
            *found = ah__datum_equal(heap, list->items[i], item);
            list->told = value.kind == AH_DATUM_ITER ? i + 1 : 0;
        }
        return AH_OK;
    }
    if (value.kind == AH_DATUM_UNDEFINED)
        return AH_OK;
    return ah__fail(AH_EINPUT, "'in' found a %s behind it, expected a string, list or dict", ah__datum_type(value));
}

static int characters_list(struct ah_datum_list *out, struct ah_heap *heap, struct ah_datum text)
{
    enum { CHARACTER_COST = 4 };
    if (!ah__heap_touch(heap, CHARACTER_COST * text.length))
        return ah__heap_check(heap);
    size_t count = ah__characters(text.text, text.length), at = 0;
    AH_TRY(ah__heap_new(heap, &out->items, count + 1, sizeof *out->items));
    for (out->count = 0; out->count < count; out->count++) {
        size_t bytes = ah__utf8_bytes(text.text[at]);
        out->items[out->count] = ah__datum_text(text.text + at, bytes);
        at += bytes;
    }
    return AH_OK;
}

static int keys_list(struct ah_datum_list *out, struct ah_heap *heap, const struct ah_datum_dict *dict)
{
    AH_TRY(ah__heap_new(heap, &out->items, dict->count + 1, sizeof *out->items));
    for (out->count = 0; out->count < dict->count; out->count++)
        out->items[out->count] = dict->pairs[out->count].key;
    return AH_OK;
}

int ah__datum_items(struct ah_datum_list *out, struct ah_heap *heap, struct ah_datum value)
{
    *out = (struct ah_datum_list){0};
    switch (value.kind) {
    case AH_DATUM_UNDEFINED:
        return AH_OK;
    case AH_DATUM_LIST:
    case AH_DATUM_TUPLE:
        *out = *value.list;
        return AH_OK;
    case AH_DATUM_ITER:
        out->items = value.list->told ? value.list->items + value.list->told : value.list->items;
        out->count = value.list->count - value.list->told;
        value.list->told = value.list->count;
        return AH_OK;
    case AH_DATUM_TEXT:
        return characters_list(out, heap, value);
    case AH_DATUM_DICT:
        return keys_list(out, heap, value.dict);
    default:
        return ah__fail(AH_EINPUT, "found a %s, expected something to go through", ah__datum_type(value));
    }
}
