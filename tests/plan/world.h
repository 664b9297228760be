/* A made-up partition on a made-up machine, for tests of what plans are worth. */
#ifndef AH_TESTS_PLAN_WORLD_H
#define AH_TESTS_PLAN_WORLD_H

#include <stdlib.h>

#include "plan/fixture.h"
#include "plan/predict.h"

struct world {
    struct fixture fixture;
    struct ah_profile profile;
    struct ah_predictor predictor;
};

/* Costs of one machine: compute, link, host each with a speed of its own, so that every regime occurs. */
static inline void world_init(struct world *world, uint64_t seed, int layers, const char *policy)
{
    fixture_init(&world->fixture, seed);
    struct fixture *f = &world->fixture;
    f->partition.layers = layers;
    f->partition.group_count = layers + 2;
    fixture_groups(f);
    int64_t compute = fixture_draw(f, 100, 3000), link = fixture_draw(f, 10, 3000), host = fixture_draw(f, 10, 3000);
    world->profile = (struct ah_profile){.partition_signature = f->partition.signature};
    struct ah_costs *costs = &world->profile.costs;
    costs->layers = layers;
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        int64_t size = class == AH_CLASS_BLOCK ? 10 : fixture_draw(f, 1, 10);
        costs->ns[AH_ITEM_FORWARD][class] = compute * size;
        costs->ns[AH_ITEM_BACKWARD][class] = 2 * compute * size;
        costs->recompute_ns[class] = compute * size * 9 / 10;
        costs->selective_ns[class] = compute * size / 20;
        costs->ns[AH_ITEM_UPDATE_DEVICE][class] = size * 5;
        costs->ns[AH_ITEM_UPDATE_HOST][class] = host * size;
        costs->ns[AH_ITEM_PREFETCH][class] = costs->ns[AH_ITEM_REFETCH][class] = link * size;
        costs->ns[AH_ITEM_OFFLOAD][class] = link * size;
        costs->ns[AH_ITEM_INPUT][class] = costs->ns[AH_ITEM_RESULT][class] = 1;
    }
    bool streams = fixture_draw(f, 0, 1);
    costs->ns[AH_ITEM_STATES_IN][AH_CLASS_BLOCK] = streams * link * fixture_draw(f, 20, 80);
    costs->ns[AH_ITEM_UPDATE_STAGED][AH_CLASS_BLOCK] = streams * link * fixture_draw(f, 20, 80);
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            costs->lanes.slowdown[a][b] =
                a == b || a == AH_LANE_DISK || b == AH_LANE_DISK ? 1 : 1 + (double)fixture_draw(f, 0, 2) / 10;
    assert_ok(ah__predictor_init(&world->predictor, &f->partition, &world->profile, policy));
}

/* Programs of a further kind of blocks, faster or slower than the first. */
static inline void world_add_kind(struct ah_costs *costs, int class, int64_t tenths)
{
    costs->ns[AH_ITEM_FORWARD][class] = costs->ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK] * tenths / 10;
    costs->ns[AH_ITEM_BACKWARD][class] = costs->ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK] * tenths / 10;
    costs->recompute_ns[class] = costs->recompute_ns[AH_CLASS_BLOCK] * tenths / 10;
    costs->selective_ns[class] = costs->selective_ns[AH_CLASS_BLOCK] * tenths / 10;
}

/* Blocks are of two or three kinds. `from`: [2][WORLD_MIXED + 3], the caller's, at least as long as the world lives. */
enum { WORLD_MIXED = 13 };
static inline void world_mix(struct world *world, int from[2][WORLD_MIXED + 3])
{
    struct fixture *f = &world->fixture;
    int layers = f->partition.layers, further = (int)fixture_draw(f, 1, 2);
    f->partition.class_count = AH_CLASS_COUNT + further;
    for (int i = 0; i < further; i++) {
        world_add_kind(&world->profile.costs, AH_CLASS_COUNT + i, fixture_draw(f, 1, 30));
        f->partition.blocks_from[AH_CLASS_COUNT + i] = from[i];
        from[i][layers + 2] = from[i][layers + 1] = 0;
    }
    for (int block = layers; block > 0; block--) {
        int kind = (int)fixture_draw(f, 0, further);
        f->class_of[block] = (uint8_t)(kind ? AH_CLASS_COUNT + kind - 1 : AH_CLASS_BLOCK);
        for (int i = 0; i < further; i++)
            from[i][block] = from[i][block + 1] + (kind == i + 1);
    }
    world->predictor.costs = world->profile.costs;
    world->predictor.costs.class_of = f->class_of;
}

/* Some lowest blocks may have no backward; each takes as long forward as the first kind. */
static inline void world_add_frozen(struct world *world, struct ah_switches *switches)
{
    struct fixture *f = &world->fixture;
    int64_t *forward = world->profile.costs.ns[AH_ITEM_FORWARD];
    switches->frozen_blocks = f->partition.frozen_blocks;
    ah__switches_clamp(switches);
    if (switches->frozen_blocks > 0)
        forward[f->class_of[1]] = world->predictor.costs.ns[AH_ITEM_FORWARD][f->class_of[1]] = forward[AH_CLASS_BLOCK];
    world->predictor.costs.class_of = f->class_of;
}

/* A host so slow that states gain by the way through the device. */
static inline void world_favours_streams(struct world *world)
{
    enum { BLOCK = AH_CLASS_BLOCK };
    int64_t(*ns)[AH_CLASSES_MOST] = world->predictor.costs.ns;
    ns[AH_ITEM_STATES_IN][BLOCK] = ns[AH_ITEM_UPDATE_STAGED][BLOCK] = 6 * ns[AH_ITEM_PREFETCH][BLOCK];
    ns[AH_ITEM_UPDATE_HOST][BLOCK] += ns[AH_ITEM_FORWARD][BLOCK] + ns[AH_ITEM_STATES_IN][BLOCK];
    world->profile.costs = world->predictor.costs;
}

/* Device memory of a plan with all on the host, and of one with all on the device. */
static inline void smallest_and_largest(int64_t *least, int64_t *most, const struct ah_partition *partition)
{
    int64_t host;
    struct ah_plan plan = {.switches = {.layers = partition->layers, .checkpoint = partition->layers}};
    plan.switches.offload_optimizer = partition->layers;
    plan.switches.offload_params = partition->layers - 1;
    plan.switches.embedding_on_host = plan.switches.head_on_host = true;
    plan.switches.buffers = 2;
    ah__layout_bytes(least, &host, partition, &plan.switches, 0);
    plan = (struct ah_plan){.switches = {.layers = partition->layers, .buffers = 1}};
    ah__layout_bytes(most, &host, partition, &plan.switches, 0);
}

/* A step that waits for the last update's pieces: smaller ones than the search tries are faster. */
static inline void world_of_pieces(struct world *world, uint64_t seed)
{
    enum { LAYERS = 7, WHOLE_NS = 60000 };
    world_init(world, seed, LAYERS, "autohete");
    struct ah_costs *costs = &world->predictor.costs;
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        costs->ns[AH_ITEM_PREFETCH][class] = costs->ns[AH_ITEM_REFETCH][class] = WHOLE_NS;
        costs->ns[AH_ITEM_OFFLOAD][class] = costs->ns[AH_ITEM_UPDATE_HOST][class] = WHOLE_NS;
        costs->ns[AH_ITEM_FORWARD][class] = costs->ns[AH_ITEM_BACKWARD][class] = WHOLE_NS / 4;
    }
    costs->ns[AH_ITEM_STATES_IN][AH_CLASS_BLOCK] = costs->ns[AH_ITEM_UPDATE_STAGED][AH_CLASS_BLOCK] = 0;
    world->profile.costs = *costs;
}

/* In more pieces than a search tries, in the best of some orders: such a plan it would not find by itself. */
static inline struct ah_plan world_in_pieces(const struct world *world, const struct ah_plan *found)
{
    struct ah_plan fastest = *found, plan = *found;
    plan.switches.chunks = AH_SCHED_MOST_CHUNKS;
    for (int i = 0; i <= plan.switches.buffers; i++) {
        plan.switches.out_of_order = i;
        assert_ok(ah__plan_predict(&plan, &world->predictor));
        if (i == 0 || plan.step_ns < fastest.step_ns)
            fastest = plan;
    }
    return fastest;
}

/* What just suffices for all blocks on the host, and some buffers. */
static inline struct ah_budget world_budget(const struct world *world)
{
    int64_t device, host;
    struct ah_switches low = {.layers = world->fixture.partition.layers, .world_size = 1, .chunks = 1, .buffers = 6};
    low.checkpoint = low.offload_params = low.offload_optimizer = low.layers;
    low.embedding_on_host = low.head_on_host = true;
    ah__layout_bytes(&device, &host, &world->fixture.partition, &low, 0);
    return (struct ah_budget){.device_bytes = device};
}

static inline void expect_same_plan(const struct ah_plan *a, const struct ah_plan *b)
{
    char *text[2];
    assert_ok(ah_plan_json(&text[0], a));
    assert_ok(ah_plan_json(&text[1], b));
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
}

#endif
