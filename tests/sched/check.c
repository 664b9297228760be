#include "sched/checker.h"

#include <stdlib.h>

/* States of so many blocks visit the device, those of no others; what arrives in a stage is what is updated there. */
static void check_streamed(const struct checker *c, const struct ah_span *update, const struct ah_span *offload)
{
    const struct ah_switches *switches = &c->config->switches;
    int g = update->item.partition;
    if (update->item.kind != AH_ITEM_UPDATE_STAGED)
        return;
    assert_in_range(g, first_updated(c->config), switches->layers);
    const struct ah_span *states = states_of(c, update);
    after_span(states, offload, "states after their gradient");
    after_span(update, states, "staged update after its states");
    assert_int_equal(states->item.stage, update->item.stage);
    assert_int_equal(states->item.set, update->item.set);
    assert_in_range(update->item.stage, 0, AH_STAGING_BUFFERS - 1);
}

/* Of each iteration's updates so many blocks' are staged. */
static void check_streams(const struct checker *c, int64_t k)
{
    int streams = 0;
    for (int g = first_updated(c->config); g <= c->config->switches.layers; g++)
        streams += on_host(c->config, g) && update_of(c, k, g, 0)->item.kind == AH_ITEM_UPDATE_STAGED;
    assert_int_equal(streams, c->config->switches.staged);
}

/* A stage holds one piece from its arrival until it has gone home; pieces pass in turn. */
static void check_stages(const struct checker *c)
{
    int64_t free_ns[AH_STAGING_BUFFERS] = {0};
    const struct ah_timeline *timeline = c->timeline;
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *update = &timeline->spans[i];
        if (update->item.kind != AH_ITEM_UPDATE_STAGED)
            continue;
        assert_true(states_of(c, update)->start_ns >= free_ns[update->item.stage]);
        free_ns[update->item.stage] = update->end_ns;
    }
}

/* The index-th of the blocks whose activations pass the stages, from 0; every so many-th, from the first on. */
static int passing(const struct ah_switches *switches, int index)
{
    int trained = switches->layers - switches->frozen_blocks;
    return 1 + switches->frozen_blocks + index * trained / (switches->offload_activations + AH_ACTIVATION_BUFFERS);
}

/* What waits on the host: of so many blocks and of no others. A stage has a block's activations from the forward that
 * writes its input until they have left, and from their coming back until its backward is over; then the next one's. */
static void check_activations(const struct checker *c, int64_t k)
{
    const struct ah_switches *switches = &c->config->switches;
    int found = 0;
    for (int g = 0; g <= switches->layers + 1; g++)
        found += get(c, k, g, AH_ITEM_ACTIVATIONS_OUT) != NULL || get(c, k, g, AH_ITEM_ACTIVATIONS_IN) != NULL;
    assert_int_equal(found, switches->offload_activations);
    for (int i = 0; i < switches->offload_activations; i++) {
        int g = passing(switches, i), above = passing(switches, i + AH_ACTIVATION_BUFFERS);
        const struct ah_span *out = get(c, k, g, AH_ITEM_ACTIVATIONS_OUT), *in = get(c, k, g, AH_ITEM_ACTIVATIONS_IN);
        after(c, k, g, AH_ITEM_ACTIVATIONS_OUT, get(c, k, g, AH_ITEM_FORWARD), "forward");
        after_span(get(c, k, above - 1, AH_ITEM_FORWARD), out, "forward that writes into the stage");
        after_span(in, get(c, k, above, AH_ITEM_BACKWARD), "activations back after those above were read");
        after_span(in, out, "activations back after they left");
        after(c, k, g, AH_ITEM_BACKWARD, in, "its activations");
        const struct ah_span *backward = get(c, k, g, AH_ITEM_BACKWARD);
        assert_int_equal(out->item.recompute, backward->item.recompute);
        assert_int_equal(in->item.selective, backward->item.selective);
    }
}

/* The last blocks of those whose states are on the device. */
static bool stays_whole(const struct ah_sched_config *config, int g)
{
    int on_device = config->switches.layers - config->switches.offload_optimizer;
    return g >= 1 && g <= on_device && on_device - g < config->switches.unsharded;
}

static bool casts(const struct ah_sched_config *config, int g)
{
    if (g < 1 || g > config->switches.layers || stays_whole(config, g))
        return false;
    bool released = refetches(config, g) || (is_frozen(config, g) && on_host(config, g));
    return config->switches.world_size > 1 && !released;
}

static void check_casts(const struct checker *c, int64_t k, int g)
{
    const struct ah_span *cast = get(c, k, g, AH_ITEM_CAST), *again = get_again(c, k, g, AH_ITEM_CAST);
    after_span(get(c, k, g, AH_ITEM_FORWARD), cast, "forward after its cast");
    after_span(get(c, k, g, AH_ITEM_BACKWARD), again, "backward after its cast");
    if (on_host(c->config, g))
        after_span(cast, get_chunk(c, k, g, AH_ITEM_PREFETCH, c->config->switches.chunks - 1), "cast after the fetch");
    else if (k > 0)
        after_span(cast, get(c, k - 1, g, AH_ITEM_UPDATE_DEVICE), "cast after the last update");
}

/* What ranks have summed of its gradient waits for the norm in a place of its own, not in a buffer. */
static bool waits_reduced(const struct ah_sched_config *config, int g)
{
    bool block = g >= 1 && g <= config->switches.layers;
    return config->switches.world_size > 1 && config->clips && block && !on_host(config, g);
}

static void check_ranks(const struct checker *c, int64_t k, int g)
{
    const struct ah_span *gather = get(c, k, g, AH_ITEM_GATHER), *again = get_again(c, k, g, AH_ITEM_GATHER);
    const struct ah_span *reduce = get(c, k, g, AH_ITEM_REDUCE);
    bool ends = (g == 0 || g > c->config->switches.layers) && !c->config->switches.share_embedding_head;
    bool host = on_host(c->config, g), brought_again = casts(c->config, g) || refetches(c->config, g);
    after_span(get(c, k, g, AH_ITEM_FORWARD), gather, "forward after its gather");
    assert_int_equal(gather->item.stays, !host && (ends || stays_whole(c->config, g)));
    assert_false(again && again->item.stays);
    after_span(reduce, get(c, k, g, AH_ITEM_BACKWARD), "reduction after backward");
    after_span(get(c, k, g, host ? AH_ITEM_OFFLOAD : AH_ITEM_UPDATE_DEVICE), reduce,
               "gradient used after its reduction");
    if (k > 0 && waits_reduced(c->config, g))
        after_span(reduce, get(c, k - 1, g, AH_ITEM_UPDATE_DEVICE), "reduction after the last one was used");
    if (host)
        after_span(gather, get(c, k, g, AH_ITEM_PREFETCH), "gather after the fetch");
    if (casts(c->config, g))
        after_span(gather, get(c, k, g, AH_ITEM_CAST), "gather after the cast");
    if (stays_whole(c->config, g) && k > 0)
        after_span(gather, get(c, k - 1, g, AH_ITEM_UPDATE_DEVICE), "gather after the last update");
    if (!brought_again) {
        assert_null(again);
    } else {
        after_span(get(c, k, g, AH_ITEM_BACKWARD), again, "backward after its gather");
        after_span(again, refetches(c->config, g) ? get(c, k, g, AH_ITEM_REFETCH) : get_again(c, k, g, AH_ITEM_CAST),
                   "gather again");
    }
    if (g == 0 && c->config->shared_embedding)
        after_span(get(c, k, c->config->switches.layers + 1, AH_ITEM_FORWARD), gather,
                   "head after the embedding's gather");
}

/* A block without backward: it runs forward with what its parameters are, and nothing else. */
static void check_frozen(const struct checker *c, int64_t k, int g)
{
    static const enum ah_item_kind never[] = {AH_ITEM_BACKWARD,    AH_ITEM_REFETCH,       AH_ITEM_OFFLOAD,
                                              AH_ITEM_UPDATE_HOST, AH_ITEM_UPDATE_DEVICE, AH_ITEM_UPDATE_SPECULATIVE,
                                              AH_ITEM_EVICT,       AH_ITEM_REDUCE};
    const struct ah_span *forward = get(c, k, g, AH_ITEM_FORWARD);
    bool whole = stays_whole(c->config, g), ranks = c->config->switches.world_size > 1;
    after(c, k, g, AH_ITEM_FORWARD, get(c, k, g - 1, AH_ITEM_FORWARD), "its input");
    assert_true(forward->item.recompute && !forward->item.selective);
    for (size_t i = 0; i < AH_LENGTH(never); i++)
        assert_null(get(c, k, g, never[i]));
    assert_true(!get_again(c, k, g, AH_ITEM_CAST) && !get_again(c, k, g, AH_ITEM_GATHER));
    for (int t = 0; on_host(c->config, g) && t < c->config->switches.chunks; t++)
        after_span(forward, get_chunk(c, k, g, AH_ITEM_PREFETCH, t), "forward after its fetch");
    assert_true((get(c, k, g, AH_ITEM_CAST) != NULL) == casts(c->config, g));
    assert_true((get(c, k, g, AH_ITEM_GATHER) != NULL) == (ranks && !whole));
    if (casts(c->config, g))
        after_span(get(c, k, g, AH_ITEM_GATHER), get(c, k, g, AH_ITEM_CAST), "gather after the cast");
    else if (ranks && !whole)
        after_span(get(c, k, g, AH_ITEM_GATHER), get(c, k, g, AH_ITEM_PREFETCH), "gather after the fetch");
    if (ranks && !whole)
        after_span(forward, get(c, k, g, AH_ITEM_GATHER), "forward after its gather");
}

static void check_group(const struct checker *c, int64_t k, int g)
{
    const struct ah_span *forward = get(c, k, g, AH_ITEM_FORWARD), *backward = get(c, k, g, AH_ITEM_BACKWARD);
    int head = c->config->switches.layers + 1;
    if (ends(c, k) || g > 0 || !is_late(c))
        after(c, k, g, AH_ITEM_BACKWARD, forward, "forward");
    else
        assert_null(backward);
    if (stays_whole(c->config, g)) {
        assert_null(get(c, k, g, AH_ITEM_CAST));
        assert_true(forward->item.param_buffer < 0 && backward->item.param_buffer < 0);
    }
    if (casts(c->config, g))
        check_casts(c, k, g);
    if (c->config->switches.world_size > 1)
        check_ranks(c, k, g);
    after(c, k, g, AH_ITEM_FORWARD,
          g ? get(c, k, g - 1, AH_ITEM_FORWARD) : get(c, k - k % c->of_iteration, 0, AH_ITEM_INPUT), "its input");
    int above = g == 0 ? c->config->switches.frozen_blocks + 1 : g + 1;
    if (g < head && backward)
        after(c, k, g, AH_ITEM_BACKWARD, get(c, k, above, AH_ITEM_BACKWARD), "the backward above");
    if (!on_host(c->config, g)) {
        if (ends(c, k))
            after(c, k, g, AH_ITEM_UPDATE_DEVICE, backward, "backward");
        else
            assert_null(get(c, k, g, AH_ITEM_UPDATE_DEVICE));
        if (k > 0 && begins(c, k))
            after(c, k, g, AH_ITEM_FORWARD, get(c, k - 1, g, AH_ITEM_UPDATE_DEVICE), "the last update");
        return;
    }
    for (int t = 0; t < c->config->switches.chunks; t++) {
        const struct ah_span *fetch = get_chunk(c, fetched_in(c, k, g), g, AH_ITEM_PREFETCH, t),
                             *offload = get_chunk(c, k, g, AH_ITEM_OFFLOAD, t);
        after_span(forward, fetch, "forward after its fetch");
        if (k > 0 && begins(c, k))
            after_span(fetch, update_of(c, k - 1, g, t), "fetch after the last update");
        if (!ends(c, k)) {
            assert_true(!offload && !update_of(c, k, g, t));
            continue;
        }
        after_span(offload, backward, "offload after backward");
        after_span(update_of(c, k, g, t), offload, "update after its gradient");
        check_streamed(c, update_of(c, k, g, t), offload);
    }
    bool evicted = refetches(c->config, g) && c->config->policy->evicts && c->config->switches.world_size == 1;
    assert_true((get(c, k, g, AH_ITEM_EVICT) != NULL) == evicted);
    if (evicted) {
        after(c, k, g, AH_ITEM_EVICT, forward, "forward");
        after(c, k, g, AH_ITEM_REFETCH, get(c, k, g, AH_ITEM_EVICT), "eviction");
    }
    if (refetches(c->config, g)) {
        after(c, k, g, AH_ITEM_BACKWARD, get(c, k, g, AH_ITEM_REFETCH), "refetch");
        if (ends(c, k))
            after_span(update_of(c, k, g, 0), get(c, k, g, AH_ITEM_REFETCH),
                       "update after the refetch of what it changes");
    }
    if (g == 0 && c->config->shared_embedding)
        after(c, k, head, AH_ITEM_FORWARD, get(c, fetched_in(c, k, 0), 0, AH_ITEM_PREFETCH),
              "prefetch of the embedding");
}

/* With clipping: what is final comes after the norm is known (on the device: after the last backward), what is
 * speculative goes to a set of its own, what is fetched comes from the set of the update that counts, and only once the
 * norm is known. */
static void check_clipping(const struct checker *c, int64_t k, int g)
{
    const struct ah_span *norms = get(c, k, 0, AH_ITEM_RESULT);
    if (!on_host(c->config, g)) {
        after_span(get(c, k, g, AH_ITEM_UPDATE_DEVICE), get(c, k, 0, AH_ITEM_BACKWARD),
                   "update after the last backward");
        return;
    }
    for (int t = 0; t < c->config->switches.chunks; t++) {
        const struct ah_span *final = get_chunk(c, k, g, AH_ITEM_UPDATE_HOST, t);
        const struct ah_span *ahead = get_chunk(c, k, g, AH_ITEM_UPDATE_SPECULATIVE, t);
        const struct ah_span *fetch = get_chunk(c, k + 1, g, AH_ITEM_PREFETCH, t);
        const struct ah_span *before = get_chunk(c, fetched_in(c, k, g), g, AH_ITEM_PREFETCH, t);
        if (final)
            after_span(final, norms, "final update after the norms");
        if (final && ahead)
            after_span(final, ahead, "update again after the speculative one");
        if (fetch) /* which may be ahead of the norms, but not what uses it */
            after_span(get(c, k + 1, g, c->config->switches.world_size > 1 ? AH_ITEM_GATHER : AH_ITEM_FORWARD), norms,
                       "parameters used after the norms");
        if (fetch && casts(c->config, g))
            after(c, k + 1, g, AH_ITEM_CAST, norms, "the norms");
        if (fetch)
            assert_int_equal(fetch->item.set, final ? final->item.set : ahead->item.shadow_set);
        assert_int_equal((final ? final : ahead)->item.set, before->item.set);
        if (ahead)
            assert_int_not_equal(ahead->item.set, ahead->item.shadow_set);
    }
}

/* No two blocks use one set in an iteration, nor does a speculative update write what another block uses. */
static void check_sets(const struct checker *c, int64_t k)
{
    int first = first_updated(c->config), last = c->config->switches.layers - c->config->switches.disk_blocks;
    int sets = last - first + 1 + c->config->switches.shadows;
    for (int a = first; a <= last; a++)
        for (int b = first; b <= last; b++) {
            const struct ah_span *ahead = get(c, k, a, AH_ITEM_UPDATE_SPECULATIVE);
            int set = get(c, fetched_in(c, k, b), b, AH_ITEM_PREFETCH)->item.set;
            int other = get(c, fetched_in(c, k, a), a, AH_ITEM_PREFETCH)->item.set;
            assert_true(a == b || other != set);
            assert_true(!ahead || k == 0 || ahead->item.shadow_set != other);
            assert_in_range(set, 0, sets - 1);
        }
}

/* The last item of a step that reads a group's gradient on the device. */
static const struct ah_span *gradient_end(const struct checker *c, int64_t k, int g)
{
    return on_host(c->config, g) ? get_chunk(c, k, g, AH_ITEM_OFFLOAD, c->config->switches.chunks - 1)
                                 : get(c, k, g, AH_ITEM_UPDATE_DEVICE);
}

/* A place that embedding and head share has the embedding's parameters until its forward, then the head's until its
 * backward; and the head's gradient, from its forward on, until it is over, then the embedding's. */
static void check_ends(const struct checker *c, int64_t k)
{
    int head = c->config->switches.layers + 1;
    const struct ah_span *forward = get(c, k, 0, AH_ITEM_FORWARD);
    if (!c->config->switches.share_embedding_head)
        return;
    for (int t = 0; on_host(c->config, head) && t < c->config->switches.chunks; t++)
        after_span(get_chunk(c, k, head, AH_ITEM_PREFETCH, t), forward, "the head's parameters in their place");
    for (int t = 0; k > 0 && on_host(c->config, 0) && t < c->config->switches.chunks; t++)
        after_span(get_chunk(c, k, 0, AH_ITEM_PREFETCH, t), get(c, k - 1, head, AH_ITEM_BACKWARD),
                   "the embedding's parameters in their place");
    for (int g = 0; g <= head; g += head) {
        bool cast = !on_host(c->config, g);
        assert_true((get(c, k, g, AH_ITEM_CAST) != NULL) == cast);
        assert_null(get_again(c, k, g, AH_ITEM_CAST));
        if (cast && k > 0)
            after(c, k, g, AH_ITEM_CAST, get(c, k - 1, g, AH_ITEM_UPDATE_DEVICE), "the last update");
        if (cast)
            after(c, k, g, AH_ITEM_GATHER, get(c, k, g, AH_ITEM_CAST), "its cast");
    }
    if (!on_host(c->config, head))
        after(c, k, head, AH_ITEM_CAST, forward, "the embedding's forward");
    if (!on_host(c->config, head) && c->config->clips)
        return; /* gradients have a place each */
    if (ends(c, k))
        after(c, k, 0, AH_ITEM_BACKWARD, gradient_end(c, k, head), "the head's gradient");
    if (k > 0 && begins(c, k))
        after(c, k, head, AH_ITEM_FORWARD, gradient_end(c, k - 1, 0), "the embedding's gradient");
}

/* A prefetch that was done again had fetched what a speculative update made, to the same buffer. */
static void check_voided(const struct checker *c, const struct ah_span *fetch)
{
    const struct ah_item *item = &fetch->item;
    const struct ah_span *ahead =
        get_chunk(c, item->round - 1, item->partition, AH_ITEM_UPDATE_SPECULATIVE, item->chunk);
    const struct ah_span *final = get_chunk(c, item->round - 1, item->partition, AH_ITEM_UPDATE_HOST, item->chunk);
    const struct ah_span *again = get_chunk(c, item->round, item->partition, AH_ITEM_PREFETCH, item->chunk);
    assert_true(c->config->clips);
    after_span(fetch, ahead, "fetch after the speculative update");
    after_span(again, final, "fetch again after the update that counts");
    after_span(again, fetch, "fetch again after the first");
    assert_int_equal(item->set, ahead->item.shadow_set);
    assert_int_equal(item->param_buffer, again->item.param_buffer);
}

/* The first fetch of a chunk, voided or not. */
static const struct ah_span *first_fetch(const struct checker *c, int64_t k, int g)
{
    for (size_t i = 0; i < c->voided_count; i++)
        if (c->voided[i]->item.round == k && c->voided[i]->item.partition == g && c->voided[i]->item.chunk == 0)
            return c->voided[i];
    return get(c, k, g, AH_ITEM_PREFETCH);
}

static void check_round(const struct checker *c, int64_t k)
{
    int head = c->config->switches.layers + 1;
    for (int g = 0; g <= head; g++)
        (is_frozen(c->config, g) ? check_frozen : check_group)(c, k, g);
    check_ends(c, k);
    check_sets(c, k);
    check_activations(c, k);
    check_shares(c, k);
    check_sums(c, k);
    int64_t two_ago = k - c->of_iteration - 1; /* the last round of the iteration before the last */
    if (begins(c, k) && two_ago >= 0)
        after(c, k, 0, AH_ITEM_INPUT, get(c, two_ago, 0, AH_ITEM_BACKWARD), "the last reader of its buffer");
    if (begins(c, k) && two_ago >= 0)
        after(c, k, 0, AH_ITEM_FORWARD, get(c, two_ago, 0, AH_ITEM_RESULT), "what reads the results in its place");
    if (c->config->policy->barrier && k > 0 && begins(c, k))
        for (int g = 0; g <= head; g++)
            if (on_host(c->config, g) && !is_frozen(c->config, g))
                after(c, k, 0, AH_ITEM_FORWARD, update_of(c, k - 1, g, 0), "the barrier");
    if (!ends(c, k))
        return;
    for (int g = 0; c->config->clips && g <= head; g++)
        if (!is_frozen(c->config, g))
            check_clipping(c, k, g);
    check_streams(c, k);
    after(c, k, head, AH_ITEM_RESULT, get(c, k, head, AH_ITEM_FORWARD), "forward");
    after(c, k, 0, AH_ITEM_RESULT, get(c, k, 0, AH_ITEM_BACKWARD), "backward");
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static void check_buffers(const struct checker *c)
{
    struct hold *holds = calloc((size_t)(c->rounds * c->config->switches.layers * 5), sizeof *holds);
    size_t count = 0;
    for (int64_t k = 0; k < c->rounds; k++)
        for (int g = 1; g <= c->config->switches.layers; g++) {
            const struct ah_span *backward = get(c, k, g, AH_ITEM_BACKWARD), *fetch = first_fetch(c, k, g);
            const struct ah_span *refetch = get(c, k, g, AH_ITEM_REFETCH);
            if (is_frozen(c->config, g)) {
                const struct ah_span *from = casts(c->config, g) ? get(c, k, g, AH_ITEM_CAST) : fetch;
                if (from)
                    hold_add(holds, &count, from, get(c, k, g, AH_ITEM_FORWARD), from->item.param_buffer);
                continue;
            }
            if (c->config->own_gradients || sum_stays(c, g) || !ends(c, k)) {
                assert_int_equal(backward->item.grad_buffer, -1);
                if (ends(c, k) && k >= c->of_iteration)
                    after(c, k, g, AH_ITEM_BACKWARD, gradient_end(c, k - c->of_iteration, g),
                          "the last reader of its gradient");
            } else {
                hold_add(holds, &count, backward,
                         waits_reduced(c->config, g) ? get(c, k, g, AH_ITEM_REDUCE) : gradient_end(c, k, g),
                         backward->item.grad_buffer);
            }
            if (refetch) {
                hold_add(holds, &count, fetch, get(c, k, g, AH_ITEM_FORWARD), fetch->item.param_buffer);
                hold_add(holds, &count, refetch, backward, refetch->item.param_buffer);
            } else if (casts(c->config, g)) {
                const struct ah_span *cast = get(c, k, g, AH_ITEM_CAST), *again = get_again(c, k, g, AH_ITEM_CAST);
                hold_add(holds, &count, cast, get(c, k, g, AH_ITEM_FORWARD), cast->item.param_buffer);
                hold_add(holds, &count, again, backward, again->item.param_buffer);
            } else if (is_kept(c, g)) {
                assert_true((fetch != NULL) == begins(c, k));
                for (int64_t last = k + c->of_iteration - 1; fetch && last < c->rounds; last = c->rounds)
                    hold_add(holds, &count, fetch, get(c, last, g, AH_ITEM_BACKWARD), fetch->item.param_buffer);
            } else if (fetch) {
                hold_add(holds, &count, fetch, backward, fetch->item.param_buffer);
            }
        }
    check_holds(holds, count, c->config->switches.buffers);
    free(holds);
}

void check_timeline(const struct ah_timeline *timeline, const struct ah_sched_config *config)
{
    struct checker c = {
        .timeline = timeline, .config = config, .of_iteration = config->rounds > 1 ? config->rounds : 1};
    for (size_t i = 0; i < timeline->span_count; i++)
        if (timeline->spans[i].item.round >= c.rounds)
            c.rounds = timeline->spans[i].item.round + 1;
    int64_t one = c.rounds * (config->switches.layers + 2) * AH_ITEM_COUNT;
    c.voided = calloc(timeline->span_count, sizeof(const struct ah_span *));
    c.found = calloc((size_t)((AH_SCHED_MOST_CHUNKS + 1) * one), sizeof *c.found);
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *span = &timeline->spans[i];
        if (span->lane == AH_LANE_DISK)
            continue; /* check_disk.c */
        bool again = span->item.phase == AH_PHASE_BACKWARD &&
                     (span->item.kind == AH_ITEM_CAST || span->item.kind == AH_ITEM_GATHER);
        const struct ah_span **at =
            &c.found[(again ? one : span->item.chunk * one) +
                     (span->item.round * (config->switches.layers + 2) + span->item.partition) * AH_ITEM_COUNT +
                     (int)kept_as(&span->item)];
        if (*at && span->item.kind == AH_ITEM_PREFETCH)
            c.voided[c.voided_count++] = *at;
        else if (*at)
            fail_msg("%s of partition %d runs twice", ah__item_names[span->item.kind], span->item.partition);
        *at = span;
    }
    for (int64_t k = 0; k < c.rounds; k++)
        check_round(&c, k);
    for (size_t i = 0; i < c.voided_count; i++)
        check_voided(&c, c.voided[i]);
    check_buffers(&c);
    check_sum_places(&c);
    check_stages(&c);
    check_disk(&c);
    free(c.voided);
    free(c.found);
}
