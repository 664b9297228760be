/* Linear layers, and the low-rank adapters beside them. */
#include <math.h>
#include <stdio.h>

#include "graph/graph.h"
#include "graph/tuning.h"

/* Records x [.., I] times weight [O, I], without an adapter. */
static struct ah_tensor product(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight)
{
    return ah__graph_record(graph, AH_OP_LINEAR, (struct ah_attr){.out_in = true}, ah__values(x.id, weight.id));
}

static struct ah_tensor factor(struct ah_graph *graph, const char *weight, const char *which, struct ah_shape shape,
                               enum ah_init init)
{
    size_t length;
    const char *module = ah__graph_module(weight, &length);
    double in = (double)shape.dim[shape.rank - 1], std = 1.0 / sqrt(3.0 * in); /* Kaiming's uniform as PEFT takes it */
    char name[256];
    int used = snprintf(name, sizeof name, "%.*s.%s.weight", (int)(module + length - weight), weight, which);
    if (used < 0 || (size_t)used >= sizeof name)
        name[0] = 0; /* too long: an empty name is refused */
    return ah__graph_param_named(graph, name, shape, init, init == AH_INIT_UNIFORM ? (float)std : 0);
}

/* Records both factors of a weight. Layers that share the weight share them. */
static int factors(struct ah_adapter *out, struct ah_graph *graph, int whole, bool out_in)
{
    const struct ah_value *weight = &graph->values[whole];
    const char *name = weight->name;
    int64_t in = weight->meta.shape.dim[out_in ? 1 : 0], outs = weight->meta.shape.dim[out_in ? 0 : 1];
    *out = (struct ah_adapter){.whole = whole, .x = -1};
    out->a = factor(graph, name, "lora_A", ah_shape2(graph->lora_rank, in), AH_INIT_UNIFORM).id;
    out->up = factor(graph, name, "lora_B", ah_shape2(outs, graph->lora_rank), AH_INIT_ZEROS).id;
    AH_TRY(ah__grow(&graph->adapters, &graph->adapter_capacity, graph->adapter_count + 1, sizeof *graph->adapters));
    graph->adapters[graph->adapter_count++] = *out;
    return AH_OK;
}

/* Finds or makes the adapter of a weight and records its first factor's product with x, scaled. */
static int find(struct ah_adapter *out, struct ah_graph *graph, struct ah_tensor x, int whole, bool out_in)
{
    size_t at = graph->adapter_count;
    while (at > 0 && graph->adapters[at - 1].whole != whole)
        at--;
    if (at == 0) {
        AH_TRY(factors(out, graph, whole, out_in));
        at = graph->adapter_count;
    }
    struct ah_adapter *adapter = &graph->adapters[at - 1];
    if (adapter->x != x.id) {
        struct ah_tensor h = product(graph, x, (struct ah_tensor){adapter->a});
        if (graph->lora_scale < 1 || graph->lora_scale > 1)
            h = ah_graph_scale(graph, h, graph->lora_scale);
        adapter->x = x.id;
        adapter->down = h.id;
    }
    *out = *adapter;
    return AH_OK;
}

/* Adds the adapter of `weight` to y, the linear layer's result for x; returns the sum, or y itself without an
 * adapter. */
static struct ah_tensor adapt(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight, bool out_in,
                              struct ah_tensor y)
{
    if (!graph->lora_rank || graph->status != AH_OK)
        return y;
    const struct ah_value *value = &graph->values[weight.id];
    int whole = value->whole;
    int64_t rows = value->meta.shape.dim[0];
    struct ah_adapter adapter;
    bool adapts;
    int status = ah__graph_adapts(&adapts, graph, graph->values[whole].name, true);
    if (status == AH_OK && !adapts)
        return y;
    if (status == AH_OK)
        status = find(&adapter, graph, x, whole, out_in);
    if (status != AH_OK)
        return ah__graph_remember(graph, status, "adapter");
    struct ah_tensor up = {adapter.up};
    if (whole != weight.id)
        up = ah_graph_param_rows(graph, up, rows);
    return ah_graph_add_inplace(graph, y, product(graph, (struct ah_tensor){adapter.down}, up));
}

struct ah_tensor ah_graph_linear(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                 struct ah_tensor bias, bool weight_is_out_in)
{
    struct ah_attr attr = {.out_in = weight_is_out_in};
    struct ah_tensor y = ah__graph_record(graph, AH_OP_LINEAR, attr, ah__values(x.id, weight.id, bias.id));
    return adapt(graph, x, weight, weight_is_out_in, y);
}

/* ---- experts ----------------------------------------------------------------------------------------------------- */

static struct ah_tensor grouped(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                struct ah_tensor bias, const struct ah_routes *routes)
{
    struct ah_values in = ah__values(x.id, weight.id, routes->ends.id, bias.id);
    return ah__graph_record(graph, AH_OP_GROUPED_LINEAR, (struct ah_attr){0}, in);
}

/* Adds an adapter of each expert to y: their factors are [E, rank, I] and [E, O, rank]. */
static struct ah_tensor adapt_experts(struct ah_graph *graph, struct ah_tensor x, int weight,
                                      const struct ah_routes *routes, struct ah_tensor y)
{
    const char *name = graph->values[graph->values[weight].whole].name;
    const int64_t *dim = graph->values[weight].meta.shape.dim, experts = dim[0], outs = dim[1], ins = dim[2];
    struct ah_tensor a = factor(graph, name, "lora_A", ah_shape3(experts, graph->lora_rank, ins), AH_INIT_UNIFORM);
    struct ah_tensor b = factor(graph, name, "lora_B", ah_shape3(experts, outs, graph->lora_rank), AH_INIT_ZEROS);
    const struct ah_tensor none = {-1};
    struct ah_tensor h = grouped(graph, x, a, none, routes);
    if (graph->lora_scale < 1 || graph->lora_scale > 1)
        h = ah_graph_scale(graph, h, graph->lora_scale);
    return ah_graph_add_inplace(graph, y, grouped(graph, h, b, none, routes));
}

struct ah_tensor ah_graph_grouped_linear(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                         struct ah_tensor bias, const struct ah_routes *routes)
{
    bool adapts;
    struct ah_tensor y = grouped(graph, x, weight, bias, routes);
    if (!graph->lora_rank || graph->status != AH_OK)
        return y;
    const char *name = graph->values[graph->values[weight.id].whole].name;
    int status = ah__graph_adapts(&adapts, graph, name, false);
    if (status != AH_OK)
        return ah__graph_remember(graph, status, "adapter");
    return adapts ? adapt_experts(graph, x, weight.id, routes, y) : y;
}
