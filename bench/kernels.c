/* How close the CPU kernels come to what the processor gives, on a GPT-2 124M block (768 channels, 12 heads).
 *
 *     kernels [--head] [--only NAME] [--threads N]
 *
 * Prints, for batch 4 x 256 and 4 x 1024 tokens, each operator's time and rate beside its limit measured in the same
 * run, medians of several rounds. The limit of products is fused multiply-adds in registers; of others the slower of
 * memory (all bytes as fast as an array is scaled in place, those read as fast as one is read) and their own
 * arithmetic: themselves on so few tokens that all of it stays in the cache. What is below 0.6 of its limit is
 * measured twice more, the fastest counting, and says why if it stays there. Tiled products stand beside one plain
 * dnnl_sgemm call, and the whole block beside the time its products would take at the best rate seen. */
#include "bench.h"
#include "block.h"
#include "dev/cpu/cpu.h"
#include "dev/host/isa.h"
#include "dev/host/pages.h"
#include "dev/host/task.h"

#include <math.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BATCH = 4, CHANNELS = 768, HEADS = 12, VOCABULARY = 50257, SMALL_SEQ = 8, ROUNDS_MOST = 9, HEAD_ROUNDS = 5 };

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

/* The best of many: threads may need a moment until each has a core of its own. */
static double probe_flops(struct ah_pool *pool)
{
    enum { PROBES = 20 };
    double best = 0;
    for (int round = 0; round < PROBES; round++) {
        int threads = ah__pool_threads(pool);
        double start = bench_seconds();
        ah__pool_run(pool, probe_piece, threads, pool);
        double rate = 2.0 * PROBE_STEPS * PROBE_CHAINS * probe_lanes() * threads / (bench_seconds() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

enum { SCALE_FLOATS = 64 << 20 };

/* Of a limit; what is slower must have a reason. */
static const double least_part = 0.6;
static const char *const reasons[AH_OP_COUNT] = {
    [AH_OP_GELU] = "its result lies elsewhere, and the cache reads those lines before they are written",
    [AH_OP_ATTENTION] = "short products in tiles on the diagonal; the softmax between them",
    [AH_OP_ATTENTION_BWD] = "short products in tiles on the diagonal; the softmax between them",
};

struct measured {
    struct ah_pool *pool, *alone; /* all threads; one */
    struct block block, small;    /* the second in the cache */
    char *base[AH_SPACE_COUNT], *small_base[AH_SPACE_COUNT];
    double peak_flops, peak_bytes, read_bytes, best_gemm;
    int below, unexplained; /* rows below their limit's least part; those of them without a reason */
    int rounds;
    const char *only; /* rows of operators whose names begin so; null: all, and the block */
};

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static double program_time(const struct measured *b, const struct ah_program *program)
{
    double time[ROUNDS_MOST];
    struct ah_cpu_program *ready;
    check(ah__cpu_program_new(&ready, program, ah__pool_threads(b->pool)));
    for (int round = -1; round < b->rounds; round++) {
        double start = bench_seconds();
        check(ah__cpu_program_run(ready, b->pool, b->base));
        if (round >= 0)
            time[round] = bench_seconds() - start;
    }
    ah__cpu_program_free(ready);
    return median(time, b->rounds);
}

static double call_time(const struct measured *b, const struct ah_call *call)
{
    const struct ah_program program = {.count = 1, .calls = call};
    return program_time(b, &program);
}

/* What the operator's arithmetic takes on all threads: its time in the cache of one, many times in a row. */
static double arithmetic_time(const struct measured *b, const struct block_row *row, const struct ah_call *call)
{
    enum { TIMES = 40 };
    double time[ROUNDS_MOST];
    struct ah_call small = block_call(&b->small, row);
    const struct ah_program program = {.count = 1, .calls = &small};
    struct ah_cpu_program *ready;
    check(ah__cpu_program_new(&ready, &program, 1));
    for (int round = -1; round < ROUNDS_MOST; round++) {
        double start = bench_seconds();
        for (int i = 0; i < TIMES; i++)
            check(ah__cpu_program_run(ready, b->alone, (char **)(uintptr_t)b->small_base));
        if (round >= 0)
            time[round] = (bench_seconds() - start) / TIMES;
    }
    ah__cpu_program_free(ready);
    double times = call_bytes(&b->block, call) / call_bytes(&b->small, &small);
    return median(time, ROUNDS_MOST) * times / ah__pool_threads(b->pool);
}

static double memory_time(const struct measured *b, struct traffic traffic)
{
    double both = (traffic.read + traffic.written) / b->peak_bytes, read = traffic.read / b->read_bytes;
    return read > both ? read : both;
}

struct limit {
    double time;
    const char *name;
};

/* Of what is no product: whichever is the slower one. */
static struct limit slower(double memory, double arithmetic)
{
    return arithmetic > memory ? (struct limit){arithmetic, "its arithmetic"} : (struct limit){memory, "memory"};
}

/* `reason` null: nobody knows why it is below the least part, if it is. */
static void limit_print(struct measured *b, double time, struct limit limit, const char *reason)
{
    double part = limit.time / time;
    printf("   %3.0f%% of %s", 100 * part, limit.name);
    if (part >= least_part)
        return;
    b->below++;
    b->unexplained += !reason;
    printf(" (%s)", reason ? reason : "unexplained");
}

/* What seems slow may have met another program on the machine: it is measured again, and the fastest counts. */
static double limited_time(const struct measured *b, const struct ah_call *call, struct limit limit)
{
    double time = call_time(b, call);
    for (int more = 2; more > 0 && limit.time < least_part * time; more--) {
        double again = call_time(b, call);
        time = again < time ? again : time;
    }
    return time;
}

/* The same product by one library call on as many threads. */
static double plain_time(const struct measured *b, const struct ah_call *call)
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
        double start = bench_seconds();
        dnnl_status_t status = call->op == AH_OP_LINEAR
                                   ? dnnl_sgemm('N', 'N', rows, out, in, 1, first, in, other, out, 0, to, out)
                               : call->op == AH_OP_LINEAR_BWD_X
                                   ? dnnl_sgemm('N', 'T', rows, in, out, 1, first, out, other, out, 0, to, in)
                                   : dnnl_sgemm('T', 'N', in, out, rows, 1, first, in, other, out, 0, to, out);
        if (status != dnnl_success)
            exit(1);
        if (round >= 0)
            time[round] = bench_seconds() - start;
    }
    omp_set_num_threads(1);
    usleep(10000); /* until the library's threads have stopped spinning */
    return median(time, b->rounds);
}

static void row_print(struct measured *b, const struct block_row *row)
{
    if (b->only && strncmp(ah__op_table[row->op]->name, b->only, strlen(b->only)) != 0)
        return;
    struct ah_call call = block_call(&b->block, row);
    double flops = ah__call_flops(&call);
    bool product = op_is_product(row->op);
    struct limit limit = {flops / b->peak_flops, "peak"};
    if (!product)
        limit = slower(memory_time(b, call_traffic(&b->block, &call)), arithmetic_time(b, row, &call));
    double time = limited_time(b, &call, limit);
    double rate = (product ? flops : call_bytes(&b->block, &call)) / time * 1e-9;
    const struct ah_shape *shape = &call.out[row->op == AH_OP_CROSS_ENTROPY].meta.shape;
    char text[64];
    printf("  %-14s %-18s %9.3f ms %8.1f %-7s", ah__op_table[row->op]->name, ah__shape_format(text, sizeof text, shape),
           time * 1e3, rate, product ? "GFLOP/s" : "GB/s");
    limit_print(b, time, limit, reasons[row->op]);
    if (product && row->op != AH_OP_ATTENTION && row->op != AH_OP_ATTENTION_BWD) {
        double plain = plain_time(b, &call);
        b->best_gemm = flops / time > b->best_gemm ? flops / time : b->best_gemm;
        b->best_gemm = flops / plain > b->best_gemm ? flops / plain : b->best_gemm;
        printf(", %3.0f%% of one library call", 100 * plain / time);
    }
    printf("\n");
}

static double program_run(const struct measured *b, const struct block_row *rows, size_t count, double *floor,
                          const char *name)
{
    struct ah_call calls[BLOCK_FORWARD + BLOCK_BACKWARD];
    struct ah_program program = {.count = (int)count, .calls = calls};
    double flops = 0;
    for (size_t i = 0; i < count; i++) {
        calls[i] = block_call(&b->block, &rows[i]);
        flops += op_is_product(rows[i].op) ? ah__call_flops(&calls[i]) : 0;
    }
    double middle = program_time(b, &program), least = flops / b->best_gemm;
    printf("  block %-27s %9.3f ms %8.1f GFLOP/s   %3.0f%% of its products at %.1f GFLOP/s\n", name, middle * 1e3,
           flops / middle * 1e-9, 100 * least / middle, b->best_gemm * 1e-9);
    *floor += least;
    return middle;
}

static struct block block_of(int64_t batch, int64_t seq, int64_t loss_seq)
{
    struct block block = {.batch = batch,
                          .seq = seq,
                          .channels = CHANNELS,
                          .vocabulary = VOCABULARY,
                          .loss_seq = loss_seq,
                          .heads = HEADS};
    block_place(&block);
    return block;
}

/* `b` has pools and the small block. */
static void block_print(struct measured *b, int64_t seq)
{
    char *memory = b->base[AH_SPACE_WORK];
    b->rounds = seq > 256 ? 5 : 9;
    b->block = block_of(BATCH, seq, 128);
    b->best_gemm = 0;
    b->peak_flops = probe_flops(b->pool);
    b->peak_bytes = bench_scale_rate(b->pool, (float *)(void *)memory, SCALE_FLOATS, 5);
    b->read_bytes = bench_read_rate(b->pool, (float *)(void *)memory, SCALE_FLOATS, 5);
    block_fill(&b->block, memory);
    printf("%d x %lld tokens: peak %.1f GFLOP/s in registers, memory %.1f GB/s in place, %.1f GB/s read\n", BATCH,
           (long long)seq, b->peak_flops * 1e-9, b->peak_bytes * 1e-9, b->read_bytes * 1e-9);
    for (size_t i = 0; i < BLOCK_FORWARD; i++)
        row_print(b, &block_forward[i]);
    for (size_t i = 0; i < BLOCK_BACKWARD; i++)
        row_print(b, &block_backward[i]);
    if (b->only)
        return;
    double floor = 0;
    double time = program_run(b, block_forward, BLOCK_FORWARD, &floor, "forward");
    time += program_run(b, block_backward, BLOCK_BACKWARD, &floor, "backward");
    printf("  block %-27s %9.3f ms                    %3.0f%% of its products\n", "both", time * 1e3,
           100 * floor / time);
    for (size_t i = 0; i < BLOCK_OTHER && seq <= 256; i++)
        row_print(b, &block_other[i]);
}

/* ---- the head: its loss and gradients by one operator, against four that hold all logits ------------------------- */

static struct ah_operand head_place(int64_t *end, enum ah_dtype dtype, struct ah_shape shape)
{
    struct ah_operand operand = {AH_SPACE_WORK, *end, {dtype, shape}};
    *end += (ah__meta_bytes(&operand.meta) + 4095) / 4096 * 4096;
    return operand;
}

/* About 0.01 in random order: zeros would let the clock rise. */
static void numbers_fill(char *memory, int64_t bytes)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < bytes / 4; i++) {
        state = state * 1664525U + 1013904223U;
        ((float *)(void *)memory)[i] = ((float)(state >> 8) / (float)(1 << 24) - 0.5F) * 0.1F;
    }
}

static void head_print(struct ah_pool *pool, int64_t seq, char *memory)
{
    const struct ah_op_row *row = ah__op_table[AH_OP_LINEAR_CROSS_ENTROPY];
    struct measured b = {.pool = pool, .rounds = 1, .base[AH_SPACE_WORK] = memory};
    int64_t end = 0;
    struct ah_attr attr = {0}, out_in = {.out_in = true};
    struct ah_operand x = head_place(&end, AH_F32, (struct ah_shape){3, {BATCH, seq, CHANNELS, 0}});
    struct ah_operand weight = head_place(&end, AH_F32, ah_shape2(VOCABULARY, CHANNELS));
    numbers_fill(memory, end);
    struct ah_operand targets = head_place(&end, AH_I32, ah_shape2(BATCH, seq));
    for (int64_t i = 0; i < BATCH * seq; i++)
        ((int32_t *)(void *)(memory + targets.offset))[i] = (int32_t)(i * 7919 % VOCABULARY);
    struct ah_operand logits = head_place(&end, AH_F32, (struct ah_shape){3, {BATCH, seq, VOCABULARY, 0}});
    struct ah_meta in[AH_OP_MAX_INPUTS] = {x.meta, weight.meta, targets.meta}, out[AH_OP_MAX_OUTPUTS];
    check(row->infer(out, in, &attr));
    struct ah_operand loss = head_place(&end, AH_F32, out[0].shape);
    struct ah_operand scratch = {AH_SPACE_WORK, logits.offset, out[1]};
    struct ah_operand dx = head_place(&end, AH_F32, out[2].shape);
    struct ah_operand dweight = head_place(&end, AH_F32, out[3].shape);
    struct ah_call fused = {AH_OP_LINEAR_CROSS_ENTROPY, attr, {x, weight, targets}, {loss, scratch, dx, dweight}};
    struct ah_call alone = {AH_OP_LINEAR_CROSS_ENTROPY, attr, {x, weight, targets}, {loss, scratch}};
    struct ah_call apart[] = {{AH_OP_LINEAR, out_in, {x, weight}, {logits}},
                              {AH_OP_CROSS_ENTROPY, attr, {logits, targets}, {loss, logits}},
                              {AH_OP_LINEAR_BWD_W, out_in, {logits, x}, {dweight}},
                              {AH_OP_LINEAR_BWD_X, out_in, {logits, weight}, {dx}}};
    const struct ah_program programs[] = {
        {.count = (int)AH_LENGTH(apart), .calls = apart}, {.count = 1, .calls = &fused}, {.count = 1, .calls = &alone}};
    static const char *const names[] = {"by four operators", "linear_cross_entropy", "its loss alone"};
    double time[AH_LENGTH(programs)][HEAD_ROUNDS], middle[AH_LENGTH(programs)], flops = ah__call_flops(&fused);
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

/* ---- the optimizer ----------------------------------------------------------------------------------------------- */

enum { HOST_COUNT = SCALE_FLOATS / 4, HOST_SMALL = 1 << 14 };

struct host_row {
    const char *name;
    int (*run)(struct ah_pool *pool, const struct ah_task *task);
    struct ah_task task;
    struct traffic each;
};

static void host_count(struct host_row *row, int64_t count)
{
    if (row->run == ah__host_adam)
        row->task.as.adam.count = row->task.as.adam.decayed = count;
    else if (row->run == ah__host_sqnorm)
        row->task.as.sqnorm.count = count;
    else
        row->task.as.cast.count = count;
}

static double host_time(const struct host_row *row, struct ah_pool *pool, int times)
{
    double time[5];
    for (int i = 0; i < 5; i++) {
        double start = bench_seconds();
        for (int j = 0; j < times; j++)
            check(row->run(pool, &row->task));
        time[i] = (bench_seconds() - start) / times;
    }
    return median(time, 5);
}

static void host_row_print(struct measured *b, struct host_row *row, int64_t count)
{
    enum { TIMES = 40 };
    struct traffic all = {row->each.read * (double)count, row->each.written * (double)count};
    host_count(row, HOST_SMALL);
    host_time(row, b->alone, 1);
    double arithmetic = host_time(row, b->alone, TIMES) * (double)count / HOST_SMALL / ah__pool_threads(b->pool);
    host_count(row, count);
    double time = host_time(row, b->pool, 1);
    printf("%-22s %7.2f Gparam/s %8.1f GB/s", row->name, (double)count / time * 1e-9,
           (all.read + all.written) / time * 1e-9);
    limit_print(b, time, slower(memory_time(b, all), arithmetic), NULL);
    printf("\n");
}

static void optimizer_print(struct measured *b)
{
    float *memory = (float *)(void *)b->base[AH_SPACE_WORK];
    double norm;
    b->peak_bytes = bench_scale_rate(b->pool, memory, SCALE_FLOATS, 5);
    b->read_bytes = bench_read_rate(b->pool, memory, SCALE_FLOATS, 5);
    memset(memory, 0, (size_t)SCALE_FLOATS * sizeof *memory);
    struct ah_task adam = {.as.adam = {.p = memory,
                                       .m = memory + HOST_COUNT,
                                       .v = memory + 2 * (int64_t)HOST_COUNT,
                                       .g = memory + 3 * (int64_t)HOST_COUNT,
                                       .adam = {0.9F, 0.1F, 0.999F, 0.001F, 1e-8F, 1, 1e-3F, 1, 0}}};
    struct ah_task half = adam, squares = {.as.sqnorm = {.g = memory, .out = &norm}}, short_squares = squares;
    half.as.adam.dtype = short_squares.as.sqnorm.dtype = AH_BF16;
    half.as.adam.rest = memory + 3 * (int64_t)HOST_COUNT + HOST_COUNT / 2;
    struct ah_task short_moments = half, short_states = half;
    short_moments.as.adam.moment_dtype = AH_BF16;
    short_states.as.adam.moment_dtype = AH_BF16;
    short_states.as.adam.rest = NULL;
    struct ah_task coded_moments = half, coded_states = short_states;
    coded_moments.as.adam.moment_dtype = coded_states.as.adam.moment_dtype = AH_U8;
    const double codes = 2.0 * AH_CODE8_BYTES / AH_CODE8_GROUP;
    struct ah_task cast = {.as.cast = {.to = memory + 2 * (int64_t)HOST_COUNT, .from = memory, .to_dtype = AH_BF16}};
    struct host_row rows[] = {{"adam", ah__host_adam, adam, {16, 12}},
                              {"adam, two planes", ah__host_adam, half, {14, 12}},
                              {"adam, moments bf16", ah__host_adam, short_moments, {10, 8}},
                              {"adam, all bf16", ah__host_adam, short_states, {8, 6}},
                              {"adam, moments int8", ah__host_adam, coded_moments, {6 + codes, 4 + codes}},
                              {"adam, bf16 and int8", ah__host_adam, coded_states, {4 + codes, 2 + codes}},
                              {"sqnorm", ah__host_sqnorm, squares, {4, 0}},
                              {"sqnorm bf16", ah__host_sqnorm, short_squares, {2, 0}},
                              {"cast to bf16", ah__host_cast, cast, {4, 2}}};
    const int64_t counts[AH_LENGTH(rows)] = {HOST_COUNT, HOST_COUNT,   HOST_COUNT,   HOST_COUNT,    HOST_COUNT,
                                             HOST_COUNT, SCALE_FLOATS, SCALE_FLOATS, 2 * HOST_COUNT};
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        host_row_print(b, &rows[i], counts[i]);
}

int main(int argc, char **argv)
{
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    bool head_only = false;
    const char *only = NULL;
    const struct bench_option options[] = {{"head", BENCH_FLAG, &head_only, "only the head"},
                                           {"only", BENCH_TEXT, &only, "operators whose names begin so"},
                                           {"threads", BENCH_COUNT, &threads, "that compute"}};
    BENCH_OPTIONS(argc, argv, "How close the CPU kernels come to what the processor gives.", options);
    struct measured b = {.only = only};
    check(ah__pool_new(&b.pool, threads, -1));
    check(ah__pool_new(&b.alone, 1, -1));
    ah__pool_enter(b.pool);
    struct ah_pages pages, small; /* as regions of devices are, in large pages where the system gives them */
    b.small = block_of(1, SMALL_SEQ, 1);
    check(ah__pages_new(&pages, (int64_t)1 << 30, "operands"));
    check(ah__pages_new(&small, b.small.bytes, "operands in the cache"));
    b.base[AH_SPACE_WORK] = pages.base;
    b.small_base[AH_SPACE_WORK] = small.base;
    printf("%d threads, %s\n", threads, ah__host_isa_name());
    if (!head_only) {
        block_fill(&b.small, small.base);
        block_print(&b, 256);
        block_print(&b, 1024);
    }
    if (!head_only && !only)
        optimizer_print(&b);
    if (!only)
        head_print(b.pool, 256, pages.base);
    if (!head_only)
        printf("below %.1f of their limit: %d, without a reason: %d\n", least_part, b.below, b.unexplained);
    ah__pages_free(&small);
    ah__pages_free(&pages);
    ah__pool_free(b.alone);
    ah__pool_free(b.pool);
    return 0;
}
