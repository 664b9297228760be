/* Evaluates calls: arguments, macros, recursive loops. */
#include <string.h>

#include "chat/jinja_eval_internal.h"
#include "chat/jinja_functions.h"
#include "chat/jinja_methods.h"

static bool is(const char *name, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(name, word, length) == 0;
}

/* Makes room for `more` arguments. The present ones are kept. */
static int arguments_grow(struct ah_arguments *arguments, struct ah_heap *heap, size_t more)
{
    struct ah_arguments old = *arguments;
    if (!more)
        return AH_OK;
    AH_TRY(ah__heap_new(heap, &arguments->items, old.count + more, sizeof *old.items));
    AH_TRY(ah__heap_new(heap, &arguments->keywords, old.keyword_count + more, sizeof *old.keywords));
    if (old.count)
        memcpy(arguments->items, old.items, old.count * sizeof *old.items);
    if (old.keyword_count)
        memcpy(arguments->keywords, old.keywords, old.keyword_count * sizeof *old.keywords);
    return AH_OK;
}

static size_t nodes(const struct ah_node *node)
{
    size_t count = 0;
    for (; node; node = node->next)
        count++;
    return count;
}

/* Adds the items of *list, or the pairs of **dict, and makes room for the arguments after `node`. */
static int spread(struct ah_arguments *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum value;
    struct ah_datum_list items;
    AH_TRY(ah__eval(&value, eval, node->a));
    if (!node->flag) {
        AH_TRY(ah__datum_items(&items, eval->heap, value));
        AH_TRY(arguments_grow(out, eval->heap, items.count + nodes(node)));
        for (size_t i = 0; i < items.count; i++)
            out->items[out->count++] = items.items[i];
        return AH_OK;
    }
    if (value.kind != AH_DATUM_DICT)
        return ah__fail(AH_EINPUT, "found a %s behind '**', expected a dict", ah__datum_type(value));
    AH_TRY(arguments_grow(out, eval->heap, value.dict->count + nodes(node)));
    for (size_t i = 0; i < value.dict->count; i++) {
        struct ah_datum key = value.dict->pairs[i].key;
        if (key.kind != AH_DATUM_TEXT)
            return ah__fail(AH_EINPUT, "found a %s as a key behind '**', expected a string", ah__datum_type(key));
        out->keywords[out->keyword_count++] = (struct ah_keyword){key.text, key.length, value.dict->pairs[i].value};
    }
    return AH_OK;
}

int ah__eval_arguments(struct ah_arguments *out, struct ah_eval *eval, const struct ah_node *list)
{
    *out = (struct ah_arguments){0};
    AH_TRY(arguments_grow(out, eval->heap, nodes(list)));
    for (const struct ah_node *node = list; node; node = node->next) {
        if (node->kind == AH_NODE_SPREAD) {
            AH_TRY(spread(out, eval, node));
            continue;
        }
        if (node->kind != AH_NODE_KEYWORD) {
            AH_TRY(ah__eval(&out->items[out->count++], eval, node));
            continue;
        }
        struct ah_keyword *keyword = &out->keywords[out->keyword_count++];
        *keyword = (struct ah_keyword){.name = node->text, .length = node->length};
        AH_TRY(ah__eval(&keyword->value, eval, node->a));
    }
    return AH_OK;
}

/* ---- macros ------------------------------------------------------------------------------------------------------ */

static const struct ah_keyword *keyword_of(struct ah_heap *heap, const struct ah_arguments *arguments,
                                           const struct ah_node *parameter)
{
    enum { KEYWORD_COST = 32 };
    for (size_t i = 0; i < arguments->keyword_count && ah__heap_touch(heap, KEYWORD_COST); i++) {
        const struct ah_keyword *keyword = &arguments->keywords[i];
        if (keyword->length == parameter->length && memcmp(keyword->name, parameter->text, keyword->length) == 0)
            return keyword;
    }
    return NULL;
}

/* Finds a parameter's value: an argument by place or by name, else the default, else UNDEFINED. */
static int macro_argument(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *parameter, size_t place,
                          const struct ah_arguments *arguments)
{
    const struct ah_keyword *keyword = keyword_of(eval->heap, arguments, parameter);
    if (keyword && place < arguments->count)
        return ah__fail(AH_EINPUT, "a macro found '%.*s' twice", (int)parameter->length, parameter->text);
    *out = ah__datum_undefined(parameter->text, parameter->length);
    if (keyword || place < arguments->count)
        *out = keyword ? keyword->value : arguments->items[place];
    else if (parameter->a)
        AH_TRY(ah__eval(out, eval, parameter->a));
    return AH_OK;
}

/* Sets the parameters in the current scope. The default of each sees those before it. */
static int macro_bind(struct ah_eval *eval, const struct ah_node *macro, const struct ah_arguments *arguments)
{
    size_t place = 0, named = 0;
    for (const struct ah_node *at = macro->list; at; at = at->next, place++) {
        struct ah_datum value;
        named += keyword_of(eval->heap, arguments, at) != NULL;
        AH_TRY(macro_argument(&value, eval, at, place, arguments));
        AH_TRY(ah__scope_set(eval, eval->scope, at->text, at->length, value));
    }
    if (arguments->count > place || named < arguments->keyword_count)
        return ah__fail(AH_EINPUT, "macro '%.*s' found arguments that it does not have", (int)macro->length,
                        macro->text);
    return AH_OK;
}

static int macro_call(struct ah_datum *out, struct ah_eval *eval, const struct ah_macro *macro,
                      const struct ah_arguments *arguments)
{
    struct ah_scope *outside = eval->scope, *inside;
    enum ah_flow flow = eval->flow;
    AH_TRY(ah__scope_new(&inside, eval, macro->scope));
    eval->scope = inside;
    eval->flow = AH_FLOW_ON;
    int status = macro_bind(eval, macro->node, arguments);
    if (status == AH_OK)
        status = ah__eval_gather(out, eval, macro->node->body, inside);
    eval->scope = outside;
    eval->flow = flow;
    return status;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

void ah__eval_loop_attribute(struct ah_datum *out, struct ah_datum value, const char *name, size_t length)
{
    const struct ah_loop *loop = value.inner;
    int64_t index = (int64_t)loop->index, count = (int64_t)loop->items.count;
    const struct {
        const char *name;
        struct ah_datum value;
    } rows[] = {
        {"index", ah__datum_int(index + 1)},
        {"index0", ah__datum_int(index)},
        {"revindex", ah__datum_int(count - index)},
        {"revindex0", ah__datum_int(count - index - 1)},
        {"first", ah__datum_bool(index == 0)},
        {"last", ah__datum_bool(index == count - 1)},
        {"length", ah__datum_int(count)},
        {"previtem", index ? loop->items.items[index - 1] : ah__datum_undefined("previtem", 8)},
        {"nextitem", index + 1 < count ? loop->items.items[index + 1] : ah__datum_undefined("nextitem", 8)},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        if (is(name, length, rows[i].name)) {
            *out = rows[i].value;
            return;
        }
    *out = ah__datum_undefined(name, length);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

int ah__eval_call(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum callee;
    struct ah_arguments arguments;
    AH_TRY(ah__eval(&callee, eval, node->a));
    AH_TRY(ah__eval_arguments(&arguments, eval, node->list));
    struct ah_call call = {.heap = eval->heap, .now = eval->now, .self = callee, .raw = &arguments};
    switch (callee.kind) {
    case AH_DATUM_MACRO:
        return macro_call(out, eval, callee.inner, &arguments);
    case AH_DATUM_FUNCTION:
        return ah__function_call(out, &call, callee);
    case AH_DATUM_METHOD:
        return ah__method_call(out, &call);
    case AH_DATUM_UNDEFINED:
        return ah__fail(AH_EINPUT, "found a call of '%.*s', which is not known here", (int)callee.length, callee.text);
    default:
        return ah__fail(AH_EINPUT, "found a call of a %s", ah__datum_type(callee));
    }
}
