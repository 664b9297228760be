/* Published systems against their own rules, and memory as they need it against sums done by hand. */
#include "test.h"

#include "base/hash.h"
#include "paper/published.h"
#include "plan/evaluate.h"
#include "plan/machines.h"
#include "plan/search.h"
#include "timeline/timeline.h"

static struct ah_evaluation evaluate(const struct ah_partition *partition, const struct ah_profile *profile,
                                     const struct ah_budget *budget, const char *policy)
{
    struct ah_evaluation found;
    assert_ok(ah_plan_evaluate(&found, partition, profile, budget, policy, NULL));
    return found;
}

static int64_t draw_ns(uint64_t *drawn, int64_t low, int64_t high)
{
    return low + (int64_t)(ah__random_bits(5, (*drawn)++) % (uint64_t)(high - low + 1));
}

/* Blocks that must be computed while one arrives and a gradient leaves, from the published rule's words. */
static int smallest_window(const struct ah_costs *costs, bool recomputes, int layers)
{
    int64_t forward = costs->ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK], in = costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK];
    int64_t backward = costs->ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK], out = costs->ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK];
    int64_t again = costs->ns[AH_ITEM_REFETCH][AH_CLASS_BLOCK];
    backward += recomputes ? costs->recompute_ns[AH_CLASS_BLOCK] : 0;
    out = out > again ? out : again;
    int64_t blocks = (in + forward - 1) / forward, below = (out + backward - 1) / backward;
    blocks = blocks > below ? blocks : below;
    return blocks < 1 ? 1 : blocks > layers ? layers : (int)blocks;
}

static void strongholds_window_follows_its_rule(void **state)
{
    struct ah_partition *partition = gpt("gpt-4b", 8);
    struct ah_profile *profile = a100(partition);
    struct ah_budget none = {0};
    uint64_t drawn = 0;
    bool seen[4] = {false};
    for (int i = 0; i < 40; i++) {
        struct ah_costs *costs = &profile->costs;
        costs->ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK] = draw_ns(&drawn, 10000000, 30000000);
        costs->ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK] = draw_ns(&drawn, 10000000, 60000000);
        costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK] = draw_ns(&drawn, 1000000, 80000000);
        costs->ns[AH_ITEM_REFETCH][AH_CLASS_BLOCK] = costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK];
        costs->ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK] = draw_ns(&drawn, 1000000, 80000000);
        const struct ah_evaluation found = evaluate(partition, profile, &none, "stronghold");
        const struct ah_switches *switches = &found.plan.switches;
        int window = switches->layers - switches->offload_optimizer;
        assert_int_equal(window, smallest_window(costs, switches->checkpoint > 0, partition->layers));
        assert_int_equal(switches->buffers, window + 3); /* the window, the next, two gradients */
        struct ah_evaluation best = evaluate(partition, profile, &none, "stronghold-best");
        assert_true(best.plan.step_ns <= found.plan.step_ns);
        seen[window < 4 ? window : 3] = true;
    }
    assert_true(seen[1] && seen[2] && seen[3]);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

/* 18B: two blocks hide the transfers; the window shrinks to what fits when memory does not hold them. */
static void a_window_too_large_is_the_largest_that_fits(void **state)
{
    struct ah_partition *partition = gpt("gpt-18b", 8);
    struct ah_profile *profile = a100(partition);
    assert_int_equal(smallest_window(&profile->costs, true, partition->layers), 2);
    struct ah_budget budget = {.device_bytes = (int64_t)60 << 30};
    struct ah_evaluation found = evaluate(partition, profile, &budget, "stronghold");
    assert_int_equal(found.plan.switches.offload_optimizer, 21);
    budget.device_bytes = (int64_t)39 << 30; /* two blocks' states, but not all the buffers */
    found = evaluate(partition, profile, &budget, "stronghold");
    assert_int_equal(found.plan.switches.offload_optimizer, 21);
    assert_true(found.plan.switches.buffers < 5);
    budget.device_bytes = (int64_t)33 << 30;
    found = evaluate(partition, profile, &budget, "stronghold");
    assert_int_equal(found.plan.switches.offload_optimizer, 22);
    assert_int_equal(found.plan.switches.buffers, 4); /* with all its buffers, since they fit */
    ah_profile_free(profile);
    ah_partition_free(partition);
}

/* Every chunk that is not on the device for backward has been copied home in forward, once, each costing what a
 * gradient costs; nothing computes meanwhile. */
static void patrickstars_evictions_are_copies(void **state)
{
    enum { ITERATIONS = 4 };
    struct ah_partition *partition = gpt("gpt-18b", 8);
    struct ah_profile *profile = a100(partition);
    struct ah_budget budget = {.device_bytes = (int64_t)39 << 30};
    struct ah_evaluation found = evaluate(partition, profile, &budget, "patrickstar");
    struct ah_timeline *timeline = NULL;
    int evictions = 0, evicted = found.plan.switches.offload_params;
    assert_true(found.fits && evicted > 0 && evicted < partition->layers);
    assert_ok(ah_plan_simulate(&timeline, &found.plan, partition, profile, ITERATIONS));
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *evict = &timeline->spans[i];
        if (evict->item.kind != AH_ITEM_EVICT)
            continue;
        evictions++;
        assert_int_equal(evict->lane, AH_LANE_D2H);
        assert_true(evict->end_ns - evict->start_ns >= profile->costs.ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK]);
        for (size_t k = 0; k < timeline->span_count; k++) {
            const struct ah_span *other = &timeline->spans[k];
            if (other->lane == AH_LANE_COMPUTE)
                assert_true(other->end_ns <= evict->start_ns || other->start_ns >= evict->end_ns);
        }
    }
    assert_int_equal(evictions, ITERATIONS * evicted);
    ah_timeline_free(timeline);
    /* The most chunks that fit: one more does not. */
    struct ah_switches more = found.plan.switches;
    int64_t device, host;
    more.offload_params--;
    more.buffers++;
    ah__layout_bytes(&device, &host, partition, &more, 0);
    assert_true(device > budget.device_bytes);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

/* While one chunk is updated the next one's gradient arrives and the one before goes back. */
static void patrickstars_updates_are_pipelined(void **state)
{
    struct ah_partition *partition = gpt("gpt-18b", 8);
    struct ah_profile *profile = a100(partition);
    struct ah_budget budget = {.device_bytes = (int64_t)39 << 30};
    struct ah_evaluation found = evaluate(partition, profile, &budget, "patrickstar");
    struct ah_timeline *timeline = NULL;
    int beside[AH_LANE_COUNT] = {0};
    assert_ok(ah_plan_simulate(&timeline, &found.plan, partition, profile, 3));
    for (size_t i = 0; i < timeline->span_count; i++)
        for (size_t k = 0; k < timeline->span_count; k++) {
            const struct ah_span *update = &timeline->spans[i], *copy = &timeline->spans[k];
            if (update->item.kind == AH_ITEM_UPDATE_HOST && copy->start_ns < update->end_ns &&
                copy->end_ns > update->start_ns)
                beside[copy->lane]++;
        }
    assert_true(beside[AH_LANE_D2H] > 0 && beside[AH_LANE_H2D] > 0);
    assert_int_equal(beside[AH_LANE_COMPUTE], 0);
    ah_timeline_free(timeline);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

/* AutoHete as published has the paper's switches and nothing else. */
static void as_published_is_plain(void **state)
{
    static const char *const models[] = {"gpt-4b", "gpt-18b"};
    for (size_t i = 0; i < 2; i++) {
        struct ah_partition *partition = gpt(models[i], 8);
        struct ah_profile *profile = a100(partition);
        struct ah_budget budget = {.device_bytes = (int64_t)39 << 30};
        struct ah_evaluation found = evaluate(partition, profile, &budget, "autohete-paper");
        const struct ah_switches *switches = &found.plan.switches;
        assert_true(found.fits);
        assert_false(switches->embedding_on_host || switches->head_on_host);
        assert_int_equal(switches->chunks, 1);
        assert_int_equal(switches->out_of_order, 0);
        ah_profile_free(profile);
        ah_partition_free(partition);
    }
}

/* 10B: 25 blocks of 453,064,704 parameters, width 6144, 48 heads, 50257 words; 8 x 1024 tokens. In bytes:
 * a token's channels, all tokens: 8192 * 6144 = 50,331,648; scores: 8192 * 48 * 1024 = 402,653,184. */
static const int64_t channels = 50331648, scores = 402653184, logits = (int64_t)8192 * 50257;
static const int64_t block_params = 453064704;

static void published_memory_is_what_its_rule_says(void **state)
{
    struct ah_partition *partition = gpt("gpt-10b", 8);
    struct published_shape shape = published_shape(partition);
    assert_int_equal(shape.tokens, 8192);
    assert_int_equal(shape.seq, 1024);
    assert_int_equal(shape.width, 6144);
    assert_int_equal(shape.heads, 48);
    assert_int_equal(shape.vocabulary, 50257);
    int64_t embedding = partition->groups[0].count, head = partition->groups[26].count, device, host;
    assert_int_equal(partition->groups[1].count, block_params);
    struct ah_switches all = {.layers = 25,
                              .checkpoint = 25,
                              .offload_optimizer = 25,
                              .embedding_on_host = true,
                              .head_on_host = true,
                              .buffers = 27,
                              .prefetch_distance = 1};
    /* ZeRO-Offload, all recomputed: inputs, what is around, and the larger of logits and one block; all parameters,
     * two buckets of 500 million; gradients of embedding and head. */
    int64_t block = 34 * channels + 5 * scores;
    int64_t larger = 12 * logits > block ? 12 * logits : block;
    published_bytes(&device, &host, partition, &all, &ah__policy_zero_offload);
    assert_int_equal(device, 25 * 2 * channels + 5 * channels + larger + 25 * 2 * block_params + 2 * 2 * 500000000LL +
                                 4 * (embedding + head));
    assert_int_equal(published_activation_bytes(partition, &all), 25 * 2 * channels + 5 * channels + larger);
    assert_int_equal(host, 18 * (25 * block_params + embedding + head));
    /* Nothing recomputed, three blocks updated on the device, in a system of buffers. */
    struct ah_switches some = {.layers = 25,
                               .checkpoint = 0,
                               .offload_optimizer = 22,
                               .offload_params = 20,
                               .buffers = 6,
                               .prefetch_distance = 1};
    published_bytes(&device, &host, partition, &some, &ah__policy_stronghold);
    assert_int_equal(device, 25 * block + 5 * channels + 12 * logits + 3 * 12 * block_params + 6 * 2 * block_params +
                                 16 * (embedding + head));
    assert_int_equal(host, 14 * 22 * block_params);
    some.world_size = 4; /* each has its part */
    published_bytes(&device, &host, partition, &some, &ah__policy_stronghold);
    assert_int_equal(host, 14 * 22 * block_params / 4);
    ah_partition_free(partition);
}

static bool fits_as_published(int64_t *over_bytes, const struct ah_partition *partition,
                              const struct ah_profile *profile, const struct ah_budget *budget)
{
    struct ah_predictor predictor;
    struct ah_evaluation found;
    assert_ok(ah__predictor_init(&predictor, partition, profile, "zero-offload"));
    predictor.count_bytes = published_bytes;
    assert_ok(ah__plan_evaluate(&found, &predictor, budget, NULL));
    ah__predictor_fini(&predictor);
    *over_bytes = found.over_bytes;
    return found.fits;
}

/* The rule decides what fits, and only where it is asked for. */
static void the_rule_belongs_to_the_predictor(void **state)
{
    struct ah_partition *partition = gpt("gpt-4b", 8);
    struct ah_profile *profile = a100(partition);
    struct ah_budget ours = {.device_bytes = (int64_t)16 << 30}, published = ours;
    int64_t over_bytes, none;
    assert_true(evaluate(partition, profile, &ours, "zero-offload").fits);
    assert_false(fits_as_published(&over_bytes, partition, profile, &published));
    published.device_bytes += over_bytes - 1;
    assert_false(fits_as_published(&none, partition, profile, &published));
    published.device_bytes++;
    assert_true(fits_as_published(&none, partition, profile, &published));
    ah_profile_free(profile);
    ah_partition_free(partition);
}

AH_TEST_CASES("plan/published", strongholds_window_follows_its_rule, a_window_too_large_is_the_largest_that_fits,
              patrickstars_evictions_are_copies, patrickstars_updates_are_pipelined, as_published_is_plain,
              published_memory_is_what_its_rule_says, the_rule_belongs_to_the_predictor)
