/* Real training on the CPU device under every policy: throughput relative to each other, with a throttled link and
 * budgets where offloading matters. Every policy trains the same number of steps; their last losses must be the same
 * bits.
 *     policies [--rounds N] */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "plan/search.h"

enum { STEPS = 16, MOST_ROUNDS = 16, MOST_POLICIES = 16 };

struct entry {
    const struct ah_policy *policy;
    bool fits;
    struct ah_plan plan;
    struct bench_steps steps;
    int64_t median_ns[MOST_ROUNDS];
};

static void smallest_and_largest(int64_t *least, int64_t *most, const struct ah_partition *partition)
{
    int64_t host;
    int layers = partition->layers;
    struct ah_plan plan = {.switches = {.layers = layers,
                                        .checkpoint = layers,
                                        .offload_params = layers - 1,
                                        .offload_optimizer = layers,
                                        .embedding_on_host = true,
                                        .head_on_host = true,
                                        .slots = 2}};
    ah__layout_bytes(least, &host, partition, &plan.switches, 0);
    plan = (struct ah_plan){.switches = {.layers = layers, .slots = 1}};
    ah__layout_bytes(most, &host, partition, &plan.switches, 0);
}

static void print_entry(const struct entry *entry, double autohete_ns, double loss)
{
    const struct ah_plan *plan = &entry->plan;
    if (!entry->fits) {
        printf("  %-14s does not fit\n", entry->policy->name);
        return;
    }
    double ns = (double)entry->steps.median_ns;
    printf("  %-14s %2d %2d %2d %3d %3d %9.2f %9.2f %6.1f%% %7.2fx  %3.0f %3.0f %3.0f %3.0f  %s\n", entry->policy->name,
           plan->switches.checkpoint, plan->switches.offload_params, plan->switches.offload_optimizer,
           plan->switches.slots, plan->switches.tiles, (double)plan->step_ns / 1e6, ns / 1e6,
           100 * ((double)plan->step_ns / ns - 1), ns / autohete_ns, 100 * entry->steps.busy[0],
           100 * entry->steps.busy[1], 100 * entry->steps.busy[2], 100 * entry->steps.busy[3],
           !entry->policy->keeps_semantics ? "delayed"
           : entry->steps.loss == loss     ? "same"
                                           : "DIFFERENT");
}

static int budget_table(const struct bench *bench, int64_t bytes, int rounds)
{
    static struct entry entries[MOST_POLICIES];
    struct ah_budget budget = {.device_bytes = bytes};
    int count = 0, different = 0;
    for (; ah__policies[count] && count < MOST_POLICIES; count++) {
        entries[count] = (struct entry){.policy = ah__policies[count]};
        entries[count].fits = ah_plan_search(&entries[count].plan, bench->partition, bench->profile, &budget,
                                             ah__policies[count]->name) == AH_OK;
    }
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < count; i++)
            if (entries[i].fits) {
                bench_run(&entries[i].steps, bench, &entries[i].plan, STEPS, true);
                entries[i].median_ns[r] = entries[i].steps.median_ns;
            }
    for (int i = 0; i < count; i++)
        entries[i].steps.median_ns = bench_median(entries[i].median_ns, (size_t)rounds);
    printf("\ndevice memory %.1f MiB\n  %-14s %2s %2s %2s %3s %3s %9s %9s %7s %8s  busy %%: c h2d d2h host\n",
           (double)bytes / (1 << 20), "policy", "c", "p", "o", "S", "T", "predicted", "measured", "error", "/autohete");
    for (int i = 0; i < count; i++) {
        print_entry(&entries[i], (double)entries[0].steps.median_ns, entries[0].steps.loss);
        different +=
            entries[i].fits && entries[i].policy->keeps_semantics && entries[i].steps.loss != entries[0].steps.loss;
    }
    fflush(stdout);
    return different;
}

int main(int argc, char **argv)
{
    static const double shares[] = {0.05, 0.35, 0.65, 1.0};
    int rounds = argc > 2 && strcmp(argv[1], "--rounds") == 0 ? atoi(argv[2]) : 3, different = 0;
    struct bench bench = {.layers = 12, .width = 512, .heads = 8, .vocab = 256, .batch = 2, .seq = 64};
    int64_t least, most;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    bench.dev = (struct ah_dev_options){.threads = 1, .host_threads = 1, .link_bytes_per_s = 2000000000};
    bench_open(&bench);
    smallest_and_largest(&least, &most, bench.partition);
    bench_machine(stdout);
    printf("%d blocks of width %d, %lld x %lld tokens, link %.1f GB/s each way, 1 compute and 1 host thread, %d rounds "
           "of %d "
           "steps, ms per step; S slots, T tiles\n",
           bench.layers, bench.width, (long long)bench.batch, (long long)bench.seq,
           (double)bench.dev.link_bytes_per_s / 1e9, rounds, STEPS);
    for (size_t i = 0; i < AH_LENGTH(shares); i++)
        different += budget_table(&bench, least + (int64_t)((double)(most - least) * shares[i]), rounds);
    bench_close(&bench);
    return different != 0;
}
