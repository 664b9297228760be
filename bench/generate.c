/* Tokens one by one behind kept keys and values, by GPT-2s of random parameters.
 *
 *     generate [--models LIST] [--prompt N] [--tokens N] [--rounds N] [--threads N]
 *
 * Prints for each model the median over all tokens of several rounds, and below it the time that one in ten is faster
 * than, which a busy machine disturbs less: the time of a token beside the time that reading all parameters takes,
 * which nothing can beat (as many bytes elsewhere in memory, summed beside each token; a head that is tied to the
 * embedding reads all of it), and beside the forward pass over the whole window that a program without a cache needs
 * for each token; and the prompt's tokens per second, with its products beside one large product of the library in the
 * same round. */
#include "bench.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "bind/bind.h"
#include "dev/host/pages.h"
#include "sched/sched.h"

enum { MOST_ROUNDS = 64, MOST_TOKENS = 2048, SIDE = 1024, PIECE = 1 << 18, STREAMS = 8, LANES = 16, WORKERS = 256 };

struct program {
    struct ah_graph *graph;
    struct ah_partition *partition;
};

struct subject {
    struct bench sizes;
    int prompt, tokens;
    struct program many, one, window; /* the prompt, a token behind it, and all of them without a cache */
    struct ah_dev *dev, *window_dev;
    struct ah_run *run, *window_run;
};

/* In seconds, of each round or token; beside each token the parameters are read once. */
struct times {
    double *token, *read, prefill[MOST_ROUNDS], forward[MOST_ROUNDS], product[MOST_ROUNDS];
    size_t tokens, rounds;
};

/* ---- what nothing can beat --------------------------------------------------------------------------------------- */

struct reading {
    const float *from;
    float sum[WORKERS]; /* of each worker, so that the compiler does not leave it out */
};

static void read_piece(void *context, int index, int worker)
{
    struct reading *reading = context;
    const float *from = reading->from + (int64_t)index * PIECE;
    float sum[LANES] = {0};
    for (int i = 0; i < PIECE / STREAMS; i += LANES) /* from several places at a time, as products do */
        for (int stream = 0; stream < STREAMS; stream++)
            for (int lane = 0; lane < LANES; lane++)
                sum[lane] += from[stream * (PIECE / STREAMS) + i + lane];
    for (int lane = 0; lane < LANES; lane++)
        reading->sum[worker % WORKERS] += sum[lane];
}

/* Of so many floats, once, from where they lie. */
static double read_time(struct ah_pool *pool, const float *from, int64_t count)
{
    static struct reading reading;
    reading.from = from;
    double start = bench_seconds();
    ah__pool_run(pool, read_piece, (int)(count / PIECE), &reading);
    return (bench_seconds() - start) * (double)count / (double)(count / PIECE * PIECE);
}

/* Three square matrices lie in `at`. */
static double product_time(float *at, int threads)
{
    int64_t count = (int64_t)SIDE * SIDE;
    omp_set_num_threads(threads);
    double start = bench_seconds();
    if (dnnl_sgemm('N', 'N', SIDE, SIDE, SIDE, 1, at, SIDE, at + count, SIDE, 0, at + 2 * count, SIDE) != dnnl_success)
        exit(1);
    double time = bench_seconds() - start;
    omp_set_num_threads(1);
    usleep(10000); /* until the library's threads have stopped spinning */
    return time;
}

/* ---- a model ----------------------------------------------------------------------------------------------------- */

static void program_make(struct program *program, const struct subject *s, struct ah_record_options record, bool logits)
{
    const struct ah_step_options step = {.infers = true, .logits = logits};
    record.batch = 1;
    record.compute = AH_F32;
    BENCH(ah_model_record(&program->graph, s->sizes.model, &record));
    BENCH(ah_partition_new(&program->partition, program->graph, &step));
}

static int64_t workspace_of(const struct program *program, struct ah_dev *dev)
{
    int64_t bytes;
    BENCH(ah__workspace_bytes(&bytes, program->partition, dev));
    return bytes;
}

/* As `autohete generate` does: everything on the device. */
static struct ah_plan plan_of(const struct program *program, struct ah_dev *dev)
{
    int layers = program->partition->layers;
    struct ah_plan plan = {
        .switches = {.layers = layers, .world_size = 1, .checkpoint = layers, .chunks = 1, .prefetch_distance = 1},
        .policy = "resident",
    };
    struct ah_sched_config config = {.switches = plan.switches, .policy = &ah__policy_resident};
    plan.switches.buffers = ah__sched_min_buffers(&config);
    plan.workspace_bytes = workspace_of(program, dev);
    return plan;
}

static void subject_open(struct subject *s)
{
    int64_t most = s->prompt + s->tokens;
    s->sizes.seq = most;
    bench_model_open(&s->sizes);
    program_make(&s->many, s, (struct ah_record_options){.seq = s->prompt, .cache = most}, false);
    program_make(&s->one, s, (struct ah_record_options){.seq = 1, .cache = most, .decodes = true}, true);
    program_make(&s->window, s, (struct ah_record_options){.seq = most}, true);
    s->many.partition->work_bytes_least = ah__partition_work_bytes(s->one.partition);
    BENCH(ah_dev_open(&s->dev, "cpu", &s->sizes.dev));
    BENCH(ah_dev_open(&s->window_dev, "cpu", &s->sizes.dev));
    struct ah_plan plan = plan_of(&s->many, s->dev), window_plan = plan_of(&s->window, s->window_dev);
    int64_t bytes = workspace_of(&s->one, s->dev);
    plan.workspace_bytes = bytes > plan.workspace_bytes ? bytes : plan.workspace_bytes;
    BENCH(ah__run_new_decoding(&s->run, s->many.partition, s->one.partition, &plan, s->dev));
    BENCH(ah__run_new(&s->window_run, s->window.partition, &window_plan, s->window_dev, 0));
    bench_parameters_fill(s->run, s->many.partition);
    bench_parameters_fill(s->window_run, s->window.partition);
}

static void program_free(struct program *program)
{
    ah_partition_free(program->partition);
    ah_graph_free(program->graph);
}

static void subject_close(struct subject *s)
{
    ah__run_free(s->run);
    ah__run_free(s->window_run);
    ah_dev_close(s->dev);
    ah_dev_close(s->window_dev);
    program_free(&s->many);
    program_free(&s->one);
    program_free(&s->window);
    ah_model_free(s->sizes.model);
}

/* All but the table of positions, of which one row is read. */
static double params_read(const struct subject *s)
{
    return bench_params(&s->sizes) - (double)s->sizes.seq * s->sizes.width;
}

/* Products and attention of the prompt; its last token alone is foretold, later. */
static double prefill_flops(const struct subject *s)
{
    double tokens = s->prompt, width = s->sizes.width, layers = s->sizes.layers;
    return layers * tokens * (24 * width * width + 2 * tokens * width);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static void round_measure(struct times *times, const struct subject *s, struct ah_pool *pool, float *memory)
{
    int32_t ids[2 * MOST_TOKENS];
    int most = s->prompt + s->tokens;
    size_t round = times->rounds++;
    for (int i = 0; i < most; i++)
        ids[i] = (int32_t)((int64_t)i * 7919 % s->sizes.vocab);
    int64_t floats = (int64_t)params_read(s);
    times->product[round] = product_time(memory, s->sizes.dev.threads);
    double start = bench_seconds();
    BENCH(ah__run_prefill(s->run, ids));
    times->prefill[round] = bench_seconds() - start;
    for (int i = s->prompt; i < most; i++) {
        start = bench_seconds();
        BENCH(ah__run_decode(s->run, ids[i], i));
        times->token[times->tokens] = bench_seconds() - start;
        times->read[times->tokens++] = read_time(pool, memory, floats);
    }
    start = bench_seconds();
    BENCH(ah__run_infer(s->window_run, ids));
    times->forward[round] = bench_seconds() - start;
}

static void subject_print(const char *name, struct times *times, const struct subject *s, double q)
{
    size_t rounds = times->rounds;
    double token = bench_quantile(times->token, times->tokens, q), read = bench_quantile(times->read, times->tokens, q);
    double forward = bench_quantile(times->forward, rounds, q), prefill = bench_quantile(times->prefill, rounds, q);
    double product = 2.0 * SIDE * SIDE * SIDE / bench_quantile(times->product, rounds, q);
    double bytes = params_read(s) * (double)sizeof(float), flops = prefill_flops(s) / prefill;
    printf("%-5s %8.1f %9.3f %9.3f %7.2f %7.1f %9.3f %7.1fx %10.0f %9.1f %9.1f %6.2f\n", name, bytes * 1e-6,
           token * 1e3, read * 1e3, read / token, bytes / read * 1e-9, forward * 1e3, forward / token,
           s->prompt / prefill, flops * 1e-9, product * 1e-9, flops / product);
    fflush(stdout);
}

static void model_measure(const char *name, struct subject *s, int rounds, struct ah_pool *pool)
{
    struct times times = {0};
    struct ah_pages pages;
    int64_t room = (int64_t)3 * SIDE * SIDE, floats;
    subject_open(s);
    floats = (int64_t)params_read(s) > room ? (int64_t)params_read(s) : room;
    BENCH(ah__pages_new(&pages, (floats + PIECE) * (int64_t)sizeof(float), "floats to read"));
    float *memory = (float *)(void *)pages.base;
    for (int64_t i = 0; i < floats; i++)
        memory[i] = 1e-3F * (float)(i % 1001);
    size_t most = (size_t)(rounds + 1) * (size_t)s->tokens;
    BENCH(ah__new(&times.token, most, sizeof *times.token));
    BENCH(ah__new(&times.read, most, sizeof *times.read));
    round_measure(&times, s, pool, memory); /* what is done once */
    times.rounds = times.tokens = 0;
    for (int round = 0; round < rounds; round++)
        round_measure(&times, s, pool, memory);
    subject_print(name, &times, s, 0.5);
    subject_print("", &times, s, 0.1);
    ah__free(times.token);
    ah__free(times.read);
    ah__pages_free(&pages);
    subject_close(s);
}

int main(int argc, char **argv)
{
    const char *models = "10M,25M,124M";
    int prompt = 128, tokens = 64, rounds = 9, threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const struct bench_option options[] = {{"models", BENCH_TEXT, &models, "names"},
                                           {"prompt", BENCH_COUNT, &prompt, "tokens at once, 2048 at most"},
                                           {"tokens", BENCH_COUNT, &tokens, "tokens one by one, 2048 at most"},
                                           {"rounds", BENCH_COUNT, &rounds, "63 at most"},
                                           {"threads", BENCH_COUNT, &threads, "that compute"}};
    BENCH_OPTIONS(argc, argv, "Tokens one by one against what reading the parameters takes.", options);
    struct ah_pool *pool;
    char name[16];
    rounds = bench_least(rounds, MOST_ROUNDS - 1);
    prompt = bench_least(prompt, MOST_TOKENS);
    tokens = bench_least(tokens, MOST_TOKENS);
    BENCH(ah__pool_new(&pool, threads, -1));
    ah__pool_enter(pool);
    bench_machine(stdout);
    printf("fp32, %d threads, %d tokens one by one behind a prompt of %d, %d rounds\n\n", threads, tokens, prompt,
           rounds);
    printf("%-5s %8s %9s %9s %7s %7s %9s %8s %10s %9s %9s %6s\n", "", "params", "token", "floor", "floor/", "read",
           "forward", "forward/", "prompt", "products", "library", "");
    printf("%-5s %8s %9s %9s %7s %7s %9s %8s %10s %9s %9s %6s\n", "model", "MB", "ms", "ms", "token", "GB/s", "ms",
           "token", "tokens/s", "GFLOP/s", "GFLOP/s", "share");
    while (bench_word(name, sizeof name, &models)) {
        struct subject s = {.sizes = {.dev = {.threads = threads}}, .prompt = prompt, .tokens = tokens};
        bench_model(&s.sizes, name);
        model_measure(name, &s, rounds, pool);
    }
    ah__pool_free(pool);
    return 0;
}
