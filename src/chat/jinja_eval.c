/* Evaluates statements; scopes and bounds of a rendering. */
#include <string.h>

#include "chat/datum_print.h"
#include "chat/jinja_eval_internal.h"
#include "chat/jinja_functions.h"

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

enum { STEPS_MOST = 10000000, DEPTH_MOST = 500, VARIABLE_COST = 64 };

static int count_step(struct ah_eval *eval)
{
    if (++eval->steps > STEPS_MOST)
        return ah__fail(AH_EINPUT, "found more than %d steps, expected a rendering that ends before", STEPS_MOST);
    AH_TRY(ah__heap_check(eval->heap));
    return eval->to->status;
}

int ah__eval_enter(struct ah_eval *eval)
{
    eval->depth++;
    if (eval->depth > DEPTH_MOST)
        return ah__fail(AH_EINPUT, "found expressions or macros more than %d deep", DEPTH_MOST);
    return count_step(eval);
}

int ah__eval_leave(struct ah_eval *eval, int status, int line)
{
    eval->depth--;
    if (status == AH_OK)
        status = ah__heap_check(eval->heap);
    if (status != AH_EINPUT || eval->failed)
        return status;
    eval->failed = true;
    return ah__fail_prefix(status, "%s: line %d", eval->name, line);
}

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

int ah__scope_new(struct ah_scope **out, struct ah_eval *eval, struct ah_scope *parent)
{
    AH_TRY(ah__heap_new(eval->heap, out, 1, sizeof **out));
    (*out)->parent = parent;
    return AH_OK;
}

static struct ah_variable *variable_in(struct ah_heap *heap, const struct ah_scope *scope, const char *name,
                                       size_t length)
{
    for (struct ah_variable *at = scope->first; at && ah__heap_touch(heap, VARIABLE_COST); at = at->next)
        if (at->length == length && memcmp(at->name, name, length) == 0)
            return at;
    return NULL;
}

int ah__scope_set(struct ah_eval *eval, struct ah_scope *scope, const char *name, size_t length, struct ah_datum value)
{
    struct ah_variable *variable = variable_in(eval->heap, scope, name, length);
    if (!variable) {
        AH_TRY(ah__heap_new(eval->heap, &variable, 1, sizeof *variable));
        *variable = (struct ah_variable){name, length, value, scope->first};
        scope->first = variable;
    }
    variable->value = value;
    return AH_OK;
}

int ah__scope_get(struct ah_datum *out, struct ah_eval *eval, const char *name, size_t length)
{
    for (const struct ah_scope *scope = eval->scope; scope; scope = scope->parent) {
        const struct ah_variable *variable = variable_in(eval->heap, scope, name, length);
        if (variable) {
            *out = variable->value;
            return AH_OK;
        }
    }
    const struct ah_datum *given = ah__datum_get(eval->heap, eval->variables, ah__datum_text(name, length));
    if (!given)
        return ah__function_find(out, name, length);
    *out = *given;
    return AH_OK;
}

/* Runs a body in a scope of its own. */
static int in_scope(struct ah_eval *eval, const struct ah_node *body)
{
    struct ah_scope *outside = eval->scope;
    AH_TRY(ah__scope_new(&eval->scope, eval, outside));
    int status = ah__eval_statements(eval, body);
    eval->scope = outside;
    return status;
}

int ah__eval_gather(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *body, struct ah_scope *scope)
{
    struct ah_buf gathered = {0}, *to = eval->to;
    struct ah_scope *outside = eval->scope;
    eval->to = &gathered;
    eval->scope = scope;
    int status = in_scope(eval, body);
    eval->to = to;
    eval->scope = outside;
    if (status == AH_OK)
        return ah__call_take(out, eval->heap, &gathered);
    ah__buf_free(&gathered);
    return status;
}

/* ---- setting ----------------------------------------------------------------------------------------------------- */

static int set_attribute(struct ah_eval *eval, const struct ah_node *target, struct ah_datum value)
{
    struct ah_datum space;
    AH_TRY(ah__eval(&space, eval, target->a));
    if (space.kind != AH_DATUM_NAMESPACE)
        return ah__fail(AH_EINPUT, "found '%.*s' set in a %s, expected a namespace", (int)target->length, target->text,
                        ah__datum_type(space));
    if (target->text[0] == '_')
        return ah__fail(AH_EINPUT, "a namespace found '%.*s', expected no name that begins with '_'",
                        (int)target->length, target->text);
    return ah__datum_set(&space, eval->heap, ah__datum_text(target->text, target->length), value);
}

static int set_target(struct ah_eval *eval, const struct ah_node *target, struct ah_datum value)
{
    struct ah_datum_list items;
    size_t place = 0;
    if (target->kind == AH_NODE_NAME)
        return ah__scope_set(eval, eval->scope, target->text, target->length, value);
    if (target->kind == AH_NODE_ATTRIBUTE)
        return set_attribute(eval, target, value);
    AH_TRY(ah__datum_items(&items, eval->heap, value));
    for (const struct ah_node *at = target->list; at; at = at->next, place++) {
        if (place == items.count)
            return ah__fail(AH_EINPUT, "found %zu values to unpack, expected more", items.count);
        AH_TRY(set_target(eval, at, items.items[place]));
    }
    return place == items.count ? AH_OK
                                : ah__fail(AH_EINPUT, "found %zu values to unpack, expected %zu", items.count, place);
}

static int set(struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum value;
    AH_TRY(ah__eval(&value, eval, node->b));
    return set_target(eval, node->a, value);
}

static int set_block(struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum text;
    AH_TRY(ah__eval_gather(&text, eval, node->body, eval->scope));
    return set_target(eval, node->a, text);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_data(struct ah_eval *eval, const struct ah_node *node)
{
    return ah__datum_str(eval->heap, eval->to, node->value);
}

static int write_value(struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum value;
    AH_TRY(ah__eval(&value, eval, node->a));
    return ah__datum_str(eval->heap, eval->to, value);
}

static int generation(struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_rendered *out = eval->out;
    size_t begin = eval->to->length;
    AH_TRY(in_scope(eval, node->body));
    if (eval->to != &out->text) {
        out->spans_hidden = true;
        return AH_OK;
    }
    AH_TRY(ah__grow(&out->spans, &out->span_room, out->span_count + 1, sizeof *out->spans));
    out->spans[out->span_count++] = (struct ah_text_span){begin, out->text.length};
    return AH_OK;
}

/* ---- flow -------------------------------------------------------------------------------------------------------- */

static int branch(struct ah_eval *eval, const struct ah_node *node)
{
    for (;;) {
        struct ah_datum truth;
        const struct ah_node *other = node->other;
        AH_TRY(ah__eval(&truth, eval, node->a));
        if (ah__datum_true(truth))
            return ah__eval_statements(eval, node->body);
        bool again = other && other->kind == AH_NODE_IF && !other->next; /* an elif, or a lone `if` in `else` */
        if (!again)
            return ah__eval_statements(eval, other);
        node = other;
    }
}

/* Keeps the items that the condition of `for ... if` lets pass. */
static int chosen(struct ah_datum_list *items, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_scope *outside = eval->scope;
    struct ah_datum good, kept;
    AH_TRY(ah__datum_list(&kept, eval->heap, AH_DATUM_LIST));
    for (size_t i = 0; i < items->count; i++) {
        AH_TRY(ah__scope_new(&eval->scope, eval, outside));
        int status = set_target(eval, node->a, items->items[i]);
        if (status == AH_OK)
            status = ah__eval(&good, eval, node->c);
        eval->scope = outside;
        AH_TRY(status);
        if (ah__datum_true(good))
            AH_TRY(ah__datum_append(&kept, eval->heap, items->items[i]));
    }
    *items = *kept.list;
    return AH_OK;
}

static int loop_once(struct ah_eval *eval, struct ah_loop *loop)
{
    static const char name[] = "loop";
    const struct ah_node *node = loop->node;
    AH_TRY(count_step(eval));
    AH_TRY(ah__scope_new(&eval->scope, eval, loop->scope));
    AH_TRY(
        ah__scope_set(eval, eval->scope, name, strlen(name), (struct ah_datum){.kind = AH_DATUM_LOOP, .inner = loop}));
    AH_TRY(set_target(eval, node->a, loop->items.items[loop->index]));
    return ah__eval_statements(eval, node->body);
}

static int loop(struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum items;
    struct ah_loop *loop;
    AH_TRY(ah__eval(&items, eval, node->b));
    AH_TRY(ah__heap_new(eval->heap, &loop, 1, sizeof *loop));
    *loop = (struct ah_loop){.node = node, .scope = eval->scope};
    AH_TRY(ah__datum_items(&loop->items, eval->heap, items));
    if (node->c)
        AH_TRY(chosen(&loop->items, eval, node));
    for (; loop->index < loop->items.count && eval->flow != AH_FLOW_BREAK; loop->index++) {
        int status = loop_once(eval, loop);
        eval->scope = loop->scope;
        eval->flow = eval->flow == AH_FLOW_CONTINUE ? AH_FLOW_ON : eval->flow;
        AH_TRY(status);
    }
    eval->flow = AH_FLOW_ON;
    return loop->items.count ? AH_OK : in_scope(eval, node->other);
}

static int flow(struct ah_eval *eval, const struct ah_node *node)
{
    eval->flow = node->kind == AH_NODE_BREAK ? AH_FLOW_BREAK : AH_FLOW_CONTINUE;
    return AH_OK;
}

static int macro_set(struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_macro *macro;
    AH_TRY(ah__heap_new(eval->heap, &macro, 1, sizeof *macro));
    *macro = (struct ah_macro){node, eval->scope};
    return ah__scope_set(eval, eval->scope, node->text, node->length,
                         (struct ah_datum){.kind = AH_DATUM_MACRO, .inner = macro});
}

int ah__eval_statements(struct ah_eval *eval, const struct ah_node *node)
{
    static int (*const rows[])(struct ah_eval * eval, const struct ah_node *node) = {
        [AH_NODE_DATA] = write_data, [AH_NODE_PRINT] = write_value,
        [AH_NODE_FOR] = loop,        [AH_NODE_IF] = branch,
        [AH_NODE_SET] = set,         [AH_NODE_SET_BLOCK] = set_block,
        [AH_NODE_MACRO] = macro_set, [AH_NODE_GENERATION] = generation,
        [AH_NODE_BREAK] = flow,      [AH_NODE_CONTINUE] = flow,
    };
    for (; node && eval->flow == AH_FLOW_ON; node = node->next) {
        int status = ah__eval_enter(eval);
        if (status == AH_OK)
            status = rows[node->kind](eval, node);
        AH_TRY(ah__eval_leave(eval, status, node->line));
    }
    return AH_OK;
}
