#include "model/parts.h"

struct ah_tensor ah__part_linear(struct ah_graph *graph, const char *name, struct ah_tensor x,
                                 const struct ah_part_linear *linear)
{
    struct ah_shape shape = ah_shape2(linear->out, linear->in);
    struct ah_tensor bias = {-1};
    if (linear->in_first)
        shape = ah_shape2(linear->in, linear->out);
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", shape, AH_INIT_NORMAL, (float)linear->std);
    if (linear->bias)
        bias = ah_graph_param(graph, "bias", ah_shape1(linear->out), AH_INIT_ZEROS, 0);
    x = ah_graph_linear(graph, x, weight, bias, !linear->in_first);
    ah_graph_scope_pop(graph);
    return x;
}

struct ah_tensor ah__part_experts(struct ah_graph *graph, const char *name, struct ah_tensor x,
                                  const struct ah_part_experts *experts, const struct ah_routes *routes)
{
    struct ah_shape shape = ah_shape3(experts->count, experts->out, experts->in);
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", shape, AH_INIT_NORMAL, (float)experts->std);
    struct ah_tensor bias = {-1};
    if (experts->bias)
        bias = ah_graph_param(graph, "bias", ah_shape2(experts->count, experts->out), AH_INIT_ZEROS, 0);
    x = ah_graph_grouped_linear(graph, x, weight, bias, routes);
    ah_graph_scope_pop(graph);
    return x;
}

struct ah_tensor ah__part_layernorm(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t width,
                                    double eps)
{
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape1(width), AH_INIT_ONES, 0);
    struct ah_tensor bias = ah_graph_param(graph, "bias", ah_shape1(width), AH_INIT_ZEROS, 0);
    x = ah_graph_layernorm(graph, x, weight, bias, (float)eps);
    ah_graph_scope_pop(graph);
    return x;
}

struct ah_tensor ah__part_rmsnorm(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t width,
                                  double eps, double offset)
{
    enum ah_init init = offset > 0 ? AH_INIT_ZEROS : AH_INIT_ONES;
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape1(width), init, 0);
    x = ah_graph_rmsnorm_offset(graph, x, weight, (float)eps, (float)offset);
    ah_graph_scope_pop(graph);
    return x;
}

struct ah_tensor ah__part_table(struct ah_graph *graph, const char *name, int64_t rows, int64_t width, double std)
{
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape2(rows, width), AH_INIT_NORMAL, (float)std);
    ah_graph_scope_pop(graph);
    return weight;
}

struct ah_tensor ah__part_activation(struct ah_graph *graph, enum ah_activation activation, struct ah_tensor x)
{
    switch (activation) {
    case AH_ACTIVATION_GELU:
        return ah_graph_gelu_erf(graph, x);
    case AH_ACTIVATION_GELU_TANH:
        return ah_graph_gelu(graph, x);
    case AH_ACTIVATION_RELU:
        break;
    }
    return ah_graph_relu(graph, x);
}
