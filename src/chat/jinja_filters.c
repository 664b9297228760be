/* Filters of texts, numbers and single values, and `map`, which applies other filters. */
#include "chat/jinja_filters.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "chat/characters.h"
#include "chat/datum_print.h"
#include "chat/jinja_filters_list.h"
#include "chat/jinja_methods.h"
#include "chat/jinja_text.h"

/* Costs of a character, in bytes for ah__heap_touch. */
enum { CHARACTER_COST = 16, CASE_COST = 128 };

static int self_text(struct ah_datum *out, const struct ah_call *call)
{
    return ah__call_text(out, call->heap, call->self);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static int trim(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum set = {0};
    AH_TRY(self_text(out, call));
    if (call->given[0] && call->given[0]->kind != AH_DATUM_NONE)
        AH_TRY(ah__call_string(&set, call, 0));
    return ah__text_stripped(out, call->heap, set, true, true);
}

static int in_case(struct ah_datum *out, const struct ah_call *call, enum ah_case how)
{
    struct ah_datum text;
    AH_TRY(self_text(&text, call));
    return ah__text_cased(out, call->heap, text, how);
}

static int upper(struct ah_datum *out, const struct ah_call *call)
{
    return in_case(out, call, AH_CASE_UPPER);
}

static int lower(struct ah_datum *out, const struct ah_call *call)
{
    return in_case(out, call, AH_CASE_LOWER);
}

static int capitalize(struct ah_datum *out, const struct ah_call *call)
{
    return in_case(out, call, AH_CASE_CAPITAL);
}

/* Words begin after white space and -({[<, unlike those of str.title(). */
static int title(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_buf buf = {0};
    struct ah_datum text;
    bool first = true;
    AH_TRY(self_text(&text, call));
    if (!ah__heap_touch(call->heap, CASE_COST * text.length))
        return ah__heap_check(call->heap);
    for (size_t at = 0, bytes; at < text.length; at += bytes) {
        bytes = ah__utf8_bytes(text.text[at]);
        bool between = ah__is_space(ah__utf8_code(text.text + at, bytes)) || strchr("-({[<", text.text[at]);
        ah__text_case(&buf, text.text + at, bytes, first ? AH_CASE_UPPER : AH_CASE_LOWER);
        first = between && text.text[at];
    }
    call->heap->used += buf.length; /* until ah__call_take frees it */
    return ah__call_take(out, call->heap, &buf);
}

static int replace(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum text, old, with;
    int64_t most = -1;
    AH_TRY(self_text(&text, call));
    AH_TRY(ah__call_text(&old, call->heap, *call->given[0]));
    AH_TRY(ah__call_text(&with, call->heap, *call->given[1]));
    if (call->given[2] && call->given[2]->kind != AH_DATUM_NONE)
        AH_TRY(ah__call_int(&most, call, 2));
    return ah__text_replace(out, call->heap, text, old, with, most);
}

static int string(struct ah_datum *out, const struct ah_call *call)
{
    return self_text(out, call);
}

static int safe(struct ah_datum *out, const struct ah_call *call)
{
    AH_TRY(self_text(out, call));
    out->safe = true;
    return AH_OK;
}

static int escape(struct ah_datum *out, const struct ah_call *call)
{
    static const struct {
        char mark;
        const char *name;
    } names[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    struct ah_buf buf = {0};
    struct ah_datum text;
    AH_TRY(self_text(&text, call));
    for (size_t i = 0; i < text.length && !text.safe && ah__heap_touch(call->heap, CHARACTER_COST); i++) {
        const char *name = NULL;
        for (size_t k = 0; k < AH_LENGTH(names); k++)
            name = names[k].mark == text.text[i] ? names[k].name : name;
        ah__heap_put(call->heap, &buf, name ? name : text.text + i, name ? strlen(name) : 1);
    }
    *out = text;
    if (!text.safe)
        AH_TRY(ah__call_take(out, call->heap, &buf));
    out->safe = true;
    return AH_OK;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Reads a text as a number. White space around it is allowed, other text is not. */
static bool text_real(double *out, struct ah_datum text, struct ah_heap *heap, int *status)
{
    struct ah_datum copy;
    char *end;
    ah__heap_touch(heap, CHARACTER_COST * text.length);
    ah__text_strip(&text.text, &text.length, NULL, 0, true, true);
    *status = ah__datum_copy(&copy, heap, text.text, text.length);
    if (*status != AH_OK || !text.length || strpbrk(copy.text, "xXpP()"))
        return false;
    *out = ah__strtod(copy.text, &end);
    return end == copy.text + copy.length;
}

static bool text_int(int64_t *out, struct ah_datum text, int base, struct ah_heap *heap, int *status)
{
    struct ah_datum copy;
    char *end;
    ah__heap_touch(heap, CHARACTER_COST * text.length);
    ah__text_strip(&text.text, &text.length, NULL, 0, true, true);
    *status = ah__datum_copy(&copy, heap, text.text, text.length);
    if (*status != AH_OK || !text.length)
        return false;
    errno = 0;
    *out = strtoll(copy.text, &end, base);
    return !errno && end == copy.text + copy.length;
}

static int to_int(struct ah_datum *out, const struct ah_call *call)
{
    int64_t base = 10, whole = 0;
    double real = 0;
    int status = AH_OK;
    struct ah_datum self = call->self;
    *out = call->given[0] ? *call->given[0] : ah__datum_int(0);
    AH_TRY(ah__call_int(&base, call, 1));
    if (base < 0 || base == 1 || base > 36)
        return ah__fail(AH_EINPUT, "filter 'int' found the base %" PRId64 ", expected 2 to 36", base);
    if (self.kind == AH_DATUM_INT || self.kind == AH_DATUM_BOOL) {
        *out = ah__datum_int(ah__datum_as_int(self));
        return AH_OK;
    }
    if (self.kind == AH_DATUM_TEXT && text_int(&whole, self, (int)base, call->heap, &status)) {
        *out = ah__datum_int(whole);
        return AH_OK;
    }
    AH_TRY(status);
    bool number =
        self.kind == AH_DATUM_REAL || (self.kind == AH_DATUM_TEXT && text_real(&real, self, call->heap, &status));
    real = self.kind == AH_DATUM_REAL ? self.real : real;
    if (number && fabs(real) < 9e18)
        *out = ah__datum_int((int64_t)real);
    return status;
}

/* ---- single values ----------------------------------------------------------------------------------------------- */

static int or_default(struct ah_datum *out, const struct ah_call *call)
{
    bool missing = call->self.kind == AH_DATUM_UNDEFINED || (ah__call_true(call, 1) && !ah__datum_true(call->self));
    *out = !missing ? call->self : call->given[0] ? *call->given[0] : ah__datum_words("");
    return AH_OK;
}

static int length(struct ah_datum *out, const struct ah_call *call)
{
    int64_t count;
    AH_TRY(ah__datum_length(&count, call->heap, call->self));
    *out = ah__datum_int(count);
    return AH_OK;
}

/* Reads ("a", "b"): the texts between items and after keys. */
static int json_separators(struct ah_json_style *style, struct ah_datum pair)
{
    bool two = (pair.kind == AH_DATUM_TUPLE || pair.kind == AH_DATUM_LIST) && pair.list->count == 2;
    if (!two || pair.list->items[0].kind != AH_DATUM_TEXT || pair.list->items[1].kind != AH_DATUM_TEXT)
        return ah__fail(AH_EINPUT, "filter 'tojson' found separators that are no pair of strings");
    style->item_mark = pair.list->items[0];
    style->pair_mark = pair.list->items[1];
    return AH_OK;
}

static int to_json(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_json_style style = {.ascii = ah__call_true(call, 0), .sorted = ah__call_true(call, 3)};
    const struct ah_datum *margin = call->given[1], *separators = call->given[2];
    struct ah_buf buf = {0};
    int64_t width = 0;
    style.indented = margin && margin->kind != AH_DATUM_NONE;
    style.item_mark = style.indented ? ah__datum_words(",") : ah__datum_words(", ");
    style.pair_mark = ah__datum_words(": ");
    if (style.indented && margin->kind == AH_DATUM_TEXT)
        style.indent = *margin;
    else if (style.indented) {
        AH_TRY(ah__call_int(&width, call, 1));
        AH_TRY(ah__text_repeat(&style.indent, call->heap, ah__datum_words(" "), width));
    }
    if (separators && separators->kind != AH_DATUM_NONE)
        AH_TRY(json_separators(&style, *separators));
    int status = ah__datum_json(&buf, call->heap, call->self, &style);
    if (status == AH_OK)
        return ah__call_take(out, call->heap, &buf);
    ah__buf_free(&buf);
    return status;
}

/* ---- map and the table ------------------------------------------------------------------------------------------- */

static int map_filter(struct ah_datum *out, const struct ah_call *call, struct ah_datum item)
{
    struct ah_arguments rest = *call->raw;
    struct ah_call inner = {.heap = call->heap, .now = call->now, .self = item, .raw = &rest};
    struct ah_datum name = rest.count ? rest.items[0] : ah__datum_none();
    if (name.kind != AH_DATUM_TEXT)
        return ah__fail(AH_EINPUT, "filter 'map' found no name of a filter and no attribute");
    rest.items++;
    rest.count--;
    return ah__filter_call(out, &inner, name.text, name.length);
}

static int map(struct ah_datum *out, const struct ah_call *call)
{
    const struct ah_datum *path = ah__call_keyword(call->raw, "attribute");
    const struct ah_datum *absent = ah__call_keyword(call->raw, "default");
    struct ah_datum_list items = {0};
    if (ah__datum_true(call->self)) /* None has no items, as in jinja2 */
        AH_TRY(ah__datum_items(&items, call->heap, call->self));
    AH_TRY(ah__datum_list(out, call->heap, AH_DATUM_ITER));
    for (size_t i = 0; i < items.count; i++) {
        struct ah_datum mapped;
        if (path)
            AH_TRY(ah__filter_attribute(&mapped, call->heap, items.items[i], *path, absent));
        else
            AH_TRY(map_filter(&mapped, call, items.items[i]));
        AH_TRY(ah__datum_append(out, call->heap, mapped));
    }
    return AH_OK;
}

static const struct ah_call_row rows[] = {
    {"trim", trim, "chars", 0},
    {"upper", upper, "", 0},
    {"lower", lower, "", 0},
    {"capitalize", capitalize, "", 0},
    {"title", title, "", 0},
    {"replace", replace, "old,new,count", 2},
    {"string", string, "", 0},
    {"safe", safe, "", 0},
    {"escape", escape, "", 0},
    {"e", escape, "", 0},
    {"int", to_int, "default,base", 0},
    {"default", or_default, "default_value,boolean", 0},
    {"d", or_default, "default_value,boolean", 0},
    {"length", length, "", 0},
    {"count", length, "", 0},
    {"tojson", to_json, "ensure_ascii,indent,separators,sort_keys", 0},
    {"map", map, NULL, 0},
};

int ah__filter_call(struct ah_datum *out, struct ah_call *call, const char *name, size_t size)
{
    const struct ah_call_row *row = ah__call_find(rows, AH_LENGTH(rows), name, size);
    if (!row)
        row = ah__call_find(ah__filters_list, ah__filters_list_count, name, size);
    if (!row)
        return ah__fail(AH_EINPUT, "found the filter '%.*s', which is not known here", (int)size, name);
    return ah__call_row(out, call, row, "filter");
}
