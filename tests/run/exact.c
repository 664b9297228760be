#include "run/exact.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "dev/host/states.h"
#include "plan/config.h"
#include "run/internal.h"
#include "sched/check.h"

static void check_gap(const char *state, const struct ah_partition *partition, int which, int64_t from, int64_t to)
{
    bool coded = ah__has_scales(partition->step.moments) && (which == 1 || which == 2);
    if (!coded) {
        for (int64_t i = ah__state_size(partition, which, from); i < ah__state_size(partition, which, to); i++)
            assert_int_equal(state[i], 0);
        return;
    }
    for (int64_t i = from; i < to; i++) {
        const uint8_t *group =
            (const uint8_t *)state + ah__state_bytes(partition->step.moments, i / AH_CODE8_GROUP * AH_CODE8_GROUP);
        float values[AH_CODE8_GROUP];
        ah__state_format(partition->step.moments)->widen(values, group, AH_CODE8_GROUP, which == 1);
        assert_true(values[i % AH_CODE8_GROUP] == 0);
    }
}

/* The same where only pieces can be looked at, which begin with whole groups of codes. */
static void check_gap_on_disk(struct ah_run *run, int group, int which, int64_t from, int64_t to)
{
    if (ah__state_size(run->partition, which, 1) == 0)
        return;
    while (from < to) {
        int64_t begin = from / AH_CODE8_GROUP * AH_CODE8_GROUP, count = to - begin;
        char *at;
        assert_ok(ah__run_disk_at(&at, &count, run, group, which, begin, false));
        check_gap(at, run->partition, which, from - begin, count);
        from = begin + count;
    }
}

/* Between the parameters of a group everything is zero, and stays so: see AH_PARAM_ALIGN. */
static void check_gaps(struct ah_run *run, const struct ah_partition *partition)
{
    for (int p = 0; p < partition->param_count; p++) {
        const struct ah_param *param = &partition->params[p];
        const struct ah_group *group = &partition->groups[param->group];
        bool last = p + 1 == group->first_param + group->param_count;
        int64_t end = last ? group->count : partition->params[p + 1].offset;
        if (param->frozen)
            continue;
        end = end < group->trained ? end : group->trained;
        int64_t from = param->offset + ah__shape_count(&param->shape);
        for (int which = 0; which < AH_STATE_COUNT; which++) {
            const struct ah_layout_group *place = &ah__run_layout(run)->groups[param->group];
            if (place->on_disk)
                check_gap_on_disk(run, param->group, which, from, end);
            else
                check_gap(ah__run_states(run, param->group) + ah__state_at(place, which), partition, which, from, end);
        }
    }
}

/* A GPU has no threads to count and no link to slow down. */
static int device_open(struct ah_dev **out, const struct exact_device *device, const struct ah_dev_options *options)
{
    struct ah_dev_options own = *options;
    if (!device->is_cpu)
        own.threads = 0, own.link_bytes_per_s = 0;
    return device->open(out, &own);
}

void exact_train(struct outcome *outcome, const struct exact_device *device, struct tiny *tiny,
                 const struct ah_plan *given, const struct ah_dev_options *options)
{
    struct ah_plan with_workspace = *given;
    const struct ah_plan *plan = &with_workspace;
    struct tiny_run context = {tiny, outcome};
    struct steps steps = tiny_steps(&context);
    struct ah_dev *dev;
    struct ah_run *run;
    struct ah_dev_info info;
    int64_t device_bytes, host_bytes;
    *outcome = (struct outcome){.steps = 0};
    assert_ok(device_open(&dev, device, options));
    assert_ok(ah__workspace_bytes(&with_workspace.workspace_bytes, tiny->partition, dev));
    assert_ok(ah__run_new(&run, tiny->partition, plan, dev, tiny->clip));
    assert_ok(ah__run_init(run, 11));
    uint64_t allocations = ah__alloc_count();
    steps_train(run, &steps, 0, TINY_STEPS);
    assert_int_equal(ah__alloc_count() - allocations, 0);
    outcome->states = tiny_hash_states(run, tiny->partition);

    if (device->is_cpu) /* whose memory can be looked at */
        check_gaps(run, tiny->partition);
    struct ah_sched_config config;
    ah__sched_config_of(&config, &plan->switches, tiny->partition, ah__policy_find(plan->policy));
    check_timeline(ah__run_timeline(run), &config);

    dev->ops->info(dev, &info);
    ah__layout_bytes(&device_bytes, &host_bytes, tiny->partition, &plan->switches, plan->workspace_bytes);
    assert_int_equal(info.device_high_water_bytes, device_bytes);
    assert_int_equal(info.host_bytes, host_bytes);
    ah__run_free(run);
    ah_dev_close(dev);
}

void exact_same(const struct outcome *a, const struct outcome *b, const struct ah_plan *plan,
                const struct ah_dev_options *options)
{
    if (memcmp(a, b, sizeof *a) == 0)
        return;
    for (int k = 0; k < TINY_STEPS; k++)
        if (a->loss[k] != b->loss[k] || a->norm[k] != b->norm[k])
            print_error("step %d: loss %.17g / %.17g, norm %.17g / %.17g\n", k, a->loss[k], b->loss[k], a->norm[k],
                        b->norm[k]);
    print_error("%d threads, %d host threads, link %lld B/s (0: as it is), jitter seed %llu\n", options->threads,
                options->host_threads, (long long)options->link_bytes_per_s, (unsigned long long)options->jitter_seed);
    char text[AH_SWITCHES_TEXT];
    ah__switches_text(text, &plan->switches, ',', true);
    fail_msg("%s %s differs from resident", plan->policy, text);
}

static uint64_t drawn;

void exact_draws_begin(int loop, int plan)
{
    drawn = (uint64_t)loop << 40 | (uint64_t)plan << 20;
}

int exact_draw(int from, int to)
{
    return from + (int)(ah__random_bits(ah_test_seed(), drawn++) % (uint64_t)(to - from + 1));
}

static int draw_with(void *context, int low, int high)
{
    return exact_draw(low, high);
}

void exact_switches(struct ah_switches *switches, uint32_t keep, const struct ah_partition *partition,
                    const struct ah_policy *policy)
{
    struct ah_sched_config config;
    struct ah_switches_draw how = {.draw = draw_with, .keep = keep, .rarely = 1};
    switches->frozen_blocks = partition->frozen_blocks;
    if (partition->shared_group >= 0 || !ah__policy_uses(policy, AH_SWITCH_share_embedding_head))
        how.without |= 1U << AH_SWITCH_share_embedding_head;
    if (ah__world_size(switches) == 1)
        how.without |= 1U << AH_SWITCH_unsharded;
    int micro_batches = ah__micro_batches(partition);
    bool rounds = ah__policy_uses(policy, AH_SWITCH_passes) && ah__world_size(switches) == 1 && exact_draw(0, 1);
    how.without |= 1U << AH_SWITCH_passes; /* of which a step has few */
    ah__switches_draw(switches, &how);
    if (rounds)
        switches->passes = exact_draw(1, micro_batches);
    ah__sched_config_of(&config, switches, partition, policy);
    int least = ah__sched_min_buffers(&config);
    switches->buffers = switches->buffers > least ? switches->buffers : least;
}

/* Buffers enough also where gradients wait for the norm and parameters are cast. */
struct ah_plan exact_resident(const struct tiny *tiny)
{
    int layers = tiny->partition->layers;
    return (struct ah_plan){.switches = {.layers = layers,
                                         .frozen_blocks = tiny->partition->frozen_blocks,
                                         .buffers = layers + 1,
                                         .prefetch_distance = 1},
                            .policy = "resident"};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double exact_limit(const struct exact_device *device, struct tiny *tiny)
{
    const struct ah_dev_options options = {.threads = 1, .host_threads = 1};
    struct ah_plan resident = exact_resident(tiny);
    struct outcome outcome;
    exact_train(&outcome, device, tiny, &resident, &options);
    qsort(outcome.norm, TINY_STEPS, sizeof *outcome.norm, by_value);
    return outcome.norm[TINY_STEPS / 2];
}

/* The other switches and the device's settings: drawn. */
static void one_plan(const struct exact_device *device, struct tiny *tiny, const struct outcome *expected,
                     struct ah_plan plan, const char *policy)
{
    static const int64_t links[] = {0, 0, 50000000, 400000000};
    struct outcome outcome;
    snprintf(plan.policy, sizeof plan.policy, "%s", policy);
    exact_switches(&plan.switches, EXACT_GIVEN | 1U << AH_SWITCH_selective, tiny->partition, ah__policy_find(policy));
    struct ah_dev_options options = {.threads = exact_draw(1, 3),
                                     .host_threads = exact_draw(1, 3),
                                     .link_bytes_per_s = links[exact_draw(0, 3)],
                                     .jitter_seed = (uint64_t)exact_draw(0, 3)};
    exact_train(&outcome, device, tiny, &plan, &options);
    exact_same(expected, &outcome, &plan, &options);
}

static int loops; /* over plans, that this case has begun */

/* Every (c, selective), or one in `of`, with drawn places of optimizer and parameters. */
static void every_level(const struct exact_device *device, struct tiny *tiny, const struct outcome *expected,
                        const char *policy, int of)
{
    int layers = tiny->partition->layers, index = 0, loop = ++loops;
    struct ah_plan plan = {.switches.layers = layers};
    for (int c = 0; c <= layers; c++)
        for (int selective = 1; selective <= layers - c; selective++) {
            if (index++ % of != loop % of)
                continue;
            exact_draws_begin(loop, index);
            plan.switches.checkpoint = c;
            plan.switches.selective = selective;
            plan.switches.offload_optimizer = exact_draw(0, layers);
            plan.switches.offload_params = exact_draw(0, plan.switches.offload_optimizer);
            one_plan(device, tiny, expected, plan, policy);
        }
}

static void train_resident(struct outcome *expected, const struct exact_device *device, struct tiny *tiny)
{
    struct ah_dev_options options = {.threads = 1, .host_threads = 1};
    struct ah_plan resident = exact_resident(tiny);
    exact_train(expected, device, tiny, &resident, &options);
}

void exact_some_plans(const struct exact_device *device, struct tiny *tiny, const char *policy, int part, int of)
{
    struct outcome expected;
    train_resident(&expected, device, tiny);
    assert_true(expected.loss[TINY_STEPS - 1] > 0);
    int clipped = 0;
    for (int i = 0; i < TINY_STEPS; i++)
        clipped += expected.factor[i] < 1;
    assert_true(tiny->clip > 0 ? clipped > 0 && clipped < TINY_STEPS : clipped == 0);
    int layers = tiny->partition->layers, index = 0, loop = ++loops;
    struct ah_plan plan = {.switches.layers = layers};
    for (int c = 0; c <= layers; c++)
        for (int o = 0; o <= layers; o++)
            for (int p = 0; p <= o; p++) {
                if (index++ % of != (EXACT_HEAVY + part) % of)
                    continue;
                exact_draws_begin(loop, index);
                plan.switches.checkpoint = c;
                plan.switches.selective = exact_draw(0, 1) * exact_draw(0, layers - c);
                plan.switches.offload_params = p;
                plan.switches.offload_optimizer = o;
                one_plan(device, tiny, &expected, plan, policy);
            }
}

void exact_every_plan(const struct exact_device *device, struct tiny *tiny, const char *policy, int of)
{
    struct outcome expected;
    exact_some_plans(device, tiny, policy, loops, of);
    train_resident(&expected, device, tiny);
    every_level(device, tiny, &expected, policy, of);
}
