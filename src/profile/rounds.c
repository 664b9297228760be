#include <stdlib.h>

#include "profile/bench.h"

/* How long a kind of round is repeated. */
enum { ROUNDS_LEAST = 5, ROUNDS_LEAST_SLOW = 3, ROUNDS_MOST = 60, AHEAD = 12 };
static const int64_t slow_ns = 600000000;

static int ns_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t ah__samples_median(struct ah_samples *samples)
{
    int count = samples->count < AH_BENCH_SAMPLES ? samples->count : AH_BENCH_SAMPLES;
    if (count == 0)
        return 0;
    qsort(samples->ns, (size_t)count, sizeof samples->ns[0], ns_compare);
    return (samples->ns[count / 2] + samples->ns[(count - 1) / 2]) / 2;
}

void ah__samples_add(struct ah_samples *samples, int64_t ns)
{
    if (samples->count < AH_BENCH_SAMPLES)
        samples->ns[samples->count++] = ns;
}

/* ---- one round */

/* Items on their way: submitted a few ahead, so that the lane never waits for this thread. */
struct burst {
    struct ah_bench *bench;
    int in_flight;
    bool timed;
    int64_t last_end_ns; /* 0 before the first completion; a burst stays on one lane */
};

static int burst_wait(struct burst *burst)
{
    struct ah_bench *bench = burst->bench;
    struct ah_done done;
    AH_TRY(bench->dev->ops->wait_any(bench->dev, &done));
    burst->in_flight--;
    AH_TRY(done.status);
    enum ah_class class = bench->place[done.item.partition].class;
    if (burst->timed && burst->last_end_ns)
        ah__samples_add(&bench->gaps[done.lane], done.start_ns - burst->last_end_ns);
    burst->last_end_ns = done.end_ns;
    if (burst->timed)
        ah__samples_add(done.item.recompute ? &bench->recomputed[class] : &bench->samples[done.item.kind][class],
                        done.end_ns - done.start_ns);
    return AH_OK;
}

static int burst_submit(struct burst *burst, enum ah_item_kind kind, int place, bool recompute)
{
    struct ah_work work;
    struct ah_event event;
    if (burst->in_flight == AHEAD)
        AH_TRY(burst_wait(burst));
    ah__bench_work(&work, burst->bench, kind, place, recompute);
    AH_TRY(burst->bench->dev->ops->submit(burst->bench->dev, &work, &event));
    burst->in_flight++;
    return AH_OK;
}

/* A step of the small model, everything on the device. Every second backward of a block recomputes, so that both kinds see the same
 * state of the machine. */
static int round_compute(struct burst *burst, int round)
{
    struct ah_bench *bench = burst->bench;
    bool has_recompute = bench->partition->code[AH_CLASS_BLOCK].recompute.count > 0;
    for (int i = 0; i < bench->places; i++)
        AH_TRY(burst_submit(burst, AH_ITEM_FORWARD, i, false));
    for (int i = bench->places - 1; i >= 0; i--) {
        bool recompute = bench->place[i].class == AH_CLASS_BLOCK && has_recompute && (i + round) % 2;
        AH_TRY(burst_submit(burst, AH_ITEM_BACKWARD, i, recompute));
        AH_TRY(burst_submit(burst, AH_ITEM_UPDATE_DEVICE, i, false));
    }
    return AH_OK;
}

static int round_offload(struct burst *burst, int round)
{
    (void)round;
    AH_TRY(burst_submit(burst, AH_ITEM_RESULT, 0, false));
    for (int i = burst->bench->places - 1; i >= 0; i--)
        AH_TRY(burst_submit(burst, AH_ITEM_OFFLOAD, i, false));
    return AH_OK;
}

static int round_host(struct burst *burst, int round)
{
    (void)round;
    for (int i = burst->bench->places - 1; i >= 0; i--)
        AH_TRY(burst_submit(burst, AH_ITEM_UPDATE_HOST, i, false));
    return AH_OK;
}

static int round_prefetch(struct burst *burst, int round)
{
    (void)round;
    AH_TRY(burst_submit(burst, AH_ITEM_INPUT, 0, false));
    for (int i = 0; i < burst->bench->places; i++)
        AH_TRY(burst_submit(burst, AH_ITEM_PREFETCH, i, false));
    return AH_OK;
}

static const struct round_row {
    int (*run)(struct burst *burst, int round);
    int64_t budget_ns; /* repeated until this has passed */
} round_table[] = {
    {round_compute, 400000000},
    {round_offload, 120000000},
    {round_host, 120000000},
    {round_prefetch, 120000000},
};

static int round_once(struct ah_bench *bench, const struct round_row *row, int round, bool timed)
{
    struct burst burst = {.bench = bench, .timed = timed};
    AH_TRY(row->run(&burst, round));
    while (burst.in_flight)
        AH_TRY(burst_wait(&burst));
    return AH_OK;
}

static int rounds_run(struct ah_bench *bench, const struct round_row *row)
{
    AH_TRY(round_once(bench, row, 0, false)); /* warms up */
    int64_t start_ns = bench->dev->ops->now_ns(bench->dev);
    int kinds = bench->copies == 1 ? 2 : 1; /* a single copy recomputes in every second round only */
    for (int round = 0; round < ROUNDS_MOST; round++) {
        int64_t elapsed_ns = bench->dev->ops->now_ns(bench->dev) - start_ns;
        int least = kinds * (elapsed_ns < slow_ns ? ROUNDS_LEAST : ROUNDS_LEAST_SLOW);
        if (round >= least && elapsed_ns >= row->budget_ns)
            return AH_OK;
        AH_TRY(round_once(bench, row, round, true));
    }
    return AH_OK;
}

/* ---- all of them */

static int64_t at_least_one(int64_t ns)
{
    return ns > 0 ? ns : 1;
}

static void costs_fill(struct ah_bench *bench, struct ah_costs *costs)
{
    static const enum ah_item_kind per_class[] = {AH_ITEM_FORWARD, AH_ITEM_BACKWARD, AH_ITEM_UPDATE_DEVICE,
                                                  AH_ITEM_UPDATE_HOST, AH_ITEM_PREFETCH, AH_ITEM_OFFLOAD};
    for (int class = 0; class < AH_CLASS_COUNT; class++) {
        for (size_t i = 0; i < AH_LENGTH(per_class); i++)
            costs->ns[per_class[i]][class] = at_least_one(ah__samples_median(&bench->samples[per_class[i]][class]));
        costs->ns[AH_ITEM_REFETCH][class] = costs->ns[AH_ITEM_PREFETCH][class];
        costs->ns[AH_ITEM_INPUT][class] = at_least_one(ah__samples_median(&bench->samples[AH_ITEM_INPUT][0]));
        costs->ns[AH_ITEM_RESULT][class] = at_least_one(ah__samples_median(&bench->samples[AH_ITEM_RESULT][0]));
        costs->recompute_ns[class] = 0;
        if (bench->recomputed[class].count)
            costs->recompute_ns[class] =
                at_least_one(ah__samples_median(&bench->recomputed[class]) - costs->ns[AH_ITEM_BACKWARD][class]);
    }
}

int ah__bench_rounds(struct ah_bench *bench, struct ah_costs *costs)
{
    for (size_t i = 0; i < AH_LENGTH(round_table); i++)
        AH_TRY(rounds_run(bench, &round_table[i]));
    costs_fill(bench, costs);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        costs->launch_ns[lane] = ah__samples_median(&bench->gaps[lane]);
    return AH_OK;
}
