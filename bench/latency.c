/* What a device takes besides arithmetic and bytes: empty work from submission to the driver's hearing of its end, the
 * gap between works that are queued behind each other, from one lane to another, and the driver's own time for a work.
 *
 *     latency [--device NAME] [--rounds N]
 *
 * Medians and the slowest tenth; the last line sums up, beside what hardware/h100-80g.json assumes. */
#include "bench.h"

enum { QUEUED = 8, MOST_ROUNDS = 10000, LAUNCHES = 64, BYTES = 1 << 20, COUNT = 4096 };

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

static struct ah_event submit(const struct latency *l, struct ah_work *work)
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

/* Copies queued behind each other, by the device's clock. */
static double gap(struct latency *l)
{
    struct ah_work work = {.lane = AH_LANE_H2D, .tasks = 1, .task = {{.type = AH_TASK_COPY}}};
    work.task[0].as.copy.to = l->device;
    work.task[0].as.copy.from = l->host;
    work.task[0].as.copy.bytes = BYTES / 2;
    for (int i = 0; i < l->rounds; i++) {
        for (int j = 0; j < QUEUED; j++)
            (void)submit(l, &work);
        int64_t last_ns = await(l).end_ns, idle_ns = 0;
        for (int j = 1; j < QUEUED; j++) {
            struct ah_done done = await(l);
            idle_ns += done.start_ns - last_ns;
            last_ns = done.end_ns;
        }
        l->ns[i] = (double)idle_ns / (QUEUED - 1);
    }
    return median_print(l, "gap between two works of a lane");
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

/* A program of so many small kernels: what the driver does for each. */
static double launch(struct latency *l)
{
    static struct ah_call calls[LAUNCHES];
    struct ah_program program = {.count = LAUNCHES, .calls = calls};
    struct ah_prepared *prepared;
    const struct ah_meta meta = {AH_F32, ah_shape1(COUNT)};
    for (int i = 0; i < LAUNCHES; i++) {
        calls[i].op = AH_OP_COPY;
        calls[i].in[0] = (struct ah_operand){AH_SPACE_WORK, i % 2 ? COUNT * 4 : 0, meta};
        calls[i].out[0] = (struct ah_operand){AH_SPACE_WORK, i % 2 ? 0 : COUNT * 4, meta};
    }
    BENCH(l->dev->ops->prepare(l->dev, &program, &prepared));
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_PROGRAM}}};
    work.task[0].as.program.prepared = prepared;
    work.task[0].as.program.base[AH_SPACE_WORK] = l->device;
    for (int i = 0; i < l->rounds; i++) {
        double start = bench_seconds();
        (void)submit(l, &work);
        l->ns[i] = 1e9 * (bench_seconds() - start) / LAUNCHES;
        (void)await(l);
    }
    l->dev->ops->prepared_free(l->dev, prepared);
    return median_print(l, "the driver's time for a kernel");
}

int main(int argc, char **argv)
{
    static struct latency l = {.rounds = 1000};
    const char *name = "cpu";
    const struct bench_option options[] = {
        {"device", BENCH_TEXT, &name, "cpu, cuda ..."},
        {"rounds", BENCH_COUNT, &l.rounds, "of which medians are taken, 10000 at most"},
    };
    BENCH_OPTIONS(argc, argv, "What a device takes besides arithmetic and bytes.", options);
    l.rounds = bench_least(l.rounds, MOST_ROUNDS);
    BENCH(ah_dev_open(&l.dev, name, NULL));
    BENCH(l.dev->ops->device_memory(l.dev, BYTES, &l.device));
    BENCH(l.dev->ops->host_memory(l.dev, BYTES, &l.host));
    (void)across(&l, AH_LANE_COMPUTE, AH_LANE_H2D, "(to warm up) compute to h2d");
    double trip = round_trip(&l), between = gap(&l);
    double streams = across(&l, AH_LANE_COMPUTE, AH_LANE_H2D, "from compute to h2d");
    double down = across(&l, AH_LANE_D2H, AH_LANE_HOST, "from d2h to the host lane");
    double up = across(&l, AH_LANE_HOST, AH_LANE_H2D, "from the host lane to h2d");
    double kernel = launch(&l);
    printf(
        "round trip %.1f us, gap %.1f us (assumed for an H100: 5), lane to lane %.1f us, to the host %.1f us, from it "
        "%.1f us (assumed: notify 20), launch %.1f us of the driver\n",
        1e-3 * trip, 1e-3 * between, 1e-3 * streams, 1e-3 * down, 1e-3 * up, 1e-3 * kernel);
    BENCH(l.dev->ops->memory_release(l.dev));
    ah_dev_close(l.dev);
    return 0;
}
