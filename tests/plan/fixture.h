/* A made-up partition for tests of layout and cost: sizes drawn from a counter, no programs. */
#ifndef AH_TESTS_PLAN_FIXTURE_H
#define AH_TESTS_PLAN_FIXTURE_H

#include "base/hash.h"
#include "layout/layout.h"
#include "plan/cost.h"
#include "sched/switch_table.h"

enum { FIXTURE_LAYERS = 48 };

struct fixture {
    struct ah_partition partition;
    struct ah_param params[2 * (FIXTURE_LAYERS + 2)];
    struct ah_group groups[FIXTURE_LAYERS + 2];
    uint8_t class_of[FIXTURE_LAYERS + 2];
    int blocks_from[FIXTURE_LAYERS + 3], mixed_from[2][FIXTURE_LAYERS + 3]; /* frozen blocks; others of further kinds */
    uint64_t seed, drawn;
};

/* low..high inclusive */
static inline int64_t fixture_draw(struct fixture *fixture, int64_t low, int64_t high)
{
    return low + (int64_t)(ah__random_bits(fixture->seed, fixture->drawn++) % (uint64_t)(high - low + 1));
}

/* A matrix and a vector in each group; all blocks alike. */
static inline void fixture_groups(struct fixture *fixture)
{
    struct ah_partition *partition = &fixture->partition;
    for (int g = 0; g < partition->group_count; g++) {
        fixture->class_of[g] = (uint8_t)ah__class_of(g, partition->layers);
        struct ah_param *matrix = &fixture->params[2 * g], *vector = matrix + 1;
        if (g > 1 && g <= partition->layers) {
            matrix[0] = matrix[-2];
            vector[0] = vector[-2];
        } else {
            matrix->shape = ah_shape2(fixture_draw(fixture, 1, 900), fixture_draw(fixture, 1, 900));
            vector->shape = ah_shape1(fixture_draw(fixture, 1, 900));
        }
        matrix->group = vector->group = g;
        int64_t decayed = matrix->shape.dim[0] * matrix->shape.dim[1];
        int64_t count = decayed + vector->shape.dim[0];
        fixture->groups[g] = (struct ah_group){.first_param = 2 * g,
                                               .param_count = 2,
                                               .count = count,
                                               .trained = count,
                                               .decayed = decayed,
                                               .elements = count};
    }
}

/* The lowest blocks are frozen whole: they have as many elements as others, and no backward. */
static inline void fixture_freeze_blocks(struct fixture *fixture, int count)
{
    struct ah_partition *partition = &fixture->partition;
    partition->frozen_blocks = count;
    if (count == 0)
        return;
    int class = partition->class_count++;
    partition->code[class].program[AH_PROGRAM_FORWARD_DROP].work_bytes = fixture_draw(fixture, 0, 1 << 20);
    partition->like[class] = AH_CLASS_BLOCK;
    partition->blocks_from[class] = fixture->blocks_from;
    for (int number = partition->layers + 1; number >= 0; number--) {
        bool frozen = number >= 1 && number <= count;
        fixture->blocks_from[number] = fixture->blocks_from[number + 1] + frozen;
        for (int kind = AH_CLASS_COUNT; kind < class; kind++)
            fixture->mixed_from[kind - AH_CLASS_COUNT][number] =
                fixture->mixed_from[kind - AH_CLASS_COUNT][number + 1] + (!frozen && fixture->class_of[number] == kind);
        if (!frozen)
            continue;
        fixture->class_of[number] = (uint8_t) class;
        fixture->groups[number].trained = fixture->groups[number].decayed = 0;
    }
    for (int kind = AH_CLASS_COUNT; kind < class; kind++)
        partition->blocks_from[kind] = fixture->mixed_from[kind - AH_CLASS_COUNT];
}

/* Of embedding, blocks and head each trains all, a part or nothing, one of them something. What is trained lies
 * before what is frozen, in parts of all ranks, as in a partition. Frozen matrices of blocks may be kept in codes; they
 * are larger where programs read them. */
static inline void fixture_freeze(struct fixture *fixture, int ranks)
{
    struct ah_partition *partition = &fixture->partition;
    int last = partition->group_count - 1;
    int64_t unit = ranks * (int64_t)AH_PARAM_ALIGN, trained[3], frozen[3];
    int64_t coded = fixture_draw(fixture, 0, 1) ? AH_PARAM_ALIGN * fixture_draw(fixture, 1, 40) : 0;
    for (int class = 0; class < 3; class ++) {
        trained[class] = unit * fixture_draw(fixture, 0, 50) * fixture_draw(fixture, 0, 1);
        frozen[class] = AH_PARAM_ALIGN * fixture_draw(fixture, trained[class] == 0, 900);
    }
    trained[fixture_draw(fixture, 0, 2)] += unit;
    for (int g = 0; g <= last; g++) {
        int class = g == 0 ? 0 : g == last ? 2 : 1;
        struct ah_group *group = &fixture->groups[g];
        group->trained = trained[class];
        group->decayed = trained[class] / 2;
        group->coded = class == 1 ? coded : 0;
        group->count = group->trained + frozen[class] + group->coded;
        group->placed = group->count + 3 * group->coded;
    }
    if (trained[0] == 0 && coded == 0)
        fixture_freeze_blocks(fixture, (int)fixture_draw(fixture, 0, partition->layers - 1));
    partition->frozen = true;
}

static inline void fixture_code(struct fixture *fixture, struct ah_code *code)
{
    code->program[AH_PROGRAM_FORWARD].work_bytes = fixture_draw(fixture, 0, 1 << 20);
    code->program[AH_PROGRAM_FORWARD_DROP].work_bytes = fixture_draw(fixture, 0, 1 << 20);
    code->program[AH_PROGRAM_RECOMPUTE].work_bytes = fixture_draw(fixture, 0, 1 << 20);
    code->program[AH_PROGRAM_BACKWARD].work_bytes = fixture_draw(fixture, 0, 1 << 20);
    code->saved_bytes = fixture_draw(fixture, 0, 1 << 20);
    code->kept_bytes = code->saved_bytes * 4 / 7 / 64 * 64;
    code->input_bytes = code->output_bytes = code->boundary_bytes =
        fixture->partition.batch * fixture->partition.seq * 260;
}

static inline void fixture_init(struct fixture *fixture, uint64_t seed)
{
    *fixture = (struct fixture){.seed = seed};
    struct ah_partition *partition = &fixture->partition;
    *partition = (struct ah_partition){
        .compute = AH_F32,
        .layers = (int)fixture_draw(fixture, 1, FIXTURE_LAYERS),
        .batch = fixture_draw(fixture, 1, 4),
        .seq = fixture_draw(fixture, 1, 130),
        .shared_group = -1,
        .class_count = AH_CLASS_COUNT,
        .class_of = fixture->class_of,
        .params = fixture->params,
        .groups = fixture->groups,
        .signature = 0x1234,
    };
    partition->group_count = partition->layers + 2;
    partition->param_count = 2 * partition->group_count;
    fixture_groups(fixture);
    for (int i = 0; i < 3; i++)
        fixture_code(fixture, &partition->code[i]);
    partition->code[AH_CLASS_EMBEDDING].saved_bytes = partition->code[AH_CLASS_EMBEDDING].kept_bytes = 0;
    partition->code[AH_CLASS_HEAD].output_bytes = 4;
}

static inline int fixture_draw_with(void *fixture, int low, int high)
{
    return (int)fixture_draw(fixture, low, high);
}

/* Whole groups in forward order. */
static inline struct ah_plan fixture_plan(struct fixture *fixture)
{
    struct ah_plan plan = {.switches = {.layers = fixture->partition.layers,
                                        .frozen_blocks = fixture->partition.frozen_blocks,
                                        .world_size = 1}};
    struct ah_switches_draw how = {.draw = fixture_draw_with, .context = fixture, .rarely = 1};
    how.without = 1U << AH_SWITCH_chunks | 1U << AH_SWITCH_prefetch_distance | 1U << AH_SWITCH_out_of_order |
                  1U << AH_SWITCH_unsharded | 1U << AH_SWITCH_share_embedding_head;
    ah__switches_draw(&plan.switches, &how);
    return plan;
}

#endif
