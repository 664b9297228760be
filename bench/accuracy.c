/* Simulator against reality: step times predicted from the profile alone, then measured, over model shapes, links,
 * plans and policies on the CPU device. Prints every run, then median and 90th percentile of the error (all, and per
 * policy) and the rank correlation. Peaks must be exact. A profile is minutes old when the last of its plans runs, and
 * machines drift: the plan that moves nothing runs before and after each, and the error of the ratio to it is given,
 * too.
 *     accuracy [--threads N] [--host-threads N] */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/search.h"

enum { MOST_RUNS = 256, RUN_NS = 700000000 };

struct tally {
    double predicted[MOST_RUNS], measured[MOST_RUNS];
    double error[MOST_RUNS], beside[MOST_RUNS]; /* of the time; of its ratio to `resident` beside it */
    char policy[MOST_RUNS][24];
    size_t count, peaks_wrong;
    struct ah_plan resident;
    int64_t resident_ns; /* measured last */
};

static int64_t steps_of(const struct ah_plan *plan)
{
    int64_t count = RUN_NS / plan->step_ns;
    return count < 13 ? 13 : count > 400 ? 400 : count;
}

/* What `resident` takes now; the mean of this and of what it took before. */
static double resident_around(struct tally *tally, const struct bench *bench)
{
    struct bench_steps steps;
    bench_run(&steps, bench, &tally->resident, steps_of(&tally->resident), false);
    double around = (double)(tally->resident_ns + steps.median_ns) / 2e6;
    tally->resident_ns = steps.median_ns;
    return around;
}

static void run(struct tally *tally, const struct bench *bench, const struct ah_plan *plan)
{
    struct bench_steps steps;
    char text[64];
    if (tally->count == MOST_RUNS)
        bench_check(ah__fail(AH_EINTERNAL, "more than %d runs", MOST_RUNS), "accuracy");
    bench_run(&steps, bench, plan, steps_of(plan), false);
    size_t i = tally->count++;
    bool peaks = steps.device_used_bytes == plan->device_peak_bytes && steps.host_used_bytes == plan->host_peak_bytes;
    tally->peaks_wrong += !peaks;
    tally->predicted[i] = (double)plan->step_ns / 1e6;
    tally->measured[i] = (double)steps.median_ns / 1e6;
    double error = tally->predicted[i] / tally->measured[i] - 1, around = resident_around(tally, bench);
    double beside = (1 + error) * around / ((double)tally->resident.step_ns / 1e6) - 1;
    tally->error[i] = fabs(error);
    tally->beside[i] = fabs(beside);
    snprintf(tally->policy[i], sizeof tally->policy[i], "%s", plan->policy);
    snprintf(text, sizeof text, "c=%d+%d,a=%d,p=%d,o=%d/%d,buffers=%d,chunks=%d", plan->switches.checkpoint,
             plan->switches.selective, plan->switches.offload_activations, plan->switches.offload_params,
             plan->switches.offload_optimizer, plan->switches.staged, plan->switches.buffers, plan->switches.chunks);
    printf("%2dx%-4d %2lldx%-4lld %5.1f  %-16s %-42s %9.2f %9.2f %+7.1f%% %+7.1f%%  %s\n", bench->layers, bench->width,
           (long long)bench->batch, (long long)bench->seq, (double)bench->dev.link_bytes_per_s / 1e9, plan->policy,
           text, tally->predicted[i], tally->measured[i], 100 * error, 100 * beside, peaks ? "exact" : "WRONG");
    fflush(stdout);
}

static void given(struct tally *tally, const struct bench *bench, const char *text, const char *policy)
{
    struct ah_budget budget = {0};
    struct ah_plan plan;
    BENCH(ah_plan_parse(&plan, text, bench->partition, bench->profile, &budget, policy));
    run(tally, bench, &plan);
}

/* The policy's own choice within a share of what `resident` needs; nothing when it does not fit. */
static void chosen(struct tally *tally, const struct bench *bench, double share, const char *policy)
{
    struct ah_plan plan = {.switches = {.layers = bench->layers, .buffers = 1}};
    struct ah_budget budget = {0};
    int64_t host;
    ah__layout_bytes(&budget.device_bytes, &host, bench->partition, &plan.switches, 0);
    budget.device_bytes = (int64_t)(share * (double)budget.device_bytes);
    if (ah_plan_search(&plan, bench->partition, bench->profile, &budget, policy, NULL) == AH_OK)
        run(tally, bench, &plan);
}

static void summary(const struct tally *tally, const char *policy)
{
    double error[MOST_RUNS], beside[MOST_RUNS];
    size_t count = 0;
    for (size_t i = 0; i < tally->count; i++)
        if (!policy || strcmp(policy, tally->policy[i]) == 0) {
            error[count] = tally->error[i];
            beside[count++] = tally->beside[i];
        }
    if (count)
        printf("  %-16s %3zu runs: median error %4.1f%%, 90th percentile %4.1f%%; to resident %4.1f%%, %4.1f%%\n",
               policy ? policy : "all", count, 100 * bench_quantile(error, count, 0.5),
               100 * bench_quantile(error, count, 0.9), 100 * bench_quantile(beside, count, 0.5),
               100 * bench_quantile(beside, count, 0.9));
}

static void one_machine(struct tally *tally, const struct bench *bench)
{
    static const char *const plans[] = {"c=0,p=0,o=8", "c=8,p=4,o=8", "c=4,p=2,o=4", "c=8,p=7,o=8,buffers=2"};
    struct ah_budget budget = {0};
    BENCH(ah_plan_parse(&tally->resident, "resident", bench->partition, bench->profile, &budget, "resident"));
    resident_around(tally, bench);
    given(tally, bench, "resident", "resident");
    given(tally, bench, "c=8,p=0,o=0", "autohete");
    for (size_t i = 0; i < AH_LENGTH(plans); i++) {
        given(tally, bench, plans[i], "autohete");
        given(tally, bench, plans[i], "autohete-fifo");
    }
    given(tally, bench, "c=0,p=0,o=8,chunks=4", "autohete");
    given(tally, bench, "c=0,p=4,o=8", "autohete-paper");
    given(tally, bench, "c=0,p=0,o=0,selective=8", "autohete");
    given(tally, bench, "c=2,p=2,o=4,selective=4", "autohete");
    given(tally, bench, "c=0,p=0,o=8,staged=8,chunks=4", "autohete");
    given(tally, bench, "c=8,p=4,o=8,staged=3,chunks=2", "autohete");
    given(tally, bench, "c=0,p=0,o=8,a=4", "autohete");
    given(tally, bench, "c=8,p=4,o=8,a=6", "autohete");
    given(tally, bench, "c=8,p=2,o=8,staged=4,chunks=2", "autohete");
    chosen(tally, bench, 0.6, "autohete");
    for (int i = 0; ah__policies[i]; i++)
        if (ah__policy_is_placed(ah__policies[i]) && ah__policies[i] != &ah__policy_resident)
            chosen(tally, bench, 0.8, ah__policies[i]->name);
}

int main(int argc, char **argv)
{
    static const struct bench shapes[] = {
        {.layers = 8, .width = 256, .heads = 4, .vocab = 256, .batch = 4, .seq = 128},
        {.layers = 8, .width = 512, .heads = 8, .vocab = 256, .batch = 1, .seq = 64},
    };
    static const int64_t links[] = {0, 4000000000, 1000000000};
    static struct tally tally;
    struct ah_dev_options dev = {.threads = 1, .host_threads = 1};
    const struct bench_option options[] = {
        {"threads", BENCH_COUNT, &dev.threads, "of the device"},
        {"host-threads", BENCH_COUNT, &dev.host_threads, "of the host optimizer"},
    };
    BENCH_OPTIONS(argc, argv, "Predicted against measured step times over shapes, links, plans, policies.", options);
    bench_machine(stdout);
    printf("%d compute and %d host threads; link 0: unthrottled; ms per step\n", dev.threads, dev.host_threads);
    printf("blocks  tokens   GB/s  %-16s %-42s %9s %9s %8s %8s  %s\n", "policy", "plan", "predicted", "measured",
           "error", "to res.", "peaks");
    for (size_t s = 0; s < AH_LENGTH(shapes); s++)
        for (size_t l = 0; l < AH_LENGTH(links); l++) {
            struct bench bench = shapes[s];
            bench.dev = dev;
            bench.dev.link_bytes_per_s = links[l];
            bench_open(&bench);
            one_machine(&tally, &bench);
            bench_close(&bench);
        }
    printf("\n");
    summary(&tally, NULL);
    for (int i = 0; ah__policies[i]; i++)
        summary(&tally, ah__policies[i]->name);
    printf("  rank correlation %.3f, peaks exact in %zu of %zu\n",
           bench_rank_correlation(tally.predicted, tally.measured, tally.count), tally.count - tally.peaks_wrong,
           tally.count);
    return tally.peaks_wrong != 0;
}
