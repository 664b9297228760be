#include "test.h"

#include <math.h>

#include "plan/fixture.h"
#include "plan/plan_internal.h"

/* Numbers small enough to work the equations by hand. */
static const struct ah_cost_model by_hand = {
    .L = 10,
    .Ma = 100,
    .Ma_in = 5,
    .Mp = 20,
    .Mgc = 1000,
    .Mcc = 500,
    .M_gpu = INFINITY,
    .M_cpu = INFINITY,
    .half_bytes = 2,
    .state_bytes = 12,
    .t_fp = 2,
    .t_bp = 4,
    .t_h2d = 7,
    .t_d2h = 3,
    .t_optim_cpu = 9,
    .t_optim_gpu = 1,
};

static void equations_by_hand(void **state)
{
    const struct ah_cpo s = {6, 3, 8}; /* C = 1..6, O = 3..10, P = 3..5, v = 3 */
    const struct ah_cost_model *m = &by_hand;
    assert_true(ah__cost_device_bytes(m, s) == 2 * 5 * 6 + 2 * 100 * 5 + 2 * 20 * 8 + 12 * 20 * 2 + 1000);
    assert_true(ah__cost_host_bytes(m, s) == 14 * 20 * 8 + 500);
    assert_true(ah__cost_forward(m, s) == 7 * 8 + 2);
    assert_int_equal(ah__cost_v(m, s), 3);
    assert_true(ah__cost_sync(m, s) == 3 * 1);
    assert_true(ah__cost_backward(m, s) == 4 + 3 + 9 * 8);
    const struct ah_cpo compute_bound = {10, 2, 2};
    assert_true(ah__cost_forward(m, compute_bound) == 20);
    assert_true(ah__cost_backward(m, compute_bound) == 40 + 20 + 8 + 2 * 1);
    const struct ah_cpo nothing_hidden = {0, 3, 4};
    assert_true(ah__cost_sync(m, nothing_hidden) == 3 * 3);
}

static void fp32_doubles_the_half_bytes(void **state)
{
    struct ah_cost_model m = by_hand;
    const struct ah_cpo s = {6, 3, 8};
    m.half_bytes = 4;
    assert_true(ah__cost_device_bytes(&m, s) == 4 * 5 * 6 + 4 * 100 * 5 + 4 * 20 * 8 + 12 * 20 * 2 + 1000);
    assert_true(ah__cost_host_bytes(&m, s) == 16 * 20 * 8 + 500);
}

/* v against the definition: blocks that are in both C and P. */
static void v_counts_blocks_in_both(void **state)
{
    struct ah_cost_model m = by_hand;
    for (m.L = 1; m.L <= 9; m.L++)
        for (int c = 0; c <= m.L; c++)
            for (int o = 0; o <= m.L; o++)
                for (int p = 0; p <= o; p++) {
                    int both = 0;
                    for (int block = 1; block <= m.L; block++)
                        both += block <= c && block > m.L - o && block <= m.L - o + p;
                    assert_int_equal(ah__cost_v(&m, (struct ah_cpo){c, p, o}), both);
                }
}

/* What is frozen lies and travels as everything does, and has no states. */
static void frozen_parameters_have_no_states(void **state)
{
    struct fixture fixture;
    fixture_init(&fixture, 3);
    struct ah_group *block = &fixture.groups[fixture.partition.layers];
    block->trained = block->count / 4;
    struct ah_profile profile = {.costs.layers = fixture.partition.layers};
    struct ah_cost_model m;
    ah__cost_model_init(&m, &fixture.partition, &profile, &(struct ah_budget){0});
    assert_true(m.Mp == (double)block->count);
    assert_true(fabs(m.state_bytes * m.Mp - 12 * (double)block->trained) < 1e-6);
}

static void model_from_partition_and_profile(void **state)
{
    struct fixture fixture;
    fixture_init(&fixture, 3);
    struct ah_partition *partition = &fixture.partition;
    struct ah_profile profile = {.costs.layers = partition->layers};
    static const enum ah_item_kind kinds[] = {AH_ITEM_FORWARD, AH_ITEM_BACKWARD,    AH_ITEM_PREFETCH,
                                              AH_ITEM_OFFLOAD, AH_ITEM_UPDATE_HOST, AH_ITEM_UPDATE_DEVICE};
    for (int i = 0; i < 6; i++)
        profile.costs.ns[kinds[i]][AH_CLASS_BLOCK] = (i + 1) * 1000000;
    struct ah_budget budget = {.device_bytes = 1 << 30};
    struct ah_cost_model m;
    ah__cost_model_init(&m, partition, &profile, &budget);
    const struct ah_code *block = &partition->code[AH_CLASS_BLOCK];
    assert_int_equal(m.L, partition->layers);
    assert_true(m.half_bytes == 4 && m.state_bytes == 12);
    assert_true(m.Ma * 4 == (double)(block->saved_bytes + block->input_bytes));
    assert_true(m.Ma_in * 4 == (double)block->input_bytes);
    assert_true(m.Mp == (double)partition->groups[1].count);
    assert_true(m.M_gpu == 1 << 30 && isinf(m.M_cpu));
    const double times[] = {m.t_fp, m.t_bp, m.t_h2d, m.t_d2h, m.t_optim_cpu, m.t_optim_gpu};
    for (int i = 0; i < 6; i++)
        assert_true(fabs(times[i] - (i + 1) * 1e-3) < 1e-12);
}

/* M_gc and M_cc are what the layout holds besides block states, buffers, inputs and saved sets. */
static void constants_are_the_rest_of_the_layout(void **state)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct fixture fixture;
        fixture_init(&fixture, seed);
        struct ah_plan plan = fixture_plan(&fixture);
        plan.switches.embedding_on_host = plan.switches.head_on_host = false;
        plan.switches.checkpoint = plan.switches.layers;
        plan.switches.selective = plan.switches.staged = plan.switches.offload_activations = 0;
        plan.switches.offload_optimizer = plan.switches.offload_params = plan.switches.shadows = 0;
        plan.switches.disk_blocks = plan.switches.disk_ahead = 0;
        struct ah_layout *layout;
        assert_ok(ah__layout_new(&layout, &fixture.partition, &plan.switches, 0));
        int64_t device, host;
        ah__layout_constants(&device, &host, &fixture.partition);
        int64_t blocks = plan.switches.buffers * layout->buffer_bytes +
                         3 * layout->groups[1].state_bytes * plan.switches.layers +
                         (plan.switches.layers + 1) * layout->input_bytes + layout->saved_bytes;
        assert_int_equal(device + blocks, layout->device_bytes);
        assert_int_equal(host, layout->host_bytes);
        ah__layout_free(layout);
    }
}

AH_TEST_CASES("plan/cost", equations_by_hand, fp32_doubles_the_half_bytes, v_counts_blocks_in_both,
              model_from_partition_and_profile, frozen_parameters_have_no_states, constants_are_the_rest_of_the_layout)
