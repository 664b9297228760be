/* Tokens per second over the number of micro-batches in a step, at a tenth of the device memory that `resident` takes,
 * against `resident` with the same step in the same rounds. The link is so slow that offloading shows: with more
 * micro-batches there is more to compute for each transfer, until the transfers no longer matter.
 *     accumulate [--rounds N] */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 6, MOST_ROUNDS = 16, MOST_COUNT = 32, COUNTS = 6 };

struct row {
    struct bench bench;
    struct ah_budget budget;
    struct ah_plan resident, offloading;
    int64_t resident_ns[MOST_ROUNDS], offloading_ns[MOST_ROUNDS];
    double ratio[MOST_ROUNDS]; /* of tokens per second, offloading over resident */
    bool fits, same;
};

/* Large in parameters and small in activations, as what needs offloading is: else a tenth of the memory would buy
 * recomputation, which no number of micro-batches hides. */
static const struct bench model = {.layers = 16,
                                   .width = 768,
                                   .heads = 12,
                                   .vocab = 256,
                                   .batch = 1,
                                   .seq = 8,
                                   .dev = {.threads = 1, .host_threads = 1, .link_bytes_per_s = 4000000000}};

/* The budget is a tenth of what `resident` takes for the same step. */
static void row_open(struct row *row, int count)
{
    struct ah_budget unlimited = {0};
    row->bench = model;
    row->bench.micro_batches = count;
    bench_open(&row->bench);
    BENCH(ah_plan_parse(&row->resident, "resident", row->bench.partition, row->bench.profile, &unlimited, "resident"));
    row->budget.device_bytes = row->resident.device_peak_bytes / 10;
    int status =
        ah_plan_search(&row->offloading, row->bench.partition, row->bench.profile, &row->budget, "autohete", NULL);
    if (status != AH_OK && status != AH_EBUDGET)
        bench_check(status, "ah_plan_search");
    row->fits = row->same = status == AH_OK;
}

static void row_round(struct row *row, int round)
{
    struct bench_steps resident, offloading;
    bool random = round == 0; /* so that equal losses say something */
    bench_run(&resident, &row->bench, &row->resident, STEPS, random);
    bench_run(&offloading, &row->bench, &row->offloading, STEPS, random);
    row->resident_ns[round] = resident.median_ns;
    row->offloading_ns[round] = offloading.median_ns;
    row->ratio[round] = (double)resident.median_ns / (double)offloading.median_ns;
    row->same = row->same && resident.loss == offloading.loss;
}

static void row_print(struct row *row, int rounds)
{
    const struct ah_switches *switches = &row->offloading.switches;
    int count = row->bench.micro_batches;
    printf("%6d %9.1f ", count, (double)row->budget.device_bytes / (1 << 20));
    if (!row->fits) {
        printf("does not fit\n");
        return;
    }
    double tokens = 1e9 * (double)(count * model.batch * model.seq);
    double resident = (double)bench_median(row->resident_ns, (size_t)rounds);
    double offloading = (double)bench_median(row->offloading_ns, (size_t)rounds);
    printf("%3d %3d %3d %3d %9.1f %9.1f %9.0f %9.0f %9.3f  %s\n", switches->checkpoint, switches->offload_params,
           switches->offload_optimizer, switches->buffers, (double)row->offloading.step_ns / 1e6, offloading / 1e6,
           tokens / resident, tokens / offloading, bench_quantile(row->ratio, (size_t)rounds, 0.5),
           row->same ? "same" : "DIFFERENT");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct row rows[COUNTS];
    int rounds = 3, different = 0;
    const struct bench_option options[] = {{"rounds", BENCH_COUNT, &rounds, "trainings of each kind, 16 at most"}};
    BENCH_OPTIONS(argc, argv, "Tokens per second over the number of micro-batches in a step.", options);
    rounds = bench_least(rounds, MOST_ROUNDS);
    bench_machine(stdout);
    printf("%d blocks of width %d, micro-batches of %lld x %lld tokens, link %.1f GB/s each way, 1 compute and 1 host "
           "thread, %d rounds of %d steps\n",
           model.layers, model.width, (long long)model.batch, (long long)model.seq,
           (double)model.dev.link_bytes_per_s / 1e9, rounds, STEPS);
    printf("device memory: a tenth of resident's (MiB); ms per step; tokens per second of both; their ratio; last "
           "losses\n%6s %9s %3s %3s %3s %3s %9s %9s %9s %9s %9s\n",
           "count", "memory", "c", "p", "o", "S", "predicted", "measured", "resident", "tenth", "ratio");
    for (int i = 0; i < COUNTS; i++) {
        row_open(&rows[i], 1 << i);
        for (int round = 0; round < rounds && rows[i].fits; round++)
            row_round(&rows[i], round);
        row_print(&rows[i], rounds);
        different += rows[i].fits && !rows[i].same;
        bench_close(&rows[i].bench);
    }
    return different != 0;
}
