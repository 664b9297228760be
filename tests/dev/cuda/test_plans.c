/* Trainings on the CUDA device, on the emulated GPU: the same bits under every plan, and nearly the CPU device's. */
#include "emulated.h"

#include <math.h>
#include <stdlib.h>

#include "partition/models.h"
#include "run/exact.h"

static const double CLIP = 1.45;

static const struct exact_device cuda = {.open = emulated_open};

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};

/* Threads of blocks as fibres take their time (two seconds a plan), and sanitizers slow them further: one plan of
 * several stands for all but in the long run. */
static void some_plans(struct tiny *tiny, const char *policy, int part, int of)
{
    emulation_reset();
    exact_some_plans(&cuda, tiny, policy, part, of * ah_test_rounds(30, 5, 1));
    tiny_fini(tiny);
    emulated_assert_clean();
}

struct plans {
    enum ah_dtype compute;
    int layers;
    bool untied;
    double clip;
    int64_t batch;
    int micro_batches;
    const char *policy;
    int part, of;
};

static void every_plan(const struct plans *plans)
{
    char config[192];
    struct tiny tiny;
    snprintf(config, sizeof config,
             "{\"model_type\": \"gpt2\", \"vocab_size\": 67, \"n_positions\": 24, \"n_embd\": 24, \"n_layer\": %d, "
             "\"n_head\": 3%s}",
             plans->layers, plans->untied ? ", \"tie_word_embeddings\": false" : "");
    tiny_init_in(&tiny, plans->compute, config, plans->clip, plans->batch, plans->micro_batches);
    some_plans(&tiny, plans->policy, plans->part, plans->of);
}

static void every_plan_equals_resident_1(void **state)
{
    every_plan(&(struct plans){AH_F32, TINY_LAYERS, false, CLIP, 2, 1, "autohete", 0, 3});
}

static void every_plan_equals_resident_2(void **state)
{
    if (ah_test_samples())
        return;
    every_plan(&(struct plans){AH_F32, TINY_LAYERS, true, CLIP, 2, 1, "autohete", 1, 3});
}

static void every_plan_equals_resident_3(void **state)
{
    if (ah_test_samples())
        return;
    every_plan(&(struct plans){AH_F32, TINY_LAYERS, false, CLIP, 2, 1, "autohete-fifo", 2, 3});
}

static void every_plan_in_bf16_equals_resident(void **state)
{
    every_plan(&(struct plans){AH_BF16, 2, true, CLIP, 2, 1, "autohete", 0, 1});
}

static void micro_batches_equal_resident(void **state)
{
    every_plan(&(struct plans){AH_F32, 2, true, 0, 1, 3, "autohete", 0, 1});
}

static void micro_batches_in_bf16_equal_resident(void **state)
{
    every_plan(&(struct plans){AH_BF16, 2, false, CLIP, 1, 2, "autohete", 0, 1});
}

static void llama_equals_resident(void **state)
{
    struct tiny tiny;
    tiny_init_graph(&tiny, model_graph(model_llama, 1, false), 0, 1);
    some_plans(&tiny, "autohete", 0, 1);
}

/* No gradient of a norm's weight, no gradient of a matrix, and small ones beside large parameters. */
static void adapters_equal_resident(void **state)
{
    static const char config[] = "{\"model_type\": \"llama\", \"vocab_size\": 67, \"hidden_size\": 24, "
                                 "\"intermediate_size\": 40, \"num_hidden_layers\": 2, \"num_attention_heads\": 3, "
                                 "\"num_key_value_heads\": 1, \"max_position_embeddings\": 24}";
    struct tiny tiny;
    tiny_init_tuned(&tiny, AH_BF16, config, 0, 2, 1, &(struct ah_tuning){.lora_rank = 4, .lora_alpha = 8});
    some_plans(&tiny, "autohete", 0, 1);
    tiny_init_tuned(&tiny, AH_F32, tiny_tied, 0, 2, 1, &(struct ah_tuning){.freeze = "*ln_1.weight,*.mlp.*,*.ln_f.*"});
    some_plans(&tiny, "autohete", 0, 3);
    tiny_init_tuned(&tiny, AH_BF16, tiny_untied, 0, 2, 1, &(struct ah_tuning){.freeze = "embedding,blocks:1-2"});
    some_plans(&tiny, "autohete", 0, 3);
}

/* Attention by cuDNN's graphs, of one text and of packed documents, whose masks are made in the workspace. */
static void plans_with_cudnn_equal_resident(void **state)
{
    setenv("AUTOHETE_EMULATION_CUDNN", "91900", 1);
    for (int packed = 0; packed < 2; packed++) {
        const struct ah_record_options record = {.batch = 2, .seq = 17, .compute = AH_BF16, .packed = packed};
        struct tiny tiny;
        tiny_init_record(&tiny, tiny_tied, CLIP, 1, &record);
        some_plans(&tiny, "autohete", packed, 3);
    }
    unsetenv("AUTOHETE_EMULATION_CUDNN");
}

/* Rounding is all that tells the devices apart: sums are made in another order. */
static void nearly(double found, double expected, double bound)
{
    if (!(fabs(found - expected) <= bound * fabs(expected)))
        fail_msg("found %.9g, expected %.9g to within %g of it", found, expected, bound);
}

static void losses_are_nearly_the_cpus(void **state)
{
    static const struct {
        enum ah_dtype compute;
        double bound;
    } cases[] = {{AH_F32, 1e-5}, {AH_BF16, 2e-2}};
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct tiny tiny;
        struct outcome found, expected;
        emulation_reset();
        tiny_init_in(&tiny, cases[i].compute, tiny_tied, CLIP, 2, 1);
        struct ah_plan plan = exact_resident(&tiny);
        exact_train(&expected, &cpu, &tiny, &plan, &(struct ah_dev_options){.threads = 1});
        exact_train(&found, &cuda, &tiny, &plan, &(struct ah_dev_options){.host_threads = 1});
        for (int k = 0; k < TINY_STEPS; k++) {
            nearly(found.loss[k], expected.loss[k], cases[i].bound);
            nearly(found.norm[k], expected.norm[k], cases[i].bound);
        }
        tiny_fini(&tiny);
        emulated_assert_clean();
    }
}

AH_TEST_CASES("dev/cuda/plans", losses_are_nearly_the_cpus, every_plan_equals_resident_1, every_plan_equals_resident_2,
              every_plan_equals_resident_3, every_plan_in_bf16_equals_resident, micro_batches_equal_resident,
              micro_batches_in_bf16_equal_resident, llama_equals_resident, adapters_equal_resident,
              plans_with_cudnn_equal_resident)
