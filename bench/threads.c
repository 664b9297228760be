/* How the cores are shared by what the device computes with and the host's optimizer: tokens per second under each
 * split of them that `--threads auto` may try, predicted and trained for real in turn, and whether the one it chooses
 * is the fastest. "auto" is trained once more as a split of its own: by what it differs from its twin the machine does.
 *     threads [--model 25M] [--rounds N] [--steps N] */
#include "bench.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "dev/host/machine.h"

enum { MOST_SPLITS = 32, MOST_ROUNDS = 16, MOST_STEPS = 400 };

struct split {
    int threads, host_threads;
    struct ah_plan plan;
    int64_t median_ns[MOST_ROUNDS];
    double loss;
    bool fits;
};

/* A step and the memory for it. */
struct row {
    int64_t batch, seq;
    int share; /* of what `resident` takes, one in so many; 1: no limit */
};

/* Little to compute for each parameter, more, and as much as memory that is no concern allows to be hidden. */
static const struct row rows[] = {{1, 16, 4}, {1, 16, 1}, {4, 128, 4}, {4, 128, 1}};

struct measured {
    struct bench bench;
    struct ah_budget budget;
    char cache[64];
    struct ah_threads chosen;
    double choosing_s;
    struct split split[MOST_SPLITS]; /* the last one is auto */
    int count;
};

/* ---- splits ------------------------------------------------------------------------------------------------------ */

static void split_add(struct measured *m, int threads, int host_threads)
{
    if (threads > 0 && m->count < MOST_SPLITS - 1)
        m->split[m->count++] = (struct split){.threads = threads, .host_threads = host_threads};
}

/* Whatever may be tried, the rule without auto first. */
static void splits_find(struct measured *m)
{
    int cores = ah__host_cores(NULL);
    for (int host = 1; host <= cores; host *= 2)
        split_add(m, cores, host);
    for (int host = 1; host <= cores; host *= 2)
        split_add(m, cores - host, host);
}

static void bench_take(struct bench *bench, const struct split *split)
{
    bench->dev.threads = split->threads;
    bench->dev.host_threads = split->host_threads;
}

/* By the profile that the choice went by, where this split was tried. */
static void split_plan(struct split *split, struct measured *m)
{
    struct ah_profile_options how = {.cache = m->cache};
    struct ah_profile *profile;
    struct ah_dev *dev;
    bench_take(&m->bench, split);
    BENCH(ah_dev_open(&dev, "cpu", &m->bench.dev));
    BENCH(ah_profile_measure_with(&profile, NULL, m->bench.partition, dev, &how));
    ah_dev_close(dev);
    int status = ah_plan_search(&split->plan, m->bench.partition, profile, &m->budget, "autohete");
    if (status != AH_OK && status != AH_EBUDGET)
        bench_check(status, "ah_plan_search");
    split->fits = status == AH_OK;
    ah_profile_free(profile);
}

/* ---- a row ------------------------------------------------------------------------------------------------------- */

static void budget_find(struct measured *m, int share)
{
    struct ah_plan resident;
    struct ah_budget unlimited = {0};
    BENCH(ah_plan_parse(&resident, "resident", m->bench.partition, m->chosen.profile, &unlimited, "resident"));
    m->budget.device_bytes = share > 1 ? resident.device_peak_bytes / share : 0;
}

/* False: nothing fits. */
static bool choose(struct measured *m)
{
    struct ah_threads_options options = {.partition = m->bench.partition,
                                         .device = "cpu",
                                         .budget = m->budget,
                                         .plan = "auto",
                                         .policy = "autohete",
                                         .profile = {.cache = m->cache}};
    int status = ah_threads_choose(&m->chosen, &options);
    if (status == AH_EBUDGET) {
        printf("\n%lld x %lld tokens: %s\n", (long long)m->bench.batch, (long long)m->bench.seq, ah_error());
        return false;
    }
    bench_check(status, "ah_threads_choose");
    ah_dev_close(m->chosen.dev);
    return true;
}

static void cache_remove(const char *folder)
{
    char path[512];
    DIR *dir = opendir(folder);
    for (const struct dirent *each; dir && (each = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, each->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

/* False: nothing fits. The first choice is for the profiles, which the budget needs; the second one reads them. */
static bool row_open(struct measured *m, const struct row *row)
{
    m->bench.batch = row->batch;
    m->bench.seq = row->seq;
    snprintf(m->cache, sizeof m->cache, "/tmp/autohete-threads-XXXXXX");
    if (!mkdtemp(m->cache)) {
        perror(m->cache);
        exit(1);
    }
    bench_open_unprofiled(&m->bench);
    double start = bench_seconds();
    choose(m);
    m->choosing_s = bench_seconds() - start;
    if (row->share > 1) {
        budget_find(m, row->share);
        ah_profile_free(m->chosen.profile);
        if (!choose(m))
            return false;
    }
    splits_find(m);
    for (int i = 0; i < m->count; i++)
        split_plan(&m->split[i], m);
    m->split[m->count++] = (struct split){
        .threads = m->chosen.threads, .host_threads = m->chosen.host_threads, .plan = m->chosen.plan, .fits = true};
    return true;
}

static void row_close(struct measured *m)
{
    ah_profile_free(m->chosen.profile);
    bench_close(&m->bench);
    cache_remove(m->cache);
}

static void row_train(struct measured *m, int rounds, int steps)
{
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < m->count; i++) {
            struct split *split = &m->split[(round + i) % m->count];
            struct bench_steps done;
            if (!split->fits)
                continue;
            bench_take(&m->bench, split);
            bench_run(&done, &m->bench, &split->plan, steps, true);
            split->median_ns[round] = done.median_ns;
            split->loss = done.loss;
        }
}

/* ---- what came out ----------------------------------------------------------------------------------------------- */

static int64_t tokens(const struct measured *m)
{
    return m->bench.batch * m->bench.seq;
}

static double rate(const struct measured *m, int64_t step_ns)
{
    return 1e9 * (double)tokens(m) / (double)step_ns;
}

static bool is_chosen(const struct measured *m, const struct split *split)
{
    return split->threads == m->chosen.threads && split->host_threads == m->chosen.host_threads;
}

static void split_print(const struct measured *m, struct split *split, int rounds, bool is_auto)
{
    const struct ah_switches *s = &split->plan.switches;
    if (!split->fits) {
        printf("%3d + %-3d does not fit\n", split->threads, split->host_threads);
        return;
    }
    int64_t ns = bench_median(split->median_ns, (size_t)rounds);
    printf("%3d + %-3d %3d %3d %3d %9.1f %9.1f %9.0f %9.0f  %s\n", split->threads, split->host_threads, s->checkpoint,
           s->offload_params, s->offload_optimizer, (double)split->plan.step_ns / 1e6, (double)ns / 1e6,
           rate(m, split->plan.step_ns), rate(m, ns),
           is_auto               ? "auto"
           : is_chosen(m, split) ? "chosen"
                                 : "");
}

/* 1 when bits differ. */
static int row_print(struct measured *m, int rounds)
{
    const struct split *fastest = NULL, *chosen = NULL;
    int64_t fastest_ns = 0, chosen_ns = 0, first_ns = 0;
    bool same = true;
    char memory[32] = "no limit";
    if (m->budget.device_bytes)
        ah_size_format(memory, sizeof memory, m->budget.device_bytes);
    printf("\n%lld x %lld tokens, device memory %s; choosing took %.1f s, profiles of %d splits included\n",
           (long long)m->bench.batch, (long long)m->bench.seq, memory, m->choosing_s, m->chosen.tried);
    printf("%-9s %3s %3s %3s %9s %9s %9s %9s\n", " split", "c", "p", "o", "predicted", "ms", "predicted", "tokens/s");
    for (int i = 0; i < m->count; i++) {
        struct split *split = &m->split[i];
        bool is_auto = i == m->count - 1;
        split_print(m, split, rounds, is_auto);
        if (!split->fits)
            continue;
        int64_t ns = bench_median(split->median_ns, (size_t)rounds);
        same = same && split->loss == m->split[m->count - 1].loss;
        first_ns = i == 0 ? ns : first_ns;
        if (!is_auto && (!fastest || ns < fastest_ns)) {
            fastest = split;
            fastest_ns = ns;
        }
        if (!is_auto && is_chosen(m, split)) {
            chosen = split;
            chosen_ns = ns;
        }
    }
    printf("measured fastest: %d + %d; chosen: ", fastest->threads, fastest->host_threads);
    if (chosen == fastest)
        printf("the same");
    else
        printf("%d + %d, %.1f%% slower", m->chosen.threads, m->chosen.host_threads,
               100 * ((double)chosen_ns / (double)fastest_ns - 1));
    if (first_ns)
        printf("; against %d + %d, the rule without auto: %+.1f%% tokens/s", m->split[0].threads,
               m->split[0].host_threads, 100 * ((double)first_ns / (double)chosen_ns - 1));
    printf("; last losses %s\n", same ? "same" : "DIFFERENT");
    fflush(stdout);
    return !same;
}

int main(int argc, char **argv)
{
    static struct measured measured;
    const char *model = "25M";
    int rounds = 5, steps = 13, different = 0;
    const struct bench_option options[] = {
        {"model", BENCH_TEXT, &model, "tiny, 10M, 25M, 124M, ..."},
        {"rounds", BENCH_COUNT, &rounds, "trainings under each split, 16 at most"},
        {"steps", BENCH_COUNT, &steps, "of a training, of which the first three do not count"},
    };
    BENCH_OPTIONS(argc, argv, "Tokens per second under each split of the cores, and whether auto finds the fastest.",
                  options);
    rounds = bench_least(rounds, MOST_ROUNDS);
    steps = bench_least(steps, MOST_STEPS);
    bench_machine(stdout);
    printf("%s in fp32, clipping, link as fast as it goes; %d rounds of %d steps in turn, medians; compute + host "
           "threads\n",
           model, rounds, steps);
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        measured = (struct measured){.bench = {.clip = 1}};
        bench_model(&measured.bench, model);
        if (row_open(&measured, &rows[i])) {
            row_train(&measured, rounds, steps);
            different += row_print(&measured, rounds);
        }
        row_close(&measured);
    }
    return different != 0;
}
