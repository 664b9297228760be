/* Binds arguments to parameters. */
#include "chat/jinja_call.h"

#include <string.h>

#include "chat/datum_print.h"

const struct ah_call_row *ah__call_find(const struct ah_call_row *rows, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

const struct ah_datum *ah__call_keyword(const struct ah_arguments *arguments, const char *name)
{
    for (size_t i = 0; i < arguments->keyword_count; i++) {
        const struct ah_keyword *keyword = &arguments->keywords[i];
        if (keyword->length == strlen(name) && memcmp(keyword->name, name, keyword->length) == 0)
            return &keyword->value;
    }
    return NULL;
}

/* Returns the place of a name in "a,b,c", or -1 if it is not there. */
static int parameter_at(const char *parameters, const char *name, size_t length)
{
    for (int at = 0; *parameters; at++) {
        size_t own = strcspn(parameters, ",");
        if (own == length && memcmp(parameters, name, length) == 0)
            return at;
        parameters += own + (parameters[own] == ',');
    }
    return -1;
}

static int parameter_count(const char *parameters)
{
    int count = *parameters != 0;
    for (; *parameters; parameters++)
        count += *parameters == ',';
    return count;
}

static int bind(struct ah_call *call, const struct ah_call_row *row, const char *kind)
{
    const struct ah_arguments *raw = call->raw;
    int most = parameter_count(row->parameters);
    memset(call->given, 0, sizeof call->given);
    if (raw->count > (size_t)most)
        return ah__fail(AH_EINPUT, "%s '%s' found %zu arguments, expected at most %d", kind, row->name, raw->count,
                        most);
    for (size_t i = 0; i < raw->count; i++)
        call->given[i] = &raw->items[i];
    for (size_t i = 0; i < raw->keyword_count; i++) {
        const struct ah_keyword *keyword = &raw->keywords[i];
        int at = parameter_at(row->parameters, keyword->name, keyword->length);
        if (at < 0 || call->given[at])
            return ah__fail(AH_EINPUT, "%s '%s' found the argument '%.*s', expected %s", kind, row->name,
                            (int)keyword->length, keyword->name, at < 0 ? row->parameters : "it once");
        call->given[at] = &keyword->value;
    }
    for (int i = 0; i < row->required; i++)
        if (!call->given[i])
            return ah__fail(AH_EINPUT, "%s '%s' found too few arguments, expected %s", kind, row->name,
                            row->parameters);
    return AH_OK;
}

int ah__call_row(struct ah_datum *out, struct ah_call *call, const struct ah_call_row *row, const char *kind)
{
    enum { CALL_COST = 256 };
    if (!ah__heap_touch(call->heap, CALL_COST))
        return ah__heap_check(call->heap);
    if (row->parameters)
        AH_TRY(bind(call, row, kind));
    return row->function(out, call);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

int ah__call_take(struct ah_datum *out, struct ah_heap *heap, struct ah_buf *buf)
{
    int status = buf->status == AH_OK ? ah__heap_check(heap) : buf->status;
    heap->used -= buf->length < heap->used ? buf->length : heap->used; /* ah__datum_copy counts these bytes again */
    if (status == AH_OK)
        status = ah__datum_copy(out, heap, buf->text, buf->length);
    ah__buf_free(buf);
    return status;
}

int ah__call_text(struct ah_datum *out, struct ah_heap *heap, struct ah_datum value)
{
    struct ah_buf buf = {0};
    if (value.kind == AH_DATUM_TEXT) {
        *out = value;
        return AH_OK;
    }
    int status = ah__datum_str(heap, &buf, value);
    if (status == AH_OK)
        return ah__call_take(out, heap, &buf);
    ah__buf_free(&buf);
    return status;
}

int ah__call_string(struct ah_datum *out, const struct ah_call *call, int parameter)
{
    const struct ah_datum *given = call->given[parameter];
    if (!given)
        return AH_OK;
    if (given->kind != AH_DATUM_TEXT)
        return ah__fail(AH_EINPUT, "found a %s as an argument, expected a string", ah__datum_type(*given));
    *out = *given;
    return AH_OK;
}

int ah__call_int(int64_t *out, const struct ah_call *call, int parameter)
{
    const struct ah_datum *given = call->given[parameter];
    if (!given)
        return AH_OK;
    if (given->kind != AH_DATUM_INT && given->kind != AH_DATUM_BOOL)
        return ah__fail(AH_EINPUT, "found a %s as an argument, expected a whole number", ah__datum_type(*given));
    *out = ah__datum_as_int(*given);
    return AH_OK;
}

bool ah__call_true(const struct ah_call *call, int parameter)
{
    return call->given[parameter] && ah__datum_true(*call->given[parameter]);
}
