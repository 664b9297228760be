/* Filters of lists. Filters that are generators in jinja2 return ITER. */
#include "chat/jinja_filters_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chat/characters.h"
#include "chat/jinja_methods.h"
#include "chat/jinja_tests.h"
#include "chat/jinja_text.h"

static int self_items(struct ah_datum_list *out, const struct ah_call *call)
{
    return ah__datum_items(out, call->heap, call->self);
}

static int list_of(struct ah_datum *out, struct ah_heap *heap, const struct ah_datum_list *items,
                   enum ah_datum_kind kind)
{
    AH_TRY(ah__datum_list(out, heap, kind));
    for (size_t i = 0; i < items->count; i++)
        AH_TRY(ah__datum_append(out, heap, items->items[i]));
    return AH_OK;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static bool is_index(struct ah_datum part)
{
    enum { DIGITS_MOST = 9 };
    size_t digits = 0;
    while (digits < part.length && part.text[digits] >= '0' && part.text[digits] <= '9')
        digits++;
    return digits == part.length && digits && digits <= DIGITS_MOST;
}

int ah__filter_attribute(struct ah_datum *out, struct ah_heap *heap, struct ah_datum item, struct ah_datum path,
                         const struct ah_datum *absent)
{
    struct ah_datum parts;
    *out = item;
    if (path.kind != AH_DATUM_TEXT)
        return ah__item(out, heap, item, path);
    AH_TRY(ah__text_split(&parts, heap, path, &(struct ah_datum){.kind = AH_DATUM_TEXT, .text = ".", .length = 1}, -1,
                          false));
    for (size_t i = 0; i < parts.list->count; i++) {
        struct ah_datum part = parts.list->items[i], inner = *out;
        if (is_index(part))
            part = ah__datum_int(strtoll(part.text, NULL, 10));
        AH_TRY(ah__item(out, heap, inner, part));
        if (out->kind == AH_DATUM_UNDEFINED && absent)
            *out = *absent;
    }
    return AH_OK;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* An item and the key that it is sorted by. */
struct keyed {
    struct ah_datum item, key;
    size_t place;
};
struct sorting {
    struct ah_heap *heap;
    int status;
    bool reverse;
};

/* Makes the key: an attribute if a path is given, without case if case does not matter. */
static int key_of(struct ah_datum *key, struct ah_heap *heap, struct ah_datum item, const struct ah_datum *path,
                  bool cased)
{
    *key = item;
    if (path && path->kind != AH_DATUM_NONE)
        AH_TRY(ah__filter_attribute(key, heap, item, *path, NULL));
    if (key->kind != AH_DATUM_TEXT || cased)
        return AH_OK;
    return ah__text_cased(key, heap, *key, AH_CASE_LOWER);
}

static int keyed_order(const void *a, const void *b, void *context)
{
    struct sorting *sorting = context;
    const struct keyed *left = a, *right = b;
    int order = 0;
    if (sorting->status == AH_OK)
        sorting->status = ah__datum_order(&order, sorting->heap, left->key, right->key, "<");
    if (sorting->status != AH_OK || order == 0)
        return (left->place > right->place) - (left->place < right->place);
    return sorting->reverse ? -order : order;
}

static int sort_items(struct ah_datum *out, struct ah_heap *heap, const struct ah_datum_list *items, bool reverse,
                      bool cased, const struct ah_datum *path)
{
    struct sorting sorting = {heap, AH_OK, reverse};
    struct keyed *keyed;
    AH_TRY(ah__heap_new(heap, &keyed, items->count + 1, sizeof *keyed));
    for (size_t i = 0; i < items->count; i++) {
        keyed[i] = (struct keyed){.item = items->items[i], .place = i};
        AH_TRY(key_of(&keyed[i].key, heap, items->items[i], path, cased));
    }
    qsort_r(keyed, items->count, sizeof *keyed, keyed_order, &sorting);
    AH_TRY(sorting.status);
    AH_TRY(ah__datum_list(out, heap, AH_DATUM_LIST));
    for (size_t i = 0; i < items->count; i++)
        AH_TRY(ah__datum_append(out, heap, keyed[i].item));
    return AH_OK;
}

static int sort(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum_list items;
    AH_TRY(self_items(&items, call));
    return sort_items(out, call->heap, &items, ah__call_true(call, 0), ah__call_true(call, 1), call->given[2]);
}

static int pairs_of(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum items = ah__datum_words("items"), method;
    struct ah_call inner = {.heap = call->heap, .raw = &(struct ah_arguments){0}};
    if (call->self.kind != AH_DATUM_DICT)
        return ah__fail(AH_EINPUT, "found a %s, expected a dict", ah__datum_type(call->self));
    AH_TRY(ah__attribute(&method, call->heap, call->self, items.text, items.length));
    inner.self = method;
    return ah__method_call(out, &inner);
}

static int dict_sort(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum by = ah__datum_words("key"), pairs, place;
    AH_TRY(ah__call_string(&by, call, 1));
    AH_TRY(pairs_of(&pairs, call));
    if (!ah__datum_is(by, "key") && !ah__datum_is(by, "value"))
        return ah__fail(AH_EINPUT, "filter 'dictsort' found an order by neither 'key' nor 'value'");
    place = ah__datum_int(ah__datum_is(by, "value"));
    return sort_items(out, call->heap, pairs.list, ah__call_true(call, 2), ah__call_true(call, 0), &place);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* Sets *out if the item passes the test that the next argument names. With by_attribute the item's attribute, named by
 * the first argument, is tested instead. */
static int passes(bool *out, const struct ah_call *call, struct ah_datum item, bool by_attribute)
{
    struct ah_arguments rest = *call->raw;
    struct ah_call inner = {.heap = call->heap, .self = item, .raw = &rest};
    if (by_attribute) {
        if (!rest.count)
            return ah__fail(AH_EINPUT, "found no attribute to select by");
        AH_TRY(ah__filter_attribute(&inner.self, call->heap, item, rest.items[0], NULL));
        rest.items++;
        rest.count--;
    }
    if (!rest.count) {
        *out = ah__datum_true(inner.self);
        return AH_OK;
    }
    struct ah_datum name = rest.items[0];
    if (name.kind != AH_DATUM_TEXT)
        return ah__fail(AH_EINPUT, "found a %s, expected the name of a test", ah__datum_type(name));
    rest.items++;
    rest.count--;
    return ah__test_call(out, &inner, name.text, name.length);
}

static int choose(struct ah_datum *out, const struct ah_call *call, bool by_attribute, bool wanted)
{
    struct ah_datum_list items = {0};
    if (ah__datum_true(call->self)) /* None has no items, as in jinja2 */
        AH_TRY(self_items(&items, call));
    AH_TRY(ah__datum_list(out, call->heap, AH_DATUM_ITER));
    for (size_t i = 0; i < items.count; i++) {
        bool good;
        AH_TRY(passes(&good, call, items.items[i], by_attribute));
        if (good == wanted)
            AH_TRY(ah__datum_append(out, call->heap, items.items[i]));
    }
    return AH_OK;
}

static int select_items(struct ah_datum *out, const struct ah_call *call)
{
    return choose(out, call, false, true);
}

static int reject_items(struct ah_datum *out, const struct ah_call *call)
{
    return choose(out, call, false, false);
}

static int select_by(struct ah_datum *out, const struct ah_call *call)
{
    return choose(out, call, true, true);
}

static int reject_by(struct ah_datum *out, const struct ah_call *call)
{
    return choose(out, call, true, false);
}

/* ---- lists as they are ------------------------------------------------------------------------------------------- */

static int list(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum_list items;
    AH_TRY(self_items(&items, call));
    return list_of(out, call->heap, &items, AH_DATUM_LIST);
}

static int items_of(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum pairs;
    if (call->self.kind == AH_DATUM_UNDEFINED)
        return ah__datum_list(out, call->heap, AH_DATUM_ITER);
    AH_TRY(pairs_of(&pairs, call));
    return list_of(out, call->heap, pairs.list, AH_DATUM_ITER);
}

static int first(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum_list items;
    if (call->self.kind == AH_DATUM_ITER) { /* takes one item */
        struct ah_datum_list *told = call->self.list;
        *out = told->told < told->count ? told->items[told->told++] : ah__datum_undefined("first", 5);
        return AH_OK;
    }
    AH_TRY(self_items(&items, call));
    *out = items.count ? items.items[0] : ah__datum_undefined("first", 5);
    return AH_OK;
}

static int last(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum_list items;
    if (call->self.kind == AH_DATUM_ITER)
        return ah__fail(AH_EINPUT, "filter 'last' found a generator, expected a list");
    AH_TRY(self_items(&items, call));
    *out = items.count ? items.items[items.count - 1] : ah__datum_undefined("last", 4);
    return AH_OK;
}

static int reverse(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum bounds[3] = {ah__datum_none(), ah__datum_none(), ah__datum_int(-1)};
    struct ah_datum_list items;
    if (call->self.kind == AH_DATUM_TEXT)
        return ah__slice(out, call->heap, call->self, bounds);
    AH_TRY(self_items(&items, call));
    AH_TRY(ah__datum_list(out, call->heap, AH_DATUM_ITER));
    for (size_t i = items.count; i > 0; i--)
        AH_TRY(ah__datum_append(out, call->heap, items.items[i - 1]));
    return AH_OK;
}

static int join(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum mark = ah__datum_words(""), parts;
    struct ah_datum_list items;
    if (call->given[0])
        AH_TRY(ah__call_text(&mark, call->heap, *call->given[0]));
    AH_TRY(self_items(&items, call));
    if (!call->given[1] || call->given[1]->kind == AH_DATUM_NONE)
        return ah__text_join(out, call->heap, mark, &items, true);
    AH_TRY(ah__datum_list(&parts, call->heap, AH_DATUM_LIST));
    for (size_t i = 0; i < items.count; i++) {
        struct ah_datum part;
        AH_TRY(ah__filter_attribute(&part, call->heap, items.items[i], *call->given[1], NULL));
        AH_TRY(ah__datum_append(&parts, call->heap, part));
    }
    return ah__text_join(out, call->heap, mark, parts.list, true);
}

const struct ah_call_row ah__filters_list[] = {
    {"list", list, "", 0},
    {"items", items_of, "", 0},
    {"first", first, "", 0},
    {"last", last, "", 0},
    {"reverse", reverse, "", 0},
    {"join", join, "d,attribute", 0},
    {"sort", sort, "reverse,case_sensitive,attribute", 0},
    {"dictsort", dict_sort, "case_sensitive,by,reverse", 0},
    {"select", select_items, NULL, 0},
    {"reject", reject_items, NULL, 0},
    {"selectattr", select_by, NULL, 0},
    {"rejectattr", reject_by, NULL, 0},
};
const size_t ah__filters_list_count = AH_LENGTH(ah__filters_list);
