#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

const char *const ah__value_names[] = {
    [AH_VALUE_TOKENS] = "the token ids", [AH_VALUE_TARGETS] = "the targets", [AH_VALUE_POSITIONS] = "the positions",
    [AH_VALUE_CACHE] = "a cache",        [AH_VALUE_PARAM] = "a parameter",   [AH_VALUE_ACTIVATION] = "an activation",
    [AH_VALUE_SCALE] = "a scale",
};

enum { MAX_ELEMENTS_LOG2 = 48 }; /* limit of one value's elements; keeps byte counts far inside int64_t */

int ah_graph_new(struct ah_graph **out, enum ah_dtype compute)
{
    if (compute != AH_F32 && compute != AH_BF16 && compute != AH_F16)
        return ah__fail(AH_EINPUT, "compute dtype: found %d, expected AH_F32, AH_BF16 or AH_F16", (int)compute);
    struct ah_graph *graph;
    AH_TRY(ah__new(&graph, 1, sizeof *graph));
    graph->compute = compute;
    graph->current_scope = graph->tokens = graph->targets = graph->positions = graph->loss = -1;
    *out = graph;
    return AH_OK;
}

void ah_graph_free(struct ah_graph *graph)
{
    if (!graph)
        return;
    ah__arena_free(&graph->arena);
    ah__free(graph->values);
    ah__free(graph->nodes);
    ah__free(graph->scopes);
    ah__free(graph->linears);
    ah__free(graph->adapters);
    ah__free(graph->message);
    ah__free(graph);
}

int ah__graph_top_scope(const struct ah_graph *graph, int scope)
{
    while (scope >= 0 && graph->scopes[scope].parent >= 0)
        scope = graph->scopes[scope].parent;
    return scope;
}

int ah__scope_number(const char *name, size_t *prefix)
{
    enum { DIGITS_MOST = 6 };
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name)
        return -1;
    size_t digits = strspn(dot + 1, "0123456789");
    if (!digits || digits > DIGITS_MOST || dot[1 + digits] || (digits > 1 && dot[1] == '0'))
        return -1;
    if (prefix)
        *prefix = (size_t)(dot - name);
    return atoi(dot + 1);
}

char *ah__graph_scope_path(const struct ah_graph *graph, int scope, char *text, size_t size)
{
    if (scope < 0) {
        snprintf(text, size, "(top level)");
        return text;
    }
    int parent = graph->scopes[scope].parent;
    size_t used = 0;
    if (parent >= 0) {
        ah__graph_scope_path(graph, parent, text, size);
        used = strlen(text);
    }
    snprintf(text + used, size - used, "%s%s", used ? "." : "", graph->scopes[scope].name);
    return text;
}

bool ah__graph_is_out_in(const struct ah_graph *graph, int weight)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct ah_node *node = &graph->nodes[n];
        bool linear = node->op == AH_OP_LINEAR, grouped = node->op == AH_OP_GROUPED_LINEAR;
        if ((linear || grouped) && graph->values[node->in[1]].whole == weight)
            return grouped || node->attr.out_in;
    }
    return false;
}

int64_t ah__value_bytes(const struct ah_value *value)
{
    return ah__shape_count(&value->meta.shape) * ah__dtype_bytes(value->meta.dtype);
}

/* An absent optional input has rank 0. */
static void node_metas(const struct ah_graph *graph, const int *values, int count, struct ah_meta *metas)
{
    for (int i = 0; i < count; i++)
        metas[i] = values[i] < 0 ? (struct ah_meta){0} : graph->values[values[i]].meta;
}

double ah__node_flops(const struct ah_graph *graph, const struct ah_node *node)
{
    struct ah_meta in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS];
    node_metas(graph, node->in, AH_OP_MAX_INPUTS, in);
    node_metas(graph, node->out, AH_OP_MAX_OUTPUTS, out);
    return ah__op_table[node->op]->flops(in, out, &node->attr);
}

static int check_shape(const struct ah_shape *shape)
{
    double elements = 1;
    bool ok = shape->rank >= 1 && shape->rank <= AH_MAX_RANK;
    for (int i = 0; ok && i < shape->rank; i++) {
        ok = shape->dim[i] >= 1;
        elements *= (double)shape->dim[i];
    }
    char text[96];
    if (ok && elements <= (double)(INT64_C(1) << MAX_ELEMENTS_LOG2))
        return AH_OK;
    if (shape->rank < 0 || shape->rank > AH_MAX_RANK)
        return ah__fail(AH_EINPUT, "rank: found %d, expected 1 to %d", shape->rank, AH_MAX_RANK);
    return ah__fail(AH_EINPUT, "shape: found %s, expected positive dimensions and at most 2^%d elements",
                    ah__shape_format(text, sizeof text, shape), MAX_ELEMENTS_LOG2);
}

int ah__graph_value(struct ah_graph *graph, int *out, const struct ah_value *value)
{
    AH_TRY(check_shape(&value->meta.shape));
    AH_TRY(ah__grow(&graph->values, &graph->value_capacity, graph->value_count + 1, sizeof *graph->values));
    int id = (int)graph->value_count++;
    graph->values[id] = *value;
    graph->values[id].storage = graph->values[id].whole = id;
    graph->values[id].producer = graph->values[id].overwritten_by = -1;
    graph->values[id].scope = graph->current_scope;
    *out = id;
    return AH_OK;
}

static int check_inputs(const struct ah_graph *graph, enum ah_op op, const int *in)
{
    char path[256];
    for (int i = 0; i < ah__op_table[op]->inputs; i++) {
        int by = in[i] < 0 ? -1 : graph->values[in[i]].overwritten_by;
        if (by >= 0)
            return ah__fail(AH_EINPUT, "input %d, value %%%d, was overwritten in place by %s in %s", i, in[i],
                            ah__op_table[graph->nodes[by].op]->name,
                            ah__graph_scope_path(graph, graph->nodes[by].scope, path, sizeof path));
    }
    return AH_OK;
}

static int node_append(struct ah_graph *graph, const struct ah_node *node, const struct ah_meta *metas)
{
    const struct ah_op_row *row = ah__op_table[node->op];
    int in_place = ah__op_inplace_output(node->op);
    AH_TRY(ah__grow(&graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes));
    struct ah_node made = *node;
    int number = (int)graph->node_count;
    for (int i = 0; i < row->outputs; i++) {
        struct ah_value value = {.meta = metas[i],
                                 .kind = row->out[i].kind == AH_OPERAND_CACHE ? AH_VALUE_CACHE : AH_VALUE_ACTIVATION};
        AH_TRY(ah__graph_value(graph, &made.out[i], &value));
        graph->values[made.out[i]].producer = number;
    }
    if (in_place >= 0) {
        graph->values[made.out[in_place]].storage = graph->values[made.in[0]].storage;
        graph->values[made.in[0]].overwritten_by = number;
    }
    graph->nodes[graph->node_count++] = made;
    return AH_OK;
}

/* Inputs left out at the end of `in` become -1, as do all outputs until they are made. */
static int node_init(struct ah_node *node, const struct ah_graph *graph, enum ah_op op, const struct ah_attr *attr,
                     struct ah_values in)
{
    const struct ah_op_row *row = ah__op_table[op];
    char text[AH_ATTR_TEXT_BYTES];
    if (in.count > row->inputs)
        return ah__fail(AH_EINTERNAL, "%s: found %d inputs, expected at most %d", row->name, in.count, row->inputs);
    if (ah__attr_set(attr) & ~(unsigned)row->attrs)
        return ah__fail(AH_EINTERNAL, "%s: found attributes that it does not have: %s", row->name,
                        ah__attr_format(text, sizeof text, attr));
    *node = (struct ah_node){.op = op, .attr = *attr, .scope = graph->current_scope};
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        node->in[i] = i < in.count ? in.value[i] : -1;
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        node->out[i] = -1;
    return AH_OK;
}

int ah__graph_node(struct ah_graph *graph, enum ah_op op, const struct ah_attr *attr, struct ah_values in,
                   const struct ah_meta *given, int *out)
{
    const struct ah_op_row *row = ah__op_table[op];
    struct ah_node node;
    struct ah_meta in_meta[AH_OP_MAX_INPUTS], out_meta[AH_OP_MAX_OUTPUTS] = {0};
    AH_TRY(node_init(&node, graph, op, attr, in));
    AH_TRY(check_inputs(graph, op, node.in));
    node_metas(graph, node.in, AH_OP_MAX_INPUTS, in_meta);
    if (given)
        out_meta[0] = *given;
    AH_TRY(row->infer(out_meta, in_meta, attr));
    AH_TRY(node_append(graph, &node, out_meta));
    memcpy(out, graph->nodes[graph->node_count - 1].out, (size_t)row->outputs * sizeof *out);
    return AH_OK;
}

static void touch(struct ah_live *live, const struct ah_graph *graph, int value, int at)
{
    if (value < 0)
        return;
    struct ah_live *span = &live[graph->values[value].storage];
    if (span->first < 0)
        span->first = at;
    span->last = at;
}

void ah__graph_live(struct ah_live *live, const struct ah_graph *graph, const int *nodes, int count)
{
    for (size_t i = 0; i < graph->value_count; i++)
        live[i] = (struct ah_live){-1, -1};
    for (int at = 0; at < count; at++) {
        const struct ah_node *node = &graph->nodes[nodes[at]];
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
            touch(live, graph, node->in[i], at);
        for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
            touch(live, graph, node->out[i], at);
    }
}
