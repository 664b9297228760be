/* Mixtures of experts in place of a decoder's feed-forward network: their config keys, and their recording. */
#include "graph/graph.h"
#include "model/decoder.h"
#include "model/parts.h"

enum { SIZES = 3, MOST_EXPERTS = 1 << 12 };

/* Key for the number of experts in config.json of transformers 5, also where its hub's folders have another. */
static const char local_key[] = "num_local_experts";

/* Returns how many of the sizes have keys. */
static size_t sizes_of(struct ah_config_size sizes[SIZES], struct ah_decoder *decoder)
{
    const struct ah_decoder_experts *keys = decoder->experts;
    sizes[0] = (struct ah_config_size){keys->count_key, &decoder->expert_count, MOST_EXPERTS};
    sizes[1] = (struct ah_config_size){"num_experts_per_tok", &decoder->picks, AH_MOST_PICKS};
    sizes[2] = (struct ah_config_size){keys->size_key, &decoder->expert_size, 1 << 22};
    return keys->size_key ? SIZES : SIZES - 1;
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

/* Records the scores of experts. Adapters leave the router as it is. */
static struct ah_tensor router(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x)
{
    struct ah_tensor weight =
        ah__part_table(graph, decoder->experts->router, decoder->expert_count, decoder->hidden_size, decoder->std);
    return ah__graph_record(graph, AH_OP_LINEAR, (struct ah_attr){.out_in = true}, ah__values(x.id, weight.id));
}

struct ah_tensor ah__decoder_record_experts(struct ah_graph *graph, const struct ah_decoder *decoder,
                                            struct ah_tensor x)
{
    const struct ah_decoder_experts *names = decoder->experts;
    int64_t hidden = decoder->hidden_size, inner = decoder->expert_size, count = decoder->expert_count;
    ah_graph_scope_push(graph, "%s", names->scope);
    struct ah_routes routes =
        ah_graph_route(graph, router(graph, decoder, x), (int)decoder->picks, decoder->picks_normalised);
    struct ah_tensor rows = ah_graph_dispatch(graph, x, &routes);
    struct ah_part_experts in = {.count = count, .in = hidden, .out = inner, .std = decoder->std}, out = in;
    out.in = inner, out.out = hidden;
    struct ah_tensor gate = ah__part_experts(graph, names->gate, rows, &in, &routes);
    struct ah_tensor up = ah__part_experts(graph, names->up, rows, &in, &routes);
    /* A row is weighed before the last product, which is linear: so that product's result is not kept for backward. */
    rows = ah_graph_scale_rows(graph, ah_graph_silu_mul(graph, gate, up), &routes);
    x = ah_graph_combine(graph, ah__part_experts(graph, names->down, rows, &out, &routes), &routes);
    ah_graph_scope_pop(graph);
    return x;
}
