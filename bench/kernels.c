/* How close the CPU kernels come to what the processor gives, on a GPT-2 124M block (768 channels, 12 heads).
 *
 *     kernels [--head] [--only NAME] [--threads N]
 *
 * Prints, for batch 4 x 256 and 4 x 1024 tokens, each operator's time and rate beside the peak measured in the same run
 * (fused multiply-adds in registers; scaling an array in place), medians of several rounds; tiled products beside one
 * plain dnnl_sgemm call; and the whole block beside the time its products would take at the best rate seen. */
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

enum { BATCH = 4, CHANNELS = 768, HEADS = 12, VOCABULARY = 50257, ROUNDS_MOST = 9, HEAD_ROUNDS = 5 };

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
        double start = bench_seconds();
        ah__pool_run(pool, probe_piece, threads, pool);
        rate[round] = 2.0 * PROBE_STEPS * PROBE_CHAINS * probe_lanes() * threads / (bench_seconds() - start);
    }
    return median(rate, 5);
}

enum { SCALE_FLOATS = 64 << 20 };

struct measured {
    struct ah_pool *pool;
    struct block block;
    char *base[AH_SPACE_COUNT];
    double peak_flops, peak_bytes, best_gemm;
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
    double time = call_time(b, &call), flops = ah__call_flops(&call), bytes = call_bytes(&b->block, &call);
    const struct ah_shape *shape = &call.out[row->op == AH_OP_CROSS_ENTROPY].meta.shape;
    char text[64];
    printf("  %-14s %-18s %9.3f ms", ah__op_table[row->op]->name, ah__shape_format(text, sizeof text, shape),
           time * 1e3);
    if (!op_is_product(row->op)) {
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

static void block_print(struct ah_pool *pool, int64_t seq, char *memory, const char *only)
{
    struct measured b = {.pool = pool, .only = only, .rounds = seq > 256 ? 5 : 9, .base[AH_SPACE_WORK] = memory};
    b.block = (struct block){.batch = BATCH, .seq = seq, .channels = CHANNELS, .vocabulary = VOCABULARY,
                             .loss_seq = 128, .heads = HEADS};
    block_place(&b.block);
    b.peak_bytes = bench_scale_rate(pool, (float *)(void *)memory, SCALE_FLOATS, 5);
    b.peak_flops = probe_flops(pool);
    block_fill(&b.block, memory);
    printf("%d x %lld tokens: peak %.1f GFLOP/s in registers, %.1f GB/s in place\n", BATCH, (long long)seq,
           b.peak_flops * 1e-9, b.peak_bytes * 1e-9);
    for (size_t i = 0; i < BLOCK_FORWARD; i++)
        row_print(&b, &block_forward[i]);
    for (size_t i = 0; i < BLOCK_BACKWARD; i++)
        row_print(&b, &block_backward[i]);
    if (only)
        return;
    double floor = 0;
    double time = program_run(&b, block_forward, BLOCK_FORWARD, &floor, "forward");
    time += program_run(&b, block_backward, BLOCK_BACKWARD, &floor, "backward");
    printf("  block %-27s %9.3f ms                    %3.0f%% of its products\n", "both", time * 1e3,
           100 * floor / time);
    for (size_t i = 0; i < BLOCK_OTHER && seq <= 256; i++)
        row_print(&b, &block_other[i]);
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
    const struct ah_program programs[] = {{.count = (int)AH_LENGTH(apart), .calls = apart},
                                          {.count = 1, .calls = &fused}, {.count = 1, .calls = &alone}};
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

/* The median of five runs of a task of the host's. */
static double task_time(struct ah_pool *pool, int (*run)(struct ah_pool *pool, const struct ah_task *task),
                        const struct ah_task *task)
{
    double time[5];
    for (int i = 0; i < 5; i++) {
        double start = bench_seconds();
        check(run(pool, task));
        time[i] = bench_seconds() - start;
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
    double peak = bench_scale_rate(pool, memory, SCALE_FLOATS, 5), norm;
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
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    bool head_only = false;
    const char *only = NULL;
    const struct bench_option options[] = {{"head", BENCH_FLAG, &head_only, "only the head"},
                                           {"only", BENCH_TEXT, &only, "operators whose names begin so"},
                                           {"threads", BENCH_COUNT, &threads, "that compute"}};
    BENCH_OPTIONS(argc, argv, "How close the CPU kernels come to what the processor gives.", options);
    struct ah_pool *pool;
    check(ah__pool_new(&pool, threads, -1));
    ah__pool_enter(pool);
    const int64_t bytes = (int64_t)1 << 30;
    struct ah_pages pages; /* as regions of devices are, in large pages where the system gives them */
    check(ah__pages_new(&pages, bytes, "operands"));
    char *memory = pages.base;
    printf("%d threads, %s\n", threads, ah__host_isa_name());
    if (!head_only) {
        block_print(pool, 256, memory, only);
        block_print(pool, 1024, memory, only);
    }
    if (!head_only && !only)
        optimizer_print(pool, (float *)(void *)memory);
    if (!only)
        head_print(pool, 256, memory);
    ah__pages_free(&pages);
    ah__pool_free(pool);
    return 0;
}
