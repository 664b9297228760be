/* How close the CPU kernels come to what the processor gives, on a GPT-2 124M block (768 channels, 12 heads).
 *
 *     kernels [--threads N]
 *
 * Prints, for batch 4 x 256 and 4 x 1024 tokens, each operator's time and rate beside the peak measured in the same run
 * (fused multiply-adds in registers; scaling an array in place), medians of several rounds; tiled products beside one
 * plain dnnl_sgemm call; and the whole block beside the time its products would take at the best rate seen. */
#include "dev/cpu/cpu.h"
#include "dev/host/isa.h"
#include "dev/host/pages.h"
#include "dev/host/task.h"

#include <math.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BATCH = 4, CHANNELS = 768, HEADS = 12, VOCABULARY = 50257, ROUNDS_MOST = 9, HEAD_ROUNDS = 5 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void check(int status)
{
    if (status == AH_OK)
        return;
    fprintf(stderr, "kernels: %s\n", ah_error());
    exit(1);
}

/* ---- peaks ------------------------------------------------------------------------------------------------------- */

enum { PROBE_STEPS = 2000000, PROBE_CHAINS = 16 };

/* Chains of multiply-adds that only touch registers. */
#define PROBE(name, attribute, vector, set, fma)                                                                       \
    attribute static vector name(void)                                                                                 \
    {                                                                                                                  \
        vector sum[PROBE_CHAINS], x = set(0.999F), y = set(0.001F), total = set(0.0F);                                 \
        for (int i = 0; i < PROBE_CHAINS; i++)                                                                         \
            sum[i] = set((float)i);                                                                                    \
        for (int step = 0; step < PROBE_STEPS; step++)                                                                 \
            _Pragma("GCC unroll 16") for (int i = 0; i < PROBE_CHAINS; i++) sum[i] = fma(sum[i], x, y);                \
        for (int i = 0; i < PROBE_CHAINS; i++)                                                                         \
            total = fma(sum[i], x, total);                                                                             \
        return total;                                                                                                  \
    }
#define SCALAR(x) (x)
PROBE(probe_plain, , float, SCALAR, fmaf)
#if defined(__x86_64__)
PROBE(probe_512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps)
PROBE(probe_256, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps)

/* The results go somewhere, or the chains would not be computed. */
__attribute__((target("avx512f"))) static void probe_512_run(float *sink)
{
    _mm512_storeu_ps(sink, probe_512());
}

__attribute__((target("avx2,fma"))) static void probe_256_run(float *sink)
{
    _mm256_storeu_ps(sink, probe_256());
}
#endif

static int probe_lanes(void)
{
    return strcmp(ah__host_isa_name(), "avx512") == 0 ? 16 : strcmp(ah__host_isa_name(), "avx2") == 0 ? 8 : 1;
}

static void probe_piece(void *context, int index, int worker)
{
    (void)index;
    float *sink = ah__pool_scratch((struct ah_pool *)context, worker);
    int lanes = probe_lanes();
#if defined(__x86_64__)
    if (lanes == 16)
        probe_512_run(sink);
    if (lanes == 8)
        probe_256_run(sink);
#endif
    if (lanes == 1)
        *sink = probe_plain();
}

static double probe_flops(struct ah_pool *pool)
{
    double rate[5];
    for (int round = 0; round < 5; round++) {
        int threads = ah__pool_threads(pool);
        double start = seconds();
        ah__pool_run(pool, probe_piece, threads, pool);
        rate[round] = 2.0 * PROBE_STEPS * PROBE_CHAINS * probe_lanes() * threads / (seconds() - start);
    }
    return median(rate, 5);
}

enum { SCALE_FLOATS = 64 << 20, SCALE_PIECE = 1 << 18 };

static void scale_piece(void *context, int index, int worker)
{
    (void)worker;
    float *x = (float *)context + (int64_t)index * SCALE_PIECE;
    for (int i = 0; i < SCALE_PIECE; i++)
        x[i] *= 1.0001F;
}

static double probe_bytes(struct ah_pool *pool, float *memory)
{
    double rate[5];
    for (int round = 0; round < 5; round++) {
        double start = seconds();
        ah__pool_run(pool, scale_piece, SCALE_FLOATS / SCALE_PIECE, memory);
        rate[round] = 2.0 * SCALE_FLOATS * sizeof(float) / (seconds() - start);
    }
    return median(rate, 5);
}

/* ---- the block's calls ------------------------------------------------------------------------------------------- */

/* Tensors of the block: activations, parameters, gradients of activations, gradients of parameters, and those of the
 * ends.
 */
enum tensor {
    NONE,
    X,
    LN1,
    MEAN1,
    RSTD1,
    QKV,
    ATT,
    LSE,
    PROJ,
    LN2,
    MEAN2,
    RSTD2,
    FC,
    ACT,
    OUT,
    W_LN,
    B_LN,
    W_QKV,
    B_QKV,
    W_PROJ,
    B_PROJ,
    W_FC,
    B_FC,
    W_OUT,
    B_OUT,
    D_OUT,
    D_FC,
    D_LN,
    D_X,
    D_ATT,
    D_QKV,
    G_WLN,
    G_BLN,
    G_WQKV,
    G_BQKV,
    G_WPROJ,
    G_BPROJ,
    G_WFC,
    G_BFC,
    G_WOUT,
    G_BOUT,
    LOGITS,
    TARGETS,
    LOSS,
    TABLE,
    TENSORS
};

struct row {
    enum ah_op op;
    enum tensor in[5], out[3];
    unsigned acc;
};

static const struct row forward_rows[] = {
    {AH_OP_LAYERNORM, {X, W_LN, B_LN}, {LN1, MEAN1, RSTD1}, 0},
    {AH_OP_LINEAR, {LN1, W_QKV, B_QKV}, {QKV}, 0},
    {AH_OP_ATTENTION, {QKV}, {ATT, LSE}, 0},
    {AH_OP_LINEAR, {ATT, W_PROJ, B_PROJ}, {PROJ}, 0},
    {AH_OP_ADD, {PROJ, X}, {PROJ}, 0},
    {AH_OP_LAYERNORM, {PROJ, W_LN, B_LN}, {LN2, MEAN2, RSTD2}, 0},
    {AH_OP_LINEAR, {LN2, W_FC, B_FC}, {FC}, 0},
    {AH_OP_GELU, {FC}, {ACT}, 0},
    {AH_OP_LINEAR, {ACT, W_OUT, B_OUT}, {OUT}, 0},
    {AH_OP_ADD, {OUT, PROJ}, {OUT}, 0},
};

static const struct row backward_rows[] = {
    {AH_OP_LINEAR_BWD_B, {D_OUT}, {G_BOUT}, 0},
    {AH_OP_LINEAR_BWD_W, {D_OUT, ACT}, {G_WOUT}, 0},
    {AH_OP_LINEAR_BWD_X, {D_OUT, W_OUT}, {D_FC}, 0},
    {AH_OP_GELU_BWD, {D_FC, FC}, {D_FC}, 0},
    {AH_OP_LINEAR_BWD_B, {D_FC}, {G_BFC}, 0},
    {AH_OP_LINEAR_BWD_W, {D_FC, LN2}, {G_WFC}, 0},
    {AH_OP_LINEAR_BWD_X, {D_FC, W_FC}, {D_LN}, 0},
    {AH_OP_LAYERNORM_BWD, {D_LN, PROJ, W_LN, MEAN2, RSTD2}, {D_OUT, G_WLN, G_BLN}, 1},
    {AH_OP_LINEAR_BWD_B, {D_OUT}, {G_BPROJ}, 0},
    {AH_OP_LINEAR_BWD_W, {D_OUT, ATT}, {G_WPROJ}, 0},
    {AH_OP_LINEAR_BWD_X, {D_OUT, W_PROJ}, {D_ATT}, 0},
    {AH_OP_ATTENTION_BWD, {D_ATT, QKV, ATT, LSE}, {D_QKV}, 0},
    {AH_OP_LINEAR_BWD_B, {D_QKV}, {G_BQKV}, 0},
    {AH_OP_LINEAR_BWD_W, {D_QKV, LN1}, {G_WQKV}, 0},
    {AH_OP_LINEAR_BWD_X, {D_QKV, W_QKV}, {D_LN}, 0},
    {AH_OP_LAYERNORM_BWD, {D_LN, X, W_LN, MEAN1, RSTD1}, {D_OUT, G_WLN, G_BLN}, 1},
};

static const struct row other_rows[] = {
    {AH_OP_EMBEDDING, {TABLE, TARGETS}, {X}, 0},
    {AH_OP_EMBEDDING_BWD, {D_OUT, TARGETS}, {TABLE}, 1},
    {AH_OP_CROSS_ENTROPY, {LOGITS, TARGETS}, {LOSS, LOGITS}, 0},
};

struct bench {
    struct ah_pool *pool;
    int64_t seq, offset[TENSORS], bytes;
    struct ah_shape shape[TENSORS];
    char *base[AH_SPACE_COUNT];
    double peak_flops, peak_bytes, best_gemm;
    int rounds;
};

static void tensor_place(struct bench *b, enum tensor tensor, struct ah_shape shape)
{
    b->shape[tensor] = shape;
    b->offset[tensor] = b->bytes;
    b->bytes += (ah__shape_count(&shape) * 4 + 4095) / 4096 * 4096;
}

static void tensors_place(struct bench *b)
{
    static const int token_cols[TENSORS] = {
        [X] = 1, [LN1] = 1, [QKV] = 3, [ATT] = 1, [PROJ] = 1, [LN2] = 1, [FC] = 4, [ACT] = 4, [OUT] = 1,
        [D_OUT] = 1, [D_FC] = 4, [D_LN] = 1, [D_X] = 1, [D_ATT] = 1, [D_QKV] = 3,
    };
    static const struct {
        enum tensor weight, bias;
        int in, out;
    } layers[] = {
        {W_QKV, B_QKV, 1, 3},   {W_PROJ, B_PROJ, 1, 1},   {W_FC, B_FC, 1, 4},   {W_OUT, B_OUT, 4, 1},
        {G_WQKV, G_BQKV, 1, 3}, {G_WPROJ, G_BPROJ, 1, 1}, {G_WFC, G_BFC, 1, 4}, {G_WOUT, G_BOUT, 4, 1},
    };
    for (int i = 0; i < TENSORS; i++)
        if (token_cols[i])
            tensor_place(b, (enum tensor)i, (struct ah_shape){3, {BATCH, b->seq, token_cols[i] * CHANNELS, 0}});
    for (size_t i = 0; i < AH_LENGTH(layers); i++) {
        tensor_place(b, layers[i].weight, ah_shape2(layers[i].in * CHANNELS, layers[i].out * CHANNELS));
        tensor_place(b, layers[i].bias, ah_shape1(layers[i].out * CHANNELS));
    }
    for (enum tensor i = MEAN1; i <= RSTD2; i++)
        if (i == MEAN1 || i == RSTD1 || i == MEAN2 || i == RSTD2)
            tensor_place(b, i, ah_shape1(BATCH * b->seq));
    tensor_place(b, LSE, (struct ah_shape){3, {BATCH, HEADS, b->seq, 0}});
    tensor_place(b, W_LN, ah_shape1(CHANNELS));
    tensor_place(b, B_LN, ah_shape1(CHANNELS));
    tensor_place(b, G_WLN, ah_shape1(CHANNELS));
    tensor_place(b, G_BLN, ah_shape1(CHANNELS));
    tensor_place(b, LOGITS, (struct ah_shape){3, {BATCH, 128, VOCABULARY, 0}});
    tensor_place(b, TARGETS, ah_shape2(BATCH, b->seq));
    tensor_place(b, LOSS, ah_shape1(1));
    tensor_place(b, TABLE, ah_shape2(VOCABULARY, CHANNELS));
}

static void tensors_fill(struct bench *b, char *memory)
{
    b->base[AH_SPACE_WORK] = memory;
    uint32_t state = 1;
    for (int64_t i = 0; i < b->bytes / 4; i++) {
        state = state * 1664525U + 1013904223U;
        ((float *)memory)[i] = ((float)(state >> 8) / (float)(1 << 24) - 0.5F) * 0.1F;
    }
    for (int64_t i = 0; i < BATCH * b->seq; i++)
        ((int32_t *)(memory + b->offset[TARGETS]))[i] = (int32_t)(i * 7919 % VOCABULARY);
}

static struct ah_operand operand(const struct bench *b, enum tensor tensor)
{
    if (tensor == NONE)
        return (struct ah_operand){0};
    return (struct ah_operand){
        AH_SPACE_WORK, b->offset[tensor], {tensor == TARGETS ? AH_I32 : AH_F32, b->shape[tensor]}};
}

static struct ah_call call_of(const struct bench *b, const struct row *row)
{
    struct ah_call call = {.op = row->op, .attr = {.heads = HEADS, .eps = 1e-5F, .acc = row->acc}};
    for (int i = 0; i < 5; i++)
        call.in[i] = operand(b, row->in[i]);
    for (int i = 0; i < 3; i++)
        call.out[i] = operand(b, row->out[i]);
    return call;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static double call_flops(const struct ah_call *call)
{
    struct ah_meta in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS];
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        in[i] = call->in[i].meta;
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        out[i] = call->out[i].meta;
    return ah__op_table[call->op]->flops(in, out, &call->attr);
}

/* What must move at least: every operand once, outputs that are also read twice; of a table only the rows in use. */
static double call_bytes(const struct ah_call *call, const struct bench *b)
{
    double bytes = 0;
    for (int i = 0; i < AH_OP_MAX_INPUTS + AH_OP_MAX_OUTPUTS; i++) {
        const struct ah_operand *o = i < AH_OP_MAX_INPUTS ? &call->in[i] : &call->out[i - AH_OP_MAX_INPUTS];
        bool table = o->offset == b->offset[TABLE];
        int64_t count = table ? BATCH * b->seq * CHANNELS : ah__shape_count(&o->meta.shape);
        if (o->space)
            bytes +=
                4.0 * (double)count * (i >= AH_OP_MAX_INPUTS && call->attr.acc >> (i - AH_OP_MAX_INPUTS) & 1U ? 2 : 1);
    }
    return bytes;
}

static bool is_product(enum ah_op op)
{
    return ah__op_table[op]->limit != AH_OP_LIMIT_MEMORY;
}

static double program_time(const struct bench *b, const struct ah_program *program)
{
    double time[ROUNDS_MOST];
    struct ah_cpu_program *ready;
    check(ah__cpu_program_new(&ready, program, ah__pool_threads(b->pool)));
    for (int round = -1; round < b->rounds; round++) {
        double start = seconds();
        check(ah__cpu_program_run(ready, b->pool, b->base));
        if (round >= 0)
            time[round] = seconds() - start;
    }
    ah__cpu_program_free(ready);
    return median(time, b->rounds);
}

static double call_time(const struct bench *b, const struct ah_call *call)
{
    const struct ah_program program = {.count = 1, .calls = call};
    return program_time(b, &program);
}

/* The same product by one library call on as many threads. */
static double plain_time(const struct bench *b, const struct ah_call *call)
{
    double time[ROUNDS_MOST];
    const struct ah_operand *x = call->op == AH_OP_LINEAR_BWD_W ? &call->in[1] : &call->in[0];
    const struct ah_shape *weight = call->op == AH_OP_LINEAR_BWD_W ? &call->out[0].meta.shape : &call->in[1].meta.shape;
    int64_t rows = ah__shape_rows(&x->meta.shape), in = weight->dim[0], out = weight->dim[1];
    const float *first = (float *)(void *)(b->base[AH_SPACE_WORK] + x->offset);
    const float *other =
        (float *)(void *)(b->base[AH_SPACE_WORK] + call->in[call->op == AH_OP_LINEAR_BWD_W ? 0 : 1].offset);
    float *to = (float *)(void *)(b->base[AH_SPACE_WORK] + call->out[0].offset);
    omp_set_num_threads(ah__pool_threads(b->pool));
    for (int round = -1; round < b->rounds; round++) {
        double start = seconds();
        dnnl_status_t status = call->op == AH_OP_LINEAR
                                   ? dnnl_sgemm('N', 'N', rows, out, in, 1, first, in, other, out, 0, to, out)
                               : call->op == AH_OP_LINEAR_BWD_X
                                   ? dnnl_sgemm('N', 'T', rows, in, out, 1, first, out, other, out, 0, to, in)
                                   : dnnl_sgemm('T', 'N', in, out, rows, 1, first, in, other, out, 0, to, out);
        if (status != dnnl_success)
            exit(1);
        if (round >= 0)
            time[round] = seconds() - start;
    }
    omp_set_num_threads(1);
    usleep(10000); /* until the library's threads have stopped spinning */
    return median(time, b->rounds);
}

static void row_print(struct bench *b, const struct row *row)
{
    struct ah_call call = call_of(b, row);
    double time = call_time(b, &call), flops = call_flops(&call), bytes = call_bytes(&call, b);
    const struct ah_shape *shape = &call.out[row->op == AH_OP_CROSS_ENTROPY].meta.shape;
    char text[64];
    printf("  %-14s %-18s %9.3f ms", ah__op_table[row->op]->name, ah__shape_format(text, sizeof text, shape),
           time * 1e3);
    if (!is_product(row->op)) {
        printf(" %8.1f GB/s      %3.0f%% of peak\n", bytes / time * 1e-9, 100 * bytes / time / b->peak_bytes);
        return;
    }
    printf(" %8.1f GFLOP/s   %3.0f%% of peak", flops / time * 1e-9, 100 * flops / time / b->peak_flops);
    if (row->op != AH_OP_ATTENTION && row->op != AH_OP_ATTENTION_BWD) {
        double plain = plain_time(b, &call);
        b->best_gemm = flops / time > b->best_gemm ? flops / time : b->best_gemm;
        b->best_gemm = flops / plain > b->best_gemm ? flops / plain : b->best_gemm;
        printf(", %3.0f%% of one library call", 100 * plain / time);
    }
    printf("\n");
}

static double program_run(const struct bench *b, const struct row *rows, size_t count, double *floor, const char *name)
{
    struct ah_call calls[AH_LENGTH(forward_rows) + AH_LENGTH(backward_rows)];
    struct ah_program program = {.count = (int)count, .calls = calls};
    double flops = 0;
    for (size_t i = 0; i < count; i++) {
        calls[i] = call_of(b, &rows[i]);
        flops += is_product(rows[i].op) ? call_flops(&calls[i]) : 0;
    }
    double middle = program_time(b, &program), least = flops / b->best_gemm;
    printf("  block %-27s %9.3f ms %8.1f GFLOP/s   %3.0f%% of its products at %.1f GFLOP/s\n", name, middle * 1e3,
           flops / middle * 1e-9, 100 * least / middle, b->best_gemm * 1e-9);
    *floor += least;
    return middle;
}

static void block_print(struct ah_pool *pool, int64_t seq, char *memory)
{
    struct bench b = {.pool = pool, .seq = seq, .rounds = seq > 256 ? 5 : 9};
    tensors_place(&b);
    b.peak_bytes = probe_bytes(pool, (float *)(void *)memory);
    b.peak_flops = probe_flops(pool);
    tensors_fill(&b, memory);
    printf("%d x %lld tokens: peak %.1f GFLOP/s in registers, %.1f GB/s in place\n", BATCH, (long long)seq,
           b.peak_flops * 1e-9, b.peak_bytes * 1e-9);
    for (size_t i = 0; i < AH_LENGTH(forward_rows); i++)
        row_print(&b, &forward_rows[i]);
    for (size_t i = 0; i < AH_LENGTH(backward_rows); i++)
        row_print(&b, &backward_rows[i]);
    double floor = 0;
    double time = program_run(&b, forward_rows, AH_LENGTH(forward_rows), &floor, "forward");
    time += program_run(&b, backward_rows, AH_LENGTH(backward_rows), &floor, "backward");
    printf("  block %-27s %9.3f ms                    %3.0f%% of its products\n", "both", time * 1e3,
           100 * floor / time);
    for (size_t i = 0; i < AH_LENGTH(other_rows) && seq <= 256; i++) {
        if (other_rows[i].op == AH_OP_CROSS_ENTROPY)
            b.shape[TARGETS] = ah_shape2(BATCH, 128);
        row_print(&b, &other_rows[i]);
    }
}

/* ---- the head: its loss and gradients by one operator, against four that hold all logits ------------------------- */

static struct ah_operand head_place(int64_t *end, enum ah_dtype dtype, struct ah_shape shape)
{
    struct ah_operand operand = {AH_SPACE_WORK, *end, {dtype, shape}};
    *end += (ah__meta_bytes(&operand.meta) + 4095) / 4096 * 4096;
    return operand;
}

static void head_print(struct ah_pool *pool, int64_t seq, char *memory)
{
    const struct ah_op_row *row = ah__op_table[AH_OP_LINEAR_CROSS_ENTROPY];
    struct bench b = {.pool = pool, .rounds = 1, .base[AH_SPACE_WORK] = memory};
    struct ah_attr attr = {0}, out_in = {.out_in = true};
    struct ah_operand x = head_place(&b.bytes, AH_F32, (struct ah_shape){3, {BATCH, seq, CHANNELS, 0}});
    struct ah_operand weight = head_place(&b.bytes, AH_F32, ah_shape2(VOCABULARY, CHANNELS));
    tensors_fill(&b, memory);
    struct ah_operand targets = head_place(&b.bytes, AH_I32, ah_shape2(BATCH, seq));
    for (int64_t i = 0; i < BATCH * seq; i++)
        ((int32_t *)(void *)(memory + targets.offset))[i] = (int32_t)(i * 7919 % VOCABULARY);
    struct ah_operand logits = head_place(&b.bytes, AH_F32, (struct ah_shape){3, {BATCH, seq, VOCABULARY, 0}});
    struct ah_meta in[AH_OP_MAX_INPUTS] = {x.meta, weight.meta, targets.meta}, out[AH_OP_MAX_OUTPUTS];
    check(row->infer(out, in, &attr));
    struct ah_operand loss = head_place(&b.bytes, AH_F32, out[0].shape);
    struct ah_operand scratch = {AH_SPACE_WORK, logits.offset, out[1]};
    struct ah_operand dx = head_place(&b.bytes, AH_F32, out[2].shape);
    struct ah_operand dweight = head_place(&b.bytes, AH_F32, out[3].shape);
    struct ah_call fused = {AH_OP_LINEAR_CROSS_ENTROPY, attr, {x, weight, targets}, {loss, scratch, dx, dweight}};
    struct ah_call alone = {AH_OP_LINEAR_CROSS_ENTROPY, attr, {x, weight, targets}, {loss, scratch}};
    struct ah_call apart[] = {{AH_OP_LINEAR, out_in, {x, weight}, {logits}},
                              {AH_OP_CROSS_ENTROPY, attr, {logits, targets}, {loss, logits}},
                              {AH_OP_LINEAR_BWD_W, out_in, {logits, x}, {dweight}},
                              {AH_OP_LINEAR_BWD_X, out_in, {logits, weight}, {dx}}};
    const struct ah_program programs[] = {{.count = (int)AH_LENGTH(apart), .calls = apart},
                                          {.count = 1, .calls = &fused}, {.count = 1, .calls = &alone}};
    static const char *const names[] = {"by four operators", "linear_cross_entropy", "its loss alone"};
    double time[AH_LENGTH(programs)][HEAD_ROUNDS], middle[AH_LENGTH(programs)], flops = call_flops(&fused);
    for (int round = 0; round < HEAD_ROUNDS; round++) /* in turn, so that a busy machine is busy for all */
        for (size_t i = 0; i < AH_LENGTH(programs); i++)
            time[i][round] = program_time(&b, &programs[i]);
    printf("head of %d x %lld tokens, %d ids, %lld tokens in a chunk\n", BATCH, (long long)seq, VOCABULARY,
           (long long)out[1].shape.dim[0]);
    for (size_t i = 0; i < AH_LENGTH(programs); i++) {
        middle[i] = median(time[i], HEAD_ROUNDS);
        printf("  %-22s %9.3f ms   %3.0f%% of the first, whose products are %.1f GFLOP/s\n", names[i], middle[i] * 1e3,
               100 * middle[i] / middle[0], flops / middle[0] * 1e-9);
    }
}

/* The median of five runs of a task of the host's. */
static double task_time(struct ah_pool *pool, int (*run)(struct ah_pool *pool, const struct ah_task *task),
                        const struct ah_task *task)
{
    double time[5];
    for (int i = 0; i < 5; i++) {
        double start = seconds();
        check(run(pool, task));
        time[i] = seconds() - start;
    }
    return median(time, 5);
}

static void task_print(const char *name, double time, int64_t count, double bytes_each, double peak)
{
    double bytes = bytes_each * (double)count;
    printf("%-22s %7.2f Gparam/s %8.1f GB/s %3.0f%% of in place\n", name, (double)count / time * 1e-9,
           bytes / time * 1e-9, 100 * bytes / time / peak);
}

static void optimizer_print(struct ah_pool *pool, float *memory)
{
    enum { COUNT = SCALE_FLOATS / 4 };
    double peak = probe_bytes(pool, memory), norm;
    memset(memory, 0, (size_t)SCALE_FLOATS * sizeof *memory);
    struct ah_task adam = {.as.adam = {.p = memory,
                                       .m = memory + COUNT,
                                       .v = memory + 2 * COUNT,
                                       .g = memory + 3 * COUNT,
                                       .count = COUNT,
                                       .decayed = COUNT,
                                       .adam = {0.9F, 0.1F, 0.999F, 0.001F, 1e-8F, 1, 1e-3F, 1}}};
    struct ah_task half = adam;
    half.as.adam.grad_dtype = AH_BF16;
    half.as.adam.half = memory + 3 * COUNT + COUNT / 2;
    struct ah_task squares = {.as.sqnorm = {.g = memory, .count = SCALE_FLOATS, .out = &norm}}, short_squares = squares;
    short_squares.as.sqnorm.dtype = AH_BF16;
    struct ah_task cast = {
        .as.cast = {.to = memory + 2 * COUNT, .from = memory, .to_dtype = AH_BF16, .count = 2 * COUNT}};
    task_print("adam", task_time(pool, ah__host_adam, &adam), COUNT, 28, peak);
    task_print("adam bf16 -> bf16", task_time(pool, ah__host_adam, &half), COUNT, 28, peak);
    task_print("sqnorm", task_time(pool, ah__host_sqnorm, &squares), SCALE_FLOATS, 4, peak);
    task_print("sqnorm bf16", task_time(pool, ah__host_sqnorm, &short_squares), SCALE_FLOATS, 2, peak);
    task_print("cast to bf16", task_time(pool, ah__host_cast, &cast), 2 * COUNT, 6, peak);
}

int main(int argc, char **argv)
{
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN), at = 1;
    bool head_only = at < argc && strcmp(argv[at], "--head") == 0;
    at += head_only;
    if (at + 2 == argc && strcmp(argv[at], "--threads") == 0)
        threads = atoi(argv[at + 1]);
    else if (at != argc) {
        fprintf(stderr, "usage: kernels [--head] [--threads N]\n");
        return 2;
    }
    struct ah_pool *pool;
    check(ah__pool_new(&pool, threads, -1));
    ah__pool_enter(pool);
    const int64_t bytes = (int64_t)1 << 30;
    struct ah_pages pages; /* as regions of devices are, in large pages where the system gives them */
    check(ah__pages_new(&pages, bytes, "operands"));
    char *memory = pages.base;
    printf("%d threads, %s\n", threads, ah__host_isa_name());
    if (!head_only) {
        block_print(pool, 256, memory);
        block_print(pool, 1024, memory);
        optimizer_print(pool, (float *)(void *)memory);
    }
    head_print(pool, 256, memory);
    ah__pages_free(&pages);
    ah__pool_free(pool);
    return 0;
}
