/* What the bench programs share: a model on the CPU device, measured steps under a plan, medians. Not part of the
 * library. */
#ifndef AH_BENCH_BENCH_H
#define AH_BENCH_BENCH_H

#include "dev/host/pool.h"
#include "plan/predict.h"
#include "run/run.h"

/* A GPT-2 of random tokens, up to its profile. */
struct bench {
    const char *device;  /* null: "cpu" */
    enum ah_dtype dtype; /* AH_F32 is 0 */
    int layers, width, heads, vocab;
    int64_t batch, seq;
    int micro_batches; /* of `batch` sequences each, in a step; 0: one */
    double clip;       /* limit of the gradient norm; 0: none */
    struct ah_dev_options dev;
    int64_t pause_ns; /* that the caller is away behind each result */
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_profile *profile;
};

/* ---- what a program is told: --NAME VALUE, and --help, which prints all and exits with 0 */

enum bench_kind { BENCH_FLAG, BENCH_COUNT, BENCH_TEXT }; /* bool, without a value; int, at least 1; const char * */
struct bench_option {
    const char *name; /* without the dashes */
    enum bench_kind kind;
    void *value; /* of the kind; holds the default */
    const char *what;
};
/* Exits with 2 and a line on standard error for an option that is not there or a value that is no value. `about`: a
 * line or two of what the program shows. */
void bench_options(int argc, char **argv, const char *about, const struct bench_option *options, size_t count);
#define BENCH_OPTIONS(argc, argv, about, options) bench_options(argc, argv, about, options, AH_LENGTH(options))
int bench_least(int a, int b);

double bench_seconds(void); /* of a clock that only goes forward */
/* Bytes that the pool's threads read and write in a second while they scale `count` floats, a multiple of 2^18, where
 * they lie; the median of some rounds. The calling thread has entered the pool. */
double bench_scale_rate(struct ah_pool *pool, float *x, int64_t count, int rounds);
/* The same of threads that only read. */
double bench_read_rate(struct ah_pool *pool, float *x, int64_t count, int rounds);

/* Exits with a message when a call of the library fails. */
void bench_check(int status, const char *what);
#define BENCH(call) bench_check((call), #call)

/* Builds everything from the sizes set in *bench; the other without measuring a profile. */
void bench_open(struct bench *bench);
void bench_open_unprofiled(struct bench *bench);
void bench_close(struct bench *bench);
/* The model alone, by its sizes. */
void bench_model_open(struct bench *bench);
/* Random numbers of the usual size, the same ones again and again: enough for a GPU's clock and for losses that tell
 * plans apart. */
void bench_parameters_fill(struct ah_run *run, const struct ah_partition *partition);
/* Measures the profile again (the machine drifts). */
void bench_profile(struct bench *bench);
/* A model's arithmetic in a step: its products forward, and twice as much backward, attention over the causal half.
 * What is computed again counts nothing. */
double bench_flops(const struct bench *bench);
double bench_params(const struct bench *bench);

/* GPTs of the paper's table 1 ("2B", "4B", "6B"), GPT-2s ("124M", "355M", "774M", "1.5B"), and of bytes "25M", the
 * quickstart's "10M" and "tiny". Fills in the sizes; exits when there is none of the name. */
void bench_model(struct bench *out, const char *name);
/* The next of the words that commas separate, cut at `size` - 1 characters; false behind the last one. */
bool bench_word(char *out, size_t size, const char **list);
/* "16G", "512M": bytes. Exits when it is none. */
int64_t bench_bytes(const char *text);
/* "bf16" or "fp32"; exits when it is neither. */
enum ah_dtype bench_dtype(const char *text);

struct bench_steps {
    int64_t median_ns, least_ns;
    int64_t device_used_bytes, host_used_bytes;
    double busy[AH_LANE_COUNT]; /* of the recorded steps */
    double loss;                /* of the last step: equal for equal numbers of steps under any plan */
};
/* Trains `steps` iterations under `plan` on a fresh device; the first three are not counted. Parameters start random
 * or, which takes the same time to train and none to make, at zero; but on a GPU, whose clock zeros let rise, as
 * numbers that are quickly made. */
void bench_run(struct bench_steps *out, const struct bench *bench, const struct ah_plan *plan, int64_t steps,
               bool random);

/* "cpu model, N cores" */
void bench_machine(FILE *to);
int64_t bench_median(int64_t *values, size_t count);
double bench_quantile(double *values, size_t count, double q);
/* Spearman's rank correlation. */
double bench_rank_correlation(const double *x, const double *y, size_t count);

#endif
