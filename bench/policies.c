/* Real training under every policy: throughput relative to each other within budgets where offloading matters. Every
 * policy trains the same number of steps; their last losses must be the same bits. On the CPU device, with a throttled
 * link, a model and budgets that suit it; on a GPU the models, and the budgets that stand for smaller cards, are given:
 *
 *     policies [--rounds N] [--steps N] [--device NAME] [--models 2B,4B,6B] [--budgets 12G,16G,24G,40G] [--batch N]
 *              [--seq N] [--dtype bf16|fp32] [--policies NAME,...] [--seconds N]
 *
 * Predicted against measured time and peak; TFLOP/s of the model; the bound's share of the step. When
 * --seconds are over nothing is begun any more, which is said. The last line sums up. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "plan/search.h"

enum { MOST_ROUNDS = 16, MOST_POLICIES = 16, MOST_STEPS = 400 };

/* What is asked for, and what came of it. */
struct settings {
    const char *device, *models, *budgets, *dtype, *policies;
    int rounds, steps, batch, seq, seconds;
};
struct tally {
    int trained, different, peaks_wrong, left;
    double begun, error[1024], best_tflops;
};

struct entry {
    const struct ah_policy *policy;
    bool fits, trained;
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
                                        .buffers = 2}};
    ah__layout_bytes(least, &host, partition, &plan.switches, 0);
    plan = (struct ah_plan){.switches = {.layers = layers, .buffers = 1}};
    ah__layout_bytes(most, &host, partition, &plan.switches, 0);
}

static bool is_wanted(const struct settings *s, const char *policy)
{
    char name[32];
    const char *list = s->policies ? s->policies : policy;
    while (bench_word(name, sizeof name, &list))
        if (strcmp(name, policy) == 0)
            return true;
    return false;
}

static bool is_over(const struct settings *s, const struct tally *tally)
{
    return bench_seconds() - tally->begun > s->seconds;
}

static const char *verdict(const struct entry *entry, double loss)
{
    const struct ah_plan *plan = &entry->plan;
    if (entry->steps.device_used_bytes != plan->device_peak_bytes ||
        entry->steps.host_used_bytes != plan->host_peak_bytes)
        return "PEAK WRONG";
    return entry->steps.loss == loss ? "same" : "DIFFERENT";
}

static void print_entry(const struct bench *bench, const struct entry *entry, double autohete_ns, double loss)
{
    const struct ah_plan *plan = &entry->plan;
    double ns = (double)entry->steps.median_ns;
    if (!entry->trained) {
        printf("  %-14s %s\n", entry->policy->name, entry->fits ? "no time was left" : "does not fit");
        return;
    }
    printf("  %-14s %2d %2d %2d %3d %3d %9.2f %9.2f %6.1f%% %7.2fx %9.3f %6.1f%%  %3.0f %3.0f %3.0f %3.0f  %s\n",
           entry->policy->name, plan->switches.checkpoint, plan->switches.offload_params,
           plan->switches.offload_optimizer, plan->switches.buffers, plan->switches.chunks, (double)plan->step_ns / 1e6,
           ns / 1e6, 100 * ((double)plan->step_ns / ns - 1), ns / autohete_ns, 1e-3 * bench_flops(bench) / ns,
           100 * (double)plan->bound_ns / ns, 100 * entry->steps.busy[0], 100 * entry->steps.busy[1],
           100 * entry->steps.busy[2], 100 * entry->steps.busy[3], verdict(entry, loss));
}

/* What an entry came to, beside the first that was trained. */
static void entry_finish(struct tally *tally, const struct bench *bench, const struct entry *e,
                         const struct entry *first)
{
    print_entry(bench, e, first ? (double)first->steps.median_ns : 1, first ? first->steps.loss : 0);
    if (!e->trained) {
        tally->left += e->fits;
        return;
    }
    double tflops = 1e-3 * bench_flops(bench) / (double)e->steps.median_ns;
    double error = (double)e->plan.step_ns / (double)e->steps.median_ns - 1;
    tally->best_tflops = tflops > tally->best_tflops ? tflops : tally->best_tflops;
    tally->error[tally->trained++ % (int)AH_LENGTH(tally->error)] = error < 0 ? -error : error;
    tally->peaks_wrong += strcmp(verdict(e, e->steps.loss), "PEAK WRONG") == 0;
    tally->different += first && e->steps.loss != first->steps.loss;
}

static void entry_train(struct entry *e, const struct settings *s, const struct bench *bench, int round)
{
    bench_run(&e->steps, bench, &e->plan, s->steps, true);
    e->median_ns[round] = e->steps.median_ns;
    e->trained = true;
}

/* Rows as they are done, in the last round: what is ended from outside leaves what it has found. The first policy is
 * trained however late it is. */
static void budget_table(struct tally *tally, const struct settings *s, const struct bench *bench, int64_t bytes)
{
    static struct entry entries[MOST_POLICIES];
    struct ah_budget budget = {.device_bytes = bytes};
    const struct entry *first = NULL;
    int count = 0;
    for (int i = 0; ah__policies[i] && count < MOST_POLICIES; i++) {
        struct entry *e = &entries[count];
        if (!is_wanted(s, ah__policies[i]->name))
            continue;
        *e = (struct entry){.policy = ah__policies[i]};
        e->fits = ah_plan_search(&e->plan, bench->partition, bench->profile, &budget, e->policy->name, NULL) == AH_OK;
        count++;
    }
    printf("\n%.2fG parameters, device memory %.1f MiB\n  %-14s %2s %2s %2s %3s %3s %9s %9s %7s %8s %9s %7s  busy "
           "%%: c h2d d2h host\n",
           bench_params(bench) * 1e-9, (double)bytes / (1 << 20), "policy", "c", "p", "o", "S", "T", "predicted",
           "measured", "error", "/first", "TFLOP/s", "bound");
    for (int r = 0; r < s->rounds; r++)
        for (int i = 0; i < count; i++) {
            struct entry *e = &entries[i];
            if (e->fits && (r ? e->trained : !first || !is_over(s, tally))) {
                entry_train(e, s, bench, r);
                first = first ? first : e;
            }
            if (r < s->rounds - 1)
                continue;
            e->steps.median_ns = bench_median(e->median_ns, (size_t)s->rounds);
            entry_finish(tally, bench, e, first);
        }
}

static void bench_print(const struct bench *bench, const struct settings *s)
{
    bench_machine(stdout);
    printf("%s: %d blocks of width %d, %lld x %lld tokens in %s, %d rounds of %d steps, ms per step; S buffers, T "
           "chunks\n",
           bench->device, bench->layers, bench->width, (long long)bench->batch, (long long)bench->seq,
           ah__dtype_name(bench->dtype), s->rounds, s->steps);
}

/* Budgets from the smallest that works to what `resident` takes. */
static void throttled(struct tally *tally, const struct settings *s)
{
    static const double shares[] = {0.05, 0.35, 0.65, 1.0};
    struct bench bench = {.device = "cpu", .layers = 12, .width = 512, .heads = 8, .vocab = 256, .batch = 2, .seq = 64};
    int64_t least, most;
    bench.dev = (struct ah_dev_options){.threads = 1, .host_threads = 1, .link_bytes_per_s = 2000000000};
    bench_open(&bench);
    smallest_and_largest(&least, &most, bench.partition);
    bench_print(&bench, s);
    printf("link %.1f GB/s each way, 1 compute and 1 host thread\n", (double)bench.dev.link_bytes_per_s / 1e9);
    for (size_t i = 0; i < AH_LENGTH(shares); i++)
        budget_table(tally, s, &bench, least + (int64_t)((double)(most - least) * shares[i]));
    bench_close(&bench);
}

/* Models that are given, in budgets that are given; clipped, as trainings are unless told otherwise. */
static void given(struct tally *tally, const struct settings *s)
{
    char name[32];
    const char *models = s->models;
    while (bench_word(name, sizeof name, &models)) {
        struct bench bench = {
            .device = s->device, .dtype = bench_dtype(s->dtype), .batch = s->batch, .seq = s->seq, .clip = 1};
        const char *budgets = s->budgets;
        bench_model(&bench, name);
        if (is_over(s, tally)) {
            printf("\n%s: not begun, %d seconds are over\n", name, s->seconds);
            continue;
        }
        bench_open(&bench);
        bench_print(&bench, s);
        while (bench_word(name, sizeof name, &budgets))
            budget_table(tally, s, &bench, bench_bytes(name));
        bench_close(&bench);
    }
}

int main(int argc, char **argv)
{
    struct settings s = {.budgets = "12G,16G,24G,40G",
                         .dtype = "bf16",
                         .rounds = 3,
                         .steps = 16,
                         .batch = 8,
                         .seq = 1024,
                         .seconds = 1 << 30};
    const struct bench_option options[] = {
        {"rounds", BENCH_COUNT, &s.rounds, "trainings under each policy, 16 at most"},
        {"steps", BENCH_COUNT, &s.steps, "of a training, of which the first three do not count"},
        {"device", BENCH_TEXT, &s.device, "as autohete has it, with --models"},
        {"models", BENCH_TEXT, &s.models, "by name, separated by commas, instead of the CPU device's own"},
        {"budgets", BENCH_TEXT, &s.budgets, "of device memory for these models"},
        {"batch", BENCH_COUNT, &s.batch, "sequences"},
        {"seq", BENCH_COUNT, &s.seq, "tokens in each"},
        {"dtype", BENCH_TEXT, &s.dtype, "bf16 or fp32"},
        {"policies", BENCH_TEXT, &s.policies, "by name; all unless given"},
        {"seconds", BENCH_COUNT, &s.seconds, "after which no training is begun"},
    };
    static struct tally tally;
    BENCH_OPTIONS(argc, argv, "Real training under every policy, within budgets of device memory.", options);
    s.rounds = bench_least(s.rounds, MOST_ROUNDS);
    s.steps = bench_least(s.steps, MOST_STEPS);
    if (!s.device != !s.models) {
        fprintf(stderr, "bench_policies: found --device or --models, expected both or neither\n");
        return 2;
    }
    tally.begun = bench_seconds();
    if (s.models)
        given(&tally, &s);
    else
        throttled(&tally, &s);
    size_t count = (size_t)bench_least(tally.trained, (int)AH_LENGTH(tally.error));
    printf("\n%d trained, %d left out for time, best %.3f TFLOP/s; predicted steps: median error %.1f%%; %d peaks "
           "wrong, %d losses different\n",
           tally.trained, tally.left, tally.best_tflops, count ? 100 * bench_quantile(tally.error, count, 0.5) : 0.0,
           tally.peaks_wrong, tally.different);
    return tally.trained == 0 || tally.peaks_wrong || tally.different;
}
