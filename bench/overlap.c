/* How well four lanes overlap: autohete against autohete-fifo against the bound, on the CPU device with a throttled
 * link, each lane in turn the bottleneck. One run, rounds interleaved, medians.
 *     overlap [--rounds N] [--steps N] */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 32, LAYERS = 12 };

static void title(const struct bench *bench, const char *longest)
{
    printf("overlap, %s has most to do: %d blocks of width %d, %lld x %lld tokens, link %.1f GB/s each way, 1 compute "
           "and 1 host thread\n",
           longest, bench->layers, bench->width, (long long)bench->batch, (long long)bench->seq,
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

static void row(const struct bench *bench, const char *text, int rounds, int step_count)
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
            bench_run(&steps, bench, &plan[policy], step_count, false);
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

/* Each lane in turn has most to do, whatever the machine: the link is throttled to a rate that follows from what a
 * block's compute and its update by the host take here. Few tokens leave compute less to do than the host. */
static const struct machine {
    enum ah_lane longest;
    int64_t seq;
    double part; /* what a fetch of a block takes, of its compute, or of its update */
} machines[] = {{AH_LANE_COMPUTE, 64, 0.7}, {AH_LANE_H2D, 32, 1.3}, {AH_LANE_HOST, 4, 0.7}};

static void link_choose(struct bench *bench, const struct machine *machine)
{
    const struct ah_costs *costs = &bench->profile->costs;
    int64_t compute = costs->ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK] + costs->ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK];
    int64_t update = costs->ns[AH_ITEM_UPDATE_HOST][AH_CLASS_BLOCK];
    double seconds = 1e-9 * machine->part * (double)(machine->longest == AH_LANE_HOST ? update : compute);
    double bytes = (double)bench->partition->groups[1].count * (double)sizeof(float);
    bench->dev.link_bytes_per_s = (int64_t)(bytes / seconds);
    bench_profile(bench);
}

int main(int argc, char **argv)
{
    static const char *const plans[] = {"c=0,p=0,o=12", "c=0,p=6,o=12", "c=12,p=0,o=12", "c=6,p=4,o=8", "c=0,p=0,o=4"};
    static const char *const lanes[AH_LANE_COUNT] = {
        [AH_LANE_COMPUTE] = "compute", [AH_LANE_H2D] = "the link", [AH_LANE_HOST] = "the host optimizer"};
    int rounds = 5, steps = 40;
    const struct bench_option options[] = {{"rounds", BENCH_COUNT, &rounds, "trainings of each kind, 32 at most"},
                                           {"steps", BENCH_COUNT, &steps, "of each training"}};
    BENCH_OPTIONS(argc, argv, "How well four lanes overlap, beside first in, first out and beside the bound.", options);
    rounds = bench_least(rounds, MOST_ROUNDS);
    for (size_t m = 0; m < AH_LENGTH(machines); m++) {
        struct bench bench = {.layers = LAYERS,
                              .width = 512,
                              .heads = 8,
                              .vocab = 256,
                              .batch = 1,
                              .seq = machines[m].seq,
                              .dev = {.threads = 1, .host_threads = 1}};
        bench_open(&bench);
        link_choose(&bench, &machines[m]);
        title(&bench, lanes[machines[m].longest]);
        printf("%d rounds of %d steps; ms per step; bound (a) busiest lane, (b) longest cycle; "
               "ah/bnd: over the larger; busy %% of compute h2d d2h host\n",
               rounds, steps);
        printf("%-18s %8s %8s %8s %8s %7s %8s %7s\n", "plan", "autohete", "fifo", "fifo/ah", "(a)", "(b)", "sim",
               "ah/bnd");
        for (size_t i = 0; i < AH_LENGTH(plans); i++)
            row(&bench, plans[i], rounds, steps);
        printf("\n");
        bench_close(&bench);
    }
    return 0;
}
