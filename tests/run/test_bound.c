/* Work as it is bound: the numbers by which states are rounded, and that a profile moves what a run does. */
#include <stdlib.h>

#include "profile/workload.h"
#include "run/exact.h"
#include "run/internal.h"

enum { RANKS = 3, CHUNKS = 2, ROOM = 1 << 20 };

/* ---- the numbers of elements ------------------------------------------------------------------------------------- */

static void addresses_fill(struct ah_addresses *at, char *room)
{
    *at = (struct ah_addresses){.param = room,
                                .grad = room,
                                .update_grad = room,
                                .update_copy = room,
                                .host_results = room,
                                .results = room,
                                .stage_grad = room};
    for (int i = 0; i < AH_STATE_COUNT; i++)
        at->states[i] = at->shadow_states[i] = at->stage[i] = room;
}

static const struct ah_task *update_of(const struct ah_work *work)
{
    for (int i = 0; i < work->tasks; i++)
        if (work->task[i].type == AH_TASK_ADAM)
            return &work->task[i];
    fail_msg("an update without AH_TASK_ADAM");
    return NULL;
}

/* Every element of a group is updated once, by one rank in one chunk, under the number that it has in the group. */
static void numbers_are_of_the_group(const struct ah_partition *partition, enum ah_item_kind kind, int group,
                                     char *room)
{
    int64_t next = 0, decayed = 0;
    for (int rank = 0; rank < RANKS; rank++)
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
            struct ah_item item = {
                .kind = kind, .partition = group, .chunk = chunk, .chunks = CHUNKS, .shadow_set = -1};
            struct ah_binding binding = {.partition = partition,
                                         .class = (int)ah__class_of(group, partition->layers),
                                         .group = group,
                                         .rank = rank};
            struct ah_addresses at;
            struct ah_work work = {.tasks = 0};
            addresses_fill(&at, room);
            assert_ok(ah__bind(&work, &item, &binding, &at));
            const struct ah_task *task = update_of(&work);
            if (task->as.adam.count)
                assert_int_equal(task->as.adam.first, next);
            assert_int_equal(task->as.adam.count % AH_PARAM_ALIGN, 0);
            next += task->as.adam.count;
            decayed += task->as.adam.decayed;
        }
    assert_int_equal(next, partition->groups[group].count);
    assert_int_equal(decayed, partition->groups[group].decayed);
}

static void numbers_do_not_depend_on_ranks(void **state)
{
    static const enum ah_item_kind kinds[] = {AH_ITEM_UPDATE_DEVICE, AH_ITEM_UPDATE_HOST, AH_ITEM_UPDATE_SPECULATIVE,
                                              AH_ITEM_UPDATE_STAGED};
    struct tiny tiny;
    char *room = calloc(1, ROOM);
    assert_non_null(room);
    tiny_init_in(&tiny, AH_BF16, tiny_untied, 1, 1, 1);
    struct ah_step_options step = {.clips = true, .world_size = RANKS, .moments = AH_BF16};
    ah_partition_free(tiny.partition);
    assert_ok(ah_partition_new(&tiny.partition, tiny.graph, &step));
    for (size_t i = 0; i < AH_LENGTH(kinds); i++)
        for (int group = 0; group < tiny.partition->group_count; group++)
            numbers_are_of_the_group(tiny.partition, kinds[i], group, room);
    tiny_fini(&tiny);
    free(room);
}

/* ---- a profile and a run ----------------------------------------------------------------------------------------- */

/* What some work does, in bytes or elements. */
struct amounts {
    int64_t tasks, copied, cast, widened, updated, with_rest, params, moments;
};

static struct amounts amounts_of(const struct ah_work *work)
{
    struct amounts sum = {.tasks = work->tasks};
    for (int i = 0; i < work->tasks; i++) {
        const struct ah_task *task = &work->task[i];
        if (task->type == AH_TASK_COPY)
            sum.copied += task->as.copy.bytes;
        if (task->type == AH_TASK_CAST)
            sum.cast += task->as.cast.count * ah__dtype_bytes(task->as.cast.from_dtype);
        if (task->type == AH_TASK_EXPAND)
            sum.widened += task->as.expand.count;
        if (task->type != AH_TASK_ADAM)
            continue;
        sum.updated += task->as.adam.count;
        sum.with_rest += task->as.adam.rest ? task->as.adam.count : 0;
        sum.params = task->as.adam.dtype;
        sum.moments = task->as.adam.moment_dtype;
    }
    return sum;
}

static struct amounts in_run(struct ah_run *run, struct ah_item item)
{
    struct ah_binding binding = {.partition = run->partition,
                                 .programs = &run->programs,
                                 .class = (int)ah__class_of(item.partition, run->partition->layers),
                                 .group = item.partition};
    struct ah_addresses at;
    struct ah_work work = {.tasks = 0};
    ah__addresses(&at, &run->memory, &item);
    assert_ok(ah__bind(&work, &item, &binding, &at));
    return amounts_of(&work);
}

static struct amounts in_profile(const struct ah_workload *workload, struct ah_item item)
{
    struct ah_work work;
    if (item.partition > 1)
        item.partition = workload->places - 1;
    assert_ok(ah__workload_work(&work, workload, &item));
    return amounts_of(&work);
}

static void check_items(struct ah_run *run, const struct ah_workload *workload, const enum ah_item_kind *kinds,
                        size_t count, bool blocks_alone)
{
    int head = run->partition->layers + 1;
    const int groups[] = {1, 0, head};
    for (size_t i = 0; i < count; i++)
        for (int g = 0; g < (blocks_alone ? 1 : 3); g++) {
            struct ah_item item = {.kind = kinds[i],
                                   .partition = groups[g],
                                   .param_buffer = 0,
                                   .grad_buffer = 0,
                                   .shadow_set = kinds[i] == AH_ITEM_UPDATE_SPECULATIVE ? 1 : -1};
            struct amounts of_run = in_run(run, item), of_profile = in_profile(workload, item);
            if (memcmp(&of_run, &of_profile, sizeof of_run) != 0)
                fail_msg("%s of group %d: a run has %lld tasks, %lld B copied, %lld B cast, %lld updated, %lld with "
                         "a rest; a profile %lld, %lld, %lld, %lld, %lld",
                         ah__item_names[kinds[i]], groups[g], (long long)of_run.tasks, (long long)of_run.copied,
                         (long long)of_run.cast, (long long)of_run.updated, (long long)of_run.with_rest,
                         (long long)of_profile.tasks, (long long)of_profile.copied, (long long)of_profile.cast,
                         (long long)of_profile.updated, (long long)of_profile.with_rest);
        }
}

static void check_plan(struct tiny *tiny, struct ah_plan plan, const struct ah_workload *workload,
                       const enum ah_item_kind *kinds, size_t count, bool blocks_alone)
{
    struct ah_dev *dev;
    struct ah_run *run;
    assert_ok(ah__dev_cpu_open(&dev, &(struct ah_dev_options){.threads = 1}));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, tiny->partition, dev));
    assert_ok(ah__run_new(&run, tiny->partition, &plan, dev, tiny->clip));
    check_items(run, workload, kinds, count, blocks_alone);
    ah__run_free(run);
    ah_dev_close(dev);
}

static void check_types(enum ah_dtype compute, enum ah_dtype master, enum ah_dtype moments)
{
    static const enum ah_item_kind device[] = {AH_ITEM_UPDATE_DEVICE, AH_ITEM_INPUT},
                                   host[] = {AH_ITEM_UPDATE_HOST, AH_ITEM_PREFETCH, AH_ITEM_OFFLOAD},
                                   blocks[] = {AH_ITEM_UPDATE_SPECULATIVE, AH_ITEM_STATES_IN, AH_ITEM_UPDATE_STAGED};
    struct tiny tiny;
    struct ah_dev *dev;
    struct ah_workload workload = {.dev = NULL};
    tiny_init_in(&tiny, compute, tiny_untied, 1.4, 2, 1);
    tiny_states(&tiny, master, moments);
    assert_ok(ah__dev_cpu_open(&dev, &(struct ah_dev_options){.threads = 1}));
    assert_ok(ah__workload_init(&workload, tiny.partition, dev));
    struct ah_plan plan = exact_resident(&tiny);
    check_plan(&tiny, plan, &workload, device, AH_LENGTH(device), false);
    plan.switches.offload_optimizer = TINY_LAYERS;
    plan.switches.embedding_on_host = plan.switches.head_on_host = 1;
    plan.switches.shadows = 1;
    plan.switches.staged = 1;
    snprintf(plan.policy, sizeof plan.policy, "autohete");
    check_plan(&tiny, plan, &workload, host, AH_LENGTH(host), false);
    check_plan(&tiny, plan, &workload, blocks, AH_LENGTH(blocks), true);
    ah__workload_fini(&workload);
    ah_dev_close(dev);
    tiny_fini(&tiny);
}

/* Codes of zeros would be other work than those of a model. */
static void expect_codes(const struct ah_workload *workload)
{
    const struct ah_partition *partition = workload->partition;
    const struct ah_workload_place *place = &workload->place[1];
    int64_t element = ah__dtype_bytes(partition->compute), said = 0;
    for (int p = 0; p < partition->param_count; p++) {
        const struct ah_param *param = &partition->params[p];
        if (param->group != 1 || !param->coded)
            continue;
        const char *at = place->param + param->offset * element;
        bool other = false;
        for (int64_t i = 1; i < param->kept * element; i++)
            other = other || at[i] != at[0];
        assert_true(other);
        said++;
    }
    assert_int_equal(said, 4);
}

static void check_codes(enum ah_dtype compute, const char *codes)
{
    static const enum ah_item_kind blocks[] = {AH_ITEM_PREFETCH, AH_ITEM_FORWARD, AH_ITEM_BACKWARD};
    struct tiny tiny;
    struct ah_dev *dev;
    struct ah_workload workload = {.dev = NULL};
    tiny_init_tuned(&tiny, compute, tiny_untied, 0, 2, 1, &(struct ah_tuning){.lora_rank = 4, .frozen = codes});
    assert_ok(ah__dev_cpu_open(&dev, &(struct ah_dev_options){.threads = 1}));
    assert_ok(ah__workload_init(&workload, tiny.partition, dev));
    expect_codes(&workload);
    struct ah_plan plan = exact_resident(&tiny);
    plan.switches.offload_optimizer = TINY_LAYERS;
    plan.switches.offload_params = TINY_LAYERS;
    plan.switches.buffers = 2;
    snprintf(plan.policy, sizeof plan.policy, "autohete");
    check_plan(&tiny, plan, &workload, blocks, AH_LENGTH(blocks), true);
    ah__workload_fini(&workload);
    ah_dev_close(dev);
    tiny_fini(&tiny);
}

/* Or the planner counts with bytes that no training moves. */
static void a_profile_does_what_a_run_does(void **state)
{
    check_types(AH_F32, AH_F32, AH_F32);
    check_types(AH_F32, AH_F32, AH_U8);
    check_types(AH_BF16, AH_F32, AH_F32);
    check_types(AH_BF16, AH_F32, AH_U8);
    check_types(AH_BF16, AH_BF16, AH_BF16);
    check_types(AH_BF16, AH_BF16, AH_U8);
    check_codes(AH_F32, "int8");
    check_codes(AH_BF16, "nf4");
    check_codes(AH_BF16, "mxfp4");
}

AH_TEST_CASES("run/bound", numbers_do_not_depend_on_ranks, a_profile_does_what_a_run_does)
