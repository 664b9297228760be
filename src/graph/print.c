#include <string.h>

#include "base/format.h"
#include "graph/graph.h"

enum { LINE_BYTES = 256 };

static void add(char *line, const char *text)
{
    size_t used = strlen(line);
    snprintf(line + used, LINE_BYTES - used, "%s", text);
}

static void add_values(char *line, const int *values, int count)
{
    char text[16];
    for (int i = 0; i < count; i++)
        if (values[i] >= 0) {
            snprintf(text, sizeof text, "%s%%%d", i ? ", " : "", values[i]);
            add(line, text);
        }
}

static void add_attr(char *line, const struct ah_node *node)
{
    char text[AH_ATTR_TEXT_BYTES];
    ah__attr_format(text, sizeof text, &node->attr);
    add(line, text[0] ? ", " : "");
    add(line, text);
}

/* Bytes of the memory that a node needs: outputs made in place cost nothing. */
static int64_t node_bytes(const struct ah_graph *graph, const struct ah_node *node)
{
    int64_t bytes = 0;
    for (int i = 0; i < ah__op_table[node->op]->outputs; i++)
        if (graph->values[node->out[i]].storage == node->out[i])
            bytes += ah__value_bytes(&graph->values[node->out[i]]);
    return bytes;
}

static void print_node(const struct ah_graph *graph, const struct ah_node *node, FILE *to)
{
    const struct ah_op_row *row = ah__op_table[node->op];
    const struct ah_meta *meta = &graph->values[node->out[0]].meta;
    char line[LINE_BYTES] = "", shape[96], path[LINE_BYTES];
    add_values(line, node->out, row->outputs);
    add(line, " = ");
    add(line, row->name);
    add(line, "(");
    add_values(line, node->in, row->inputs);
    add_attr(line, node);
    add(line, ah__op_inplace_output(node->op) >= 0 ? ") in place" : ")");
    ah__fprintf(to, "%-52s %-4s %-18s %14lld B %10.3g flop  %s\n", line, ah__dtype_name(meta->dtype),
                ah__shape_format(shape, sizeof shape, &meta->shape), (long long)node_bytes(graph, node),
                ah__node_flops(graph, node), ah__graph_scope_path(graph, node->scope, path, sizeof path));
}

static void print_entering(const struct ah_graph *graph, int id, FILE *to)
{
    static const char *const names[] = {"tokens", "targets", "positions", "cache", "param", "input"};
    const struct ah_value *value = &graph->values[id];
    char shape[96], line[LINE_BYTES];
    if (value->whole != id)
        snprintf(line, sizeof line, "%%%d = rows of %%%d", id, value->whole);
    else
        snprintf(line, sizeof line, "%%%d = %s %s", id, names[value->kind], value->name ? value->name : "");
    fprintf(to, "%-52s %-4s %-18s %14lld B\n", line, ah__dtype_name(value->meta.dtype),
            ah__shape_format(shape, sizeof shape, &value->meta.shape), (long long)ah__value_bytes(value));
}

int ah_graph_print(const struct ah_graph *graph, FILE *to)
{
    int64_t params = 0, elements = 0, activation_bytes = 0;
    double flops = 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        const struct ah_value *value = &graph->values[i];
        if (value->producer < 0)
            print_entering(graph, (int)i, to);
        if (value->name) {
            params++;
            elements += ah__shape_count(&value->meta.shape);
        }
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        print_node(graph, &graph->nodes[i], to);
        activation_bytes += node_bytes(graph, &graph->nodes[i]);
        flops += ah__node_flops(graph, &graph->nodes[i]);
    }
    ah__fprintf(to, "%zu operators, %lld parameters (%lld elements), %lld bytes of activations, %.4g flop forward\n",
                graph->node_count, (long long)params, (long long)elements, (long long)activation_bytes, flops);
    return ferror(to) ? ah__fail(AH_EIO, "printing the graph failed") : AH_OK;
}
