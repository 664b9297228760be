/* Whether a device gives the same bits each time: every operator of a GPT-2 block, of the embedding and of the loss
 * runs again and again on the same operands; and how its rate of products holds while it gets warm.
 *
 *     repeat [--device NAME] [--dtype bf16|fp32] [--batch N] [--seq N] [--channels N] [--heads N] [--vocabulary N]
 *            [--runs N] [--matrix N] [--sustain SECONDS]
 *
 * Bits that differ are a failure: the exit status is 1. The last line sums up. */
#include "bench.h"
#include "block.h"
#include "on_device.h"

#include "base/hash.h"

enum { OUTPUTS = 3 };

struct repeated {
    struct on_device d;
    struct block block;
    char *back; /* in host memory, behind the operands as they were at first */
    int runs, differing, operators;
};

static void copy(struct repeated *r, enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_COPY}}, .label = {"copy", 0, 0}};
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    BENCH(ah__dev_run(r->d.dev, &work, NULL));
}

/* Puts back what the call writes over, runs it, and hashes what it wrote. */
static uint64_t run_once(struct repeated *r, const struct ah_call *call, const struct ah_work *work)
{
    uint64_t hash = 0;
    for (int i = 0; i < OUTPUTS; i++) {
        int64_t at = call->out[i].offset, bytes = ah__meta_bytes(&call->out[i].meta);
        if (call->out[i].space == AH_SPACE_WORK)
            copy(r, AH_LANE_H2D, r->d.region + at, r->d.host + at, bytes);
    }
    BENCH(ah__dev_run(r->d.dev, work, NULL));
    for (int i = 0; i < OUTPUTS; i++) {
        int64_t at = call->out[i].offset, bytes = ah__meta_bytes(&call->out[i].meta);
        if (call->out[i].space != AH_SPACE_WORK)
            continue;
        copy(r, AH_LANE_D2H, r->back, r->d.region + at, bytes);
        hash = ah__hash(r->back, (size_t)bytes, hash);
        copy(r, AH_LANE_H2D, r->d.region + at, r->d.host + at, bytes); /* for the next operator */
    }
    return hash;
}

static void row_repeat(struct repeated *r, const struct block_row *row)
{
    const struct ah_call call = block_call(&r->block, row);
    const struct ah_program program = {.count = 1, .calls = &call};
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_PROGRAM}}};
    struct ah_prepared *prepared;
    char shape[64];
    int differing = 0;
    BENCH(r->d.dev->ops->prepare(r->d.dev, &program, &prepared));
    work.label.what = "program";
    work.task[0].as.program.prepared = prepared;
    work.task[0].as.program.base[AH_SPACE_WORK] = r->d.region;
    work.task[0].as.program.base[AH_SPACE_WORKSPACE] = r->d.workspace;
    uint64_t first = run_once(r, &call, &work);
    for (int i = 1; i < r->runs; i++)
        differing += run_once(r, &call, &work) != first;
    printf("  %-14s %-20s %016llx %s", ah__op_table[row->op]->name,
           ah__shape_format(shape, sizeof shape, &call.out[0].meta.shape), (unsigned long long)first,
           differing ? "" : "each time\n");
    if (differing)
        printf("%d of %d runs differ\n", differing, r->runs);
    r->differing += differing > 0;
    r->operators++;
    r->d.dev->ops->prepared_free(r->d.dev, prepared);
}

static void rows_repeat(struct repeated *r, const struct block_row *rows, int count)
{
    for (int i = 0; i < count; i++)
        row_repeat(r, &rows[i]);
}

static int64_t workspace_of(struct repeated *r, const struct block_row *rows, int count)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
        const struct ah_call call = block_call(&r->block, &rows[i]);
        const struct ah_program program = {.count = 1, .calls = &call};
        int64_t bytes = on_device_workspace(&r->d, &program);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* TFLOP/s of the first and of the last part of so many seconds. */
static void sustain(double rate[2], struct repeated *r, int64_t matrix, double seconds)
{
    double start = bench_seconds(), now = start;
    rate[0] = rate[1] = on_device_matrix_rate(&r->d, r->block.dtype, matrix);
    for (; now - start < seconds; now = bench_seconds())
        rate[1] = on_device_matrix_again(&r->d, r->block.dtype, matrix);
}

int main(int argc, char **argv)
{
    const char *device = "auto", *dtype = "bf16";
    int batch = 8, seq = 1024, channels = 1600, heads = 25, vocabulary = 50257, runs = 20, matrix = 8192, seconds = 10;
    const struct bench_option options[] = {
        {"device", BENCH_TEXT, &device, "as autohete has it"},
        {"dtype", BENCH_TEXT, &dtype, "bf16 or fp32"},
        {"batch", BENCH_COUNT, &batch, "sequences"},
        {"seq", BENCH_COUNT, &seq, "tokens in each"},
        {"channels", BENCH_COUNT, &channels, "of the block, a multiple of heads"},
        {"heads", BENCH_COUNT, &heads, "of attention"},
        {"vocabulary", BENCH_COUNT, &vocabulary, "ids"},
        {"runs", BENCH_COUNT, &runs, "of each operator"},
        {"matrix", BENCH_COUNT, &matrix, "rows of the square matrices whose product is repeated"},
        {"sustain", BENCH_COUNT, &seconds, "seconds of products"},
    };
    static struct repeated r;
    double rate[2];
    BENCH_OPTIONS(argc, argv, "Whether a device gives the same bits each time, and holds its rate.", options);
    r.runs = runs;
    r.block = (struct block){.batch = batch,
                             .seq = seq,
                             .channels = channels,
                             .heads = heads,
                             .vocabulary = vocabulary,
                             .loss_seq = seq > 128 ? 128 : seq,
                             .dtype = bench_dtype(dtype)};
    block_place(&r.block);
    on_device_open(&r.d, device, NULL, 9);
    int64_t workspace =
        most_of(workspace_of(&r, block_forward, BLOCK_FORWARD), workspace_of(&r, block_backward, BLOCK_BACKWARD));
    workspace = most_of(workspace, workspace_of(&r, block_other, BLOCK_OTHER));
    workspace = most_of(workspace, workspace_of(&r, block_documents, BLOCK_DOCUMENTS));
    for (int64_t n = matrix; n >= 1 && n >= matrix / 2; n /= 2) {
        const struct ah_call call = on_device_matrix_call(r.block.dtype, n);
        workspace = most_of(workspace, on_device_workspace(&r.d, &(struct ah_program){.count = 1, .calls = &call}));
    }
    int64_t operands = most_of(r.block.bytes, on_device_matrix_bytes(r.block.dtype, matrix));
    on_device_memory(&r.d, operands, workspace, 1 << 20, 2 * operands);
    r.back = r.d.host + operands;
    sustain(rate, &r, matrix, seconds);
    block_fill(&r.block, r.d.host);
    on_device_put(&r.d, 0, r.block.bytes);
    rows_repeat(&r, block_forward, BLOCK_FORWARD);
    rows_repeat(&r, block_backward, BLOCK_BACKWARD);
    rows_repeat(&r, block_other, BLOCK_OTHER);
    rows_repeat(&r, block_documents, BLOCK_DOCUMENTS);
    printf(
        "%d of %d operators the same bits in %d runs; products of %d x %d %s %.2f TFLOP/s at first, %.2f after %d s\n",
        r.operators - r.differing, r.operators, runs, matrix, matrix, dtype, rate[0] * 1e-12, rate[1] * 1e-12, seconds);
    on_device_close(&r.d);
    return r.differing > 0;
}
