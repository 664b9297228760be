/* The recording calls of mixtures of experts but for their products, which may have adapters (linear.c). */
#include "graph/graph.h"

struct ah_routes ah_graph_route(struct ah_graph *graph, struct ah_tensor logits, int picks, bool normalised)
{
    const struct ah_attr attr = {.picks = picks, .normalised = normalised};
    int out[AH_OP_MAX_OUTPUTS] = {-1, -1, -1, -1};
    ah__graph_record_all(out, graph, AH_OP_ROUTE, attr, ah__values(logits.id));
    return (struct ah_routes){.weights = {out[0]}, .slots = {out[1]}, .source = {out[2]}, .ends = {out[3]}};
}

struct ah_tensor ah_graph_dispatch(struct ah_graph *graph, struct ah_tensor x, const struct ah_routes *routes)
{
    struct ah_values in = ah__values(x.id, routes->slots.id, routes->source.id);
    return ah__graph_record(graph, AH_OP_DISPATCH, (struct ah_attr){0}, in);
}

struct ah_tensor ah_graph_scale_rows(struct ah_graph *graph, struct ah_tensor x, const struct ah_routes *routes)
{
    struct ah_values in = ah__values(x.id, routes->weights.id, routes->source.id);
    return ah__graph_record(graph, AH_OP_SCALE_ROWS, (struct ah_attr){0}, in);
}

struct ah_tensor ah_graph_gate_rows(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor gate)
{
    return ah__graph_record(graph, AH_OP_GATE_ROWS, (struct ah_attr){0}, ah__values(x.id, gate.id));
}

struct ah_tensor ah_graph_shares(struct ah_graph *graph, struct ah_tensor logits, const struct ah_routes *routes)
{
    struct ah_values in = ah__values(logits.id, routes->weights.id, routes->slots.id, routes->ends.id);
    return ah__graph_record(graph, AH_OP_SHARES, (struct ah_attr){0}, in);
}

struct ah_tensor ah_graph_combine(struct ah_graph *graph, struct ah_tensor x, const struct ah_routes *routes)
{
    struct ah_values in = ah__values(x.id, routes->slots.id, routes->source.id);
    return ah__graph_record(graph, AH_OP_COMBINE, (struct ah_attr){0}, in);
}
