/* What a device takes besides arithmetic and bytes: empty work from submission to the driver's hearing of its end, the
 * gap between works that are queued behind each other, from one lane to another, and the driver's own time for a work.
 *
 *     latency [--device NAME] [--rounds N]
 *
 * Medians and the slowest tenth; the last line sums up, beside what hardware/h100-80g.json assumes. */
#include "bench.h"
#include "block.h"

enum { QUEUED = 8, MOST_ROUNDS = 10000, LAUNCHES = 64, COPIED = 1 << 19, BYTES = 64 << 20, PLACE = 256 };

struct latency {
    struct ah_dev *dev;
    char *device, *host;
    int rounds;
    double ns[MOST_ROUNDS];
};

static double median_print(struct latency *l, const char *what)
{
    double median = bench_quantile(l->ns, (size_t)l->rounds, 0.5);
    printf("%-62s %9.1f us  slowest tenth %9.1f us\n", what, 1e-3 * median,
           1e-3 * bench_quantile(l->ns, (size_t)l->rounds, 0.9));
    return median;
}

static struct ah_event submit(const struct latency *l, const struct ah_work *work)
{
    struct ah_event event;
    BENCH(l->dev->ops->submit(l->dev, work, &event));
    return event;
}

static struct ah_done await(const struct latency *l)
{
    struct ah_done done;
    BENCH(l->dev->ops->wait_any(l->dev, &done));
    BENCH(done.status);
    return done;
}

/* An empty work, heard of by the driver. */
static double round_trip(struct latency *l)
{
    struct ah_work work = {.lane = AH_LANE_COMPUTE};
    for (int i = 0; i < l->rounds; i++) {
        double start = bench_seconds();
        (void)submit(l, &work);
        (void)await(l);
        l->ns[i] = 1e9 * (bench_seconds() - start);
    }
    return median_print(l, "empty work, from submission to the driver's hearing of its end");
}

/* Works queued behind each other, by the device's clock. */
static double gap(struct latency *l, const struct ah_work *work, const char *what)
{
    for (int i = 0; i < l->rounds; i++) {
        for (int j = 0; j < QUEUED; j++)
            (void)submit(l, work);
        int64_t last_ns = await(l).end_ns, idle_ns = 0;
        for (int j = 1; j < QUEUED; j++) {
            struct ah_done done = await(l);
            idle_ns += done.start_ns - last_ns;
            last_ns = done.end_ns;
        }
        l->ns[i] = (double)idle_ns / (QUEUED - 1);
    }
    return median_print(l, what);
}

static double gap_of_copies(struct latency *l)
{
    struct ah_work work = {.lane = AH_LANE_H2D, .tasks = 1, .task = {{.type = AH_TASK_COPY}}};
    work.task[0].as.copy.to = l->device;
    work.task[0].as.copy.from = l->host;
    work.task[0].as.copy.bytes = COPIED;
    return gap(l, &work, "gap between two copies of a lane");
}

/* An empty work that waits for an empty one of another lane. */
static double across(struct latency *l, enum ah_lane from, enum ah_lane to, const char *what)
{
    for (int i = 0; i < l->rounds; i++) {
        struct ah_work first = {.lane = from}, second = {.lane = to, .waits = 1};
        second.wait[0] = submit(l, &first);
        (void)submit(l, &second);
        struct ah_done a = await(l), b = await(l);
        l->ns[i] = (double)(a.lane == from ? b.start_ns - a.end_ns : a.start_ns - b.end_ns);
    }
    return median_print(l, what);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* A small block's call of an operator, as often as a program may hold it. */
static struct ah_work program_of(const struct latency *l, const struct block *block, enum ah_op op, int times,
                                 struct ah_prepared **prepared)
{
    static struct ah_call calls[LAUNCHES];
    struct ah_program program = {.count = times, .calls = calls};
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_PROGRAM}}};
    int row = 0;
    while (block_forward[row].op != op)
        row++;
    for (int i = 0; i < times; i++)
        calls[i] = block_call(block, &block_forward[row]);
    BENCH(l->dev->ops->prepare(l->dev, &program, prepared));
    if (block->bytes + PLACE + (*prepared)->workspace_bytes > BYTES)
        bench_check(ah__fail(AH_EINTERNAL, "a workspace of %lld bytes", (long long)(*prepared)->workspace_bytes),
                    "latency");
    work.task[0].as.program.prepared = *prepared;
    work.task[0].as.program.base[AH_SPACE_WORK] = l->device;
    work.task[0].as.program.base[AH_SPACE_WORKSPACE] = l->device + (block->bytes + PLACE - 1) / PLACE * PLACE;
    return work;
}

/* What the driver does for each of the operator's calls: launching a kernel, asking a library for one. */
static double launch(struct latency *l, const struct block *block, enum ah_op op, const char *what)
{
    struct ah_prepared *prepared;
    struct ah_work work = program_of(l, block, op, LAUNCHES, &prepared);
    for (int i = 0; i < l->rounds; i++) {
        double start = bench_seconds();
        (void)submit(l, &work);
        l->ns[i] = 1e9 * (bench_seconds() - start) / LAUNCHES;
        (void)await(l);
    }
    l->dev->ops->prepared_free(l->dev, prepared);
    return median_print(l, what);
}

static double gap_of_kernels(struct latency *l, const struct block *block)
{
    struct ah_prepared *prepared;
    struct ah_work work = program_of(l, block, AH_OP_GELU, 1, &prepared);
    double median = gap(l, &work, "gap between two kernels of the compute lane");
    l->dev->ops->prepared_free(l->dev, prepared);
    return median;
}

int main(int argc, char **argv)
{
    static struct latency l = {.rounds = 1000};
    struct block block = {
        .batch = 1, .seq = 64, .channels = 128, .heads = 2, .vocabulary = 256, .loss_seq = 64, .dtype = AH_BF16};
    const char *name = "cpu";
    const struct bench_option options[] = {
        {"device", BENCH_TEXT, &name, "cpu, cuda ..."},
        {"rounds", BENCH_COUNT, &l.rounds, "of which medians are taken, 10000 at most"},
    };
    BENCH_OPTIONS(argc, argv, "What a device takes besides arithmetic and bytes.", options);
    l.rounds = bench_least(l.rounds, MOST_ROUNDS);
    block_place(&block);
    BENCH(ah_dev_open(&l.dev, name, NULL));
    BENCH(l.dev->ops->device_memory(l.dev, BYTES, &l.device));
    BENCH(l.dev->ops->host_memory(l.dev, COPIED, &l.host));
    (void)across(&l, AH_LANE_COMPUTE, AH_LANE_H2D, "(to warm up) compute to h2d");
    double trip = round_trip(&l), copies = gap_of_copies(&l), kernels = gap_of_kernels(&l, &block);
    double streams = across(&l, AH_LANE_COMPUTE, AH_LANE_H2D, "from compute to h2d");
    double down = across(&l, AH_LANE_D2H, AH_LANE_HOST, "from d2h to the host lane");
    double up = across(&l, AH_LANE_HOST, AH_LANE_H2D, "from the host lane to h2d");
    double kernel = launch(&l, &block, AH_OP_GELU, "the driver's time for a kernel");
    double product = launch(&l, &block, AH_OP_LINEAR, "the driver's time for a product");
    double attention = launch(&l, &block, AH_OP_ATTENTION, "the driver's time for attention");
    printf(
        "round trip %.1f us, gaps %.1f us (copies) and %.1f (kernels; assumed for an H100: 5), lane to lane %.1f us, "
        "to the host %.1f us, from it %.1f us (assumed: notify 20), the driver's time for a kernel %.1f us, a product "
        "%.1f, attention %.1f\n",
        1e-3 * trip, 1e-3 * copies, 1e-3 * kernels, 1e-3 * streams, 1e-3 * down, 1e-3 * up, 1e-3 * kernel,
        1e-3 * product, 1e-3 * attention);
    BENCH(l.dev->ops->memory_release(l.dev));
    ah_dev_close(l.dev);
    return 0;
}
