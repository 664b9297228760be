#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "dev/host/clock.h"

enum { SKIPPED = 3, RECORDED = 10, MOST_STEPS = 4096 };

void bench_check(int status, const char *what)
{
    if (status == AH_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, ah_error());
    exit(1);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void default_print(const struct bench_option *option)
{
    if (option->kind == BENCH_COUNT)
        printf(" (%d)", *(const int *)option->value);
    if (option->kind == BENCH_TEXT && *(const char *const *)option->value)
        printf(" (%s)", *(const char *const *)option->value);
    printf("\n");
}

static void usage_print(const char *program, const char *about, const struct bench_option *options, size_t count)
{
    static const char *const values[] = {[BENCH_FLAG] = "", [BENCH_COUNT] = " N", [BENCH_TEXT] = " TEXT"};
    char name[32];
    printf("usage: %s%s\n%s\n", program, count ? " [option ...]" : "", about);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "--%s%s", options[i].name, values[options[i].kind]);
        printf("  %-20s %s", name, options[i].what);
        default_print(&options[i]);
    }
}

static void option_refuse(const char *program, const char *found, const char *expected)
{
    fprintf(stderr, "%s: found \"%s\", expected %s; --help lists what there is\n", program, found, expected);
    exit(2);
}

static void count_set(const char *program, const char *text, int *value)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < 1 || number > 1 << 30)
        option_refuse(program, text, "a number from 1 on");
    *value = (int)number;
}

/* How many words it took. */
static int option_take(const char *program, const struct bench_option *option, const char *value)
{
    if (option->kind == BENCH_FLAG) {
        *(bool *)option->value = true;
        return 1;
    }
    if (!value)
        option_refuse(program, option->name, "a value behind it");
    if (option->kind == BENCH_COUNT)
        count_set(program, value, option->value);
    else
        *(const char **)option->value = value;
    return 2;
}

void bench_options(int argc, char **argv, const char *about, const struct bench_option *options, size_t count)
{
    const char *slash = strrchr(argv[0], '/'), *program = slash ? slash + 1 : argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0); /* what is ended from outside leaves what it has found */
    for (int at = 1; at < argc;) {
        size_t i = 0;
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            usage_print(program, about, options, count);
            exit(0);
        }
        while (i < count && (strncmp(argv[at], "--", 2) != 0 || strcmp(argv[at] + 2, options[i].name) != 0))
            i++;
        if (i == count)
            option_refuse(program, argv[at], "an option");
        at += option_take(program, &options[i], at + 1 < argc ? argv[at + 1] : NULL);
    }
}

int bench_least(int a, int b)
{
    return a < b ? a : b;
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

enum { SCALE_PIECE = 1 << 18, SCALE_ROUNDS = 16 };

double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void scale_piece(void *context, int index, int worker)
{
    (void)worker;
    float *x = (float *)context + (int64_t)index * SCALE_PIECE;
    for (int i = 0; i < SCALE_PIECE; i++)
        x[i] *= 1.0001F;
}

/* Whole numbers are added, as sums of floats would wait for each other; what comes out must go somewhere. */
static void read_piece(void *context, int index, int worker)
{
    (void)worker;
    uint32_t *x = (uint32_t *)context + (int64_t)index * SCALE_PIECE, sum = 0;
    for (int i = 0; i < SCALE_PIECE; i++)
        sum += x[i];
    if (sum == 1)
        x[0] = 0;
}

/* Bytes per second, `each` of every float. */
static double pieces_rate(struct ah_pool *pool, void (*piece)(void *context, int index, int worker), float *x,
                          int64_t count, int rounds, size_t each)
{
    double rate[SCALE_ROUNDS];
    rounds = bench_least(rounds, SCALE_ROUNDS);
    for (int round = 0; round < rounds; round++) {
        double start = bench_seconds();
        ah__pool_run(pool, piece, (int)(count / SCALE_PIECE), x);
        rate[round] = (double)each * (double)count / (bench_seconds() - start);
    }
    return bench_quantile(rate, (size_t)rounds, 0.5);
}

double bench_scale_rate(struct ah_pool *pool, float *x, int64_t count, int rounds)
{
    return pieces_rate(pool, scale_piece, x, count, rounds, 2 * sizeof *x);
}

double bench_read_rate(struct ah_pool *pool, float *x, int64_t count, int rounds)
{
    return pieces_rate(pool, read_piece, x, count, rounds, sizeof *x);
}

/* ---- a model ----------------------------------------------------------------------------------------------------- */

void bench_model_open(struct bench *bench)
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

static const char *device_of(const struct bench *bench)
{
    return bench->device ? bench->device : "cpu";
}

void bench_profile(struct bench *bench)
{
    struct ah_dev *dev;
    ah_profile_free(bench->profile);
    BENCH(ah_dev_open(&dev, device_of(bench), &bench->dev));
    BENCH(ah_profile_measure(&bench->profile, NULL, bench->partition, dev, NULL));
    ah_dev_close(dev);
}

void bench_open_unprofiled(struct bench *bench)
{
    bench_model_open(bench);
    BENCH(ah_model_record(
        &bench->graph, bench->model,
        &(struct ah_record_options){.batch = bench->batch, .seq = bench->seq, .compute = bench->dtype}));
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

/* ---- models by name ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int layers, width, heads, vocab;
} models[] = {{"tiny", 2, 64, 2, 256},       {"10M", 8, 320, 5, 256},       {"25M", 8, 512, 8, 256},
              {"124M", 12, 768, 12, 50257},  {"355M", 24, 1024, 16, 50257}, {"774M", 36, 1280, 20, 50257},
              {"1.5B", 48, 1600, 25, 50257}, {"2B", 42, 2048, 16, 50257},   {"4B", 21, 4096, 32, 50257},
              {"6B", 32, 4096, 32, 50257}};

static void word_refuse(const char *what, const char *found, const char *expected)
{
    fprintf(stderr, "found %s \"%s\", expected %s\n", what, found, expected);
    exit(2);
}

void bench_model(struct bench *out, const char *name)
{
    for (size_t i = 0; i < AH_LENGTH(models); i++)
        if (strcmp(models[i].name, name) == 0) {
            out->layers = models[i].layers;
            out->width = models[i].width;
            out->heads = models[i].heads;
            out->vocab = models[i].vocab;
            return;
        }
    word_refuse("model", name, "tiny, 10M, 25M, 124M, 355M, 774M, 1.5B, 2B, 4B or 6B");
}

bool bench_word(char *out, size_t size, const char **list)
{
    size_t length = strcspn(*list, ",");
    if (!length)
        return false;
    snprintf(out, size, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

int64_t bench_bytes(const char *text)
{
    char *end;
    double number = strtod(text, &end);
    int shift = *end == 'G' ? 30 : *end == 'M' ? 20 : *end == 'K' ? 10 : 0;
    if (end == text || !shift || end[1] || !(number > 0) || number > 1e6)
        word_refuse("size", text, "one like 16G or 512M");
    return (int64_t)(number * (double)((int64_t)1 << shift));
}

enum ah_dtype bench_dtype(const char *text)
{
    if (strcmp(text, "bf16") != 0 && strcmp(text, "fp32") != 0)
        word_refuse("dtype", text, "bf16 or fp32");
    return *text == 'b' ? AH_BF16 : AH_F32;
}

double bench_flops(const struct bench *b)
{
    double tokens = (double)((b->micro_batches ? b->micro_batches : 1) * b->batch * b->seq), width = b->width;
    return 6 * tokens * width * (12 * width * b->layers + b->vocab) + 6 * tokens * b->layers * (double)b->seq * width;
}

double bench_params(const struct bench *b)
{
    double width = b->width;
    return b->layers * (12 * width * width + 13 * width) + (b->vocab + (double)b->seq) * width + 2 * width;
}

/* ---- measured steps ---------------------------------------------------------------------------------------------- */

struct record {
    const struct bench *bench;
    int64_t ends[MOST_STEPS];
    size_t count;
    double loss;
};

static void random_batch(const struct ah_batch *to, int64_t iteration, const struct bench *bench)
{
    int64_t count = ah__step_tokens(bench->partition);
    for (int64_t i = 0; i < count; i++) {
        to->ids[i] = (int32_t)(ah__random_bits(1, (uint64_t)(iteration * count + i)) % (uint64_t)bench->vocab);
        to->targets[i] = (int32_t)(ah__random_bits(2, (uint64_t)(iteration * count + i)) % (uint64_t)bench->vocab);
    }
}

static void note(struct record *record, const struct ah_run_result *result)
{
    record->loss = result->loss;
    if (record->count < MOST_STEPS)
        record->ends[record->count++] = result->now_ns;
}

/* Two steps in flight. */
static void train(struct ah_run *run, const struct bench *bench, int64_t steps, struct record *record)
{
    static const struct ah_adam adam = {.9F, .1F, .95F, .05F, 1e-8F, 1 - 1e-5F, 1e-4F, 1, 0};
    size_t tokens = (size_t)ah__step_tokens(bench->partition);
    struct ah_batch batch = {0};
    BENCH(ah__new(&batch.ids, tokens, sizeof *batch.ids));
    BENCH(ah__new(&batch.targets, tokens, sizeof *batch.targets));
    for (int64_t begun = 0, step = 0; step < steps; step++) {
        struct ah_run_result result;
        for (; begun < steps && begun < step + AH_RUN_IN_FLIGHT; begun++) {
            random_batch(&batch, begun, bench);
            BENCH(ah__run_begin(run, &batch, &adam, 0));
        }
        BENCH(ah__run_wait(run, &result));
        note(record, &result);
        if (bench->pause_ns)
            ah__host_sleep_until(ah__host_now_ns() + bench->pause_ns);
    }
    BENCH(ah__run_drain(run));
    ah__free(batch.ids);
    ah__free(batch.targets);
}

void bench_parameters_fill(struct ah_run *run, const struct ah_partition *partition)
{
    enum { COUNT = 1 << 20 };
    int64_t most = ah__partition_largest(partition);
    float *values;
    BENCH(ah__new(&values, (size_t)most, sizeof *values));
    for (int64_t i = 0; i < most; i++) {
        int32_t bits = i < COUNT ? (int32_t)ah__random_bits(3, (uint64_t)i) : 0;
        values[i] = i < COUNT ? 0.03F * 0x1p-31F * (float)bits : values[i - COUNT];
    }
    for (int i = 0; i < partition->param_count; i++)
        BENCH(ah__run_load(run, i, AH_RUN_PARAM, values));
    ah__free(values);
}

void bench_run(struct bench_steps *out, const struct bench *bench, const struct ah_plan *plan, int64_t steps,
               bool random)
{
    static struct record record;
    struct ah_dev *dev;
    struct ah_run *run;
    struct ah_dev_info info;
    int64_t step[MOST_STEPS];
    size_t count = 0;
    record = (struct record){.bench = bench};
    BENCH(ah_dev_open(&dev, device_of(bench), &bench->dev));
    BENCH(ah__run_new(&run, bench->partition, plan, dev, bench->clip));
    if (bench->device && strcmp(bench->device, "cpu") != 0)
        bench_parameters_fill(run, bench->partition);
    else if (random)
        BENCH(ah__run_init(run, 1));
    train(run, bench, steps, &record);
    for (size_t i = SKIPPED; i < record.count; i++)
        step[count++] = record.ends[i] - record.ends[i - 1];
    out->median_ns = bench_median(step, count);
    out->least_ns = count ? step[0] : 0; /* bench_median sorted them */
    ah__timeline_busy(out->busy, ah__run_timeline(run), SKIPPED, steps > RECORDED ? RECORDED : steps - 1);
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
