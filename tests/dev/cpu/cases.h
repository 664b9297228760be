/* What the tests of the CPU kernels share: one call with memory and guards around each operand, and pools whose
 * floating-point mode ends with them. */
#ifndef AH_TESTS_DEV_CPU_CASES_H
#define AH_TESTS_DEV_CPU_CASES_H

#include "base/hash.h"
#include "dev/cpu/cpu.h"
#include "dev/host/isa.h"
#include "dev/host/task.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Shapes in tables of cases. */
#define S1(a)                                                                                                          \
    {                                                                                                                  \
        1,                                                                                                             \
        {                                                                                                              \
            a, 0, 0, 0                                                                                                 \
        }                                                                                                              \
    }
#define S2(a, b)                                                                                                       \
    {                                                                                                                  \
        2,                                                                                                             \
        {                                                                                                              \
            a, b, 0, 0                                                                                                 \
        }                                                                                                              \
    }
#define S3(a, b, c)                                                                                                    \
    {                                                                                                                  \
        3,                                                                                                             \
        {                                                                                                              \
            a, b, c, 0                                                                                                 \
        }                                                                                                              \
    }

/* Of a rotation, which waves are stretched as by Llama 3, in attributes. */
#define STRETCHED .factor = 8, .low = 1, .high = 4, .original = 64
#define RAMPED .factor = 4, .low = 1, .high = 6, .ramp = true, .magnitude = 1.25F

enum { CASE_GUARD = 64, CASE_OPERANDS = AH_OP_MAX_OPERANDS };

/* An operator and the shapes of its inputs; out0 only where the inputs do not tell it. */
struct op_case {
    const char *name;
    enum ah_op op;
    struct ah_attr attr;
    struct ah_shape in[AH_OP_MAX_INPUTS], out0;
    int64_t vocabulary; /* ids are below it */
};

/* A case whose output 0 has no shape of its own: name, operator, number of ids if it has some, shapes of its inputs,
 * attributes (0: none). */
#define IN(...)                                                                                                        \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define OP_IDS(text, kind, ids, shapes, ...)                                                                           \
    {                                                                                                                  \
        text, AH_OP_##kind, {__VA_ARGS__}, shapes, {0}, ids                                                            \
    }
#define OP(text, kind, shapes, ...)                                                                                    \
    {                                                                                                                  \
        text, AH_OP_##kind, {__VA_ARGS__}, shapes, {0}, 0                                                              \
    }

static inline float bf16_widen(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* To nearest even; no NaN. */
static inline uint16_t bf16_round(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

/* A call whose operands lie one after the other in memory, a guard behind each. */
struct op_data {
    struct ah_call call;
    int64_t bytes;
    char *memory;
    char *base[AH_SPACE_COUNT];
};

static inline enum ah_dtype input_dtype(enum ah_op op, int input, enum ah_dtype compute)
{
    enum ah_operand_kind kind = ah__op_table[op]->in[input].kind;
    if (kind == AH_OPERAND_TOKENS || kind == AH_OPERAND_TARGETS || kind == AH_OPERAND_POSITIONS ||
        kind == AH_OPERAND_INDEX)
        return AH_I32;
    bool fp32 = kind == AH_OPERAND_STATISTICS || kind == AH_OPERAND_SCALE || kind == AH_OPERAND_SHARE;
    return fp32 ? AH_F32 : compute;
}

static inline int64_t operand_bytes(const struct ah_operand *operand)
{
    return ah__meta_bytes(&operand->meta);
}

static inline void operand_place(struct op_data *data, struct ah_operand *operand)
{
    operand->space = AH_SPACE_WORK;
    operand->offset = data->bytes + (operand->meta.dtype == AH_I32 ? 4 : 0); /* ids need no more */
    data->bytes += (operand_bytes(operand) + 64) / 64 * 64 + CASE_GUARD;
}

static inline void *operand_at(const struct op_data *data, const struct ah_operand *operand)
{
    return data->memory + operand->offset;
}

/* Element i of an operand of numbers. */
static inline float operand_get(const struct op_data *data, const struct ah_operand *operand, int64_t i)
{
    const void *at = operand_at(data, operand);
    if (operand->meta.dtype == AH_I32)
        return (float)((const int32_t *)at)[i];
    return operand->meta.dtype == AH_BF16 ? bf16_widen(((const uint16_t *)at)[i]) : ((const float *)at)[i];
}

static inline void operand_set(const struct op_data *data, const struct ah_operand *operand, int64_t i, float x)
{
    void *at = operand_at(data, operand);
    if (operand->meta.dtype == AH_BF16)
        ((uint16_t *)at)[i] = bf16_round(x);
    else
        ((float *)at)[i] = x;
}

/* Documents of one token, and of up to two thirds of a sequence. */
static inline void positions_fill(int32_t *positions, const struct ah_shape *shape, uint64_t seed)
{
    int64_t seq = shape->dim[1];
    for (int64_t i = 0, left = 0; i < seq * shape->dim[0]; i++) {
        bool begins = i % seq == 0 || left == 0;
        if (begins)
            left = 1 + (int64_t)(ah__random_bits(seed, (uint64_t)i) % (uint64_t)(seq * 2 / 3 + 1));
        positions[i] = begins ? 0 : positions[i - 1] + 1;
        left--;
    }
}

/* Each token in a row of a cache of its own, in the middle. */
static inline void rows_fill(int32_t *positions, const struct ah_shape *shape, int64_t rows)
{
    int64_t seq = shape->dim[1];
    for (int64_t i = 0; i < seq * shape->dim[0]; i++)
        positions[i] = (int32_t)(i % seq + (rows - seq) / 2);
}

/* The input of that name; null: the operator has none. */
static inline const struct ah_operand *input_named(const struct op_data *data, const char *name)
{
    const struct ah_op_row *row = ah__op_table[data->call.op];
    for (int i = 0; i < row->inputs; i++)
        if (strcmp(row->in[i].name, name) == 0)
            return &data->call.in[i];
    return NULL;
}

/* Fills the inputs that say which rows are whose, as route would: `picks` experts of each token, in a row of numbers
 * that begins anywhere. With more experts than that the last one gets none. */
static inline void routes_fill(struct op_data *data, uint64_t seed)
{
    const struct ah_operand *slots = input_named(data, "slots"), *source = input_named(data, "source");
    const struct ah_operand *ends = input_named(data, "ends"), *weights = input_named(data, "weights");
    const struct ah_operand *of = slots ? slots : weights;
    int64_t rows = source  ? source->meta.shape.dim[0]
                   : slots ? ah__shape_count(&slots->meta.shape)
                           : data->call.in[0].meta.shape.dim[0];
    int64_t picks = of ? of->meta.shape.dim[of->meta.shape.rank - 1] : 1, next = 0;
    int64_t experts = ends ? ends->meta.shape.dim[0] : picks + 5, used = experts > picks ? experts - 1 : experts;
    for (int64_t e = 0; e < experts; e++) {
        for (int64_t i = 0; i < rows; i++) {
            int64_t first = (int64_t)(ah__random_bits(seed, (uint64_t)(i / picks)) % (uint64_t)used);
            if ((first + i % picks) % used != e)
                continue;
            if (slots)
                ((int32_t *)operand_at(data, slots))[i] = (int32_t)next;
            if (source)
                ((int32_t *)operand_at(data, source))[next] = (int32_t)i;
            next++;
        }
        if (ends)
            ((int32_t *)operand_at(data, ends))[e] = (int32_t)next;
    }
}

static inline void op_data_fill(struct op_data *data, uint64_t seed, int64_t vocabulary)
{
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++) {
        struct ah_operand *operand = &data->call.in[i];
        int64_t count = operand->space ? ah__shape_count(&operand->meta.shape) : 0;
        if (count && ah__op_table[data->call.op]->in[i].kind == AH_OPERAND_POSITIONS) {
            if (ah__op_table[data->call.op]->in[0].kind == AH_OPERAND_CACHE)
                rows_fill(operand_at(data, operand), &operand->meta.shape, data->call.in[0].meta.shape.dim[1]);
            else
                positions_fill(operand_at(data, operand), &operand->meta.shape, seed);
            continue;
        }
        if (count && ah__op_table[data->call.op]->in[i].kind == AH_OPERAND_INDEX) {
            routes_fill(data, seed);
            continue;
        }
        for (int64_t j = 0; j < count; j++)
            if (operand->meta.dtype == AH_I32)
                ((int32_t *)operand_at(data, operand))[j] =
                    (int32_t)(ah__random_bits(seed + (uint64_t)i, (uint64_t)j) % (uint64_t)vocabulary);
            else
                operand_set(data, operand, j, (float)ah__random_normal(seed + (uint64_t)i, (uint64_t)j));
    }
}

/* All of memory is 0xFF bytes (NaN) before the inputs are filled, so that what is read unwritten shows. */
static inline void op_data_init_in(struct op_data *data, const struct op_case *c, enum ah_dtype compute, uint64_t seed)
{
    struct ah_meta in[AH_OP_MAX_INPUTS] = {{0}}, out[AH_OP_MAX_OUTPUTS] = {{0}};
    *data = (struct op_data){.call = {.op = c->op, .attr = c->attr}};
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        in[i] = (struct ah_meta){input_dtype(c->op, i, compute), c->in[i]};
    out[0] = (struct ah_meta){AH_F32, c->out0};
    assert_ok(ah__op_table[c->op]->infer(out, in, &c->attr));
    for (int i = 0; i < ah__op_table[c->op]->inputs; i++) {
        data->call.in[i].meta = in[i];
        if (in[i].shape.rank)
            operand_place(data, &data->call.in[i]);
    }
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++) {
        if (i == ah__op_inplace_output(c->op)) {
            data->call.out[i] = data->call.in[0];
            continue;
        }
        data->call.out[i].meta = out[i];
        operand_place(data, &data->call.out[i]);
    }
    data->memory = aligned_alloc(64, (size_t)data->bytes);
    assert_non_null(data->memory);
    memset(data->memory, 0xFF, (size_t)data->bytes);
    data->base[AH_SPACE_WORK] = data->memory;
    op_data_fill(data, seed, c->vocabulary);
}

/* Outputs that are added to hold something. */
static inline void op_data_fill_sums(struct op_data *data, uint64_t seed)
{
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        for (int64_t j = 0; data->call.attr.acc >> i & 1U && j < ah__shape_count(&data->call.out[i].meta.shape); j++)
            operand_set(data, &data->call.out[i], j, (float)ah__random_normal(seed + (uint64_t)i, (uint64_t)j));
}

/* The outputs of an operator that can be added to, as bits. */
static inline unsigned op_adds(enum ah_op op)
{
    const struct ah_op_row *row = ah__op_table[op];
    unsigned adds = op == AH_OP_LINEAR_BWD_X || op == AH_OP_GROUPED_LINEAR_BWD_X || op == AH_OP_LAYERNORM_BWD ||
                    op == AH_OP_RMSNORM_BWD;
    for (int output = 0; output < row->outputs; output++)
        adds |= (unsigned)(row->out[output].kind == AH_OPERAND_PARAM_GRADIENT) << output;
    return row->limit == AH_OP_LIMIT_ATTENTION_BWD ? (1U << row->outputs) - 1 : adds;
}

static inline void op_data_init(struct op_data *data, const struct op_case *c, uint64_t seed)
{
    op_data_init_in(data, c, AH_F32, seed);
}

static inline void guard_check(const struct op_data *data, const struct ah_operand *operand)
{
    if (!operand->space)
        return;
    const char *end = data->memory + operand->offset + operand_bytes(operand);
    for (int i = 0; i < CASE_GUARD; i++)
        assert_int_equal(end[i], (char)0xFF);
}

/* Frees the memory after a look at the guards. */
static inline void op_data_fini(struct op_data *data)
{
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        guard_check(data, &data->call.in[i]);
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        guard_check(data, &data->call.out[i]);
    free(data->memory);
}

/* The program is prepared, run once with a workspace of its own and freed. */
static inline int program_run(struct ah_pool *pool, const struct ah_program *program, char *const base[AH_SPACE_COUNT])
{
    struct ah_cpu_program *made;
    AH_TRY(ah__cpu_program_new(&made, program, ah__pool_threads(pool)));
    char *own[AH_SPACE_COUNT], *guard;
    size_t bytes = (size_t)made->prepared.workspace_bytes;
    memcpy(own, base, sizeof own);
    own[AH_SPACE_WORKSPACE] = aligned_alloc(64, bytes + CASE_GUARD);
    assert_non_null(own[AH_SPACE_WORKSPACE]);
    memset(own[AH_SPACE_WORKSPACE], 0xFF, bytes + CASE_GUARD);
    guard = own[AH_SPACE_WORKSPACE] + bytes;
    int status = ah__cpu_program_run(made, pool, own);
    for (int i = 0; i < CASE_GUARD; i++)
        assert_int_equal(guard[i], (char)0xFF);
    free(own[AH_SPACE_WORKSPACE]);
    ah__cpu_program_free(made);
    return status;
}

static inline int call_run(struct ah_pool *pool, const struct ah_call *call, char *const base[AH_SPACE_COUNT])
{
    struct ah_program program = {.count = 1, .calls = call};
    return program_run(pool, &program, base);
}

/* A pool entered by this thread; pool_end restores the thread's floating-point mode. */
struct test_pool {
    struct ah_pool *pool;
    unsigned mode;
};

static inline struct test_pool pool_begin(int threads)
{
    struct test_pool p = {0};
#if defined(__x86_64__)
    p.mode = _mm_getcsr();
#endif
    assert_ok(ah__pool_new(&p.pool, threads, -1));
    ah__pool_enter(p.pool);
    return p;
}

static inline void pool_end(struct test_pool *p)
{
    ah__pool_free(p->pool);
#if defined(__x86_64__)
    _mm_setcsr(p->mode);
#endif
}

#endif
