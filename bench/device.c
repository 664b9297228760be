/* How close a device comes to its own limits, on the operators of a GPT-2 block, the optimizer and the link.
 *
 *     device [--device NAME] [--dtype bf16|fp32] [--batch N] [--seq N] [--channels N] [--heads N] [--vocabulary N]
 *            [--matrix N] [--flush MIB] [--host-params N] [--rounds N]
 *
 * The limits are measured in the same run: products of square matrices, a copy within the device's memory, one transfer
 * alone, and, for the host's optimizer, scaling in place by as many threads. Each operator finds nothing in caches;
 * times are the device's own, medians. What must move counts once, so a kernel that reads something twice shows it.
 * The last line sums up. */
#include "bench.h"
#include "block.h"
#include "dev/host/pages.h"
#include "on_device.h"

#include <stdlib.h>
#include <string.h>

struct measured {
    struct on_device d;
    struct block block;
    double matrix_flops, copy_bytes;
    double worst_share, best_product, best_attention; /* of the memory's limit; of the matrices' */
    const char *worst;
};

/* ---- operators --------------------------------------------------------------------------------------------------- */

static void row_print(struct measured *m, const struct block_row *row)
{
    struct ah_call call = block_call(&m->block, row);
    const struct ah_program program = {.count = 1, .calls = &call};
    double time = on_device_program(&m->d, &program, 0), flops = ah__call_flops(&call);
    double bytes = call_bytes(&m->block, &call), share = flops / time / m->matrix_flops;
    const struct ah_shape *shape = &call.out[row->op == AH_OP_CROSS_ENTROPY].meta.shape;
    char text[64];
    printf("  %-14s %-20s %9.3f ms", ah__op_table[row->op]->name, ah__shape_format(text, sizeof text, shape),
           time * 1e3);
    if (op_is_product(row->op)) {
        double *best = ah__op_table[row->op]->limit == AH_OP_LIMIT_PRODUCT ? &m->best_product : &m->best_attention;
        *best = share > *best ? share : *best;
        printf(" %9.2f TFLOP/s  %5.1f%% of products\n", flops / time * 1e-12, 100 * share);
        return;
    }
    share = bytes / time / m->copy_bytes;
    printf(" %9.1f GB/s     %5.1f%% of a copy\n", bytes / time * 1e-9, 100 * share);
    if (!m->worst || share < m->worst_share) {
        m->worst = ah__op_table[row->op]->name;
        m->worst_share = share;
    }
}

static int calls_of(struct ah_call *calls, const struct block *block, const struct block_row *rows, int count)
{
    for (int i = 0; i < count; i++)
        calls[i] = block_call(block, &rows[i]);
    return count;
}

/* Several operators as one program, beside the time that its products take at the best rate. */
static double program_print(struct measured *m, const struct block_row *rows, int count, const char *name)
{
    struct ah_call calls[BLOCK_FORWARD + BLOCK_BACKWARD];
    const struct ah_program program = {.count = calls_of(calls, &m->block, rows, count), .calls = calls};
    double flops = 0, time = on_device_program(&m->d, &program, 0);
    for (int i = 0; i < count; i++)
        flops += op_is_product(rows[i].op) ? ah__call_flops(&calls[i]) : 0;
    printf("  block %-29s %9.3f ms %9.2f TFLOP/s  %5.1f%% of products\n", name, time * 1e3, flops / time * 1e-12,
           100 * flops / time / m->matrix_flops);
    return time;
}

static void operators_print(struct measured *m)
{
    for (int i = 0; i < BLOCK_FORWARD; i++)
        row_print(m, &block_forward[i]);
    for (int i = 0; i < BLOCK_BACKWARD; i++)
        row_print(m, &block_backward[i]);
    for (int i = 0; i < BLOCK_OTHER; i++)
        row_print(m, &block_other[i]);
    double best = m->best_attention;
    printf("  in documents of %d tokens, counted as if there were one:\n", BLOCK_DOCUMENT_TOKENS);
    for (int i = 0; i < BLOCK_DOCUMENTS; i++)
        row_print(m, &block_documents[i]);
    m->best_attention = best;
    program_print(m, block_forward, BLOCK_FORWARD, "forward");
    program_print(m, block_backward, BLOCK_BACKWARD, "backward");
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static void task_print(struct measured *m, const char *name, const struct ah_task *task, int64_t count, double each)
{
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {*task}, .label = {name, 0, 0}};
    double time = on_device_time(&m->d, &work), bytes = each * (double)count, share = bytes / time / m->copy_bytes;
    printf("  %-35s %9.3f ms %9.1f GB/s     %5.1f%% of a copy, %.2f Gparam/s\n", name, time * 1e3, bytes / time * 1e-9,
           100 * share, (double)count / time * 1e-9);
}

/* What an update reads and writes, in memory of `bytes` at `at`; `count` gets how many parameters that is. */
static struct ah_task adam_task(char *at, int64_t bytes, int64_t *count)
{
    int64_t n = bytes / 20 / 64 * 64; /* two planes, m, v; two bytes of gradient; and some to spare */
    struct ah_task task = {.type = AH_TASK_ADAM};
    *count = n;
    float *states = (float *)(void *)at;
    task.as.adam.p = states;
    task.as.adam.m = states + n;
    task.as.adam.v = states + 2 * n;
    task.as.adam.g = states + 3 * n;
    task.as.adam.rest = (char *)states + 2 * n;
    task.as.adam.dtype = AH_BF16;
    task.as.adam.count = task.as.adam.decayed = n;
    task.as.adam.adam = (struct ah_adam){0.9F, 0.1F, 0.95F, 0.05F, 1e-8F, 1, 1e-9F, 1, 0};
    return task;
}

static void tasks_print(struct measured *m)
{
    char *at = m->d.flush; /* the copy before makes its halves the same and warms nothing but its end */
    int64_t count, bytes = m->d.flush_bytes;
    struct ah_task adam = adam_task(at, bytes, &count);
    task_print(m, "adam, two planes", &adam, count, 26);
    count = bytes / 8 / 64 * 64;
    struct ah_task sqnorm = {.type = AH_TASK_SQNORM};
    sqnorm.as.sqnorm.g = at;
    sqnorm.as.sqnorm.dtype = AH_BF16;
    sqnorm.as.sqnorm.count = count;
    sqnorm.as.sqnorm.out = (double *)(void *)(at + bytes - 256);
    task_print(m, "sqnorm bf16", &sqnorm, count, 2);
    struct ah_task cast = {.type = AH_TASK_CAST};
    cast.as.cast.from = at;
    cast.as.cast.to = at + count * 4;
    cast.as.cast.to_dtype = AH_BF16;
    cast.as.cast.count = count;
    task_print(m, "cast to bf16", &cast, count, 6);
}

/* ---- link and host ----------------------------------------------------------------------------------------------- */

static struct ah_work copy(enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_COPY}}, .label = {"copy", 0, 0}};
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    return work;
}

static double pool_rate(int threads, int64_t bytes)
{
    struct ah_pool *pool;
    struct ah_pages pages;
    BENCH(ah__pool_new(&pool, threads, -1));
    BENCH(ah__pages_new(&pages, bytes, "memory to scale"));
    ah__pool_enter(pool);
    double rate = bench_scale_rate(pool, (float *)(void *)pages.base, bytes / (int64_t)sizeof(float), 5);
    ah__pages_free(&pages);
    ah__pool_free(pool);
    return rate;
}

/* The host's optimizer in the second half of host memory, copies in the first. */
static double link_print(struct measured *m, int64_t host_params)
{
    struct on_device *d = &m->d;
    int64_t bytes = d->flush_bytes < d->host_bytes / 4 ? d->flush_bytes : d->host_bytes / 4, count;
    char *updates = d->host + d->host_bytes / 2;
    struct ah_work update = {.lane = AH_LANE_HOST, .tasks = 1, .label = {"update", 0, 0}};
    struct ah_work works[] = {copy(AH_LANE_H2D, d->flush, d->host, bytes),
                              copy(AH_LANE_D2H, d->host + bytes, d->flush + d->flush_bytes, bytes), update};
    memset(updates, 0, (size_t)(d->host_bytes / 2));
    works[2].task[0] = adam_task(updates, host_params * 20, &count);
    double up = (double)bytes / on_device_together(d, &works[0], 1);
    double down = (double)bytes / on_device_together(d, &works[1], 1);
    double both = 2.0 * (double)bytes / on_device_together(d, works, 2);
    double alone = on_device_together(d, &works[2], 1), beside = on_device_together(d, works, 3);
    double rate = pool_rate(d->info.host_threads, (int64_t)256 << 20);
    printf("link: to the device %.2f GB/s, from it %.2f, both ways together %.2f\n", up * 1e-9, down * 1e-9,
           both * 1e-9);
    printf("host optimizer, %d threads: %.3f Gparam/s, %.1f GB/s, %.0f%% of scaling in place (%.1f GB/s); with copies "
           "both ways all done in %.3f ms, the update alone in %.3f ms\n",
           d->info.host_threads, (double)count / alone * 1e-9, 28 * (double)count / alone * 1e-9,
           100 * 28 * (double)count / alone / rate, rate * 1e-9, beside * 1e3, alone * 1e3);
    return 100 * 28 * (double)count / alone / rate;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int64_t workspace_of(struct measured *m, int64_t matrix)
{
    struct ah_call calls[BLOCK_FORWARD + BLOCK_BACKWARD + BLOCK_OTHER + BLOCK_DOCUMENTS + 2];
    int64_t most = 0;
    int count = calls_of(calls, &m->block, block_forward, BLOCK_FORWARD);
    count += calls_of(calls + count, &m->block, block_backward, BLOCK_BACKWARD);
    count += calls_of(calls + count, &m->block, block_other, BLOCK_OTHER);
    count += calls_of(calls + count, &m->block, block_documents, BLOCK_DOCUMENTS);
    calls[count++] = on_device_matrix_call(m->block.dtype, matrix);
    calls[count++] = on_device_matrix_call(m->block.dtype, matrix > 1 ? matrix / 2 : 1);
    for (int i = 0; i < count; i++) {
        const struct ah_program program = {.count = 1, .calls = &calls[i]};
        int64_t bytes = on_device_workspace(&m->d, &program);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void run(struct measured *m, int64_t matrix, int64_t flush_bytes, int64_t host_params)
{
    struct on_device *d = &m->d;
    int64_t operands = on_device_matrix_bytes(m->block.dtype, matrix);
    operands = operands > m->block.bytes ? operands : m->block.bytes;
    on_device_memory(d, operands, workspace_of(m, matrix), flush_bytes, host_params * 40);
    m->matrix_flops = on_device_matrix_rate(d, m->block.dtype, matrix);
    m->copy_bytes = on_device_copy_rate(d);
    printf("%s, %s: products of %lld x %lld %s %.2f TFLOP/s, copies %.1f GB/s (read and written)\n", d->info.name,
           d->info.model, (long long)matrix, (long long)matrix, ah__dtype_name(m->block.dtype), m->matrix_flops * 1e-12,
           m->copy_bytes * 1e-9);
    block_fill(&m->block, d->host);
    on_device_put(d, 0, m->block.bytes);
    printf("%lld x %lld tokens, %lld channels, %d heads, %lld ids\n", (long long)m->block.batch,
           (long long)m->block.seq, (long long)m->block.channels, m->block.heads, (long long)m->block.vocabulary);
    operators_print(m);
    tasks_print(m);
    double host_share = link_print(m, host_params);
    d->dev->ops->info(d->dev, &d->info); /* once programs were prepared */
    printf("attention: %s\n", m->d.info.attention[0] ? m->d.info.attention : "the device's own");
    printf("products up to %.0f%% of their limit, attention %.0f%%, the slowest of the others %s with %.0f%%, host "
           "Adam %.0f%%\n",
           100 * m->best_product, 100 * m->best_attention, m->worst, 100 * m->worst_share, host_share);
}

int main(int argc, char **argv)
{
    const char *device = "auto", *dtype = "bf16";
    int batch = 8, seq = 1024, channels = 1600, heads = 25, vocabulary = 50257, matrix = 8192, flush = 512;
    int host_params = 50000000, rounds = 15;
    const struct bench_option options[] = {
        {"device", BENCH_TEXT, &device, "as autohete has it"},
        {"dtype", BENCH_TEXT, &dtype, "bf16 or fp32"},
        {"batch", BENCH_COUNT, &batch, "sequences"},
        {"seq", BENCH_COUNT, &seq, "tokens in each"},
        {"channels", BENCH_COUNT, &channels, "of the block, a multiple of heads"},
        {"heads", BENCH_COUNT, &heads, "of attention"},
        {"vocabulary", BENCH_COUNT, &vocabulary, "ids"},
        {"matrix", BENCH_COUNT, &matrix, "rows of the square matrices whose product is the limit"},
        {"flush", BENCH_COUNT, &flush, "MiB that are copied before each measurement"},
        {"host-params", BENCH_COUNT, &host_params, "parameters that the host updates"},
        {"rounds", BENCH_COUNT, &rounds, "of which medians are taken, 64 at most"},
    };
    static struct measured m;
    BENCH_OPTIONS(argc, argv, "How close a device comes to its own limits.", options);
    m.block = (struct block){.batch = batch,
                             .seq = seq,
                             .channels = channels,
                             .heads = heads,
                             .vocabulary = vocabulary,
                             .loss_seq = seq > 128 ? 128 : seq,
                             .dtype = bench_dtype(dtype)};
    block_place(&m.block);
    on_device_open(&m.d, device, NULL, rounds);
    bench_machine(stdout);
    run(&m, matrix, (int64_t)flush << 20, host_params);
    on_device_close(&m.d);
    return 0;
}
