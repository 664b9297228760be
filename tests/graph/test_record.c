#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/tuning.h"
#include "test.h"

enum { B = 2, T = 4, C = 8, V = 10 };

static const struct ah_tensor none = {-1};

struct rec {
    struct ah_graph *graph;
    struct ah_tensor tokens, targets, x; /* x: embedded tokens */
};

static struct rec begin(void)
{
    struct rec r;
    assert_ok(ah_graph_new(&r.graph, AH_F32));
    r.tokens = ah_graph_tokens(r.graph, B, T);
    r.targets = ah_graph_targets(r.graph, B, T);
    ah_graph_scope_push(r.graph, "wte");
    r.x = ah_graph_embedding(r.graph, ah_graph_param(r.graph, "weight", ah_shape2(V, C), AH_INIT_NORMAL, 0.02f),
                             r.tokens);
    ah_graph_scope_pop(r.graph);
    return r;
}

static struct ah_tensor matrix(struct ah_graph *graph, const char *name, int64_t rows, int64_t columns)
{
    return ah_graph_param(graph, name, ah_shape2(rows, columns), AH_INIT_NORMAL, 0.02f);
}

static struct ah_tensor finish_loss(struct rec *r)
{
    struct ah_tensor logits = ah_graph_linear(r->graph, r->x, matrix(r->graph, "head", C, V), none, false);
    return ah_graph_cross_entropy(r->graph, logits, r->targets);
}

/* Ends the recording, which must fail with these words, and frees it. */
static void expect(struct rec *r, struct ah_tensor loss, const char *words)
{
    assert_fails(ah_graph_finish(r->graph, loss), AH_EINPUT, words);
    ah_graph_free(r->graph);
}

static void good(void **state)
{
    struct rec r = begin();
    struct ah_tensor loss = finish_loss(&r);
    assert_ok(ah_graph_finish(r.graph, loss));
    assert_int_equal(r.graph->node_count, 3);
    const struct ah_value *value = &r.graph->values[loss.id];
    assert_int_equal(ah__value_bytes(value), 4);
    const struct ah_node *node = &r.graph->nodes[value->producer];
    assert_int_equal(r.graph->values[node->out[1]].storage, node->in[0]);
    assert_string_equal(r.graph->values[2].name, "wte.weight");
    ah_graph_free(r.graph);
}

static void in_place_shares_memory(void **state)
{
    struct rec r = begin();
    struct ah_tensor y = ah_graph_relu(r.graph, r.x), z = ah_graph_add_inplace(r.graph, y, r.x);
    assert_int_equal(r.graph->values[y.id].storage, y.id);
    assert_int_equal(r.graph->values[z.id].storage, y.id);
    r.x = ah_graph_add_position(r.graph, z, matrix(r.graph, "wpe", T, C));
    assert_int_equal(r.graph->values[r.x.id].storage, y.id);
    assert_ok(ah_graph_finish(r.graph, finish_loss(&r)));

    int nodes[] = {0, 1, 2, 3, 4, 5};
    struct ah_live live[32];
    assert_int_equal(r.graph->node_count, AH_LENGTH(nodes));
    ah__graph_live(live, r.graph, nodes, AH_LENGTH(nodes));
    assert_int_equal(live[y.id].first, 1);
    assert_int_equal(live[y.id].last, 4);
    assert_int_equal(live[z.id].first, -1);
    assert_int_equal(live[r.targets.id].first, 5);
    ah_graph_free(r.graph);
}

static void overwritten_value(void **state)
{
    struct rec r = begin();
    ah_graph_scope_push(r.graph, "h.0");
    ah_graph_scope_push(r.graph, "mlp");
    struct ah_tensor y = ah_graph_relu(r.graph, r.x);
    ah_graph_add_inplace(r.graph, y, r.x);
    ah_graph_gelu(r.graph, y);
    ah_graph_scope_pop(r.graph);
    ah_graph_scope_pop(r.graph);
    expect(&r, finish_loss(&r), "h.0.mlp: gelu: input 0, value %4, was overwritten in place by add in h.0.mlp");
    r = begin();
    struct ah_tensor logits = ah_graph_linear(r.graph, r.x, matrix(r.graph, "head", C, V), none, false);
    struct ah_tensor loss = ah_graph_cross_entropy(r.graph, logits, r.targets);
    ah_graph_relu(r.graph, logits);
    expect(&r, loss, "was overwritten in place by cross_entropy");
}

/* Mistakes of the compiler, not of a model's author. */
static void wrong_nodes(void **state)
{
    struct rec r = begin();
    int out[AH_OP_MAX_OUTPUTS];
    struct ah_attr heads = {.heads = 2}, nothing = {0};
    assert_fails(ah__graph_node(r.graph, AH_OP_RELU, &heads, ah__values(r.x.id), NULL, out), AH_EINTERNAL,
                 "relu: found attributes that it does not have: heads=2");
    assert_fails(ah__graph_node(r.graph, AH_OP_RELU, &nothing, ah__values(r.x.id, r.x.id), NULL, out), AH_EINTERNAL,
                 "relu: found 2 inputs, expected at most 1");
    ah_graph_free(r.graph);
}

static void first_error_stays(void **state)
{
    struct rec r = begin();
    ah_graph_scope_push(r.graph, "h.0");
    ah_graph_scope_push(r.graph, "fc");
    struct ah_tensor bad = ah_graph_linear(r.graph, r.x, matrix(r.graph, "weight", C + 1, V), none, false);
    assert_int_equal(bad.id, -1);
    ah_graph_scope_pop(r.graph);
    ah_graph_attention(r.graph, bad, 0, NULL);
    ah_graph_scope_pop(r.graph);
    expect(&r, finish_loss(&r), "h.0.fc: linear: weight is F32 [9,10], expected F32 [8,O]");
}

struct wrong {
    void (*record)(struct rec *r);
    const char *words;
};

static void twice_tokens(struct rec *r)
{
    ah_graph_tokens(r->graph, B, T);
}
static void twice_param(struct rec *r)
{
    matrix(r->graph, "a", 1, 1), matrix(r->graph, "a", 1, 1);
}
static void empty_param(struct rec *r)
{
    matrix(r->graph, "a", 0, 1);
}
static void huge_param(struct rec *r)
{
    matrix(r->graph, "a", INT64_C(1) << 40, INT64_C(1) << 40);
}
static void flat_param(struct rec *r)
{
    ah_graph_param(r->graph, "a", (struct ah_shape){0}, AH_INIT_ONES, 0);
}
static void deep_param(struct rec *r)
{
    ah_graph_param(r->graph, "a", (struct ah_shape){9, {1, 1, 1, 1}}, AH_INIT_ONES, 0);
}
static void bad_std(struct rec *r)
{
    ah_graph_param(r->graph, "a", ah_shape1(1), AH_INIT_NORMAL, -1);
}
static void no_name(struct rec *r)
{
    matrix(r->graph, "", 1, 1);
}
static void pop_too_often(struct rec *r)
{
    ah_graph_scope_pop(r->graph);
}
static void empty_scope(struct rec *r)
{
    ah_graph_scope_push(r->graph, "%s", "");
}
static void long_scope(struct rec *r)
{
    ah_graph_scope_push(r->graph, "%0200d", 1);
}
static void open_scope(struct rec *r)
{
    ah_graph_scope_push(r->graph, "open");
}
static void not_a_parameter(struct rec *r)
{
    ah_graph_add_position(r->graph, r->x, r->x);
}
static void not_an_activation(struct rec *r)
{
    ah_graph_relu(r->graph, matrix(r->graph, "a", 1, 1));
}
static void ids_as_x(struct rec *r)
{
    ah_graph_gelu(r->graph, r->tokens);
}
static void twice_the_same(struct rec *r)
{
    ah_graph_add_inplace(r->graph, r->x, r->x);
}
static void unknown_value(struct rec *r)
{
    ah_graph_relu(r->graph, (struct ah_tensor){77});
}
static void bad_eps(struct rec *r)
{
    ah_graph_layernorm(r->graph, r->x, none, none, -1);
}
static void bad_rms_eps(struct rec *r)
{
    ah_graph_rmsnorm(r->graph, r->x, none, -1);
}
static void bad_offset(struct rec *r)
{
    ah_graph_rmsnorm_offset(r->graph, r->x, ah_graph_param(r->graph, "a", ah_shape1(C), AH_INIT_ONES, 0), 0, INFINITY);
}
static void bad_scale(struct rec *r)
{
    ah_graph_scale(r->graph, r->x, 0);
}
static void bad_attention_scale(struct rec *r)
{
    struct ah_tensor qkv = ah_graph_linear(r->graph, r->x, matrix(r->graph, "a", C, 3 * C), none, false);
    ah_graph_attention(r->graph, qkv, 2, &(struct ah_attention_options){.scale = -1});
}
static void bad_attention_cap(struct rec *r)
{
    struct ah_tensor qkv = ah_graph_linear(r->graph, r->x, matrix(r->graph, "a", C, 3 * C), none, false);
    ah_graph_attention(r->graph, qkv, 2, &(struct ah_attention_options){.cap = -1});
}
static void bad_stretch(struct rec *r)
{
    static const float stretches[C] = {1, 0};
    ah_graph_rotary(r->graph, r->x, 1, 1e4F, 0, &(struct ah_rotary_options){.stretches = stretches});
}
static void theta(struct rec *r)
{
    ah_graph_rotary(r->graph, r->x, 2, 0, 0, NULL);
}
static void kv_heads(struct rec *r)
{
    struct ah_tensor k = ah_graph_linear(r->graph, r->x, matrix(r->graph, "k", C, C), none, false);
    struct ah_tensor v = ah_graph_linear(r->graph, r->x, matrix(r->graph, "v", C, C), none, false);
    ah_graph_attention_qkv(r->graph, r->x, k, v, 4, 3, NULL);
}
static void sink_shape(struct rec *r)
{
    struct ah_tensor k = ah_graph_linear(r->graph, r->x, matrix(r->graph, "k", C, C), none, false);
    struct ah_tensor v = ah_graph_linear(r->graph, r->x, matrix(r->graph, "v", C, C), none, false);
    struct ah_tensor sinks = ah_graph_param(r->graph, "sinks", ah_shape1(3), AH_INIT_NORMAL, 0.02f);
    ah_graph_attention_qkv(r->graph, r->x, k, v, 4, 4, &(struct ah_attention_options){.sinks = &sinks});
}
static void gate_shape(struct rec *r)
{
    ah_graph_silu_mul(r->graph, r->x, ah_graph_linear(r->graph, r->x, matrix(r->graph, "a", C, 3 * C), none, false));
}
static void heads(struct rec *r)
{
    ah_graph_attention(r->graph, ah_graph_linear(r->graph, r->x, matrix(r->graph, "a", C, 3 * C), none, false), 3,
                       NULL);
}
static void no_picks(struct rec *r)
{
    ah_graph_route(r->graph, r->x, 0, true);
}
static void too_many_picks(struct rec *r)
{
    ah_graph_route(r->graph, r->x, C + 1, true);
}
static void flat_experts(struct rec *r)
{
    struct ah_routes routes = ah_graph_route(r->graph, r->x, 2, false);
    struct ah_tensor rows = ah_graph_dispatch(r->graph, r->x, &routes);
    ah_graph_grouped_linear(r->graph, rows, matrix(r->graph, "a", C, C), none, &routes);
}
static void other_experts(struct rec *r)
{
    struct ah_routes routes = ah_graph_route(r->graph, r->x, 2, false);
    struct ah_tensor weight = ah_graph_param(r->graph, "a", ah_shape3(C + 1, 5, C), AH_INIT_NORMAL, 0.02f);
    ah_graph_grouped_linear(r->graph, ah_graph_dispatch(r->graph, r->x, &routes), weight, none, &routes);
}
static void other_biases(struct rec *r)
{
    struct ah_routes routes = ah_graph_route(r->graph, r->x, 2, false);
    struct ah_tensor weight = ah_graph_param(r->graph, "a", ah_shape3(C, 5, C), AH_INIT_NORMAL, 0.02f);
    ah_graph_grouped_linear(r->graph, ah_graph_dispatch(r->graph, r->x, &routes), weight, matrix(r->graph, "b", C, C),
                            &routes);
}
static void other_shares(struct rec *r)
{
    struct ah_routes routes = ah_graph_route(r->graph, r->x, 2, false);
    ah_graph_shares(r->graph, ah_graph_linear(r->graph, r->x, matrix(r->graph, "a", C, 5), none, false), &routes);
}
static void no_limit(struct rec *r)
{
    ah_graph_swiglu_clamped(r->graph, r->x, 1.5f, 0);
}
static void odd_halves(struct rec *r)
{
    ah_graph_silu_mul_halves(r->graph, ah_graph_linear(r->graph, r->x, matrix(r->graph, "a", C, 5), none, false));
}
static void wide_gate(struct rec *r)
{
    struct ah_tensor gate = ah_graph_linear(r->graph, r->x, matrix(r->graph, "a", C, C), none, false);
    ah_graph_gate_rows(r->graph, r->x, gate);
}
static void dead_result(struct rec *r)
{
    ah_graph_relu(r->graph, r->x);
}
static void dead_param(struct rec *r)
{
    matrix(r->graph, "a", 1, 1);
}

static void rows_read(struct rec *r, int64_t rows)
{
    struct ah_tensor whole = matrix(r->graph, "a", 2 * C, C), half = ah_graph_param_rows(r->graph, whole, C);
    r->x = ah_graph_linear(r->graph, r->x, half, none, true);
    half = ah_graph_param_rows(r->graph, whole, rows);
    r->x = rows == C ? ah_graph_linear(r->graph, r->x, half, none, true) : r->x;
}
static void rows_left(struct rec *r)
{
    struct ah_tensor whole = matrix(r->graph, "a", 2 * C, C);
    r->x = ah_graph_linear(r->graph, r->x, ah_graph_param_rows(r->graph, whole, C), none, true);
}
static void rows_too_many(struct rec *r)
{
    rows_read(r, C + 1);
}
static void rows_none(struct rec *r)
{
    rows_read(r, 0);
}
static void rows_of_rows(struct rec *r)
{
    ah_graph_param_rows(r->graph, ah_graph_param_rows(r->graph, matrix(r->graph, "a", C, C), 1), 1);
}
static void rows_of_nothing(struct rec *r)
{
    ah_graph_param_rows(r->graph, r->x, 1);
}
static void rows_and_whole(struct rec *r)
{
    struct ah_tensor whole = matrix(r->graph, "a", C, C);
    r->x = ah_graph_linear(r->graph, r->x, ah_graph_param_rows(r->graph, whole, C), none, true);
    r->x = ah_graph_linear(r->graph, r->x, whole, none, true);
}
static void rows_dead(struct rec *r)
{
    ah_graph_param_rows(r->graph, matrix(r->graph, "a", C, C), C);
}

static void rows_are_parameters(void **state)
{
    char *text = NULL;
    size_t length = 0;
    struct rec r = begin();
    rows_read(&r, C);
    assert_ok(ah_graph_finish(r.graph, finish_loss(&r)));
    const struct ah_value *second = &r.graph->values[r.graph->nodes[2].in[1]];
    assert_true(!second->name && second->first == C * C && second->meta.shape.dim[0] == C);
    assert_string_equal(r.graph->values[second->whole].name, "a");
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    assert_ok(ah_graph_print(r.graph, to));
    fclose(to);
    assert_non_null(strstr(text, "%5 = rows of %4 "));
    assert_non_null(strstr(text, " 3 parameters (288 elements)"));
    free(text);
    ah_graph_free(r.graph);
}

static void wrong_calls(void **state)
{
    static const struct wrong cases[] = {
        {twice_tokens, "(top level): the token ids: recorded twice"},
        {twice_param, "parameter: 'a' is recorded twice"},
        {empty_param, "shape: found [0,1], expected positive dimensions"},
        {huge_param, "expected positive dimensions and at most 2^48"},
        {flat_param, "shape: found []"},
        {deep_param, "rank: found 9, expected 1 to 4"},
        {bad_std, "'a': std: found -1"},
        {no_name, "parameter: name: found 0 bytes"},
        {pop_too_often, "scope: popped more often than pushed"},
        {empty_scope, "scope: name: found ''"},
        {long_scope, "scope: name is longer"},
        {open_scope, "scope 'open' is still open"},
        {not_a_parameter, "add_position: input 1: found an activation, expected a parameter"},
        {not_an_activation, "relu: input 0: found a parameter, expected an activation"},
        {ids_as_x, "gelu: input 0: found the token ids, expected an activation"},
        {twice_the_same, "add: inputs 0 and 1 are the same value"},
        {unknown_value, "relu: input 0: found 77, expected a value of this graph"},
        {bad_eps, "layernorm: eps: found -1"},
        {bad_rms_eps, "rmsnorm: eps: found -1"},
        {bad_offset, "rmsnorm: offset: found inf, expected a number"},
        {bad_scale, "scale: scale: found 0, expected a number other than 0"},
        {bad_attention_scale, "attention: scale: found -1, expected a number of at least 0"},
        {bad_attention_cap, "attention: cap: found -1, expected a number of at least 0"},
        {bad_stretch, "rotary: stretches: found 0 of pair 1, expected a number above 0"},
        {theta, "rotary: theta: found 0, expected a number above 0"},
        {kv_heads, "attention_qkv: heads: found 4, expected a multiple of 3 heads of keys and values"},
        {sink_shape, "attention_qkv: sinks is F32 [3], expected F32 [4]"},
        {gate_shape, "silu_mul: up is F32 [2,4,24], expected F32 [2,4,8]"},
        {heads, "attention: qkv is F32 [2,4,24], expected [B,T,3C] with C a multiple of 3 heads"},
        {no_picks, "route: picks: found 0, expected 1 to 8, of 8 experts"},
        {too_many_picks, "route: picks: found 9, expected 1 to 8, of 8 experts"},
        {flat_experts, "grouped_linear: weight is F32 [8,8], expected floats of rank 3"},
        {other_experts, "grouped_linear: ends is I32 [8], expected I32 [9]"},
        {other_biases, "grouped_linear: bias is F32 [8,8], expected F32 [8,5]"},
        {other_shares, "shares: ends is I32 [8], expected I32 [5]"},
        {no_limit, "swiglu_clamped: limit, scale: found 0, 1.5, expected numbers above 0"},
        {odd_halves, "silu_mul_halves: x is F32 [2,4,5], expected F32 [..,2I]"},
        {wide_gate, "gate_rows: gate is F32 [2,4,8], expected F32 [2,4,1]"},
        {dead_result, "relu: its result %4 is never used"},
        {dead_param, "a parameter a is never used"},
        {rows_left, "parameter 'a': found 8 rows taken, expected all 16"},
        {rows_too_many, "rows of a parameter: 'a': found 9 rows, expected 1 to the 8 that are left"},
        {rows_none, "'a': found 0 rows, expected 1 to the 8 that are left"},
        {rows_of_rows, "rows of a parameter: found 5, expected a parameter of this graph"},
        {rows_of_nothing, "rows of a parameter: found 3, expected a parameter of this graph"},
        {rows_and_whole, "parameter 'a' is read whole and by its rows, expected one of both"},
        {rows_dead, "a parameter is never used"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct rec r = begin();
        cases[i].record(&r);
        expect(&r, finish_loss(&r), cases[i].words);
    }
}

static void wrong_ends(void **state)
{
    struct rec r = begin();
    finish_loss(&r);
    expect(&r, none, "loss: found -1, expected a value of this graph");
    r = begin();
    expect(&r, r.x, "loss: found a result of embedding, expected the scalar of cross_entropy");
    r = begin();
    expect(&r, r.tokens, "loss: found the token ids of the graph");
    assert_ok(ah_graph_new(&r.graph, AH_F32));
    expect(&r, none, "the graph has no tokens");
    assert_fails(ah_graph_new(&r.graph, AH_I32), AH_EINPUT, "compute dtype");
}

static void after_the_end(void **state)
{
    struct rec r = begin();
    struct ah_tensor loss = finish_loss(&r);
    assert_ok(ah_graph_finish(r.graph, loss));
    assert_fails(ah_graph_finish(r.graph, loss), AH_EINPUT, "called twice");
    assert_int_equal(ah_graph_relu(r.graph, r.x).id, -1);
    assert_fails(ah_graph_finish(r.graph, loss), AH_EINPUT, "relu: recorded after ah_graph_finish()");
    assert_false(r.graph->finished);
    ah_graph_free(r.graph);
}

static void prints(void **state)
{
    char *text = NULL;
    size_t length = 0;
    struct rec r = begin();
    ah_graph_scope_push(r.graph, "h.0");
    r.x = ah_graph_add_inplace(r.graph, ah_graph_relu(r.graph, r.x), r.x);
    ah_graph_scope_pop(r.graph);
    assert_ok(ah_graph_finish(r.graph, finish_loss(&r)));
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    assert_ok(ah_graph_print(r.graph, to));
    fclose(to);
    assert_non_null(strstr(text, "%2 = param wte.weight"));
    const char *add = strstr(text, "%5 = add(%4, %3) in place");
    assert_non_null(add);
    assert_non_null(strstr(add, "[2,4,8]                         0 B         64 flop  h.0\n"));
    /* embedding and relu 256 bytes each, logits 320, loss 4 */
    assert_non_null(strstr(text, "5 operators, 2 parameters (160 elements), 836 bytes of activations"));
    free(text);
    ah_graph_free(r.graph);
}

/* One weight that is read twice has one adapter; each input has a product of its own with the first factor. */
static void a_weight_has_one_adapter(void **state)
{
    struct ah_graph *graph;
    assert_ok(ah_graph_new(&graph, AH_F32));
    assert_ok(ah__graph_tune(graph, &(struct ah_tuning){.lora_rank = 2, .lora_targets = "proj"}));
    struct ah_tensor tokens = ah_graph_tokens(graph, B, T), targets = ah_graph_targets(graph, B, T);
    struct ah_tensor x = ah_graph_embedding(graph, matrix(graph, "wte.weight", V, C), tokens);
    struct ah_tensor weight = matrix(graph, "proj.weight", C, C);
    struct ah_tensor y = ah_graph_linear(graph, ah_graph_linear(graph, x, weight, none, true), weight, none, true);
    struct ah_tensor logits = ah_graph_linear(graph, y, matrix(graph, "head", C, V), none, false);
    assert_ok(ah_graph_finish(graph, ah_graph_cross_entropy(graph, logits, targets)));
    int read[2] = {0}, count = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct ah_node *node = &graph->nodes[n];
        const char *name = node->op == AH_OP_LINEAR ? graph->values[node->in[1]].name : NULL;
        if (name && strcmp(name, "proj.lora_A.weight") == 0)
            read[count++] = node->in[0];
    }
    assert_int_equal(count, 2);
    assert_int_not_equal(read[0], read[1]);
    assert_int_equal(graph->adapter_count, 1);
    ah_graph_free(graph);
}

/* A failed allocation is remembered like any other failure. */
static void failing_allocations(void **state)
{
    int status = AH_ENOMEM;
    for (uint64_t n = 1; status == AH_ENOMEM; n++) {
        struct ah_graph *graph;
        assert_true(n < 100);
        ah__alloc_fail_at(n);
        status = ah_graph_new(&graph, AH_F32);
        if (status == AH_OK) {
            struct rec r = {.graph = graph};
            r.tokens = ah_graph_tokens(graph, B, T);
            r.targets = ah_graph_targets(graph, B, T);
            ah_graph_scope_push(graph, "wte");
            r.x = ah_graph_embedding(graph, matrix(graph, "weight", V, C), r.tokens);
            ah_graph_scope_pop(graph);
            status = ah_graph_finish(graph, finish_loss(&r));
            ah_graph_free(graph);
        }
        ah__alloc_fail_at(0);
    }
    assert_ok(status);
}

AH_TEST_CASES("graph/record", good, in_place_shares_memory, overwritten_value, wrong_nodes, first_error_stays,
              wrong_calls, wrong_ends, after_the_end, rows_are_parameters, a_weight_has_one_adapter, prints,
              failing_allocations)
