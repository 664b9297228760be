/* Functions that templates call by name. */
#include "chat/jinja_functions.h"

#include <inttypes.h>
#include <string.h>

#include "base/format.h"
#include "chat/jinja_text.h"

/* Most items of range(), as in the sandbox of jinja2. */
enum { RANGE_MOST = 100000 };

static int range(struct ah_datum *out, const struct ah_call *call)
{
    int64_t start = 0, stop = 0, step = 1;
    AH_TRY(ah__call_int(call->given[1] ? &start : &stop, call, 0));
    AH_TRY(ah__call_int(&stop, call, 1));
    AH_TRY(ah__call_int(&step, call, 2));
    if (step == 0)
        return ah__fail(AH_EINPUT, "range found the step 0");
    AH_TRY(ah__datum_list(out, call->heap, AH_DATUM_LIST));
    for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
        if (out->list->count == RANGE_MOST)
            return ah__fail(AH_EINPUT, "range found more than %d numbers", RANGE_MOST);
        AH_TRY(ah__datum_append(out, call->heap, ah__datum_int(at)));
        if (__builtin_add_overflow(at, step, &at))
            break;
    }
    return AH_OK;
}

/* Adds a dict's pairs, then keyword arguments. */
static int fill(struct ah_datum *out, const struct ah_call *call, bool hidden)
{
    const struct ah_arguments *raw = call->raw;
    if (raw->count > 1 || (raw->count && raw->items[0].kind != AH_DATUM_DICT))
        return ah__fail(AH_EINPUT, "found a %s as an argument, expected one dict, or name=value",
                        ah__datum_type(raw->items[0]));
    for (size_t i = 0; raw->count && i < raw->items[0].dict->count; i++)
        AH_TRY(ah__datum_set(out, call->heap, raw->items[0].dict->pairs[i].key, raw->items[0].dict->pairs[i].value));
    for (size_t i = 0; i < raw->keyword_count; i++) {
        const struct ah_keyword *keyword = &raw->keywords[i];
        if (hidden && keyword->name[0] == '_')
            return ah__fail(AH_EINPUT, "a namespace found '%.*s', expected no name that begins with '_'",
                            (int)keyword->length, keyword->name);
        AH_TRY(ah__datum_set(out, call->heap, ah__datum_text(keyword->name, keyword->length), keyword->value));
    }
    return AH_OK;
}

static int dict(struct ah_datum *out, const struct ah_call *call)
{
    AH_TRY(ah__datum_dict(out, call->heap, AH_DATUM_DICT));
    return fill(out, call, false);
}

static int name_space(struct ah_datum *out, const struct ah_call *call)
{
    AH_TRY(ah__datum_dict(out, call->heap, AH_DATUM_NAMESPACE));
    return fill(out, call, true);
}

static int raise_exception(struct ah_datum *out, const struct ah_call *call)
{
    (void)out;
    struct ah_datum message;
    AH_TRY(ah__call_text(&message, call->heap, *call->given[0]));
    return ah__fail(AH_EINPUT, "the template refuses: %.*s", (int)message.length, message.text);
}

static int strftime_now(struct ah_datum *out, const struct ah_call *call)
{
    enum { ROOM = 512, FORMAT_COST = 16384 };
    char text[ROOM];
    struct ah_datum format, ended;
    if (!ah__heap_touch(call->heap, FORMAT_COST))
        return ah__heap_check(call->heap);
    AH_TRY(ah__call_string(&format, call, 0));
    AH_TRY(ah__datum_copy(&ended, call->heap, format.text, format.length));
    locale_t before = ah__locale_begin();
    size_t length = strftime(text, sizeof text, ended.text, call->now);
    ah__locale_end(before);
    if (!length && format.length)
        return ah__fail(AH_EINPUT, "strftime_now found a format of more than %d characters", ROOM - 1);
    return ah__datum_copy(out, call->heap, text, length);
}

static const struct ah_call_row rows[] = {
    {"range", range, "start,stop,step", 1},      {"dict", dict, NULL, 0},
    {"namespace", name_space, NULL, 0},          {"raise_exception", raise_exception, "message", 1},
    {"strftime_now", strftime_now, "format", 1},
};

int ah__function_find(struct ah_datum *out, const char *name, size_t length)
{
    const struct ah_call_row *row = ah__call_find(rows, AH_LENGTH(rows), name, length);
    *out = row ? (struct ah_datum){.kind = AH_DATUM_FUNCTION, .inner = row} : ah__datum_undefined(name, length);
    return AH_OK;
}

int ah__function_call(struct ah_datum *out, struct ah_call *call, struct ah_datum function)
{
    return ah__call_row(out, call, function.inner, "function");
}
