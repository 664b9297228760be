/* The recording calls of autohete.h. The first wrong one is kept in the graph; all later ones do nothing. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/tuning.h"
#include "op/rotary.h"

enum { PATH_BYTES = 256 };

static const struct ah_tensor nothing = {-1};

/* Keeps the failure that ah_error() holds, after putting its scope and `what` in front of the message. */
struct ah_tensor ah__graph_remember(struct ah_graph *graph, int status, const char *what)
{
    if (graph->status != AH_OK)
        return nothing;
    char path[PATH_BYTES];
    if (status == AH_EINPUT)
        ah__fail_prefix(status, "%s: %s", ah__graph_scope_path(graph, graph->current_scope, path, sizeof path), what);
    graph->status = status;
    graph->finished = false;
    if (ah__strdup(&graph->message, ah_error()) != AH_OK)
        graph->status = AH_ENOMEM;
    return nothing;
}

static bool recording(struct ah_graph *graph, const char *what)
{
    if (graph->finished)
        ah__graph_remember(graph, ah__fail(AH_EINPUT, "recorded after ah_graph_finish()"), what);
    return graph->status == AH_OK;
}

/* ---- scopes ----------------------------------------------------------------------------------------------------- */

static int scope_enter(struct ah_graph *graph, const char *name)
{
    size_t length = strlen(name);
    if (!length || name[0] == '.' || name[length - 1] == '.')
        return ah__fail(AH_EINPUT,
                        "name: found '%s', expected a name that is not empty and neither begins nor ends with '.'",
                        name);
    for (size_t i = 0; i < graph->scope_count; i++)
        if (graph->scopes[i].parent == graph->current_scope && strcmp(graph->scopes[i].name, name) == 0) {
            graph->current_scope = (int)i;
            return AH_OK;
        }
    AH_TRY(ah__grow(&graph->scopes, &graph->scope_capacity, graph->scope_count + 1, sizeof *graph->scopes));
    struct ah_scope scope = {.parent = graph->current_scope};
    AH_TRY(ah__arena_strdup(&graph->arena, &scope.name, name));
    graph->scopes[graph->scope_count] = scope;
    graph->current_scope = (int)graph->scope_count++;
    return AH_OK;
}

void ah_graph_scope_push(struct ah_graph *graph, const char *format, ...)
{
    if (!recording(graph, "scope"))
        return;
    char name[PATH_BYTES], path[PATH_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(name, sizeof name, format, args);
    va_end(args);
    int parent = graph->current_scope;
    size_t above = parent < 0 ? 0 : strlen(ah__graph_scope_path(graph, parent, path, sizeof path));
    int status;
    if (length < 0 || (size_t)length + above + 2 > PATH_BYTES / 2)
        status = ah__fail(AH_EINPUT, "name is longer than %d bytes", PATH_BYTES / 2);
    else
        status = scope_enter(graph, name);
    if (status != AH_OK)
        ah__graph_remember(graph, status, "scope");
}

void ah_graph_scope_pop(struct ah_graph *graph)
{
    if (!recording(graph, "scope"))
        return;
    if (graph->current_scope < 0)
        ah__graph_remember(graph, ah__fail(AH_EINPUT, "popped more often than pushed"), "scope");
    else
        graph->current_scope = graph->scopes[graph->current_scope].parent;
}

/* ---- inputs and parameters -------------------------------------------------------------------------------------- */

static struct ah_tensor ids(struct ah_graph *graph, int *out, enum ah_value_kind kind, int64_t batch, int64_t seq)
{
    if (!recording(graph, ah__value_names[kind]))
        return nothing;
    struct ah_value value = {.meta = {AH_I32, ah_shape2(batch, seq)}, .kind = kind};
    int status = *out < 0 ? ah__graph_value(graph, out, &value)
                          : ah__fail(AH_EINPUT, "recorded twice, expected once in a graph");
    return status == AH_OK ? (struct ah_tensor){*out} : ah__graph_remember(graph, status, ah__value_names[kind]);
}

struct ah_tensor ah_graph_tokens(struct ah_graph *graph, int64_t batch, int64_t seq)
{
    return ids(graph, &graph->tokens, AH_VALUE_TOKENS, batch, seq);
}

struct ah_tensor ah_graph_targets(struct ah_graph *graph, int64_t batch, int64_t seq)
{
    return ids(graph, &graph->targets, AH_VALUE_TARGETS, batch, seq);
}

/* Returns the positions, an input that the first operator in need of it records; -1 if a token's place is its position.
 * Also -1 if no tokens are recorded, which the next operator reports. */
static int positions_of(struct ah_graph *graph)
{
    struct ah_value value = {.kind = AH_VALUE_POSITIONS};
    bool wanted = graph->packed || graph->decodes;
    if (!wanted || graph->tokens < 0 || graph->positions >= 0 || !recording(graph, "positions"))
        return wanted ? graph->positions : -1;
    value.meta = graph->values[graph->tokens].meta;
    int status = ah__graph_value(graph, &graph->positions, &value);
    if (status != AH_OK)
        ah__graph_remember(graph, status, "positions");
    return graph->positions;
}

static int param_record(struct ah_graph *graph, int *out, const char *full, const struct ah_value *value)
{
    struct ah_value made = *value;
    for (size_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].name && strcmp(graph->values[i].name, full) == 0)
            return ah__fail(AH_EINPUT, "'%s' is recorded twice", full);
    if (!isfinite(value->init_std) || value->init_std < 0)
        return ah__fail(AH_EINPUT, "'%s': std: found %g, expected a number of at least 0", full,
                        (double)value->init_std);
    AH_TRY(ah__arena_strdup(&graph->arena, &made.name, full));
    return ah__graph_value(graph, out, &made);
}

/* "h.3.attn.weight" of "weight" in the scope "h.3.attn". */
static int full_name(char full[PATH_BYTES], const struct ah_graph *graph, const char *name)
{
    full[0] = 0;
    if (graph->current_scope >= 0)
        ah__graph_scope_path(graph, graph->current_scope, full, PATH_BYTES);
    size_t used = strlen(full), length = strlen(name);
    if (!length || used + length + 2 > PATH_BYTES)
        return ah__fail(AH_EINPUT, "name: found %zu bytes, expected 1 to %zu", length, PATH_BYTES - used - 2);
    snprintf(full + used, PATH_BYTES - used, "%s%s", used ? "." : "", name);
    return AH_OK;
}

struct ah_tensor ah__graph_param_named(struct ah_graph *graph, const char *name, struct ah_shape shape,
                                       enum ah_init init, float std)
{
    if (!recording(graph, "parameter"))
        return nothing;
    struct ah_value value = {
        .meta = {graph->compute, shape}, .kind = AH_VALUE_PARAM, .adapter = true, .init = init, .init_std = std};
    int id = -1, status = name[0] ? param_record(graph, &id, name, &value)
                                  : ah__fail(AH_EINPUT, "name: found none, expected 1 to %d bytes", PATH_BYTES - 2);
    return status == AH_OK ? (struct ah_tensor){id} : ah__graph_remember(graph, status, "parameter");
}

struct ah_tensor ah_graph_param(struct ah_graph *graph, const char *name, struct ah_shape shape, enum ah_init init,
                                float std)
{
    if (!recording(graph, "parameter"))
        return nothing;
    struct ah_value value = {.meta = {graph->compute, shape}, .kind = AH_VALUE_PARAM, .init = init, .init_std = std};
    char full[PATH_BYTES];
    int id = -1, status = full_name(full, graph, name);
    if (status == AH_OK) {
        value.frozen = ah__graph_freezes(graph, full);
        status = param_record(graph, &id, full, &value);
    }
    if (status == AH_OK && !graph->first_param)
        graph->first_param = graph->values[id].name;
    return status == AH_OK ? (struct ah_tensor){id} : ah__graph_remember(graph, status, "parameter");
}

static int rows_record(struct ah_graph *graph, int *out, int whole, int64_t rows)
{
    if (whole < 0 || (size_t)whole >= graph->value_count || !graph->values[whole].name)
        return ah__fail(AH_EINPUT, "found %d, expected a parameter of this graph", whole);
    struct ah_value part = graph->values[whole];
    int64_t *dim = part.meta.shape.dim, left = dim[0] - part.taken;
    if (rows < 1 || rows > left)
        return ah__fail(AH_EINPUT, "'%s': found %lld rows, expected 1 to the %lld that are left", part.name,
                        (long long)rows, (long long)left);
    part.first = part.taken * (ah__shape_count(&part.meta.shape) / dim[0]);
    part.name = NULL;
    part.taken = 0;
    dim[0] = rows;
    AH_TRY(ah__graph_value(graph, out, &part));
    graph->values[*out].whole = whole;
    graph->values[whole].taken += rows;
    return AH_OK;
}

struct ah_tensor ah_graph_param_rows(struct ah_graph *graph, struct ah_tensor whole, int64_t rows)
{
    if (!recording(graph, "rows of a parameter"))
        return nothing;
    int id = -1, status = rows_record(graph, &id, whole.id, rows);
    return status == AH_OK ? (struct ah_tensor){id} : ah__graph_remember(graph, status, "rows of a parameter");
}

/* ---- operators -------------------------------------------------------------------------------------------------- */

static enum ah_value_kind kind_of(const struct ah_op_operand *operand)
{
    switch (operand->kind) {
    case AH_OPERAND_PARAM:
        return AH_VALUE_PARAM;
    case AH_OPERAND_TOKENS:
        return AH_VALUE_TOKENS;
    case AH_OPERAND_TARGETS:
        return AH_VALUE_TARGETS;
    case AH_OPERAND_POSITIONS:
        return AH_VALUE_POSITIONS;
    case AH_OPERAND_CACHE:
        return AH_VALUE_CACHE;
    case AH_OPERAND_SCALE:
        return AH_VALUE_SCALE;
    default:
        return AH_VALUE_ACTIVATION;
    }
}

static int check_kind(const struct ah_graph *graph, const struct ah_op_operand *operand, int number, int value)
{
    if (value < 0 && operand->optional)
        return AH_OK;
    if (value < 0 || (size_t)value >= graph->value_count)
        return ah__fail(AH_EINPUT, "input %d: found %d, expected a value of this graph", number, value);
    enum ah_value_kind found = graph->values[value].kind, expected = kind_of(operand);
    bool rows = found == AH_VALUE_POSITIONS && expected == AH_VALUE_TOKENS; /* a table of positions, too */
    if (found != expected && !rows)
        return ah__fail(AH_EINPUT, "input %d: found %s, expected %s", number, ah__value_names[found],
                        ah__value_names[expected]);
    return AH_OK;
}

static int check_operands(const struct ah_graph *graph, enum ah_op op, struct ah_values in)
{
    for (int i = 0; i < in.count; i++) {
        AH_TRY(check_kind(graph, &ah__op_table[op]->in[i], i, in.value[i]));
        for (int j = 0; j < i; j++)
            if (in.value[i] >= 0 && in.value[i] == in.value[j])
                return ah__fail(AH_EINPUT, "inputs %d and %d are the same value", j, i);
    }
    return AH_OK;
}

bool ah__graph_record_all(int *out, struct ah_graph *graph, enum ah_op op, struct ah_attr attr, struct ah_values in)
{
    const char *name = ah__op_table[op]->name;
    if (!recording(graph, name))
        return false;
    int status = check_operands(graph, op, in);
    if (status == AH_OK)
        status = ah__graph_node(graph, op, &attr, in, NULL, out);
    if (status != AH_OK)
        ah__graph_remember(graph, status, name);
    return status == AH_OK;
}

struct ah_tensor ah__graph_record(struct ah_graph *graph, enum ah_op op, struct ah_attr attr, struct ah_values in)
{
    int out[AH_OP_MAX_OUTPUTS];
    return ah__graph_record_all(out, graph, op, attr, in) ? (struct ah_tensor){out[0]} : nothing;
}

struct ah_tensor ah_graph_embedding(struct ah_graph *graph, struct ah_tensor table, struct ah_tensor token_ids)
{
    return ah__graph_record(graph, AH_OP_EMBEDDING, (struct ah_attr){0}, ah__values(table.id, token_ids.id));
}

struct ah_tensor ah_graph_add_position(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor table)
{
    return ah_graph_add_position_from(graph, x, table, 0);
}

struct ah_tensor ah_graph_add_position_from(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor table,
                                            int first)
{
    struct ah_attr attr = {.first = first};
    int positions = positions_of(graph);
    if (positions < 0)
        return ah__graph_record(graph, AH_OP_ADD_POSITION, attr, ah__values(x.id, table.id));
    return ah_graph_add_inplace(graph, x,
                                ah__graph_record(graph, AH_OP_EMBEDDING, attr, ah__values(table.id, positions)));
}

static struct ah_tensor record_norm(struct ah_graph *graph, enum ah_op op, struct ah_attr attr, struct ah_values in)
{
    if (graph->status == AH_OK && !(attr.eps >= 0 && isfinite(attr.eps)))
        return ah__graph_remember(
            graph, ah__fail(AH_EINPUT, "eps: found %g, expected a number of at least 0", (double)attr.eps),
            ah__op_table[op]->name);
    return ah__graph_record(graph, op, attr, in);
}

struct ah_tensor ah_graph_layernorm(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                    struct ah_tensor bias, float eps)
{
    return record_norm(graph, AH_OP_LAYERNORM, (struct ah_attr){.eps = eps}, ah__values(x.id, weight.id, bias.id));
}

struct ah_tensor ah_graph_rmsnorm(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight, float eps)
{
    return ah_graph_rmsnorm_offset(graph, x, weight, eps, 0);
}

struct ah_tensor ah_graph_rmsnorm_offset(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight, float eps,
                                         float offset)
{
    struct ah_attr attr = {.eps = eps, .offset = offset};
    return record_norm(graph, AH_OP_RMSNORM, attr, ah__values(x.id, weight.id));
}

static bool known(const struct ah_graph *graph, struct ah_tensor x)
{
    return graph->status == AH_OK && x.id >= 0 && (size_t)x.id < graph->value_count;
}

/* A window that hides none of the keys, of `x` or of the cache, becomes 0: no window. */
static int window_of(const struct ah_graph *graph, int window, struct ah_tensor x)
{
    int64_t keys = graph->cache;
    if (!keys && known(graph, x))
        keys = graph->values[x.id].meta.shape.dim[1];
    return window < keys || keys == 0 ? window : 0;
}

/* If the model generates, appends the keys and values of these tokens to a new cache; else returns `nothing`. `v` is
 * `nothing` if `k` holds q, k and v side by side. */
static struct ah_tensor keys_keep(struct ah_graph *graph, const struct ah_attr *attr, int kv_heads, struct ah_tensor k,
                                  struct ah_tensor v)
{
    const struct ah_attr how = {.heads = v.id < 0 ? kv_heads : 0, .by_head = attr->by_head};
    int id = -1;
    if (!graph->cache || !known(graph, k))
        return nothing;
    struct ah_value cache = {.meta = graph->values[k.id].meta, .kind = AH_VALUE_CACHE};
    int64_t keys = cache.meta.shape.dim[2] / (v.id < 0 ? 3 : 1);
    cache.meta.shape = ah_shape3(cache.meta.shape.dim[0], graph->cache, 2 * keys);
    int status = ah__graph_value(graph, &id, &cache);
    if (status != AH_OK)
        return ah__graph_remember(graph, status, "cache");
    int positions = graph->decodes ? positions_of(graph) : -1;
    return ah__graph_record(graph, AH_OP_CACHE_WRITE, how, ah__values(id, k.id, v.id, positions));
}

static struct ah_tensor attend_cached(struct ah_graph *graph, struct ah_attr attr, struct ah_tensor cache,
                                      struct ah_tensor q, int sinks)
{
    attr.kv_heads = attr.kv_heads ? attr.kv_heads : attr.heads;
    return ah__graph_record(graph, AH_OP_ATTENTION_CACHED, attr,
                            ah__values(cache.id, q.id, positions_of(graph), sinks));
}

struct ah_tensor ah_graph_attention(struct ah_graph *graph, struct ah_tensor qkv, int heads,
                                    const struct ah_attention_options *options)
{
    options = options ? options : &(const struct ah_attention_options){0};
    struct ah_attr attr = {.heads = heads,
                           .window = window_of(graph, options->window, qkv),
                           .by_head = options->by_head,
                           .scale = options->scale,
                           .cap = options->cap};
    struct ah_tensor cache = keys_keep(graph, &attr, heads, qkv, nothing);
    if (graph->decodes)
        return attend_cached(graph, attr, cache, qkv, -1);
    return ah__graph_record(graph, AH_OP_ATTENTION, attr, ah__values(qkv.id, positions_of(graph)));
}

struct ah_tensor ah_graph_attention_qkv(struct ah_graph *graph, struct ah_tensor q, struct ah_tensor k,
                                        struct ah_tensor v, int heads, int kv_heads,
                                        const struct ah_attention_options *options)
{
    options = options ? options : &(const struct ah_attention_options){0};
    struct ah_attr attr = {.heads = heads,
                           .kv_heads = kv_heads,
                           .window = window_of(graph, options->window, q),
                           .scale = options->scale,
                           .cap = options->cap};
    struct ah_tensor cache = keys_keep(graph, &attr, kv_heads, k, v);
    int sinks = options->sinks ? options->sinks->id : -1;
    if (graph->decodes)
        return attend_cached(graph, attr, cache, q, sinks);
    return ah__graph_record(graph, AH_OP_ATTENTION_QKV, attr, ah__values(q.id, k.id, v.id, positions_of(graph), sinks));
}

/* Copies a stretch for each pair of dimensions. Attributes may still be wrong here: the operator checks them. */
static void stretches_copy(struct ah_attr *attr, const float *stretches, const struct ah_meta *x)
{
    int64_t pairs = attr->heads > 0 ? ah__rotary_pairs(x, attr) : 0;
    for (int64_t i = 0; i < pairs && i < AH_ATTR_MOST_STRETCHES; i++)
        attr->stretch.of[i] = stretches[i];
}

struct ah_tensor ah_graph_rotary(struct ah_graph *graph, struct ah_tensor x, int heads, float theta, int dims,
                                 const struct ah_rotary_options *options)
{
    options = options ? options : &(const struct ah_rotary_options){0};
    struct ah_attr attr = {.heads = heads,
                           .theta = theta,
                           .dims = dims,
                           .factor = options->factor,
                           .low = options->low,
                           .high = options->high,
                           .original = options->original,
                           .ramp = options->ramp,
                           .magnitude = options->magnitude,
                           .by_head = options->by_head};
    if (options->stretches && known(graph, x))
        stretches_copy(&attr, options->stretches, &graph->values[x.id].meta);
    return ah__graph_record(graph, AH_OP_ROTARY, attr, ah__values(x.id, graph->decodes ? positions_of(graph) : -1));
}

struct ah_tensor ah_graph_gelu(struct ah_graph *graph, struct ah_tensor x)
{
    return ah__graph_record(graph, AH_OP_GELU, (struct ah_attr){0}, ah__values(x.id));
}

struct ah_tensor ah_graph_gelu_erf(struct ah_graph *graph, struct ah_tensor x)
{
    return ah__graph_record(graph, AH_OP_GELU_ERF, (struct ah_attr){0}, ah__values(x.id));
}

struct ah_tensor ah_graph_relu(struct ah_graph *graph, struct ah_tensor x)
{
    return ah__graph_record(graph, AH_OP_RELU, (struct ah_attr){0}, ah__values(x.id));
}

struct ah_tensor ah_graph_silu_mul(struct ah_graph *graph, struct ah_tensor gate, struct ah_tensor up)
{
    return ah__graph_record(graph, AH_OP_SILU_MUL, (struct ah_attr){0}, ah__values(gate.id, up.id));
}

struct ah_tensor ah_graph_silu_mul_halves(struct ah_graph *graph, struct ah_tensor x)
{
    return ah__graph_record(graph, AH_OP_SILU_MUL_HALVES, (struct ah_attr){0}, ah__values(x.id));
}

struct ah_tensor ah_graph_swiglu_clamped(struct ah_graph *graph, struct ah_tensor x, float scale, float limit)
{
    const struct ah_attr attr = {.scale = scale, .limit = limit};
    return ah__graph_record(graph, AH_OP_SWIGLU_CLAMPED, attr, ah__values(x.id));
}

struct ah_tensor ah_graph_gelu_mul(struct ah_graph *graph, struct ah_tensor gate, struct ah_tensor up)
{
    return ah__graph_record(graph, AH_OP_GELU_MUL, (struct ah_attr){0}, ah__values(gate.id, up.id));
}

struct ah_tensor ah_graph_scale(struct ah_graph *graph, struct ah_tensor x, float factor)
{
    return ah__graph_record(graph, AH_OP_SCALE, (struct ah_attr){.scale = factor}, ah__values(x.id));
}

struct ah_tensor ah_graph_add_inplace(struct ah_graph *graph, struct ah_tensor a, struct ah_tensor b)
{
    return ah__graph_record(graph, AH_OP_ADD, (struct ah_attr){0}, ah__values(a.id, b.id));
}

struct ah_tensor ah_graph_cross_entropy(struct ah_graph *graph, struct ah_tensor logits, struct ah_tensor targets)
{
    return ah__graph_record(graph, AH_OP_CROSS_ENTROPY, (struct ah_attr){0}, ah__values(logits.id, targets.id));
}

struct ah_tensor ah_graph_linear_cross_entropy(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                               struct ah_tensor targets)
{
    return ah_graph_linear_cross_entropy_capped(graph, x, weight, targets, 0);
}

struct ah_tensor ah_graph_linear_cross_entropy_capped(struct ah_graph *graph, struct ah_tensor x,
                                                      struct ah_tensor weight, struct ah_tensor targets, float cap)
{
    struct ah_attr attr = {.cap = cap};
    return ah__graph_record(graph, AH_OP_LINEAR_CROSS_ENTROPY, attr, ah__values(x.id, weight.id, targets.id));
}
