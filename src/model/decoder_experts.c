/* Mixtures of experts in place of a decoder's feed-forward network: their config keys, and their recording. */
#include "graph/graph.h"
#include "model/decoder.h"
#include "model/parts.h"

enum { SIZES = 4, MOST_EXPERTS = 1 << 12 };

/* Key for the number of experts in config.json of transformers 5, also where its hub's folders have another. */
static const char local_key[] = "num_local_experts";

/* Returns how many of the sizes have keys. */
static size_t sizes_of(struct ah_config_size sizes[SIZES], struct ah_decoder *decoder)
{
    const struct ah_decoder_experts *keys = decoder->experts;
    sizes[0] = (struct ah_config_size){keys->count_key, &decoder->expert_count, MOST_EXPERTS};
    sizes[1] = (struct ah_config_size){"num_experts_per_tok", &decoder->picks, AH_MOST_PICKS};
    size_t count = 2;
    if (keys->size_key)
        sizes[count++] = (struct ah_config_size){keys->size_key, &decoder->expert_size, 1 << 22};
    if (keys->shared_size_key)
        sizes[count++] = (struct ah_config_size){keys->shared_size_key, &decoder->shared_size, 1 << 22};
    return count;
}

int ah__decoder_parse_experts(struct ah_decoder *decoder, const struct ah_json *json)
{
    struct ah_config_size sizes[SIZES];
    size_t count = sizes_of(sizes, decoder);
    if (!ah__json_has(json, sizes[0].key) && ah__json_has(json, local_key))
        sizes[0].key = local_key;
    AH_TRY(ah__config_sizes(json, sizes, count));
    int64_t local = decoder->expert_count;
    AH_TRY(ah__config_int(&local, json, local_key, 1, MOST_EXPERTS));
    if (local != decoder->expert_count)
        return ah__fail(AH_EINPUT, "%s: key '%s': found %lld, expected %lld, as %s has", json->path, local_key,
                        (long long)local, (long long)decoder->expert_count, sizes[0].key);
    if (!decoder->experts->size_key)
        decoder->expert_size = decoder->intermediate_size;
    if (decoder->picks > decoder->expert_count)
        return ah__fail(AH_EINPUT, "%s: key 'num_experts_per_tok': found %lld, expected at most %s, which is %lld",
                        json->path, (long long)decoder->picks, decoder->experts->count_key,
                        (long long)decoder->expert_count);
    decoder->picks_normalised = !decoder->experts->may_normalise;
    return decoder->experts->may_normalise ? ah__config_bool(&decoder->picks_normalised, json, "norm_topk_prob")
                                           : AH_OK;
}

int ah__decoder_add_experts(cJSON *tree, const struct ah_decoder *decoder)
{
    struct ah_decoder copy = *decoder;
    struct ah_config_size sizes[SIZES];
    AH_TRY(ah__config_add_sizes(tree, sizes, sizes_of(sizes, &copy)));
    return decoder->experts->may_normalise ? ah__json_add_bool(tree, "norm_topk_prob", decoder->picks_normalised)
                                           : AH_OK;
}

int ah__decoder_parse_sparse(const struct ah_json *json)
{
    const cJSON *dense = cJSON_GetObjectItemCaseSensitive(json->node, "mlp_only_layers");
    int64_t step = 1;
    AH_TRY(ah__config_int(&step, json, "decoder_sparse_step", 1, 1 << 24));
    if (step != 1)
        return ah__fail(AH_EINPUT, "%s: key 'decoder_sparse_step': found %lld, expected 1: experts in all blocks",
                        json->path, (long long)step);
    if (dense && !cJSON_IsNull(dense) && !(cJSON_IsArray(dense) && cJSON_GetArraySize(dense) == 0))
        return ah__fail(AH_EINPUT, "%s: key 'mlp_only_layers': found %d blocks, expected []: experts in all blocks",
                        json->path, cJSON_GetArraySize(dense));
    return AH_OK;
}

int ah__decoder_add_sparse(cJSON *tree)
{
    AH_TRY(ah__json_add_int(tree, "decoder_sparse_step", 1));
    return cJSON_AddArrayToObject(tree, "mlp_only_layers")
               ? AH_OK
               : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

/* Records the parameter NAME.bias. */
static struct ah_tensor bias(struct ah_graph *graph, const char *name, struct ah_shape shape)
{
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor param = ah_graph_param(graph, "bias", shape, AH_INIT_ZEROS, 0);
    ah_graph_scope_pop(graph);
    return param;
}

/* Records the scores of experts. Adapters leave the router as it is. */
static struct ah_tensor router(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x)
{
    const char *name = decoder->experts->router;
    struct ah_tensor by = {-1},
                     weight = ah__part_table(graph, name, decoder->expert_count, decoder->hidden_size, decoder->std);
    if (decoder->experts->biases)
        by = bias(graph, name, ah_shape1(decoder->expert_count));
    return ah__graph_record(graph, AH_OP_LINEAR, (struct ah_attr){.out_in = true}, ah__values(x.id, weight.id, by.id));
}

/* Adds the biases of the last product to what the experts of each token give: they are weighed as rows are, so each is
 * once in a product for all tokens. */
static struct ah_tensor biased(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor y,
                               struct ah_tensor logits, const struct ah_routes *routes)
{
    if (!decoder->experts->biases)
        return y;
    struct ah_tensor biases =
        bias(graph, decoder->experts->down, ah_shape2(decoder->expert_count, decoder->hidden_size));
    struct ah_tensor shares = ah_graph_shares(graph, logits, routes);
    return ah_graph_add_inplace(
        graph, y, ah__graph_record(graph, AH_OP_LINEAR, (struct ah_attr){0}, ah__values(shares.id, biases.id)));
}

/* Records the product of gates and what they open, from rows that have both. */
static struct ah_tensor opened(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor rows)
{
    return decoder->gate_limit > 0
               ? ah_graph_swiglu_clamped(graph, rows, (float)decoder->gate_scale, (float)decoder->gate_limit)
               : ah_graph_silu_mul_halves(graph, rows);
}

/* Records what the experts of each token give. */
static struct ah_tensor routed(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x)
{
    const struct ah_decoder_experts *names = decoder->experts;
    struct ah_part_experts in = {
        .count = decoder->expert_count, .in = decoder->hidden_size, .out = decoder->expert_size, .std = decoder->std};
    struct ah_part_experts out = in;
    out.in = in.out, out.out = in.in;
    struct ah_tensor logits = router(graph, decoder, x);
    struct ah_routes routes = ah_graph_route(graph, logits, (int)decoder->picks, decoder->picks_normalised);
    struct ah_tensor rows = ah_graph_dispatch(graph, x, &routes);
    if (names->up) {
        struct ah_tensor gate = ah__part_experts(graph, names->gate, rows, &in, &routes);
        rows = ah_graph_silu_mul(graph, gate, ah__part_experts(graph, names->up, rows, &in, &routes));
    } else {
        in.out *= 2;
        in.bias = names->biases;
        rows = opened(graph, decoder, ah__part_experts(graph, names->gate, rows, &in, &routes));
    }
    /* A row is weighed before the last product, which is linear: so that product's result is not kept for backward. */
    rows = ah_graph_scale_rows(graph, rows, &routes);
    rows = ah_graph_combine(graph, ah__part_experts(graph, names->down, rows, &out, &routes), &routes);
    return biased(graph, decoder, rows, logits, &routes);
}

/* Records what the expert of all tokens gives. */
static struct ah_tensor shared(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x)
{
    const struct ah_decoder_experts *names = decoder->experts;
    const struct ah_part_linear to_one = {.in = decoder->hidden_size, .out = 1, .std = decoder->std};
    ah_graph_scope_push(graph, "%s", names->shared);
    struct ah_tensor y = ah__decoder_record_gated(graph, decoder, x, decoder->shared_size);
    ah_graph_scope_pop(graph);
    return ah_graph_gate_rows(graph, y, ah__part_linear(graph, names->shared_gate, x, &to_one));
}

struct ah_tensor ah__decoder_record_experts(struct ah_graph *graph, const struct ah_decoder *decoder,
                                            struct ah_tensor x)
{
    const struct ah_decoder_experts *names = decoder->experts;
    ah_graph_scope_push(graph, "%s", names->scope);
    struct ah_tensor y = routed(graph, decoder, x);
    if (names->shared)
        y = ah_graph_add_inplace(graph, y, shared(graph, decoder, x));
    ah_graph_scope_pop(graph);
    return y;
}
