/* Frozen parameters and adapters: the same bits under every plan, what is frozen stays, what is trained learns as it
 * does where all is trained. */
#include <math.h>

#include "bind/bind.h"
#include "dev/host/codes.h"
#include "run/exact.h"

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};

static int sample(void)
{
    return ah_test_rounds(6, 2, 1);
}

static const struct ah_tuning lora = {.lora_rank = 4, .lora_alpha = 6};
static const struct ah_tuning lora_some = {.lora_rank = 2, .lora_rslora = true, .lora_targets = "c_attn, mlp.c_proj"};
static const struct ah_tuning frozen_ends = {.freeze = "*.wte.*, transformer.wpe.*"};
static const struct ah_tuning frozen_blocks = {.freeze = "transformer.h.*"};
static const struct ah_tuning frozen_lowest = {.freeze = "embedding, blocks:1-2"};
static const struct ah_tuning frozen_around = {.freeze = "embedding, head"};
static const struct ah_tuning frozen_but_one = {.freeze = "embedding, head, blocks:1-3"};
static const struct ah_tuning frozen_most = {.freeze = "embedding, blocks:1-3"};
static const struct ah_tuning frozen_parts = {.freeze = "*.mlp.*,*ln_1.weight,*.attn.c_attn.bias"};

enum { NO_CLIP, CLIPS };

static void every_plan(enum ah_dtype dtype, const char *config, int clips, int micro_batches,
                       const struct ah_tuning *tuning, const char *policy)
{
    const double never = 1e9;
    struct tiny tiny;
    tiny_init_tuned(&tiny, dtype, config, clips ? never : 0, 2, micro_batches, tuning);
    assert_true(tiny.partition->frozen);
    if (clips)
        tiny.clip = exact_limit(&cpu, &tiny);
    exact_every_plan(&cpu, &tiny, policy, sample());
    tiny_fini(&tiny);
}

static void adapters_are_the_same_under_every_plan(void **state)
{
    every_plan(AH_F32, tiny_tied, NO_CLIP, 1, &lora, "autohete");
    every_plan(AH_F32, tiny_untied, CLIPS, 2, &lora_some, "autohete");
    every_plan(AH_BF16, tiny_untied, CLIPS, 1, &lora, "autohete");
    every_plan(AH_BF16, tiny_tied, NO_CLIP, 2, &lora_some, "autohete-fifo");
}

/* Where frozen matrices are kept in codes: fetched, kept on the device, widened for each program. */
static void adapters_beside_codes_are_the_same_under_every_plan(void **state)
{
    const struct ah_tuning int8 = {.lora_rank = 4, .lora_alpha = 6, .frozen = "int8"};
    const struct ah_tuning nf4 = {.lora_rank = 2, .lora_targets = "c_attn, mlp.c_proj", .frozen = "nf4"};
    const struct ah_tuning mxfp4 = {.lora_rank = 3, .frozen = "mxfp4"};
    every_plan(AH_F32, tiny_tied, NO_CLIP, 2, &nf4, "autohete");
    every_plan(AH_F32, tiny_untied, CLIPS, 1, &int8, "autohete");
    every_plan(AH_BF16, tiny_untied, CLIPS, 2, &nf4, "autohete");
    every_plan(AH_BF16, tiny_tied, NO_CLIP, 1, &int8, "autohete-fifo");
    every_plan(AH_BF16, tiny_tied, CLIPS, 2, &mxfp4, "autohete");
    every_plan(AH_F32, tiny_untied, NO_CLIP, 1, &mxfp4, "autohete");
}

/* Of all parameters those that are trained have moments, in groups of their own. */
static void adapters_with_moments_in_8_bits(void **state)
{
    struct tiny tiny;
    tiny_init_tuned(&tiny, AH_BF16, tiny_untied, 0, 2, 1, &lora);
    tiny_states(&tiny, AH_F32, AH_U8);
    exact_every_plan(&cpu, &tiny, "autohete", sample());
    tiny_fini(&tiny);
}

static void frozen_parameters_are_the_same_under_every_plan(void **state)
{
    every_plan(AH_F32, tiny_untied, NO_CLIP, 1, &frozen_parts, "autohete");
    every_plan(AH_BF16, tiny_tied, CLIPS, 2, &frozen_parts, "autohete");
    every_plan(AH_F32, tiny_tied, CLIPS, 2, &frozen_ends, "autohete");
    every_plan(AH_BF16, tiny_untied, NO_CLIP, 1, &frozen_ends, "autohete");
    every_plan(AH_F32, tiny_tied, NO_CLIP, 1, &frozen_blocks, "autohete");
    every_plan(AH_F32, tiny_untied, CLIPS, 2, &frozen_lowest, "autohete");
    every_plan(AH_BF16, tiny_tied, NO_CLIP, 1, &frozen_lowest, "autohete");
    every_plan(AH_BF16, tiny_untied, CLIPS, 2, &frozen_most, "autohete");
    every_plan(AH_F32, tiny_tied, NO_CLIP, 1, &frozen_most, "autohete-fifo");
    every_plan(AH_BF16, tiny_untied, CLIPS, 1, &frozen_blocks, "autohete-fifo");
    every_plan(AH_BF16, tiny_untied, CLIPS, 2, &frozen_around, "autohete");
    every_plan(AH_F32, tiny_untied, NO_CLIP, 1, &frozen_but_one, "autohete");
}

/* Parameters by name after so many steps, and the first loss. */
struct lesson {
    struct tiny tiny;
    struct ah_dev *dev;
    struct ah_run *run;
    struct outcome outcome;
};

static void learn(struct lesson *lesson, enum ah_dtype dtype, const struct ah_tuning *tuning, int steps)
{
    const struct ah_dev_options options = {.threads = 1};
    *lesson = (struct lesson){.outcome.steps = 0};
    tiny_init_tuned(&lesson->tiny, dtype, tiny_untied, 0, 2, 1, tuning);
    struct ah_plan plan = exact_resident(&lesson->tiny);
    plan.switches.offload_optimizer = 2;
    snprintf(plan.policy, sizeof plan.policy, "autohete");
    struct tiny_run context = {&lesson->tiny, &lesson->outcome};
    struct steps with = tiny_steps(&context);
    assert_ok(ah_dev_open(&lesson->dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, lesson->tiny.partition, lesson->dev));
    assert_ok(ah__run_new(&lesson->run, lesson->tiny.partition, &plan, lesson->dev, 0));
    assert_ok(ah__run_init(lesson->run, 11));
    if (steps > 0)
        steps_train(lesson->run, &with, 0, steps);
}

static void forget(struct lesson *lesson)
{
    ah__run_free(lesson->run);
    ah_dev_close(lesson->dev);
    tiny_fini(&lesson->tiny);
}

static int param_of(const struct lesson *lesson, const char *name)
{
    for (int p = 0; p < lesson->tiny.partition->param_count; p++)
        if (strcmp(lesson->tiny.partition->params[p].name, name) == 0)
            return p;
    fail_msg("no parameter %s", name);
    return -1;
}

/* Whether two trainings have the same parameter of that name, to the bit. */
static bool same(const struct lesson *a, const struct lesson *b, const char *name)
{
    static float left[TINY_MOST_FLOATS], right[TINY_MOST_FLOATS];
    int p = param_of(a, name);
    size_t count = (size_t)ah__shape_count(&a->tiny.partition->params[p].shape);
    assert_ok(ah__run_store(a->run, p, AH_RUN_PARAM, left));
    assert_ok(ah__run_store(b->run, param_of(b, name), AH_RUN_PARAM, right));
    return memcmp(left, right, count * sizeof *left) == 0;
}

/* What is trained gets the gradient that it has where all is trained; what is frozen stays. */
static void frozen_stay_and_others_learn(void **state)
{
    const struct ah_tuning *const tunings[] = {&frozen_parts, &frozen_ends, &frozen_lowest};
    for (int i = 0; i < 6; i++) {
        enum ah_dtype dtype = i % 2 ? AH_BF16 : AH_F32;
        struct lesson before, all, some;
        learn(&before, dtype, &(struct ah_tuning){0}, 0);
        learn(&all, dtype, &(struct ah_tuning){0}, 1);
        learn(&some, dtype, tunings[i / 2], 1);
        assert_true(all.outcome.loss[0] == some.outcome.loss[0]);
        assert_true(some.outcome.norm[0] < all.outcome.norm[0]);
        int frozen = 0;
        for (int p = 0; p < some.tiny.partition->param_count; p++) {
            const struct ah_param *param = &some.tiny.partition->params[p];
            bool rounded = dtype == AH_BF16 && param->frozen; /* it has the compute dtype alone */
            assert_true(rounded || same(&some, param->frozen ? &before : &all, param->name));
            frozen += param->frozen;
        }
        assert_in_range(frozen, 1, some.tiny.partition->param_count - 1);
        forget(&before);
        forget(&all);
        forget(&some);
    }
}

static void values_of(float *out, const struct lesson *lesson, const char *name)
{
    assert_ok(ah__run_store(lesson->run, param_of(lesson, name), AH_RUN_PARAM, out));
}

/* Matrices of blocks are what their codes say, before and after training; vectors and what lies outside blocks are as
 * they were. The first loss is that of a model whose matrices are those values. */
static void matrices_are_what_their_codes_say(void **state)
{
    static float exact[TINY_MOST_FLOATS], coded[TINY_MOST_FLOATS], expected[TINY_MOST_FLOATS];
    static char kept[TINY_MOST_FLOATS * 4];
    const char *const words[] = {"int8", "nf4", "mxfp4"};
    for (int codes = 1; codes < AH_CODES_COUNT; codes++) {
        const struct ah_tuning tuning = {.lora_rank = 4, .lora_alpha = 6, .frozen = words[codes - 1]};
        struct lesson plain, before, after;
        learn(&plain, AH_F32, &lora, 0);
        learn(&before, AH_F32, &tuning, 0);
        learn(&after, AH_F32, &tuning, 2);
        const struct ah_partition *partition = before.tiny.partition;
        int count = 0;
        for (int p = 0; p < partition->param_count; p++) {
            const struct ah_param *param = &partition->params[p];
            int64_t elements = ah__shape_count(&param->shape);
            values_of(exact, &plain, param->name);
            values_of(coded, &before, param->name);
            memcpy(expected, exact, sizeof expected);
            bool block = param->group >= 1 && param->group <= partition->layers;
            assert_int_equal(param->coded, block && param->frozen && param->shape.rank == 2);
            if (param->coded) {
                ah__codes_narrow(kept, exact, elements, (enum ah_codes)codes);
                ah__codes_widen(expected, kept, elements, (enum ah_codes)codes);
                assert_ok(ah__run_load(plain.run, param_of(&plain, param->name), AH_RUN_PARAM, expected));
                count++;
            }
            assert_memory_equal(coded, expected, (size_t)elements * sizeof *coded);
            assert_true(!param->frozen || same(&before, &after, param->name));
        }
        assert_int_equal(count, 4 * partition->layers);
        struct tiny_run context = {&plain.tiny, &plain.outcome};
        struct steps with = tiny_steps(&context);
        steps_train(plain.run, &with, 0, 2);
        for (int step = 0; step < 2; step++)
            assert_true(plain.outcome.loss[step] == after.outcome.loss[step] &&
                        plain.outcome.norm[step] == after.outcome.norm[step]);
        forget(&plain);
        forget(&before);
        forget(&after);
    }
}

/* B is zero: at first nothing is added. */
static void adapters_begin_as_nothing(void **state)
{
    static const char a[] = "transformer.h.1.mlp.c_fc.lora_A.weight", b[] = "transformer.h.1.mlp.c_fc.lora_B.weight";
    struct lesson all, before, some;
    learn(&all, AH_F32, &(struct ah_tuning){0}, 1);
    learn(&before, AH_F32, &lora, 0);
    learn(&some, AH_F32, &lora, 2);
    assert_true(all.outcome.loss[0] == some.outcome.loss[0]);
    assert_true(some.outcome.loss[1] < some.outcome.loss[0] || some.outcome.loss[1] > some.outcome.loss[0]);
    assert_false(same(&before, &some, a));
    assert_false(same(&before, &some, b));
    float values[4 * 24], largest = 0;
    assert_ok(ah__run_store(before.run, param_of(&before, a), AH_RUN_PARAM, values));
    for (int i = 0; i < 4 * 24; i++)
        largest = values[i] > largest ? values[i] : -values[i] > largest ? -values[i] : largest;
    assert_true(largest <= 1 / sqrtf(24) && largest > 0.8F / sqrtf(24)); /* uniform within 1 / sqrt(I) */
    forget(&all);
    forget(&before);
    forget(&some);
}

/* At first the gradient of B alone is there, which the scale multiplies. */
static void what_adapters_add_is_scaled(void **state)
{
    const struct ah_tuning cases[] = {
        {.lora_rank = 4}, {.lora_rank = 4, .lora_alpha = 8}, {.lora_rank = 4, .lora_alpha = 8, .lora_rslora = true}};
    const double scale[] = {1, 2, 4};
    double norm = 0;
    for (int i = 0; i < 3; i++) {
        struct lesson lesson;
        learn(&lesson, AH_F32, &cases[i], 1);
        norm = i ? norm : lesson.outcome.norm[0];
        assert_true(norm > 0 && lesson.outcome.norm[0] == scale[i] * norm);
        forget(&lesson);
    }
}

/* Gradients of parameters that a program makes for nobody. */
static int made_for_nobody(const struct ah_program *program)
{
    int count = 0;
    for (int i = 0; i < program->count; i++)
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            count += ah__op_table[program->calls[i].op]->out[j].kind == AH_OPERAND_PARAM_GRADIENT &&
                     program->calls[i].out[j].space == AH_SPACE_WORK;
    return count;
}

/* Products with gradients of weights are half of backward's, and inputs are kept for those alone. */
static void backward_does_nothing_for_what_is_frozen(void **state)
{
    const struct ah_tuning feed_forward = {.freeze = "*.mlp.*,*ln_2*"};
    const struct ah_tuning *const tunings[] = {&lora, &feed_forward, &frozen_blocks, &frozen_ends};
    struct tiny all;
    tiny_init_tuned(&all, AH_F32, tiny_untied, 0, 2, 1, &(struct ah_tuning){0});
    const struct ah_code *whole = &all.partition->code[AH_CLASS_BLOCK];
    for (size_t t = 0; t < AH_LENGTH(tunings); t++) {
        struct tiny some;
        tiny_init_tuned(&some, AH_F32, tiny_untied, 0, 2, 1, tunings[t]);
        for (int class = 0; class < AH_CLASS_COUNT; class ++)
            for (int kind = 0; kind < AH_PROGRAM_COUNT; kind++)
                assert_int_equal(made_for_nobody(&some.partition->code[class].program[kind]), 0);
        const struct ah_code *block = &some.partition->code[AH_CLASS_BLOCK];
        double flops = block->program[AH_PROGRAM_BACKWARD].flops / whole->program[AH_PROGRAM_BACKWARD].flops;
        if (tunings[t] == &frozen_blocks)
            assert_true(flops < 0.6);
        if (tunings[t] == &feed_forward) {
            assert_true(flops < 0.75);
            assert_true(block->saved_bytes < whole->saved_bytes);
        }
        tiny_fini(&some);
    }
    tiny_fini(&all);
}

/* Below what is trained there is forward alone, and nothing is kept for backward; it is as much as the blocks' own. */
static void backward_ends_above_what_is_frozen(void **state)
{
    struct tiny all, some;
    tiny_init_tuned(&all, AH_F32, tiny_untied, 0, 2, 1, &(struct ah_tuning){0});
    tiny_init_tuned(&some, AH_F32, tiny_untied, 0, 2, 1, &frozen_lowest);
    assert_int_equal(some.partition->layers, 4);
    assert_int_equal(some.partition->frozen_blocks, 2);
    assert_string_equal(ah_partition_note(some.partition),
                        "blocks 1-2 are frozen as the embedding is: backward ends above, nothing is kept there");
    assert_null(ah_partition_note(all.partition));
    const struct ah_code *embedding = &some.partition->code[AH_CLASS_EMBEDDING];
    assert_int_equal(embedding->program[AH_PROGRAM_BACKWARD].count, 0);
    assert_int_equal(embedding->saved_bytes, 0);
    assert_true(some.partition->flops_forward == all.partition->flops_forward);
    assert_true(some.partition->flops_backward < 0.6 * all.partition->flops_backward);
    assert_int_equal(some.partition->groups[0].trained, 0);
    assert_int_equal(ah__partition_params(some.partition), ah__partition_params(all.partition));
    tiny_fini(&some);
    tiny_init_tuned(&some, AH_F32, tiny_untied, 0, 2, 1, &(struct ah_tuning){.freeze = "embedding, blocks"});
    assert_int_equal(some.partition->frozen_blocks, 3); /* plans train one block at least */
    tiny_fini(&some);
    tiny_fini(&all);
}

AH_TEST_CASES("run/frozen", backward_ends_above_what_is_frozen, backward_does_nothing_for_what_is_frozen,
              what_adapters_add_is_scaled, frozen_stay_and_others_learn, adapters_begin_as_nothing,
              matrices_are_what_their_codes_say, adapters_beside_codes_are_the_same_under_every_plan,
              adapters_are_the_same_under_every_plan, adapters_with_moments_in_8_bits,
              frozen_parameters_are_the_same_under_every_plan)
