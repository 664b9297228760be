#include "on_device.h"

#include "base/hash.h"
#include "bench.h"

enum { MOST_ROUNDS = 64, ALIGN = 4096 };

void on_device_open(struct on_device *d, const char *name, const struct ah_dev_options *options, int rounds)
{
    *d = (struct on_device){.rounds = bench_least(rounds, MOST_ROUNDS)};
    BENCH(ah_dev_open(&d->dev, name, options));
    d->dev->ops->info(d->dev, &d->info);
}

int64_t on_device_workspace(struct on_device *d, const struct ah_program *program)
{
    struct ah_prepared *prepared;
    BENCH(d->dev->ops->prepare(d->dev, program, &prepared));
    int64_t bytes = prepared->workspace_bytes;
    d->dev->ops->prepared_free(d->dev, prepared);
    return bytes;
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

void on_device_memory(struct on_device *d, int64_t operand_bytes, int64_t workspace_bytes, int64_t flush_bytes,
                      int64_t host_bytes)
{
    d->operand_bytes = aligned(operand_bytes);
    d->flush_bytes = aligned(flush_bytes);
    d->host_bytes = host_bytes > operand_bytes ? host_bytes : operand_bytes;
    int64_t all = d->operand_bytes + aligned(workspace_bytes) + 2 * d->flush_bytes;
    BENCH(d->dev->ops->device_memory(d->dev, all, &d->region));
    BENCH(d->dev->ops->host_memory(d->dev, d->host_bytes, &d->host));
    d->workspace = d->region + d->operand_bytes;
    d->flush = d->workspace + aligned(workspace_bytes);
}

static struct ah_work copy_work(enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_COPY}}, .label = {"copy", 0, 0}};
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    return work;
}

void on_device_put(struct on_device *d, int64_t at, int64_t bytes)
{
    struct ah_work work = copy_work(AH_LANE_H2D, d->region + at, d->host, bytes);
    BENCH(ah__dev_run(d->dev, &work, NULL));
}

void on_device_close(struct on_device *d)
{
    ah_dev_close(d->dev);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* Takes in `count` works; the longest of those on `lane`, and from the first start to the last end. */
static void works_wait(struct on_device *d, int count, struct ah_done *last, int64_t *span_ns)
{
    int64_t start_ns = INT64_MAX, end_ns = 0;
    for (int i = 0; i < count; i++) {
        BENCH(d->dev->ops->wait_any(d->dev, last));
        bench_check(last->status, "work");
        start_ns = last->start_ns < start_ns ? last->start_ns : start_ns;
        end_ns = last->end_ns > end_ns ? last->end_ns : end_ns;
    }
    *span_ns = end_ns - start_ns;
}

/* While the copy before it runs, the work is put behind it: what launching costs the host does not show. */
double on_device_time(struct on_device *d, const struct ah_work *work)
{
    struct ah_work flush = copy_work(AH_LANE_COMPUTE, d->flush + d->flush_bytes, d->flush, d->flush_bytes);
    double seconds[MOST_ROUNDS];
    for (int round = -1; round < d->rounds; round++) {
        struct ah_event event;
        struct ah_done done;
        int64_t span_ns;
        BENCH(d->dev->ops->submit(d->dev, &flush, &event));
        BENCH(d->dev->ops->submit(d->dev, work, &event));
        works_wait(d, 2, &done, &span_ns); /* of one lane: the work is the last */
        if (round >= 0)
            seconds[round] = 1e-9 * (double)(done.end_ns > done.start_ns ? done.end_ns - done.start_ns : 1);
    }
    return bench_quantile(seconds, (size_t)d->rounds, 0.5);
}

double on_device_program(struct on_device *d, const struct ah_program *program, int64_t at)
{
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_PROGRAM}}};
    struct ah_prepared *prepared;
    BENCH(d->dev->ops->prepare(d->dev, program, &prepared));
    work.label.what = "program";
    work.task[0].as.program.prepared = prepared;
    work.task[0].as.program.base[AH_SPACE_WORK] = d->region + at;
    work.task[0].as.program.base[AH_SPACE_WORKSPACE] = d->workspace;
    double seconds = on_device_time(d, &work);
    d->dev->ops->prepared_free(d->dev, prepared);
    return seconds;
}

double on_device_together(struct on_device *d, const struct ah_work *works, int count)
{
    double seconds[MOST_ROUNDS];
    for (int round = -1; round < d->rounds; round++) {
        struct ah_event event;
        struct ah_done done;
        int64_t span_ns;
        for (int i = 0; i < count; i++)
            BENCH(d->dev->ops->submit(d->dev, &works[i], &event));
        works_wait(d, count, &done, &span_ns);
        if (round >= 0)
            seconds[round] = 1e-9 * (double)(span_ns > 0 ? span_ns : 1);
    }
    return bench_quantile(seconds, (size_t)d->rounds, 0.5);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

struct ah_call on_device_matrix_call(enum ah_dtype dtype, int64_t n)
{
    struct ah_meta meta = {dtype, ah_shape2(n, n)};
    struct ah_call call = {.op = AH_OP_LINEAR};
    int64_t bytes = aligned(ah__meta_bytes(&meta));
    call.in[0] = (struct ah_operand){AH_SPACE_WORK, 0, meta};
    call.in[1] = (struct ah_operand){AH_SPACE_WORK, bytes, meta};
    call.out[0] = (struct ah_operand){AH_SPACE_WORK, 2 * bytes, meta};
    return call;
}

int64_t on_device_matrix_bytes(enum ah_dtype dtype, int64_t n)
{
    return 3 * aligned(n * n * ah__dtype_bytes(dtype));
}

/* Zeros would let the clock rise. */
static void matrices_fill(struct on_device *d, int64_t bytes)
{
    for (int64_t i = 0; i < bytes / 4; i++)
        ((uint32_t *)(void *)d->host)[i] =
            ((uint32_t)ah__random_bits(1, (uint64_t)i) & 0x80FF80FFU) | 0x3D003D00U; /* a float, or two bf16 */
    on_device_put(d, 0, bytes);
}

double on_device_matrix_rate(struct on_device *d, enum ah_dtype dtype, int64_t n)
{
    matrices_fill(d, on_device_matrix_bytes(dtype, n) / 3 * 2);
    return on_device_matrix_again(d, dtype, n);
}

double on_device_matrix_again(struct on_device *d, enum ah_dtype dtype, int64_t n)
{
    double best = 0;
    for (int64_t size = n; size >= 1 && size >= n / 2; size /= 2) {
        const struct ah_call call = on_device_matrix_call(dtype, size);
        const struct ah_program program = {.count = 1, .calls = &call};
        double rate = 2.0 * (double)size * (double)size * (double)size / on_device_program(d, &program, 0);
        best = rate > best ? rate : best;
    }
    return best;
}

double on_device_copy_rate(struct on_device *d)
{
    struct ah_work copy = copy_work(AH_LANE_COMPUTE, d->flush, d->flush + d->flush_bytes, d->flush_bytes);
    return 2.0 * (double)d->flush_bytes / on_device_time(d, &copy);
}
