/* The same bits for any number of threads and for every instruction set, for every operator, Adam and the sum of
 * squares. */
#include "dev/bit_cases.h"
#include "dev/cpu/gemm_bf16.h"

#include <math.h>
#include <stdio.h>

static const char *const isas[] = {"avx512", "avx2", "plain"};

/* A hash of what `run` leaves behind must be one for all threads and the first `sets` instruction sets. */
static void assert_one_hash_of(size_t sets, const char *what,
                               uint64_t (*run)(struct ah_pool *pool, const void *context), const void *context)
{
    uint64_t first = 0;
    for (size_t isa = 0; isa < sets; isa++)
        for (int threads = 1; threads <= 3; threads++) {
            if (ah_test_samples() && threads != (int)isa + 1 && (isa || threads == 2))
                continue;
            struct test_pool p = pool_begin(threads);
            ah__host_isa_force(isas[isa]);
            uint64_t hash = run(p.pool, context);
            ah__host_isa_force(NULL);
            pool_end(&p);
            if (isa == 0 && threads == 1)
                first = hash;
            else if (hash != first)
                fail_msg("%s: %s with %d threads differs from %s with 1", what, isas[isa], threads, isas[0]);
        }
}

static void assert_one_hash(const char *what, uint64_t (*run)(struct ah_pool *pool, const void *context),
                            const void *context)
{
    assert_one_hash_of(AH_LENGTH(isas), what, run, context);
}

/* Attention without vectors takes minutes under a sanitizer: there tests/dev/cpu/test_attention.c runs it in small. */
static void assert_one_call(const struct op_case *c, uint64_t (*run)(struct ah_pool *pool, const void *context))
{
    enum ah_op_limit limit = ah__op_table[c->op]->limit;
    bool slow = limit == AH_OP_LIMIT_ATTENTION || limit == AH_OP_LIMIT_ATTENTION_BWD;
    assert_one_hash_of(AH_LENGTH(isas) - (ah_test_samples() && slow ? 1 : 0), c->name, run, c);
}

/* Operands in place or added to start from other numbers than NaN. */
static uint64_t run_call_in(struct ah_pool *pool, const struct op_case *c, enum ah_dtype compute)
{
    struct op_data data;
    op_data_init_in(&data, c, compute, 21);
    op_data_fill_sums(&data, 31);
    assert_ok(call_run(pool, &data.call, data.base));
    uint64_t hash = 0;
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++)
        hash = ah__hash(operand_at(&data, &data.call.out[i]), (size_t)operand_bytes(&data.call.out[i]), hash);
    op_data_fini(&data);
    return hash;
}

static uint64_t run_call(struct ah_pool *pool, const void *context)
{
    return run_call_in(pool, context, AH_F32);
}

static uint64_t run_bf16_call(struct ah_pool *pool, const void *context)
{
    return run_call_in(pool, context, AH_BF16);
}

static void operators_have_one_result(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(bit_cases); i++)
        assert_one_call(&bit_cases[i], run_call);
}

/* Products choose by the processor, not by what is forced here, so both ways are met. */
static void operators_in_bf16_have_one_result(void **state)
{
    for (int forbidden = 0; forbidden < 2; forbidden++) {
        ah__cpu_amx_forbid(forbidden);
        for (size_t i = 0; i < AH_LENGTH(bit_cases); i++) {
            const struct op_case *c = &bit_cases[i];
            if (forbidden == 0 || ah__op_table[c->op]->limit == AH_OP_LIMIT_PRODUCT)
                assert_one_call(c, run_bf16_call);
        }
    }
    ah__cpu_amx_forbid(false);
}

/* Ordinary numbers, every seventh a denormal, every 11th tiny, so that squares underflow. */
static void numbers_fill(float *x, int64_t n, uint64_t seed, bool positive)
{
    for (int64_t i = 0; i < n; i++) {
        double value = ah__random_normal(seed, (uint64_t)i) * (i % 7 == 0 ? 1e-40 : i % 11 == 0 ? 1e-22 : 1e-2);
        x[i] = (float)(positive && value < 0 ? -value : value);
    }
}

enum { NUMBERS = 150003 };

static uint64_t run_adam(struct ah_pool *pool, const void *context)
{
    struct ah_task task = *(const struct ah_task *)context;
    float *memory = malloc(4 * NUMBERS * sizeof *memory);
    assert_non_null(memory);
    for (int i = 0; i < 4; i++)
        numbers_fill(memory + i * NUMBERS, NUMBERS, 5 + (uint64_t)i, i == 2);
    task.as.adam.p = memory;
    task.as.adam.m = memory + NUMBERS;
    task.as.adam.v = memory + 2 * NUMBERS;
    task.as.adam.g = memory + 3 * NUMBERS;
    for (int step = 0; step < 3; step++)
        assert_ok(ah__host_adam(pool, &task));
    uint64_t hash = ah__hash(memory, 4 * NUMBERS * sizeof *memory, 0);
    free(memory);
    return hash;
}

static void adam_has_one_result(void **state)
{
    struct ah_task task = {.type = AH_TASK_ADAM,
                           .as.adam = {.count = NUMBERS,
                                       .decayed = 100001,
                                       .adam = {0.9F, 0.1F, 0.999F, 0.001F, 1e-8F, 0.99F, 0.003F, 1.5F, 0}}};
    assert_one_hash("adam", run_adam, &task);
}

/* Parameters in two planes, a gradient in bfloat16, and a scale; every bit pattern of the gradient's upper exponents is
 * met. */
static uint64_t run_adam_half(struct ah_pool *pool, const void *context)
{
    struct ah_task task = *(const struct ah_task *)context;
    const float scale = 0.731F;
    float *moments = malloc(2 * NUMBERS * sizeof *moments);
    uint16_t *half = malloc(3 * NUMBERS * sizeof *half);
    assert_true(moments && half);
    for (int i = 0; i < 2; i++)
        numbers_fill(moments + i * NUMBERS, NUMBERS, 6 + (uint64_t)i, i == 1);
    for (int i = 0; i < 3 * NUMBERS; i++)
        half[i] = (uint16_t)ah__random_bits(9, (uint64_t)i);
    task.as.adam.p = half;
    task.as.adam.rest = half + NUMBERS;
    task.as.adam.g = half + 2 * NUMBERS;
    task.as.adam.m = moments;
    task.as.adam.v = moments + NUMBERS;
    task.as.adam.dtype = AH_BF16;
    task.as.adam.scale = &scale;
    assert_ok(ah__host_adam(pool, &task));
    uint64_t hash = 0;
    for (int i = 0; i < 2 * NUMBERS; i++) /* which NaN comes of two is the processor's choice */
        hash = isnan(moments[i]) ? ah__hash_int(1, hash) : ah__hash(&moments[i], sizeof *moments, hash);
    for (int i = 0; i < NUMBERS; i++)
        hash = ah__hash_int(half[NUMBERS + i], ah__hash_int((half[i] & 0x7FFF) > 0x7F80 ? 1 : half[i], hash));
    free(moments), free(half);
    return hash;
}

static void half_precision_adam_has_one_result(void **state)
{
    struct ah_task task = {.type = AH_TASK_ADAM,
                           .as.adam = {.count = NUMBERS,
                                       .decayed = 100001,
                                       .adam = {0.9F, 0.1F, 0.999F, 0.001F, 1e-8F, 0.99F, 0.003F, 1.5F, 0}}};
    assert_one_hash("adam in bf16", run_adam_half, &task);
}

/* Moments in bfloat16, rounded at random. */
static uint64_t run_adam_short(struct ah_pool *pool, const void *context)
{
    struct ah_task task = *(const struct ah_task *)context;
    float *memory = malloc(2 * NUMBERS * sizeof *memory);
    uint16_t *moments = malloc(2 * NUMBERS * sizeof *moments);
    assert_true(memory && moments);
    numbers_fill(memory, 2 * NUMBERS, 5, false);
    for (int i = 0; i < 2 * NUMBERS; i++)
        moments[i] = (uint16_t)(ah__random_bits(9, (uint64_t)i) % 0x4000);
    task.as.adam.p = memory;
    task.as.adam.m = moments;
    task.as.adam.v = moments + NUMBERS;
    task.as.adam.g = memory + NUMBERS;
    task.as.adam.moment_dtype = AH_BF16;
    task.as.adam.first = 123;
    for (int step = 0; step < 3; step++)
        assert_ok(ah__host_adam(pool, &task));
    uint64_t hash = ah__hash(moments, 2 * NUMBERS * sizeof *moments, ah__hash(memory, NUMBERS * sizeof *memory, 0));
    free(memory), free(moments);
    return hash;
}

static void short_moments_have_one_result(void **state)
{
    struct ah_task task = {.type = AH_TASK_ADAM,
                           .as.adam = {.count = NUMBERS,
                                       .decayed = 100001,
                                       .adam = {0.9F, 0.1F, 0.999F, 0.001F, 1e-8F, 0.99F, 0.003F, 1.5F, 5}}};
    assert_one_hash("adam with moments in bf16", run_adam_short, &task);
}

static uint64_t run_sqnorm(struct ah_pool *pool, const void *context)
{
    const float *g = context;
    double sum;
    struct ah_task task = {.type = AH_TASK_SQNORM, .as.sqnorm = {.g = g, .count = NUMBERS, .out = &sum}};
    assert_ok(ah__host_sqnorm(pool, &task));
    return ah__hash(&sum, sizeof sum, 0);
}

static void sum_of_squares_has_one_result(void **state)
{
    float *g = malloc(NUMBERS * sizeof *g);
    assert_non_null(g);
    numbers_fill(g, NUMBERS, 3, false);
    assert_one_hash("sqnorm", run_sqnorm, g);
    free(g);
}

static uint64_t run_short_sqnorm(struct ah_pool *pool, const void *context)
{
    double sum;
    struct ah_task task = {.as.sqnorm = {.g = context, .dtype = AH_BF16, .count = NUMBERS, .out = &sum}};
    assert_ok(ah__host_sqnorm(pool, &task));
    return ah__hash(&sum, sizeof sum, 0);
}

static void sum_of_bf16_squares_has_one_result(void **state)
{
    uint16_t *g = malloc(NUMBERS * sizeof *g);
    assert_non_null(g);
    for (int i = 0; i < NUMBERS; i++) /* no NaN and no infinity */
        g[i] = (uint16_t)(ah__random_bits(9, (uint64_t)i) & 0xBFFF);
    assert_one_hash("sqnorm of bf16", run_short_sqnorm, g);
    free(g);
}

/* Operators on denormal numbers: what is flushed is flushed alike. */
static uint64_t run_denormal(struct ah_pool *pool, const void *context)
{
    struct op_data data;
    op_data_init(&data, context, 22);
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        if (data.call.in[i].space && data.call.in[i].meta.dtype == AH_F32)
            numbers_fill(operand_at(&data, &data.call.in[i]), ah__shape_count(&data.call.in[i].meta.shape),
                         40 + (uint64_t)i, false);
    assert_ok(call_run(pool, &data.call, data.base));
    uint64_t hash = ah__hash(operand_at(&data, &data.call.out[0]), (size_t)operand_bytes(&data.call.out[0]), 0);
    op_data_fini(&data);
    return hash;
}

static void denormal_inputs_have_one_result(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(bit_cases); i++)
        if (!bit_cases[i].attr.acc)
            assert_one_hash(bit_cases[i].name, run_denormal, &bit_cases[i]);
}

static void widest_instruction_set_is_chosen(void **state)
{
    ah__host_isa_force("plain");
    assert_string_equal(ah__host_isa_name(), "plain");
    ah__host_isa_force("no such thing");
    const char *own = ah__host_isa_name();
    ah__host_isa_force(NULL);
    assert_string_equal(ah__host_isa_name(), own);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        assert_string_not_equal(own, "plain");
#endif
}

AH_TEST_CASES("dev/cpu/bits", operators_have_one_result, operators_in_bf16_have_one_result, adam_has_one_result,
              half_precision_adam_has_one_result, short_moments_have_one_result, sum_of_bf16_squares_has_one_result,
              sum_of_squares_has_one_result, denormal_inputs_have_one_result, widest_instruction_set_is_chosen)
