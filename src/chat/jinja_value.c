/* Evaluates expressions. */
#include <string.h>

#include "chat/datum_print.h"
#include "chat/jinja_eval_internal.h"
#include "chat/jinja_filters.h"
#include "chat/jinja_methods.h"
#include "chat/jinja_tests.h"

typedef int evaluate(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node);

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int constant(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    (void)eval;
    *out = node->value;
    return AH_OK;
}

static int name(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    return ah__scope_get(out, eval, node->text, node->length);
}

static int list(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum item;
    AH_TRY(ah__datum_list(out, eval->heap, node->kind == AH_NODE_TUPLE ? AH_DATUM_TUPLE : AH_DATUM_LIST));
    for (const struct ah_node *at = node->list; at; at = at->next) {
        AH_TRY(ah__eval(&item, eval, at));
        AH_TRY(ah__datum_append(out, eval->heap, item));
    }
    return AH_OK;
}

static int dict(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum key, value;
    AH_TRY(ah__datum_dict(out, eval->heap, AH_DATUM_DICT));
    for (const struct ah_node *at = node->list; at; at = at->next) {
        AH_TRY(ah__eval(&key, eval, at->a));
        AH_TRY(ah__eval(&value, eval, at->b));
        AH_TRY(ah__datum_set(out, eval->heap, key, value));
    }
    return AH_OK;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static int condition(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    static const char missing[] = "else";
    struct ah_datum truth;
    AH_TRY(ah__eval(&truth, eval, node->b));
    if (ah__datum_true(truth))
        return ah__eval(out, eval, node->a);
    if (node->c)
        return ah__eval(out, eval, node->c);
    *out = ah__datum_undefined(missing, strlen(missing));
    return AH_OK;
}

/* Evaluates `and` and `or`: the first operand that decides is the result. */
static int logical(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    AH_TRY(ah__eval(out, eval, node->a));
    if (ah__datum_true(*out) == (node->kind == AH_NODE_AND))
        return ah__eval(out, eval, node->b);
    return AH_OK;
}

static int negation(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum value;
    AH_TRY(ah__eval(&value, eval, node->a));
    *out = ah__datum_bool(!ah__datum_true(value));
    return AH_OK;
}

static int concat(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_buf buf = {0};
    int status = AH_OK;
    for (const struct ah_node *at = node->list; at && status == AH_OK; at = at->next) {
        struct ah_datum value;
        status = ah__eval(&value, eval, at);
        if (status == AH_OK)
            status = ah__datum_str(eval->heap, &buf, value);
    }
    if (status == AH_OK)
        return ah__call_take(out, eval->heap, &buf);
    ah__buf_free(&buf);
    return status;
}

static int signed_number(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum value;
    AH_TRY(ah__eval(&value, eval, node->a));
    if (!ah__datum_is_number(value))
        return ah__fail(AH_EINPUT, "found a sign before a %s, expected a number", ah__datum_type(value));
    bool minus = node->kind == AH_NODE_MINUS;
    if (value.kind == AH_DATUM_REAL)
        *out = ah__datum_real(minus ? -value.real : value.real);
    else if (minus && ah__datum_as_int(value) == INT64_MIN)
        return ah__fail(AH_EINPUT, "found a whole number that 64 bits do not hold");
    else
        *out = ah__datum_int(minus ? -ah__datum_as_int(value) : ah__datum_as_int(value));
    return AH_OK;
}

/* ---- suffixes of a value ----------------------------------------------------------------------------------------- */

static int attribute(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum value;
    AH_TRY(ah__eval(&value, eval, node->a));
    if (value.kind != AH_DATUM_LOOP)
        return ah__attribute(out, eval->heap, value, node->text, node->length);
    ah__eval_loop_attribute(out, value, node->text, node->length);
    return AH_OK;
}

static int item(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum value, key;
    const struct ah_node *slice = node->b;
    AH_TRY(ah__eval(&value, eval, node->a));
    if (slice->kind != AH_NODE_SLICE) {
        AH_TRY(ah__eval(&key, eval, slice));
        return ah__item(out, eval->heap, value, key);
    }
    struct ah_datum bounds[3] = {ah__datum_none(), ah__datum_none(), ah__datum_none()};
    const struct ah_node *const nodes[3] = {slice->a, slice->b, slice->c};
    for (size_t i = 0; i < AH_LENGTH(bounds); i++)
        if (nodes[i])
            AH_TRY(ah__eval(&bounds[i], eval, nodes[i]));
    return ah__slice(out, eval->heap, value, bounds);
}

/* Evaluates the value and the arguments of a filter or a test. */
static int call_begin(struct ah_call *out, struct ah_arguments *arguments, struct ah_eval *eval,
                      const struct ah_node *node)
{
    struct ah_datum value;
    AH_TRY(ah__eval(&value, eval, node->a));
    AH_TRY(ah__eval_arguments(arguments, eval, node->list));
    *out = (struct ah_call){.heap = eval->heap, .now = eval->now, .self = value, .raw = arguments};
    return AH_OK;
}

static int filter(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_arguments arguments;
    struct ah_call made;
    AH_TRY(call_begin(&made, &arguments, eval, node));
    return ah__filter_call(out, &made, node->text, node->length);
}

static int test(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_arguments arguments;
    struct ah_call made;
    bool truth;
    AH_TRY(call_begin(&made, &arguments, eval, node));
    AH_TRY(ah__test_call(&truth, &made, node->text, node->length));
    *out = ah__datum_bool(truth);
    return AH_OK;
}

int ah__eval(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    static evaluate *const rows[] = {
        [AH_NODE_CONST] = constant,
        [AH_NODE_NAME] = name,
        [AH_NODE_LIST] = list,
        [AH_NODE_TUPLE] = list,
        [AH_NODE_DICT] = dict,
        [AH_NODE_CONDITION] = condition,
        [AH_NODE_OR] = logical,
        [AH_NODE_AND] = logical,
        [AH_NODE_NOT] = negation,
        [AH_NODE_COMPARE] = ah__eval_compare,
        [AH_NODE_BINARY] = ah__eval_binary,
        [AH_NODE_CONCAT] = concat,
        [AH_NODE_MINUS] = signed_number,
        [AH_NODE_PLUS] = signed_number,
        [AH_NODE_ATTRIBUTE] = attribute,
        [AH_NODE_ITEM] = item,
        [AH_NODE_CALL] = ah__eval_call,
        [AH_NODE_FILTER] = filter,
        [AH_NODE_TEST] = test,
    };
    int status = ah__eval_enter(eval);
    if (status == AH_OK)
        status = (size_t)node->kind < AH_LENGTH(rows) && rows[node->kind]
                     ? rows[node->kind](out, eval, node)
                     : ah__fail(AH_EINPUT, "found what is no expression");
    return ah__eval_leave(eval, status, node->line);
}
