/* Simulator against reality: step times predicted from the profile alone, then measured, over plans of several kinds, links and
 * policies on the CPU device. Prints every run, then median and 90th percentile of the error and the rank correlation.
 *     accuracy [--threads N] [--host-threads N]                                                                         */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 128 };

struct tally {
    double predicted[MOST_RUNS], measured[MOST_RUNS], error[MOST_RUNS];
    size_t count, peaks_wrong;
};

static void run(struct tally *tally, const struct bench *bench, const char *text, const char *policy)
{
    struct ah_budget budget = {0};
    struct ah_plan plan;
    struct bench_steps steps;
    BENCH(ah_plan_parse(&plan, text, bench->partition, bench->profile, &budget, policy));
    int64_t count = 700000000 / plan.step_ns;
    bench_run(&steps, bench, &plan, count < 13 ? 13 : count > 400 ? 400 : count);
    size_t i = tally->count++;
    bool peaks = steps.device_used_bytes == plan.device_peak_bytes && steps.host_used_bytes == plan.host_peak_bytes;
    tally->peaks_wrong += !peaks;
    tally->predicted[i] = (double)plan.step_ns / 1e6;
    tally->measured[i] = (double)steps.median_ns / 1e6;
    tally->error[i] = fabs(tally->predicted[i] / tally->measured[i] - 1);
    printf("%2dx%-4d %2lldx%-4lld %5.1f  %-13s %-16s %9.2f %9.2f %+7.1f%%  %s\n", bench->layers, bench->width,
           (long long)bench->batch, (long long)bench->seq, (double)bench->dev.link_bytes_per_s / 1e9, policy, text,
           tally->predicted[i], tally->measured[i], 100 * (tally->predicted[i] / tally->measured[i] - 1),
           peaks ? "exact" : "WRONG");
    fflush(stdout);
}

static void summary(const struct tally *tally)
{
    double error[MOST_RUNS];
    memcpy(error, tally->error, sizeof error);
    printf("\n%zu runs: median error %.1f%%, 90th percentile %.1f%%, rank correlation %.3f, peaks exact in %zu\n",
           tally->count, 100 * bench_quantile(error, tally->count, 0.5), 100 * bench_quantile(error, tally->count, 0.9),
           bench_rank_correlation(tally->predicted, tally->measured, tally->count), tally->count - tally->peaks_wrong);
}

int main(int argc, char **argv)
{
    static const char *const plans[] = {"c=0,p=0,o=0", "c=8,p=0,o=0", "c=0,p=0,o=8", "c=8,p=4,o=8",
                                        "c=4,p=2,o=4", "c=2,p=0,o=3", "c=8,p=7,o=8,slots=2"};
    static const struct bench shapes[] = {
        {.layers = 8, .width = 256, .heads = 4, .vocab = 256, .batch = 4, .seq = 128},
        {.layers = 8, .width = 512, .heads = 8, .vocab = 256, .batch = 1, .seq = 64},
    };
    static const int64_t links[] = {0, 2000000000};
    static struct tally tally;
    struct ah_dev_options dev = {.threads = 1, .host_threads = 1};
    for (int i = 1; i + 1 < argc; i += 2) {
        dev.threads = strcmp(argv[i], "--threads") == 0 ? atoi(argv[i + 1]) : dev.threads;
        dev.host_threads = strcmp(argv[i], "--host-threads") == 0 ? atoi(argv[i + 1]) : dev.host_threads;
    }
    bench_machine(stdout);
    printf("%d compute and %d host threads\n", dev.threads, dev.host_threads);
    printf("blocks  tokens  GB/s  %-13s %-16s %9s %9s %8s  %s\n", "policy", "plan", "predicted", "measured", "error", "peaks");
    for (size_t s = 0; s < AH_LENGTH(shapes); s++)
        for (size_t l = 0; l < AH_LENGTH(links); l++) {
            struct bench bench = shapes[s];
            bench.dev = dev;
            bench.dev.link_bytes_per_s = links[l];
            bench_open(&bench);
            for (size_t p = 0; p < AH_LENGTH(plans); p++) {
                run(&tally, &bench, plans[p], "autohete");
                if (p >= 2)
                    run(&tally, &bench, plans[p], "autohete-fifo");
            }
            bench_close(&bench);
        }
    summary(&tally);
    return tally.peaks_wrong != 0;
}
