/* Masters of a training in bf16: what they take, and that every bit of them comes back from either side. */
#include "run/exact.h"

#include <stdlib.h>

#include "bind/bind.h"
#include "layout/layout.h"

/* A float of any bits but those of a NaN. */
static float any_float(uint64_t seed, uint64_t i)
{
    uint32_t bits = (uint32_t)ah__random_bits(seed, i);
    float value;
    bits = i % 3 ? bits : (bits & 0xffff0000) | 0x8000; /* a tie */
    bits = (bits & 0x7fffffff) > 0x7f800000 ? bits & 0xbfffffff : bits;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void check_param(struct ah_run *run, const struct ah_param *param, int p)
{
    int64_t count = ah__shape_count(&param->shape);
    float *given = malloc(2 * (size_t)count * sizeof *given), *found = given + count;
    assert_non_null(given);
    for (int64_t i = 0; i < count; i++)
        given[i] = any_float((uint64_t)p, (uint64_t)i);
    assert_ok(ah__run_load(run, p, AH_RUN_PARAM, given));
    assert_ok(ah__run_store(run, p, AH_RUN_PARAM, found));
    assert_memory_equal(found, given, (size_t)count * sizeof *given);
    memset(found, 0, (size_t)count * sizeof *found);
    assert_ok(ah__run_store_raw(run, p, AH_RUN_PARAM, found));
    assert_memory_equal(found, given, (size_t)count * sizeof *given);
    free(given);
}

static void check_run(struct tiny *tiny, struct ah_plan plan)
{
    struct ah_dev *dev;
    struct ah_run *run;
    assert_ok(ah__dev_cpu_open(&dev, &(struct ah_dev_options){.threads = 1}));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, tiny->partition, dev));
    assert_ok(ah__run_new(&run, tiny->partition, &plan, dev, tiny->clip));
    for (int p = 0; p < tiny->partition->param_count; p++)
        check_param(run, &tiny->partition->params[p], p);
    ah__run_free(run);
    ah_dev_close(dev);
}

static void masters_come_back_whole(void **state)
{
    struct tiny tiny;
    tiny_init_in(&tiny, AH_BF16, tiny_untied, 1.4, 2, 1);
    struct ah_plan plan = exact_resident(&tiny);
    check_run(&tiny, plan);
    plan.switches.offload_optimizer = TINY_LAYERS;
    plan.switches.embedding_on_host = plan.switches.head_on_host = 1;
    snprintf(plan.policy, sizeof plan.policy, "autohete");
    check_run(&tiny, plan);
    tiny_fini(&tiny);
}

/* In bf16 with masters and moments in fp32: 12 bytes a parameter, and 2 of a gradient for each block, on the host; and
 * nothing beside the states on the device, whatever their format. */
static void states_take_twelve_bytes(void **state)
{
    struct tiny tiny;
    int64_t device[2], host[3];
    tiny_init_in(&tiny, AH_BF16, tiny_untied, 1.4, 2, 1);
    int64_t count = tiny.partition->groups[1].count;
    struct ah_plan plan = exact_resident(&tiny);
    plan.switches.offload_optimizer = 1;
    ah__layout_bytes(&device[0], &host[0], tiny.partition, &plan.switches, 0);
    plan.switches.shadows = 1;
    ah__layout_bytes(&device[0], &host[1], tiny.partition, &plan.switches, 0);
    plan.switches.shadows = 0;
    plan.switches.offload_optimizer = 2;
    ah__layout_bytes(&device[1], &host[2], tiny.partition, &plan.switches, 0);
    assert_int_equal(host[1] - host[0], 12 * count);
    assert_int_equal(host[2] - host[0], 14 * count);
    assert_int_equal(device[0] - device[1], 12 * count);
    assert_true(ah__states_each(tiny.partition) == 12);
    tiny_fini(&tiny);
}

AH_TEST_CASES("run/states", masters_come_back_whole, states_take_twelve_bytes)
