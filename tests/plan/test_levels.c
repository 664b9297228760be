/* The steps from keeping all activations to keeping none. */
#include "test.h"

#include "plan/fixture.h"
#include "plan/levels.h"
#include "sched/switches.h"

static int64_t device_bytes(const struct fixture *fixture, const struct ah_levels *levels, int step)
{
    struct ah_switches switches = {.layers = levels->layers, .buffers = 1};
    int64_t device, host;
    ah__levels_set(&switches, levels, step);
    assert_true(ah__switches_valid(&switches));
    ah__layout_bytes(&device, &host, &fixture->partition, &switches, 0);
    return device;
}

/* What a step is said to free is never less than what it frees, so that no step which fits is passed over; only the
 * last, after which no block runs FORWARD, may free scratch beyond it. */
static void no_step_frees_more_than_it_says(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct fixture fixture;
        fixture_init(&fixture, seed);
        fixture.partition.step.micro_batches = (int)fixture_draw(&fixture, 1, 4);
        int layers = fixture.partition.layers;
        for (int selective = 0; selective < 2; selective++) {
            struct ah_levels levels = {selective, layers, selective ? 2 * layers : layers};
            for (int step = 0; step + 1 < levels.last; step++)
                assert_true(device_bytes(&fixture, &levels, step) - device_bytes(&fixture, &levels, step + 1) <=
                            ah__levels_freed(&levels, step, &fixture.partition));
        }
    }
}

static void steps_go_from_none_by_selective_to_all(void **state)
{
    (void)state;
    static const int expected[2][7][2] = {{{0, 0}, {1, 0}, {2, 0}, {3, 0}},
                                          {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 2}, {2, 1}, {3, 0}}};
    for (int selective = 0; selective < 2; selective++) {
        struct ah_levels levels = {selective, 3, selective ? 6 : 3};
        for (int step = 0; step <= levels.last; step++) {
            struct ah_switches switches = {.layers = 3};
            ah__levels_set(&switches, &levels, step);
            assert_int_equal(switches.checkpoint, expected[selective][step][0]);
            assert_int_equal(switches.selective, expected[selective][step][1]);
        }
    }
}

AH_TEST_SUITE("plan/levels", cmocka_unit_test(no_step_frees_more_than_it_says),
              cmocka_unit_test(steps_go_from_none_by_selective_to_all))
