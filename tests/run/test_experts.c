/* Mixtures of experts whose tokens spread as unequally as can be, or as equally: the same bits and the predicted peaks
 * under every plan. */
#include "partition/models.h"
#include "run/exact.h"

enum { EXPERTS = 5, PICKS = 2, INNER = 24 };

static struct ah_tensor weight(struct ah_graph *graph, const char *name, int64_t out, int64_t in)
{
    return ah_graph_param(graph, name, ah_shape3(EXPERTS, out, in), AH_INIT_NORMAL, 0.02f);
}

static const struct ah_tensor none = {-1};

/* The deviation of the scores' biases decides: beside a thousand no token has a say, so all have the same experts. */
static struct ah_tensor block(struct ah_graph *graph, struct ah_tensor x, float bias)
{
    struct ah_tensor y = model_norm(graph, "norm", x);
    struct ah_tensor router = ah_graph_param(graph, "router", ah_shape2(EXPERTS, MODEL_EMBD), AH_INIT_ZEROS, 0);
    struct ah_tensor biases = ah_graph_param(graph, "bias", ah_shape1(EXPERTS), AH_INIT_NORMAL, bias);
    struct ah_routes routes = ah_graph_route(graph, ah_graph_linear(graph, y, router, biases, true), PICKS, true);
    struct ah_tensor rows = ah_graph_dispatch(graph, y, &routes);
    struct ah_tensor gates = weight(graph, "gate", INNER, MODEL_EMBD), ups = weight(graph, "up", INNER, MODEL_EMBD);
    struct ah_tensor gate = ah_graph_grouped_linear(graph, rows, gates, none, &routes);
    struct ah_tensor up = ah_graph_grouped_linear(graph, rows, ups, none, &routes);
    rows = ah_graph_scale_rows(graph, ah_graph_silu_mul(graph, gate, up), &routes);
    rows = ah_graph_grouped_linear(graph, rows, weight(graph, "down", MODEL_EMBD, INNER), none, &routes);
    return ah_graph_add_inplace(graph, ah_graph_combine(graph, rows, &routes), x);
}

static struct ah_tensor unequal(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return block(graph, x, 1000);
}

static struct ah_tensor equal(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return block(graph, x, 0);
}

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

static void plans_check(model_block of_block, enum ah_dtype compute, int micro_batches)
{
    static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};
    struct tiny tiny;
    int of = ah_test_rounds(20, 8, 1);
    tiny_init_graph(&tiny, model_graph_in(compute, of_block, 4, false), 1e9, micro_batches);
    tiny.clip = exact_limit(&cpu, &tiny);
    exact_some_plans(&cpu, &tiny, "autohete", micro_batches, of);
    tiny_fini(&tiny);
}

static void all_tokens_have_the_same_experts(void **state)
{
    plans_check(unequal, AH_F32, 1);
    plans_check(unequal, AH_BF16, 3);
}

static void tokens_spread_evenly(void **state)
{
    plans_check(equal, AH_BF16, 1);
    plans_check(equal, AH_F32, 3);
}

/* Adapters beside frozen experts, some in codes. */
static void experts_have_adapters(void **state)
{
    static const char config[] =
        "{\"model_type\":\"qwen3_moe\",\"vocab_size\":67,\"hidden_size\":24,\"num_hidden_layers\":4,"
        "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":6,\"max_position_embeddings\":24,"
        "\"intermediate_size\":40,\"num_experts\":5,\"num_experts_per_tok\":2,\"moe_intermediate_size\":16}";
    static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};
    static const char *const codes[] = {NULL, "int8", "nf4", "mxfp4"};
    int of = ah_test_rounds(40, 16, 2);
    for (size_t i = 0; i < AH_LENGTH(codes); i++) {
        const struct ah_tuning tuning = {
            .lora_rank = 3, .lora_alpha = 5, .lora_targets = "v_proj,gate_proj,down_proj", .frozen = codes[i]};
        struct tiny tiny;
        tiny_init_tuned(&tiny, i % 2 ? AH_BF16 : AH_F32, config, 1e9, 2, 2, &tuning);
        tiny.clip = exact_limit(&cpu, &tiny);
        exact_some_plans(&cpu, &tiny, "autohete", (int)i, of);
        tiny_fini(&tiny);
    }
}

AH_TEST_CASES("run/experts", experts_have_adapters, all_tokens_have_the_same_experts, tokens_spread_evenly)
