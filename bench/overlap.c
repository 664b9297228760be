/* How well four lanes overlap: autohete against autohete-fifo against the bound, on the CPU device with a throttled
 * link, and the link or the host optimizer as bottleneck. One run, rounds interleaved, medians.
 *     overlap [--rounds N] */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 40, MOST_ROUNDS = 32 };

static void title(const struct bench *bench)
{
    printf("overlap: %d blocks of width %d, %lld x %lld tokens, link %.1f GB/s each way, 1 compute and 1 host thread\n",
           bench->layers, bench->width, (long long)bench->batch, (long long)bench->seq,
           (double)bench->dev.link_bytes_per_s / 1e9);
    bench_machine(stdout);
    const struct ah_costs *costs = &bench->profile->costs;
    printf("one block: forward %.2f, backward %.2f, fetch %.2f, gradient %.2f, host update %.2f ms\n",
           (double)costs->ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK] / 1e6,
           (double)costs->ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK] / 1e6,
           (double)costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK] / 1e6,
           (double)costs->ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK] / 1e6,
           (double)costs->ns[AH_ITEM_UPDATE_HOST][AH_CLASS_BLOCK] / 1e6);
}

static void row(const struct bench *bench, const char *text, int rounds)
{
    struct ah_budget budget = {0};
    struct ah_plan plan[2];
    int64_t median[2][MOST_ROUNDS];
    double ratio[MOST_ROUNDS];
    struct bench_steps steps = {0}, last = {0};
    BENCH(ah_plan_parse(&plan[0], text, bench->partition, bench->profile, &budget, "autohete"));
    BENCH(ah_plan_parse(&plan[1], text, bench->partition, bench->profile, &budget, "autohete-fifo"));
    for (int r = 0; r < rounds; r++) {
        for (int policy = 0; policy < 2; policy++) {
            bench_run(&steps, bench, &plan[policy], STEPS, false);
            median[policy][r] = steps.median_ns;
            if (policy == 0)
                last = steps;
        }
        ratio[r] = (double)median[1][r] / (double)median[0][r];
    }
    double autohete = (double)bench_median(median[0], (size_t)rounds),
           fifo = (double)bench_median(median[1], (size_t)rounds);
    printf("%-18s %8.2f %8.2f %7.2fx %8.2f %7.2f %8.2f %7.2f  %3.0f %3.0f %3.0f %3.0f\n", text, autohete / 1e6,
           fifo / 1e6, bench_quantile(ratio, (size_t)rounds, 0.5), (double)plan[0].bound_lane_ns / 1e6,
           (double)plan[0].bound_cycle_ns / 1e6, (double)plan[0].step_ns / 1e6, autohete / (double)plan[0].bound_ns,
           100 * last.busy[0], 100 * last.busy[1], 100 * last.busy[2], 100 * last.busy[3]);
}

/* The link as the bottleneck, then the host optimizer: few tokens, a fast link. */
static const struct bench machines[] = {
    {.layers = 12,
     .width = 512,
     .heads = 8,
     .vocab = 256,
     .batch = 1,
     .seq = 32,
     .dev = {.threads = 1, .host_threads = 1, .link_bytes_per_s = 4000000000}},
    {.layers = 12,
     .width = 512,
     .heads = 8,
     .vocab = 256,
     .batch = 1,
     .seq = 4,
     .dev = {.threads = 1, .host_threads = 1, .link_bytes_per_s = 12000000000}},
};

int main(int argc, char **argv)
{
    static const char *const plans[] = {"c=0,p=0,o=12", "c=0,p=6,o=12", "c=12,p=0,o=12", "c=6,p=4,o=8", "c=0,p=0,o=4"};
    int rounds = 5;
    const struct bench_option options[] = {{"rounds", BENCH_COUNT, &rounds, "trainings of each kind, 32 at most"}};
    BENCH_OPTIONS(argc, argv, "How well four lanes overlap, beside first in, first out and beside the bound.", options);
    rounds = bench_least(rounds, MOST_ROUNDS);
    for (size_t m = 0; m < AH_LENGTH(machines); m++) {
        struct bench bench = machines[m];
        bench_open(&bench);
        title(&bench);
        printf("%d rounds of %d steps; ms per step; bound (a) busiest lane, (b) longest cycle; "
               "ah/bnd: over the larger; busy %% of compute h2d d2h host\n",
               rounds, STEPS);
        printf("%-18s %8s %8s %8s %8s %7s %8s %7s\n", "plan", "autohete", "fifo", "fifo/ah", "(a)", "(b)", "sim",
               "ah/bnd");
        for (size_t i = 0; i < AH_LENGTH(plans); i++)
            row(&bench, plans[i], rounds);
        printf("\n");
        bench_close(&bench);
    }
    return 0;
}
