/* Every family: ten steps with clipping as transformers and torch.optim.AdamW make them (tests/golden/families.py), and
 * the same bits under every plan in both dtypes. */
#include "bind/bind.h"
#include "golden/families.h"
#include "model/model.h"
#include "plan/config.h"
#include "run/exact.h"
#include "train/schedule.h"

/* ---- ten steps --------------------------------------------------------------------------------------------------- */

struct ten_steps {
    const struct family_golden *golden;
    double losses[GOLDEN_STEPS], norms[GOLDEN_STEPS], factors[GOLDEN_STEPS];
};

static int give_batch(const struct ah_batch *to, int64_t iteration, void *context)
{
    int32_t *ids = to->ids, *targets = to->targets;
    family_fill_ids(ids, targets, ((const struct ten_steps *)context)->golden, iteration);
    return AH_OK;
}

static void give_adam(struct ah_adam *out, int64_t iteration, void *context)
{
    static const struct ah_adamw hyper = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-4, .weight_decay = 0.1};
    ah__adam_init(out, &hyper, 1e-3, iteration + 1);
}

static int take_result(const struct ah_run_result *result, void *context)
{
    struct ten_steps *steps = context;
    steps->losses[result->iteration] = result->loss;
    steps->norms[result->iteration] = result->grad_norm;
    steps->factors[result->iteration] = result->clip_factor;
    return 0;
}

static int param_of(const struct ah_partition *partition, const char *name)
{
    for (int p = 0; p < partition->param_count; p++)
        if (strcmp(partition->params[p].name, name) == 0)
            return p;
    fail_msg("%s: no such parameter", name);
    return -1;
}

static void params_load(struct ah_run *run, const struct ah_partition *partition, const struct family_golden *g)
{
    static float values[FAMILY_MOST_FLOATS];
    for (int i = 0; i < g->count; i++) {
        assert_in_range(g->tensor[i].count, 1, FAMILY_MOST_FLOATS);
        family_fill_param(values, g, i);
        assert_ok(ah__run_load(run, param_of(partition, g->tensor[i].name), AH_RUN_PARAM, values));
    }
}

static void params_check(struct ah_run *run, const struct ah_partition *partition, const struct family_golden *g)
{
    static float values[FAMILY_MOST_FLOATS];
    for (int i = 0; i < g->count; i++) {
        if (!g->tensor[i].after)
            continue;
        assert_ok(ah__run_store(run, param_of(partition, g->tensor[i].name), AH_RUN_PARAM, values));
        golden_expect_close("parameter after ten steps", g->tensor[i].name, values, g->tensor[i].after,
                            g->tensor[i].count);
    }
}

static void results_check(const struct ten_steps *steps)
{
    const struct family_golden *g = steps->golden;
    int clipped = 0;
    for (int i = 0; i < GOLDEN_STEPS; i++) {
        golden_expect_number("loss", steps->losses[i], g->losses[i]);
        golden_expect_number("norm", steps->norms[i], g->norms[i]);
        golden_expect_number("clip factor", steps->factors[i], fmin(1, g->clip / (g->norms[i] + 1e-6)));
        clipped += steps->factors[i] < 1;
    }
    assert_in_range(clipped, 1, GOLDEN_STEPS - 1);
}

static void model_of(struct tiny *tiny, const char *config, enum ah_dtype compute, int64_t batch, int64_t seq,
                     double clip, int micro_batches, bool packed, const char *freeze)
{
    const struct ah_record_options record = {
        .batch = batch, .seq = seq, .compute = compute, .packed = packed, .tuning.freeze = freeze};
    struct ah_model *model;
    struct ah_graph *graph;
    assert_ok(ah__model_parse(&model, config, strlen(config), "config.json"));
    assert_ok(ah_model_record(&graph, model, &record));
    tiny_init_graph(tiny, graph, clip, micro_batches);
    tiny->model = model;
}

/* One block recomputed, its parameters fetched again, the others recomputed selectively, and half of the updates on
 * the host. */
static struct ah_plan mixed_plan(const struct ah_partition *partition)
{
    struct ah_sched_config config;
    struct ah_plan plan = {.switches = {.layers = partition->layers,
                                        .frozen_blocks = partition->frozen_blocks,
                                        .checkpoint = 1,
                                        .selective = partition->layers - 1,
                                        .offload_params = 1,
                                        .offload_optimizer = 1,
                                        .prefetch_distance = 1,
                                        .chunks = 1,
                                        .embedding_on_host = true},
                           .policy = "autohete"};
    ah__switches_clamp(&plan.switches);
    ah__sched_config_of(&config, &plan.switches, partition, ah__policy_find(plan.policy));
    plan.switches.buffers = ah__sched_min_buffers(&config);
    return plan;
}

static void ten_steps_check(const char *name)
{
    struct family_golden g;
    struct tiny tiny;
    struct ah_dev *dev;
    struct ah_run *run;
    struct ah_dev_options options = {.threads = 2, .jitter_seed = 3};
    family_load(&g, name);
    struct ten_steps steps = {.golden = &g};
    struct steps driven = {.batch = give_batch, .adam = give_adam, .result = take_result, .context = &steps};
    model_of(&tiny, g.config, AH_F32, g.batch, g.seq, g.clip, 1, false, NULL);
    struct ah_plan plan = mixed_plan(tiny.partition);
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, tiny.partition, dev));
    assert_ok(ah__run_new(&run, tiny.partition, &plan, dev, g.clip));
    params_load(run, tiny.partition, &g);
    steps_train(run, &driven, 0, GOLDEN_STEPS);
    results_check(&steps);
    params_check(run, tiny.partition, &g);
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&tiny);
    ah__free(g.text);
}

static void ten_steps_are_those_of_transformers(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(family_cases); i++) {
        print_message("%s\n", family_cases[i]);
        ten_steps_check(family_cases[i]);
    }
}

/* ---- the same bits under every plan ------------------------------------------------------------------------------ */

#define SIZES                                                                                                          \
    "\"vocab_size\":67,\"hidden_size\":24,\"num_hidden_layers\":4,\"num_attention_heads\":4,"                          \
    "\"max_position_embeddings\":24"
#define GATED SIZES ",\"intermediate_size\":40"

/* With the keys of older versions of transformers. */
static const char *const families[] = {
    "{\"model_type\":\"llama\"," GATED ",\"num_key_value_heads\":2,\"rope_theta\":100,\"rope_scaling\":{\"type\":"
    "\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":64}}",
    "{\"model_type\":\"mistral\"," GATED ",\"num_key_value_heads\":2,\"sliding_window\":5}",
    "{\"model_type\":\"ministral\"," GATED ",\"num_key_value_heads\":2,\"sliding_window\":4,\"layer_types\":["
    "\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"]}",
    "{\"model_type\":\"qwen2\"," GATED ",\"num_key_value_heads\":1,\"tie_word_embeddings\":true}",
    "{\"model_type\":\"qwen3\"," GATED ",\"num_key_value_heads\":2,\"head_dim\":10}",
    "{\"model_type\":\"gemma\"," GATED ",\"num_key_value_heads\":1,\"head_dim\":10}",
    "{\"model_type\":\"gemma2\"," GATED ",\"num_key_value_heads\":2,\"head_dim\":6,\"sliding_window\":4,"
    "\"attn_logit_softcapping\":0.05,\"final_logit_softcapping\":0.75,\"query_pre_attn_scalar\":7}",
    "{\"model_type\":\"gemma3_text\"," GATED ",\"num_key_value_heads\":2,\"head_dim\":6,\"sliding_window\":4,"
    "\"sliding_window_pattern\":2,\"query_pre_attn_scalar\":7}",
    "{\"model_type\":\"granite\"," GATED ",\"num_key_value_heads\":2,\"embedding_multiplier\":12,"
    "\"residual_multiplier\":0.22,\"attention_multiplier\":0.3,\"logits_scaling\":6}",
    "{\"model_type\":\"olmo2\"," GATED ",\"num_key_value_heads\":2}",
    "{\"model_type\":\"olmo3\"," GATED ",\"num_key_value_heads\":2,\"sliding_window\":4,\"rope_scaling\":{\"type\":"
    "\"yarn\",\"factor\":4,\"original_max_position_embeddings\":8}}",
    "{\"model_type\":\"phi3\"," GATED ",\"num_key_value_heads\":2,\"partial_rotary_factor\":0.34}",
    "{\"model_type\":\"phi3\"," GATED
    ",\"original_max_position_embeddings\":16,\"rope_scaling\":{\"type\":\"longrope\","
    "\"short_factor\":[1,1,1],\"long_factor\":[1,2,4]}}",
    "{\"model_type\":\"qwen2\"," GATED ",\"use_sliding_window\":true,\"sliding_window\":4,\"max_window_layers\":2}",
    "{\"model_type\":\"smollm3\"," GATED ",\"num_key_value_heads\":2,\"no_rope_layer_interval\":2}",
    "{\"model_type\":\"gpt_neox\"," GATED ",\"rotary_pct\":0.34}",
    "{\"model_type\":\"gpt_neox\"," GATED ",\"use_parallel_residual\":false,\"rotary_pct\":1,"
    "\"tie_word_embeddings\":true}",
    "{\"model_type\":\"qwen3_moe\"," GATED ",\"num_key_value_heads\":2,\"head_dim\":6,\"num_experts\":7,"
    "\"num_experts_per_tok\":3,\"moe_intermediate_size\":12,\"norm_topk_prob\":true}",
    "{\"model_type\":\"mixtral\"," GATED ",\"num_key_value_heads\":1,\"num_local_experts\":4,"
    "\"num_experts_per_tok\":2}",
    "{\"model_type\":\"olmoe\"," GATED ",\"num_key_value_heads\":2,\"num_experts\":5,\"num_experts_per_tok\":1}",
    "{\"model_type\":\"granitemoe\"," GATED ",\"num_key_value_heads\":2,\"num_local_experts\":6,"
    "\"num_experts_per_tok\":2,\"residual_multiplier\":0.22,\"attention_multiplier\":0.3,\"logits_scaling\":6}",
    "{\"model_type\":\"qwen2_moe\"," GATED ",\"num_key_value_heads\":2,\"num_experts\":5,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":12,\"shared_expert_intermediate_size\":20}",
    "{\"model_type\":\"gpt_oss\"," GATED ",\"num_key_value_heads\":2,\"head_dim\":6,\"num_local_experts\":5,"
    "\"num_experts_per_tok\":2,\"sliding_window\":3,\"swiglu_limit\":0.125}",
    "{\"model_type\":\"opt\"," SIZES ",\"ffn_dim\":40}",
};

/* A limit that some steps exceed and others do not: the middle one of the norms without. */
static double middle_norm(struct tiny *tiny, const struct exact_device *device)
{
    struct outcome free;
    struct ah_dev_options options = {.threads = 1, .host_threads = 1};
    struct ah_plan resident = exact_resident(tiny);
    exact_train(&free, device, tiny, &resident, &options);
    double *norm = free.norm;
    for (int i = 0; i < TINY_STEPS; i++)
        for (int j = i + 1; j < TINY_STEPS; j++)
            if (norm[j] < norm[i]) {
                double swap = norm[i];
                norm[i] = norm[j];
                norm[j] = swap;
            }
    return 0.5 * (norm[TINY_STEPS / 2 - 1] + norm[TINY_STEPS / 2]);
}

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

/* One plan in so many, others for each family. */
static void families_equal_resident(enum ah_dtype compute, int64_t batch, int micro_batches, bool packed)
{
    static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};
    int of = ah_test_rounds(25, 10, 1);
    for (size_t i = 0; i < AH_LENGTH(families); i++) {
        struct tiny tiny;
        model_of(&tiny, families[i], compute, batch, 17, 1e9, micro_batches, packed, NULL);
        tiny.clip = middle_norm(&tiny, &cpu);
        exact_some_plans(&cpu, &tiny, "autohete", (int)i % of, of);
        tiny_fini(&tiny);
    }
}

static void equal_resident(void **state)
{
    families_equal_resident(AH_F32, 2, 1, false);
    families_equal_resident(AH_F32, 1, 3, false);
}

static void bf16_equal_resident(void **state)
{
    families_equal_resident(AH_BF16, 2, 1, false);
    families_equal_resident(AH_BF16, 1, 3, false);
}

static void packed_equal_resident(void **state)
{
    families_equal_resident(AH_F32, 1, 3, true);
    families_equal_resident(AH_BF16, 2, 1, true);
}

/* Below what is trained, blocks of each family leave what they make where they read: the same first loss as where all
 * is trained, and the same bits under every plan. */
static void frozen_blocks_are_those_of_the_family(void **state)
{
    static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};
    static const char *const lowest[] = {"embedding,blocks:1-3", "embedding,blocks:1-2", "embedding,blocks:1-1"};
    int of = ah_test_rounds(25, 10, 1);
    for (size_t i = 0; i < AH_LENGTH(families); i++) {
        enum ah_dtype compute = i % 2 ? AH_BF16 : AH_F32;
        struct ah_dev_options options = {.threads = 1, .host_threads = 1};
        struct outcome all, some;
        struct tiny tiny;
        model_of(&tiny, families[i], compute, 2, 17, 0, 2, false, NULL);
        struct ah_plan resident = exact_resident(&tiny);
        exact_train(&all, &cpu, &tiny, &resident, &options);
        tiny_fini(&tiny);
        model_of(&tiny, families[i], compute, 2, 17, 0, 2, false, lowest[i % AH_LENGTH(lowest)]);
        resident = exact_resident(&tiny);
        exact_train(&some, &cpu, &tiny, &resident, &options);
        assert_true(some.loss[0] == all.loss[0]);
        assert_true(some.norm[0] < all.norm[0]);
        exact_some_plans(&cpu, &tiny, "autohete", (int)i % of, of);
        tiny_fini(&tiny);
    }
}

AH_TEST_CASES("run/families", ten_steps_are_those_of_transformers, equal_resident, bf16_equal_resident,
              packed_equal_resident, frozen_blocks_are_those_of_the_family)
