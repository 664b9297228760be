#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

enum { SKIPPED = 3, MOST_STEPS = 4096 };

void bench_check(int status, const char *what)
{
    if (status == AH_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, ah_error());
    exit(1);
}

static void model_open(struct bench *bench)
{
    char path[] = "/tmp/autohete-bench-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) {
        perror(path);
        exit(1);
    }
    FILE *to = fdopen(file, "w");
    fprintf(to,
            "{\"model_type\": \"gpt2\", \"vocab_size\": %d, \"n_positions\": %lld, \"n_embd\": %d, \"n_layer\": %d, "
            "\"n_head\": %d}",
            bench->vocab, (long long)bench->seq, bench->width, bench->layers, bench->heads);
    fclose(to);
    BENCH(ah_model_load(&bench->model, path));
    unlink(path);
}

void bench_profile(struct bench *bench)
{
    struct ah_dev *dev;
    ah_profile_free(bench->profile);
    BENCH(ah_dev_open(&dev, "cpu", &bench->dev));
    BENCH(ah_profile_measure(&bench->profile, bench->partition, dev));
    ah_dev_close(dev);
}

void bench_open_unprofiled(struct bench *bench)
{
    model_open(bench);
    BENCH(ah_model_record(&bench->graph, bench->model, bench->batch, bench->seq, AH_F32));
    struct ah_step_options step = {.clips = bench->clip > 0, .micro_batches = bench->micro_batches};
    BENCH(ah_partition_new(&bench->partition, bench->graph, &step));
    bench->profile = NULL;
}

void bench_open(struct bench *bench)
{
    bench_open_unprofiled(bench);
    bench_profile(bench);
}

void bench_close(struct bench *bench)
{
    ah_profile_free(bench->profile);
    ah_partition_free(bench->partition);
    ah_graph_free(bench->graph);
    ah_model_free(bench->model);
}

/* ---- measured steps ---------------------------------------------------------------------------------------------- */

struct record {
    const struct bench *bench;
    int64_t ends[MOST_STEPS];
    size_t count;
    double loss;
};

static int random_batch(int32_t *ids, int32_t *targets, int64_t iteration, void *context)
{
    const struct bench *bench = ((struct record *)context)->bench;
    int64_t count = ah__step_tokens(bench->partition);
    for (int64_t i = 0; i < count; i++) {
        ids[i] = (int32_t)(ah__random_bits(1, (uint64_t)(iteration * count + i)) % (uint64_t)bench->vocab);
        targets[i] = (int32_t)(ah__random_bits(2, (uint64_t)(iteration * count + i)) % (uint64_t)bench->vocab);
    }
    return 0;
}

static void constant_adam(struct ah_adam *out, int64_t iteration, void *context)
{
    (void)iteration, (void)context;
    *out = (struct ah_adam){.9F, .1F, .95F, .05F, 1e-8F, 1 - 1e-5F, 1e-4F, 1};
}

static int note(const struct ah_run_result *result, void *context)
{
    struct record *record = context;
    record->loss = result->loss;
    if (record->count < MOST_STEPS)
        record->ends[record->count++] = result->now_ns;
    return 0;
}

void bench_run(struct bench_steps *out, const struct bench *bench, const struct ah_plan *plan, int64_t steps,
               bool random)
{
    static struct record record;
    struct ah_run_hooks hooks = {
        .batch = random_batch, .adam = constant_adam, .clip = bench->clip, .result = note, .context = &record};
    struct ah_dev *dev;
    struct ah_run *run;
    struct ah_dev_info info;
    int64_t done, step[MOST_STEPS];
    size_t count = 0;
    record = (struct record){.bench = bench};
    BENCH(ah_dev_open(&dev, "cpu", &bench->dev));
    BENCH(ah__run_new(&run, bench->partition, plan, dev, &hooks));
    if (random)
        BENCH(ah__run_init(run, 1));
    BENCH(ah__run_steps(run, steps, &done));
    for (size_t i = SKIPPED; i < record.count; i++)
        step[count++] = record.ends[i] - record.ends[i - 1];
    out->median_ns = bench_median(step, count);
    out->least_ns = count ? step[0] : 0; /* bench_median sorted them */
    ah__timeline_busy(out->busy, ah__run_timeline(run), SKIPPED, 10);
    dev->ops->info(dev, &info);
    out->device_used_bytes = info.device_high_water_bytes;
    out->host_used_bytes = info.host_bytes;
    out->loss = record.loss;
    ah__run_free(run);
    ah_dev_close(dev);
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int64_t bench_median(int64_t *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_int64);
    return values[count / 2];
}

double bench_quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, compare_double);
    size_t at = (size_t)(q * (double)count);
    return values[at < count ? at : count - 1];
}

static double rank(const double *values, size_t count, double value)
{
    double below = 0, equal = 0;
    for (size_t i = 0; i < count; i++) {
        below += values[i] < value;
        equal += values[i] == value;
    }
    return below + (equal + 1) / 2;
}

double bench_rank_correlation(const double *x, const double *y, size_t count)
{
    double mean = ((double)count + 1) / 2, xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < count; i++) {
        double a = rank(x, count, x[i]) - mean, b = rank(y, count, y[i]) - mean;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return xx > 0 && yy > 0 ? xy / __builtin_sqrt(xx * yy) : 0;
}

void bench_machine(FILE *to)
{
    char line[256], model[256] = "unknown processor";
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info && fgets(line, sizeof line, info))
        if (sscanf(line, "model name : %255[^\n]", model) == 1)
            break;
    if (info)
        fclose(info);
    fprintf(to, "machine: %s, %ld cores; autohete %s\n", model, sysconf(_SC_NPROCESSORS_ONLN), ah_version());
}
