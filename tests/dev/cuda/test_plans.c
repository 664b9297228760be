/* Trainings on the CUDA device, on the emulated GPU: the same bits under every plan, and nearly the CPU device's. */
#include "emulated.h"

#include <math.h>

#include "partition/models.h"
#include "run/exact.h"

static const double CLIP = 1.45;

static const struct exact_device cuda = {.open = emulated_open};

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};

static void every_plan(enum ah_dtype compute, const char *config, const char *policy, double clip, int64_t batch,
                       int micro_batches)
{
    struct tiny tiny;
    emulation_reset();
    tiny_init_in(&tiny, compute, config, clip, batch, micro_batches);
    exact_every_plan(&cuda, &tiny, policy);
    tiny_fini(&tiny);
    emulated_assert_clean();
}

static void every_plan_equals_resident(void **state)
{
    (void)state;
    every_plan(AH_F32, tiny_tied, "autohete", CLIP, 2, 1);
}

static void every_plan_in_bf16_equals_resident(void **state)
{
    (void)state;
    every_plan(AH_BF16, tiny_tied, "autohete", CLIP, 2, 1);
}

static void micro_batches_equal_resident(void **state)
{
    (void)state;
    every_plan(AH_F32, tiny_untied, "autohete", 0, 1, 3);
    every_plan(AH_BF16, tiny_untied, "autohete-fifo", 0, 1, 2);
}

static void llama_equals_resident(void **state)
{
    (void)state;
    struct tiny tiny;
    emulation_reset();
    tiny_init_graph(&tiny, model_graph(model_llama, TINY_LAYERS, false), 0, 1);
    exact_every_plan(&cuda, &tiny, "autohete");
    tiny_fini(&tiny);
    emulated_assert_clean();
}

/* Rounding is all that tells the devices apart: sums are made in another order. */
static void nearly(double found, double expected, double bound)
{
    if (!(fabs(found - expected) <= bound * fabs(expected)))
        fail_msg("found %.9g, expected %.9g to within %g of it", found, expected, bound);
}

static void losses_are_nearly_the_cpus(void **state)
{
    (void)state;
    static const struct {
        enum ah_dtype compute;
        double bound;
    } cases[] = {{AH_F32, 1e-5}, {AH_BF16, 2e-2}};
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct tiny tiny;
        struct outcome found, expected;
        emulation_reset();
        tiny_init_in(&tiny, cases[i].compute, tiny_tied, CLIP, 2, 1);
        exact_train(&expected, &cpu, &tiny, &exact_resident, &(struct ah_dev_options){.threads = 1});
        exact_train(&found, &cuda, &tiny, &exact_resident, &(struct ah_dev_options){.host_threads = 1});
        for (int k = 0; k < TINY_STEPS; k++) {
            nearly(found.loss[k], expected.loss[k], cases[i].bound);
            nearly(found.norm[k], expected.norm[k], cases[i].bound);
        }
        tiny_fini(&tiny);
        emulated_assert_clean();
    }
}

AH_TEST_SUITE("dev/cuda/plans", cmocka_unit_test(losses_are_nearly_the_cpus),
              cmocka_unit_test(every_plan_equals_resident), cmocka_unit_test(every_plan_in_bf16_equals_resident),
              cmocka_unit_test(micro_batches_equal_resident), cmocka_unit_test(llama_equals_resident))
