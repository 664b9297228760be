#include "test.h"

#include "bind/bind.h"
#include "plan/areas.h"
#include "sched/switches.h"

/* Each rank's part of so many elements: equal ones that begin at multiples of 256; of one rank all of them. */
static int64_t part_in(int64_t count, const struct ah_plan *plan)
{
    int64_t ranks = plan->switches.world_size, parts = (count + 255) / 256;
    return ranks == 1 ? count : (parts + ranks - 1) / ranks * 256;
}

/* Of what a group trains; of what is frozen. */
static int64_t part_of(const struct ah_partition *partition, const struct ah_plan *plan, int group)
{
    return part_in(partition->groups[group].trained, plan);
}

static int64_t frozen_part(const struct ah_partition *partition, const struct ah_plan *plan, int group)
{
    return part_in(partition->groups[group].count - partition->groups[group].trained, plan);
}

/* Blocks with a backward, and those of them on the host. */
static int trained_blocks(const struct ah_switches *s)
{
    return s->layers - s->frozen_blocks;
}

static int trained_on_host(const struct ah_switches *s)
{
    return s->offload_optimizer < trained_blocks(s) ? s->offload_optimizer : trained_blocks(s);
}

/* What buffers hold: equal parts of all ranks. */
static int64_t whole_of(const struct ah_partition *partition, const struct ah_plan *plan, int group)
{
    return plan->switches.world_size * (part_of(partition, plan, group) + frozen_part(partition, plan, group));
}

static bool gradients_shared(const struct ah_partition *partition, const struct ah_plan *plan)
{
    return plan->switches.share_embedding_head && !(partition->step.clips && !plan->switches.head_on_host);
}

/* Bytes of so many elements of p, m, v and, of masters in F32 beside parameters in BF16, the rest; those in 8 bits have
 * a scale for each 256. */
static int64_t state_size(const struct ah_partition *partition, int which, int64_t count)
{
    enum ah_dtype dtype = which == 0 ? partition->compute : partition->step.moments;
    if (which == AH_STATE_REST)
        return partition->compute == AH_BF16 && partition->step.master == AH_F32 ? count * 2 : 0;
    return dtype == AH_U8 ? (count + 255) / 256 * 260 : count * (dtype == AH_F32 ? 4 : 2);
}

/* Embedding's or head's gradient: F32 while it is summed, then parts of all ranks. */
static int64_t sum_size(const struct ah_partition *partition, const struct ah_plan *plan, int group)
{
    int64_t sums = partition->groups[group].trained * 4;
    int64_t parts =
        plan->switches.world_size * part_of(partition, plan, group) * (partition->compute == AH_F32 ? 4 : 2);
    return sums > parts ? sums : parts;
}

/* Rounds of a step, of which the longest has so many micro-batches. */
static int rounds_of(const struct ah_partition *partition, const struct ah_switches *s)
{
    int all = ah__micro_batches(partition), asked = s->passes > 1 && s->world_size == 1 ? s->passes : 1;
    return asked < all ? asked : all;
}

/* Blocks whose sums stay on the device between rounds. */
static int staying_sums(const struct ah_partition *partition, const struct ah_switches *s)
{
    return rounds_of(partition, s) > 1 ? s->device_sums : 0;
}

static void group_areas(struct areas *device, struct areas *host, const struct fixture *fixture,
                        const struct ah_plan *plan, const struct ah_layout *layout, int g)
{
    const struct ah_layout_group *group = &layout->groups[g];
    const struct ah_partition *partition = &fixture->partition;
    int64_t part = part_of(partition, plan, g), frozen = frozen_part(partition, plan, g);
    int64_t trained = part * plan->switches.world_size, whole = whole_of(partition, plan, g);
    int64_t compute = fixture->partition.compute == AH_F32 ? 4 : 2;
    bool copies = plan->switches.world_size > 1; /* the states are not what the device computes with */
    bool edge = g == 0 || g == plan->switches.layers + 1;
    bool on_host = g == 0 ? plan->switches.embedding_on_host
                   : edge ? plan->switches.head_on_host
                          : g > plan->switches.layers - plan->switches.offload_optimizer;
    bool on_disk = !edge && g > plan->switches.layers - plan->switches.disk_blocks;
    assert_int_equal(group->on_host, on_host);
    assert_int_equal(group->on_disk, on_disk);
    bool in_set = on_host && !edge;
    /* Of one rank's groups on the device products read p itself: what is frozen lies there. */
    for (int i = 0; i < AH_STATE_COUNT && !in_set; i++)
        area_add(on_host ? host : device, group->state_offset + ah__state_at(group, i),
                 state_size(partition, i, i || on_host || copies ? part : part + frozen));
    if (in_set)
        assert_int_equal(group->state_offset, -1);
    if (on_host && !on_disk) {
        area_add(host, group->host_grad_offset, part * compute);
        area_add(host, group->host_frozen_offset, frozen * compute);
    } else {
        assert_int_equal(group->host_grad_offset, -1);
        assert_int_equal(group->host_frozen_offset, -1);
    }
    int lowest_on_host = plan->switches.layers - plan->switches.offload_optimizer + 1;
    bool stays_whole = !edge && !on_host && g >= lowest_on_host - plan->switches.unsharded;
    if (stays_whole || (edge && (on_host || copies) && !plan->switches.share_embedding_head))
        area_add(device, group->param_offset, whole * compute);
    else if (!edge || !plan->switches.share_embedding_head)
        assert_int_equal(group->param_offset, -1);
    /* Where parameters have no place of their own, this rank's part of what is frozen has one. */
    if (copies && !on_host && (edge ? plan->switches.share_embedding_head : !stays_whole))
        area_add(device, group->frozen_offset, frozen * compute);
    else
        assert_int_equal(group->frozen_offset, -1);
    if (edge && !gradients_shared(partition, plan)) /* summed there in F32, in every dtype */
        area_add(device, group->grad_offset, sum_size(partition, plan, g));
    else if (!edge && g > plan->switches.frozen_blocks &&
             g <= plan->switches.frozen_blocks + staying_sums(partition, &plan->switches))
        area_add(device, group->grad_offset, partition->groups[g].trained * 4);
    else if (!edge && g > plan->switches.frozen_blocks && frozen > 0)
        area_add(device, group->grad_offset, trained * compute);
    else if (!edge)
        assert_int_equal(group->grad_offset, -1);
}

/* One place for the parameters of embedding and head, and one for their gradients unless one waits for the norm: as
 * large as the larger. */
static void shared_areas(struct areas *device, const struct ah_partition *partition, const struct ah_plan *plan,
                         const struct ah_layout *layout)
{
    int head = plan->switches.layers + 1;
    int64_t compute = partition->compute == AH_F32 ? 4 : 2;
    int64_t one = whole_of(partition, plan, 0), other = whole_of(partition, plan, head);
    int64_t sum = sum_size(partition, plan, 0), other_sum = sum_size(partition, plan, head);
    if (!plan->switches.share_embedding_head)
        return;
    assert_int_equal(layout->groups[0].param_offset, layout->groups[head].param_offset);
    area_add(device, layout->groups[0].param_offset, (one > other ? one : other) * compute);
    if (!gradients_shared(partition, plan) || sum + other_sum == 0)
        return;
    assert_int_equal(layout->groups[0].grad_offset, layout->groups[head].grad_offset);
    area_add(device, layout->groups[0].grad_offset, sum > other_sum ? sum : other_sum);
}

static int at_once(const struct ah_partition *partition, const struct ah_switches *s)
{
    int rounds = rounds_of(partition, s);
    return (ah__micro_batches(partition) + rounds - 1) / rounds;
}

/* What each micro-batch of a round has of its own: boundary inputs, saved sets of blocks that keep them, boundaries. */
static void micro_batch_areas(struct areas *areas, const struct ah_partition *partition, const struct ah_plan *plan,
                              const struct ah_layout *layout)
{
    const struct ah_code *block = &partition->code[AH_CLASS_BLOCK], *head = &partition->code[AH_CLASS_HEAD];
    const struct ah_switches *s = &plan->switches;
    int passing = s->offload_activations ? s->offload_activations + 2 : 0, stays = trained_blocks(s) - passing;
    int rest = stays - s->checkpoint > 0 ? stays - s->checkpoint : 0;
    int selective = s->selective < rest ? s->selective : rest;
    int count = at_once(partition, s), kept = rest > selective ? count : 1;
    int embedded = layout->embeds_late ? ah__micro_batches(partition) : count;
    int64_t cheap_bytes = block->saved_bytes - block->kept_bytes;
    for (int m = 0; m < count; m++) {
        for (int i = 0; i <= stays; i++)
            area_add(areas, layout->inputs_offset + i * layout->input_bytes + m * layout->input_step,
                     block->input_bytes);
        for (int i = 0; i < layout->saved_sets && m < kept; i++)
            area_add(areas, layout->saved_offset + i * layout->saved_bytes + m * layout->saved_step,
                     block->saved_bytes);
        for (int i = 0; i < selective; i++)
            area_add(areas, layout->kept_offset + i * layout->kept_bytes + m * layout->kept_step, block->kept_bytes);
    }
    for (int m = 0; m < embedded; m++) {
        area_add(areas, layout->embedding_saved_offset + m * layout->embedding_saved_step,
                 partition->code[AH_CLASS_EMBEDDING].saved_bytes);
        area_add(areas, layout->boundary_offset + m * layout->boundary_step, block->boundary_bytes);
    }
    for (int i = 0; passing && i < 2; i++)
        area_add(areas, layout->activation_stages_offset + i * layout->activation_stage_bytes,
                 layout->activation_stage_bytes);
    assert_int_equal(layout->saved_sets, rest > selective ? rest - selective : selective == 0 && s->checkpoint > 0);
    assert_int_equal(layout->kept_sets, selective);
    if (layout->saved_sets)
        assert_int_equal(layout->cheap_offset, layout->saved_offset + block->kept_bytes);
    else if (s->selective)
        area_add(areas, layout->cheap_offset, cheap_bytes);
    assert_true(layout->head_saved_step >= head->saved_bytes);
    assert_true(layout->head_saved_offset + (count - 1) * layout->head_saved_step + head->saved_bytes <=
                layout->work_offset + layout->work_bytes);
}

/* Ids, targets and results of two iterations, of all micro-batches. */
static void tokens_areas(struct areas *areas, const struct ah_partition *partition, const struct ah_layout *layout,
                         int64_t tokens, int64_t results)
{
    int64_t count = ah__micro_batches(partition), bytes = count * partition->batch * partition->seq * 4;
    int64_t scale_bytes = count > 1 ? 4 : 0, losses_bytes = count > 1 ? 4 * count : 0;
    for (int i = 0; i < 2; i++) {
        area_add(areas, tokens + i * layout->tokens_bytes, bytes + scale_bytes); /* both halves are alike */
        area_add(areas, tokens + i * layout->tokens_bytes + layout->tokens_bytes / 2, bytes + scale_bytes);
        area_add(areas, results + i * layout->results_bytes, 64 + 8 * (partition->layers + 2) + losses_bytes);
    }
}

static void device_areas(struct areas *areas, const struct ah_partition *partition, const struct ah_plan *plan,
                         const struct ah_layout *layout)
{
    for (int i = 0; i < plan->switches.buffers; i++)
        area_add(areas, layout->buffers_offset + i * layout->buffer_bytes,
                 whole_of(partition, plan, partition->layers) * (partition->compute == AH_F32 ? 4 : 2));
    int last = partition->layers;
    int64_t part = part_of(partition, plan, last) * (partition->compute == AH_F32 ? 4 : 2);
    int64_t frozen = frozen_part(partition, plan, last) * (partition->compute == AH_F32 ? 4 : 2);
    int shards = plan->switches.world_size > 1 ? trained_on_host(&plan->switches) - plan->switches.offload_params : 0;
    for (int i = 0; i < shards; i++) {
        int64_t shard = layout->shards_offset + i * layout->shard_bytes;
        area_add(areas, shard, part);
        area_add(areas, shard + layout->reduced_bytes, frozen);
    }
    bool wait = plan->switches.world_size > 1 && partition->step.clips;
    for (int i = 0; wait && i < trained_blocks(&plan->switches) - trained_on_host(&plan->switches); i++)
        area_add(areas, layout->reduced_offset + i * layout->reduced_bytes, part);
    int64_t chunk = ah__chunk_count(part_of(partition, plan, last), plan->switches.chunks);
    for (int i = 0; plan->switches.staged && i < AH_STAGING_BUFFERS; i++) {
        int64_t stage = layout->stages_offset + i * layout->stage_bytes;
        for (int s = 0; s < AH_STATE_COUNT; s++)
            area_add(areas, stage + layout->stage_at[s], state_size(partition, s, chunk));
        area_add(areas, stage + layout->stage_at[AH_STATE_COUNT], chunk * (partition->compute == AH_F32 ? 4 : 2));
    }
    micro_batch_areas(areas, partition, plan, layout);
    area_add(areas, layout->work_offset, layout->work_bytes);
    int sums = rounds_of(partition, &plan->switches) > 1 ? 2 : partition->compute == AH_F32 ? 0 : 1;
    bool none = partition->groups[partition->layers].trained == 0 ||
                staying_sums(partition, &plan->switches) == trained_blocks(&plan->switches);
    sums = none ? 0 : sums;
    if (sums == 0)
        assert_int_equal(layout->sums_offset, -1);
    for (int i = 0; i < sums; i++)
        area_add(areas, layout->sums_offset + i * layout->sum_bytes, partition->groups[partition->layers].trained * 4);
    if (partition->groups[partition->layers].coded)
        area_add(areas, layout->widened_offset,
                 partition->groups[partition->layers].placed * (partition->compute == AH_F32 ? 4 : 2));
    tokens_areas(areas, partition, layout, layout->tokens_offset, layout->results_offset);
}

/* Where each block has its input and what it keeps: in a place of its own, in the order in which blocks give up; or in
 * a stage, every other one of those that pass in the same, with room on the host for all of them but the last two. */
static void activations_are_where_they_belong(struct areas *host, const struct ah_partition *partition,
                                              const struct ah_plan *plan, const struct ah_layout *layout)
{
    const struct ah_switches *s = &plan->switches;
    const struct ah_code *block = &partition->code[AH_CLASS_BLOCK];
    int passing = s->offload_activations ? s->offload_activations + 2 : 0, passed = 0;
    int trained = trained_blocks(s);
    for (int b = 1; b <= s->frozen_blocks; b++) /* in the place of the lowest that keeps its own */
        assert_int_equal(layout->groups[b].input_offset, layout->groups[s->frozen_blocks + 1].input_offset);
    for (int b = 1; b <= trained; b++) {
        const struct ah_layout_group *group = &layout->groups[s->frozen_blocks + b];
        bool passes = passed < passing && b == 1 + passed * trained / passing;
        int order = passes ? trained - passing + passed + 1 : b - passed;
        bool whole = order <= s->checkpoint, all = order > s->checkpoint + s->selective;
        int64_t step = all ? layout->saved_step : layout->kept_step;
        int64_t bytes = layout->input_bytes + (whole ? 0 : step * at_once(partition, &plan->switches));
        int64_t stage = layout->activation_stages_offset + passed % 2 * layout->activation_stage_bytes;
        assert_int_equal(group->input_offset,
                         passes ? stage : layout->inputs_offset + (b - 1 - passed) * layout->input_bytes);
        if (whole)
            assert_int_equal(group->saved_offset, layout->saved_sets ? layout->saved_offset : layout->kept_offset);
        else if (passes)
            assert_int_equal(group->saved_offset, stage + layout->input_bytes);
        else if (all)
            assert_int_equal(group->saved_offset,
                             layout->saved_offset + (order - s->checkpoint - s->selective - 1) * layout->saved_bytes);
        else
            assert_int_equal(group->saved_offset,
                             layout->kept_offset + (order - s->checkpoint - 1) * layout->kept_bytes);
        assert_int_equal(group->activation_bytes, passes && passed < s->offload_activations ? bytes : 0);
        assert_true(!passes || bytes <= layout->activation_stage_bytes);
        assert_true(whole || step >= (all ? block->saved_bytes : block->kept_bytes));
        if (group->activation_bytes)
            area_add(host, group->host_activations_offset, group->activation_bytes);
        passed += passes;
    }
    assert_int_equal(passed, passing);
}

static void host_areas(struct areas *areas, const struct ah_partition *partition, const struct ah_plan *plan,
                       const struct ah_layout *layout)
{
    int64_t part = part_of(partition, plan, partition->layers);
    int trained = trained_blocks(&plan->switches), on_disk = plan->switches.disk_blocks;
    int sets = trained_on_host(&plan->switches) - (on_disk < trained ? on_disk : trained) + plan->switches.shadows;
    for (int i = 0; i < sets; i++) {
        int64_t set = layout->sets_offset + i * layout->set_bytes;
        for (int j = 0; j < AH_STATE_COUNT; j++)
            area_add(areas, set + ah__state_at(&layout->groups[plan->switches.layers], j),
                     state_size(partition, j, part));
    }
    int leave = trained_blocks(&plan->switches) - staying_sums(partition, &plan->switches);
    for (int i = 0; rounds_of(partition, &plan->switches) > 1 && i < leave; i++)
        area_add(areas, layout->host_sums_offset + i * layout->sum_bytes,
                 partition->groups[partition->layers].trained * 4);
    tokens_areas(areas, partition, layout, layout->host_tokens_offset, layout->host_results_offset);
    area_add(areas, layout->host_staging_offset, layout->host_staging_bytes);
}

/* Elements of a chunk of so many: whole thousands of 1024, but no more than there are. */
static int64_t chunk_in(int64_t count, int chunks)
{
    int64_t each = ((count + chunks - 1) / chunks + 1023) / 1024 * 1024;
    return each < count ? each : count;
}

static int64_t in_pages(int64_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

/* On disk a chunk's frozen parameters, its gradient, and its states once, or twice if updates may have to be taken
 * back, have whole pages each; in memory a buffer holds what an update or a fetch needs of any chunk. */
static void disk_areas(struct areas *disk, struct areas *host, const struct ah_partition *partition,
                       const struct ah_plan *plan, const struct ah_layout *layout)
{
    const struct ah_switches *s = &plan->switches;
    int64_t compute = partition->compute == AH_F32 ? 4 : 2;
    for (int g = s->layers - s->disk_blocks + 1; g <= s->layers; g++)
        for (int chunk = 0; chunk < s->chunks; chunk++) {
            int64_t count = chunk_in(part_of(partition, plan, g), s->chunks), states = 0;
            int64_t gradient = in_pages(count * compute);
            int64_t frozen = in_pages(chunk_in(frozen_part(partition, plan, g), s->chunks) * compute);
            for (int i = 0; i < AH_STATE_COUNT; i++)
                states += in_pages(state_size(partition, i, count));
            area_add(disk, ah__disk_frozen_at(layout, g, chunk), frozen);
            area_add(disk, ah__disk_gradient_at(layout, g, chunk), gradient);
            for (int place = 0; place < (partition->step.clips ? 2 : 1); place++)
                area_add(disk, ah__disk_states_at(layout, g, chunk, place), states);
            assert_true(layout->slot_bytes >= states + gradient);
            assert_true(layout->slot_bytes >= in_pages(state_size(partition, 0, count)) + frozen);
        }
    assert_int_equal(layout->slots_offset % 4096, 0);
    assert_int_equal(layout->slot_bytes % 4096, 0);
    for (int i = 0; s->disk_blocks > 0 && i < 2 + s->disk_ahead; i++)
        area_add(host, layout->slots_offset + i * layout->slot_bytes, layout->slot_bytes);
}

static void places_every_area_apart_and_totals_agree(void **state)
{
    for (uint64_t seed = 0; seed < 600; seed++) {
        struct fixture fixture;
        fixture_init(&fixture, seed);
        struct ah_plan plan = fixture_plan(&fixture);
        plan.switches.world_size = (int)fixture_draw(&fixture, 0, 1) * 3 + 1;
        fixture.partition.compute = fixture_draw(&fixture, 0, 1) ? AH_F32 : AH_BF16;
        fixture.partition.step.moments = (const enum ah_dtype[]){AH_F32, AH_BF16, AH_U8}[fixture_draw(&fixture, 0, 2)];
        fixture.partition.step.master = fixture_draw(&fixture, 0, 1) ? AH_F32 : fixture.partition.compute;
        fixture.partition.step.micro_batches = (int)fixture_draw(&fixture, 0, 4);
        plan.switches.passes = (int)fixture_draw(&fixture, 0, 4);
        plan.switches.device_sums = (int)fixture_draw(&fixture, 0, trained_blocks(&plan.switches));
        fixture.partition.step.clips = fixture_draw(&fixture, 0, 1);
        plan.switches.share_embedding_head = fixture_draw(&fixture, 0, 1) && ah__may_share_ends(&plan.switches);
        if (fixture_draw(&fixture, 0, 1)) {
            fixture_freeze(&fixture, plan.switches.world_size);
            plan.switches.staged = 0;
            plan.switches.frozen_blocks = fixture.partition.frozen_blocks;
            ah__switches_clamp(&plan.switches);
        }
        if (plan.switches.world_size > 1)
            plan.switches.unsharded =
                (int)fixture_draw(&fixture, 0, plan.switches.layers - plan.switches.offload_optimizer);
        struct ah_layout *layout;
        assert_ok(ah__layout_new(&layout, &fixture.partition, &plan.switches, 0));
        struct areas device = {0}, host = {0}, disk = {0};
        for (int g = 0; g < plan.switches.layers + 2; g++)
            group_areas(&device, &host, &fixture, &plan, layout, g);
        shared_areas(&device, &fixture.partition, &plan, layout);
        device_areas(&device, &fixture.partition, &plan, layout);
        host_areas(&host, &fixture.partition, &plan, layout);
        activations_are_where_they_belong(&host, &fixture.partition, &plan, layout);
        disk_areas(&disk, &host, &fixture.partition, &plan, layout);
        areas_check(&device, layout->device_bytes, 1);
        areas_check(&disk, layout->disk_bytes, 1);
        areas_check(&host, layout->host_bytes, AH_LAYOUT_ALIGN);
        int64_t device_bytes, host_bytes;
        ah__layout_bytes(&device_bytes, &host_bytes, &fixture.partition, &plan.switches, 0);
        assert_int_equal(device_bytes, layout->device_bytes);
        assert_int_equal(host_bytes, layout->host_bytes);
        assert_int_equal(ah__layout_disk_bytes(&fixture.partition, &plan.switches), layout->disk_bytes);
        ah__layout_free(layout);
    }
}

/* The device measures the highest byte in use; the embedding's gradient is written whole in every step. */
static void ends_with_the_embedding_gradient(void **state)
{
    struct fixture fixture;
    fixture_init(&fixture, 5);
    for (int i = 0; i < 20; i++) {
        struct ah_plan plan = fixture_plan(&fixture);
        struct ah_layout *layout;
        assert_ok(ah__layout_new(&layout, &fixture.partition, &plan.switches, 0));
        assert_int_equal(layout->groups[0].grad_offset + fixture.partition.groups[0].count * 4, layout->device_bytes);
        ah__layout_free(layout);
    }
}

static void fixed_model(struct fixture *fixture)
{
    fixture_init(fixture, 1);
    fixture->partition.layers = 4;
    fixture->partition.group_count = 6;
    fixture_groups(fixture);
}

static struct ah_layout *layout_of(const struct fixture *fixture, int c, int o)
{
    struct ah_plan plan = {
        .switches = {.layers = 4, .checkpoint = c, .offload_optimizer = o, .buffers = 2, .prefetch_distance = 1}};
    struct ah_layout *layout;
    assert_ok(ah__layout_new(&layout, &fixture->partition, &plan.switches, 0));
    return layout;
}

static void keeps_one_saved_set_for_recomputation(void **state)
{
    static const int sets[] = {4, 3, 2, 1, 1};
    struct fixture fixture;
    fixed_model(&fixture);
    for (int c = 0; c <= 4; c++) {
        struct ah_layout *layout = layout_of(&fixture, c, 0);
        assert_int_equal(layout->saved_sets, sets[c]);
        ah__layout_free(layout);
    }
}

/* Each block that recomputes selectively frees what is cheap, once for each micro-batch; where no block keeps all, one
 * micro-batch's is needed for what is made again. */
static void selective_blocks_free_what_is_cheap(void **state)
{
    struct fixture fixture;
    int64_t before = 0, bytes, host;
    fixed_model(&fixture);
    struct ah_code *block = &fixture.partition.code[AH_CLASS_BLOCK];
    block->saved_bytes = 12 * AH_LAYOUT_ALIGN;
    block->kept_bytes = 7 * AH_LAYOUT_ALIGN;
    block->program[AH_PROGRAM_RECOMPUTE_SELECTIVE].work_bytes = 0;
    for (int micro_batches = 1; micro_batches < 4; micro_batches++)
        for (int selective = 0; selective <= 4; selective++) {
            struct ah_switches switches = {.layers = 4, .selective = selective, .buffers = 1};
            fixture.partition.step.micro_batches = micro_batches;
            ah__layout_bytes(&bytes, &host, &fixture.partition, &switches, 0);
            int64_t freed = micro_batches - (selective == 4);
            if (selective)
                assert_int_equal(before - bytes, 5 * AH_LAYOUT_ALIGN * freed);
            before = bytes;
        }
}

/* Scratch is as large as the largest program that runs under the plan, evaluation and the head's saved set included. */
static void work_holds_what_runs(void **state)
{
    enum { LARGE = 1 << 22 };
    struct fixture fixture;
    fixed_model(&fixture);
    struct ah_code *code = fixture.partition.code;
    struct {
        int64_t *work_bytes;
        int c, c_without; /* runs under c; does not under c_without (-1: always runs) */
    } programs[] = {
        {&code[AH_CLASS_EMBEDDING].program[AH_PROGRAM_FORWARD].work_bytes, 0, -1},
        {&code[AH_CLASS_EMBEDDING].program[AH_PROGRAM_FORWARD_DROP].work_bytes, 0, -1},
        {&code[AH_CLASS_EMBEDDING].program[AH_PROGRAM_BACKWARD].work_bytes, 0, -1},
        {&code[AH_CLASS_BLOCK].program[AH_PROGRAM_FORWARD].work_bytes, 3, 4},
        {&code[AH_CLASS_BLOCK].program[AH_PROGRAM_FORWARD_DROP].work_bytes, 0, -1},
        {&code[AH_CLASS_BLOCK].program[AH_PROGRAM_RECOMPUTE].work_bytes, 1, 0},
        {&code[AH_CLASS_BLOCK].program[AH_PROGRAM_BACKWARD].work_bytes, 4, -1},
        {&code[AH_CLASS_HEAD].program[AH_PROGRAM_FORWARD_DROP].work_bytes, 0, -1},
    };
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        int64_t before = *programs[i].work_bytes;
        *programs[i].work_bytes = LARGE;
        struct ah_layout *layout = layout_of(&fixture, programs[i].c, 0);
        assert_int_equal(layout->work_bytes, LARGE);
        ah__layout_free(layout);
        if (programs[i].c_without >= 0) {
            layout = layout_of(&fixture, programs[i].c_without, 0);
            assert_true(layout->work_bytes < LARGE);
            ah__layout_free(layout);
        }
        *programs[i].work_bytes = before;
    }
    code[AH_CLASS_HEAD].program[AH_PROGRAM_FORWARD].work_bytes = LARGE;
    code[AH_CLASS_HEAD].program[AH_PROGRAM_BACKWARD].work_bytes = LARGE - AH_LAYOUT_ALIGN;
    code[AH_CLASS_HEAD].saved_bytes = 3 * AH_LAYOUT_ALIGN;
    struct ah_layout *layout = layout_of(&fixture, 0, 0);
    assert_int_equal(layout->head_saved_offset, layout->work_offset + LARGE);
    assert_int_equal(layout->work_bytes, LARGE + 3 * AH_LAYOUT_ALIGN);
    ah__layout_free(layout);
}

/* Room for all logits is only where something is inferred. */
static void logits_have_room_for_inference_alone(void **state)
{
    enum { LARGE = 1 << 22 };
    struct fixture fixture;
    fixed_model(&fixture);
    fixture.partition.code[AH_CLASS_HEAD].program[AH_PROGRAM_INFER].work_bytes = LARGE;
    for (int infers = 0; infers < 2; infers++) {
        fixture.partition.step.logits = infers;
        struct ah_layout *layout = layout_of(&fixture, 0, 0);
        assert_true((layout->work_bytes == LARGE) == (infers == 1));
        ah__layout_free(layout);
    }
}

/* Nothing is learned: one state of three, and no gradients. */
static void inference_keeps_parameters_alone(void **state)
{
    struct fixture fixture;
    fixed_model(&fixture);
    struct ah_layout *training = layout_of(&fixture, 0, 0), *inference;
    fixture.partition.step.infers = true;
    inference = layout_of(&fixture, 0, 0);
    int last = fixture.partition.layers + 1;
    int64_t states = 0, head_grad = training->groups[last].state_bytes;
    for (int group = 0; group <= last; group++) {
        assert_int_equal(inference->groups[group].state_bytes, training->groups[group].state_bytes);
        states += training->groups[group].state_bytes;
    }
    assert_int_equal(training->device_bytes - inference->device_bytes,
                     2 * states + head_grad + fixture.partition.groups[0].count * 4);
    assert_int_equal(inference->host_bytes, training->host_bytes);
    int64_t device, host;
    const struct ah_switches switches = {.layers = 4, .buffers = 2, .prefetch_distance = 1};
    ah__layout_bytes(&device, &host, &fixture.partition, &switches, 0);
    assert_int_equal(inference->device_bytes, device);
    ah__layout_free(training);
    ah__layout_free(inference);
}

static void staging_only_for_device_states(void **state)
{
    struct fixture fixture;
    fixed_model(&fixture);
    fixture.params[0].shape = ah_shape2(1000, 1000); /* embedding: more than staging ever takes */
    fixture.params[2].shape = ah_shape2(64, 64);     /* first block */
    fixture.params[3].shape = ah_shape1(64);
    fixture.params[10].shape = fixture.params[11].shape = ah_shape1(64); /* head */
    struct ah_plan plan = {.switches = {.layers = 4, .buffers = 1, .prefetch_distance = 1}};
    static const struct {
        bool embedding, head;
        int o;
        int64_t staging;
    } rows[] = {{false, true, 4, 1 << 20}, {true, true, 3, 64 * 64 * 4}, {true, false, 4, 1024}, {true, true, 4, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ah_layout *layout;
        plan.switches.embedding_on_host = rows[i].embedding;
        plan.switches.head_on_host = rows[i].head;
        plan.switches.offload_optimizer = rows[i].o;
        assert_ok(ah__layout_new(&layout, &fixture.partition, &plan.switches, 0));
        assert_int_equal(layout->host_staging_bytes, rows[i].staging);
        ah__layout_free(layout);
    }
}

static void survives_failing_allocations(void **state)
{
    struct fixture fixture;
    fixed_model(&fixture);
    struct ah_plan plan = {.switches = {.layers = 4, .buffers = 1, .prefetch_distance = 1}};
    for (uint64_t n = 1; n <= 2; n++) {
        struct ah_layout *layout = NULL;
        ah__alloc_fail_at(n);
        assert_int_equal(ah__layout_new(&layout, &fixture.partition, &plan.switches, 0), AH_ENOMEM);
        assert_null(layout);
    }
    ah__alloc_fail_at(0);
    ah__layout_free(NULL);
}

AH_TEST_CASES("layout/layout", places_every_area_apart_and_totals_agree, ends_with_the_embedding_gradient,
              keeps_one_saved_set_for_recomputation, selective_blocks_free_what_is_cheap, work_holds_what_runs,
              logits_have_room_for_inference_alone, inference_keeps_parameters_alone, staging_only_for_device_states,
              survives_failing_allocations)
