/* Attributes, items, slices; and methods, with a table for each kind of value. */
#include "chat/jinja_methods.h"

#include <string.h>

#include "chat/characters.h"
#include "chat/jinja_text.h"

/* Cost of counting a character, in bytes for ah__heap_touch. */
enum { CHARACTER_COST = 4 };

/* ---- dicts ------------------------------------------------------------------------------------------------------- */

static int dict_get(struct ah_datum *out, const struct ah_call *call)
{
    const struct ah_datum *found = ah__datum_get(call->heap, call->self, *call->given[0]);
    *out = found ? *found : call->given[1] ? *call->given[1] : ah__datum_none();
    return AH_OK;
}

static int pair_tuple(struct ah_datum *out, struct ah_heap *heap, const struct ah_datum_pair *pair)
{
    AH_TRY(ah__datum_list(out, heap, AH_DATUM_TUPLE));
    AH_TRY(ah__datum_append(out, heap, pair->key));
    return ah__datum_append(out, heap, pair->value);
}

static int dict_items(struct ah_datum *out, const struct ah_call *call)
{
    const struct ah_datum_dict *dict = call->self.dict;
    AH_TRY(ah__datum_list(out, call->heap, AH_DATUM_LIST));
    for (size_t i = 0; i < dict->count; i++) {
        struct ah_datum pair;
        AH_TRY(pair_tuple(&pair, call->heap, &dict->pairs[i]));
        AH_TRY(ah__datum_append(out, call->heap, pair));
    }
    return AH_OK;
}

static int dict_keys(struct ah_datum *out, const struct ah_call *call)
{
    const struct ah_datum_dict *dict = call->self.dict;
    AH_TRY(ah__datum_list(out, call->heap, AH_DATUM_LIST));
    for (size_t i = 0; i < dict->count; i++)
        AH_TRY(ah__datum_append(out, call->heap, dict->pairs[i].key));
    return AH_OK;
}

static int dict_values(struct ah_datum *out, const struct ah_call *call)
{
    const struct ah_datum_dict *dict = call->self.dict;
    AH_TRY(ah__datum_list(out, call->heap, AH_DATUM_LIST));
    for (size_t i = 0; i < dict->count; i++)
        AH_TRY(ah__datum_append(out, call->heap, dict->pairs[i].value));
    return AH_OK;
}

static const struct ah_call_row dict_rows[] = {{"get", dict_get, "key,default", 1},
                                               {"items", dict_items, "", 0},
                                               {"keys", dict_keys, "", 0},
                                               {"values", dict_values, "", 0}};

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static const struct ah_call_row *row_of(enum ah_datum_kind kind, const char *name, size_t length)
{
    switch (kind) {
    case AH_DATUM_TEXT:
        return ah__text_method(name, length);
    case AH_DATUM_DICT:
        return ah__call_find(dict_rows, AH_LENGTH(dict_rows), name, length);
    default:
        return NULL;
    }
}

static int method_new(struct ah_datum *out, struct ah_heap *heap, struct ah_datum self, const char *name)
{
    struct ah_datum_method *method;
    AH_TRY(ah__heap_new(heap, &method, 1, sizeof *method));
    *method = (struct ah_datum_method){self, name};
    *out = (struct ah_datum){.kind = AH_DATUM_METHOD, .method = method};
    return AH_OK;
}

static int undefined_of(struct ah_datum *out, struct ah_heap *heap, const char *name, size_t length)
{
    AH_TRY(ah__datum_copy(out, heap, name, length));
    out->kind = AH_DATUM_UNDEFINED;
    return AH_OK;
}

static int of_nothing(struct ah_datum value, const char *name, size_t length)
{
    return ah__fail(AH_EINPUT, "'%.*s' is undefined, expected something with '%.*s'", (int)value.length, value.text,
                    (int)length, name);
}

int ah__attribute(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, const char *name, size_t length)
{
    const struct ah_call_row *row = row_of(value.kind, name, length);
    if (row)
        return method_new(out, heap, value, row->name);
    if (value.kind == AH_DATUM_UNDEFINED)
        return of_nothing(value, name, length);
    if (value.kind == AH_DATUM_DICT || value.kind == AH_DATUM_NAMESPACE) {
        const struct ah_datum *found = ah__datum_get(heap, value, ah__datum_text(name, length));
        if (found) {
            *out = *found;
            return AH_OK;
        }
    }
    return undefined_of(out, heap, name, length);
}

static bool index_of(size_t *at, struct ah_datum key, size_t count)
{
    if (key.kind != AH_DATUM_INT && key.kind != AH_DATUM_BOOL)
        return false;
    int64_t index = ah__datum_as_int(key);
    index += index < 0 ? (int64_t)count : 0;
    *at = (size_t)index;
    return index >= 0 && *at < count;
}

static bool item_of(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, struct ah_datum key)
{
    size_t at;
    if (value.kind == AH_DATUM_DICT) {
        const struct ah_datum *found = ah__datum_get(heap, value, key);
        if (found)
            *out = *found;
        return found;
    }
    if (value.kind == AH_DATUM_LIST || value.kind == AH_DATUM_TUPLE) {
        if (!index_of(&at, key, value.list->count))
            return false;
        *out = value.list->items[at];
        return true;
    }
    if (value.kind != AH_DATUM_TEXT || !ah__heap_touch(heap, CHARACTER_COST * value.length) ||
        !index_of(&at, key, ah__characters(value.text, value.length)))
        return false;
    const char *place = value.text + ah__characters_at(value.text, value.length, at);
    *out = ah__datum_text(place, ah__utf8_bytes(*place));
    return true;
}

int ah__item(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, struct ah_datum key)
{
    struct ah_datum name;
    if (item_of(out, heap, value, key))
        return AH_OK;
    if (key.kind == AH_DATUM_TEXT)
        return ah__attribute(out, heap, value, key.text, key.length);
    AH_TRY(ah__call_text(&name, heap, key));
    if (value.kind == AH_DATUM_UNDEFINED)
        return of_nothing(value, name.text, name.length);
    return undefined_of(out, heap, name.text, name.length);
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static int bound(int64_t *out, struct ah_datum value, int64_t absent)
{
    *out = absent;
    if (value.kind == AH_DATUM_NONE)
        return AH_OK;
    if (value.kind != AH_DATUM_INT && value.kind != AH_DATUM_BOOL)
        return ah__fail(AH_EINPUT, "found a %s in a slice, expected whole numbers", ah__datum_type(value));
    *out = ah__datum_as_int(value);
    return AH_OK;
}

/* Counts a negative index from the end, and limits it to least .. most. */
static int64_t clamp(int64_t index, int64_t count, int64_t least, int64_t most)
{
    index += index < 0 ? count : 0;
    return index < least ? least : index > most ? most : index;
}

/* Computes the indices of value[start:stop:step]: *taken of them, from *start on. */
static int slice_span(int64_t *start, int64_t *step, int64_t *taken, int64_t count, const struct ah_datum bounds[3])
{
    int64_t stop;
    AH_TRY(bound(step, bounds[2], 1));
    if (*step == 0)
        return ah__fail(AH_EINPUT, "found a slice with the step 0");
    *step = *step > count + 1 ? count + 1 : *step < -count - 1 ? -count - 1 : *step;
    bool back = *step < 0;
    AH_TRY(bound(start, bounds[0], 0));
    AH_TRY(bound(&stop, bounds[1], 0));
    int64_t least = back ? -1 : 0, most = back ? count - 1 : count;
    *start = bounds[0].kind == AH_DATUM_NONE ? (back ? most : 0) : clamp(*start, count, least, most);
    stop = bounds[1].kind == AH_DATUM_NONE ? (back ? -1 : most) : clamp(stop, count, least, most);
    int64_t span = back ? *start - stop : stop - *start, width = back ? -*step : *step;
    *taken = span > 0 ? (span + width - 1) / width : 0;
    return AH_OK;
}

static int slice_list(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value,
                      const struct ah_datum bounds[3])
{
    int64_t start, step, taken;
    AH_TRY(slice_span(&start, &step, &taken, (int64_t)value.list->count, bounds));
    AH_TRY(ah__datum_list(out, heap, value.kind));
    for (int64_t i = 0; i < taken; i++)
        AH_TRY(ah__datum_append(out, heap, value.list->items[start + i * step]));
    return AH_OK;
}

static int slice_text(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value,
                      const struct ah_datum bounds[3])
{
    int64_t start, step, taken;
    struct ah_datum_list characters;
    struct ah_buf buf = {0};
    if (!ah__heap_touch(heap, 2 * CHARACTER_COST * value.length))
        return ah__heap_check(heap);
    size_t count = ah__characters(value.text, value.length);
    AH_TRY(slice_span(&start, &step, &taken, (int64_t)count, bounds));
    if (step == 1) {
        size_t begin = ah__characters_at(value.text, value.length, (size_t)start);
        size_t end = begin + ah__characters_at(value.text + begin, value.length - begin, (size_t)taken);
        *out = ah__datum_text(value.text + begin, end - begin);
        return AH_OK;
    }
    AH_TRY(ah__datum_items(&characters, heap, value));
    for (int64_t i = 0; i < taken; i++)
        ah__heap_put(heap, &buf, characters.items[start + i * step].text, characters.items[start + i * step].length);
    return ah__call_take(out, heap, &buf);
}

int ah__slice(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value, const struct ah_datum bounds[3])
{
    if (value.kind == AH_DATUM_LIST || value.kind == AH_DATUM_TUPLE)
        return slice_list(out, heap, value, bounds);
    if (value.kind == AH_DATUM_TEXT)
        return slice_text(out, heap, value, bounds);
    if (value.kind == AH_DATUM_UNDEFINED)
        return of_nothing(value, "slices", strlen("slices"));
    return undefined_of(out, heap, "slice", strlen("slice"));
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

int ah__method_call(struct ah_datum *out, struct ah_call *call)
{
    const struct ah_datum_method *method = call->self.method;
    const struct ah_call_row *row = row_of(method->self.kind, method->name, strlen(method->name));
    call->self = method->self;
    return ah__call_row(out, call, row, "method");
}
