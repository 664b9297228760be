/* Closes a recording: checks the rules that concern the whole graph. */
#include "graph/graph.h"
#include "graph/tuning.h"

enum { PATH_BYTES = 256 };

static int check_loss(const struct ah_graph *graph, int loss)
{
    if (loss < 0 || (size_t)loss >= graph->value_count)
        return ah__fail(AH_EINPUT, "loss: found %d, expected a value of this graph", loss);
    int producer = graph->values[loss].producer;
    if (producer < 0)
        return ah__fail(AH_EINPUT,
                        "loss: found %s of the graph, expected the scalar of cross_entropy or linear_cross_entropy",
                        ah__value_names[graph->values[loss].kind]);
    const struct ah_op_row *row = ah__op_table[graph->nodes[producer].op];
    if (row->out[0].kind != AH_OPERAND_LOSS || graph->nodes[producer].out[0] != loss)
        return ah__fail(AH_EINPUT,
                        "loss: found a result of %s, expected the scalar of cross_entropy or linear_cross_entropy",
                        row->name);
    return AH_OK;
}

/* A parameter that is read by its rows: all of them must be taken, and no operator may also read the whole, so that the
 * parts give each element of the gradient exactly once. */
static int check_taken(const struct ah_value *value, bool used)
{
    if (value->taken < value->meta.shape.dim[0])
        return ah__fail(AH_EINPUT, "parameter '%s': found %lld rows taken, expected all %lld", value->name,
                        (long long)value->taken, (long long)value->meta.shape.dim[0]);
    return used ? ah__fail(AH_EINPUT, "parameter '%s' is read whole and by its rows, expected one of both", value->name)
                : AH_OK;
}

/* Every operator must reach the loss and every parameter must be read, or its gradient would be undefined. */
static int check_used(const struct ah_graph *graph, const bool *used)
{
    char path[PATH_BYTES];
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct ah_node *node = &graph->nodes[n];
        if (!used[node->out[0]] && ah__op_table[node->op]->out[0].kind != AH_OPERAND_CACHE)
            return ah__fail(AH_EINPUT, "%s: %s: its result %%%d is never used",
                            ah__graph_scope_path(graph, node->scope, path, sizeof path), ah__op_table[node->op]->name,
                            node->out[0]);
    }
    for (size_t v = 0; v < graph->value_count; v++) {
        const struct ah_value *value = &graph->values[v];
        if (value->taken > 0)
            AH_TRY(check_taken(value, used[v]));
        else if (value->producer < 0 && !used[v])
            return ah__fail(AH_EINPUT, "%s%s%s is never used", ah__value_names[value->kind], value->name ? " " : "",
                            value->name ? value->name : "");
    }
    return AH_OK;
}

static int check_reached(const struct ah_graph *graph, int loss)
{
    bool *used;
    AH_TRY(ah__new(&used, graph->value_count, sizeof *used));
    used[loss] = true;
    for (size_t n = 0; n < graph->node_count; n++)
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
            if (graph->nodes[n].in[i] >= 0)
                used[graph->nodes[n].in[i]] = true;
    int status = check_used(graph, used);
    ah__free(used);
    return status;
}

static int check_whole(const struct ah_graph *graph, int loss)
{
    char path[PATH_BYTES];
    if (graph->finished)
        return ah__fail(AH_EINPUT, "ah_graph_finish() was called twice");
    if (graph->current_scope >= 0)
        return ah__fail(AH_EINPUT, "scope '%s' is still open at the end",
                        ah__graph_scope_path(graph, graph->current_scope, path, sizeof path));
    if (graph->tokens < 0 || graph->targets < 0)
        return ah__fail(AH_EINPUT, "the graph has no %s", graph->tokens < 0 ? "tokens" : "targets");
    AH_TRY(check_loss(graph, loss));
    return check_reached(graph, loss);
}

int ah_graph_finish(struct ah_graph *graph, struct ah_tensor loss)
{
    if (graph->status != AH_OK)
        return ah__fail(graph->status, "%s", graph->message ? graph->message : "out of host memory");
    AH_TRY(check_whole(graph, loss.id));
    AH_TRY(ah__graph_tuning_check(graph));
    graph->loss = loss.id;
    graph->finished = true;
    return AH_OK;
}
