/* What the bench programs share: a model on the CPU device, measured steps under a plan, medians. Not part of the
 * library. */
#ifndef AH_BENCH_BENCH_H
#define AH_BENCH_BENCH_H

#include "plan/predict.h"
#include "run/run.h"

/* A GPT-2 of random tokens, up to its profile. */
struct bench {
    int layers, width, heads, vocab;
    int64_t batch, seq;
    int micro_batches; /* of `batch` sequences each, in a step; 0: one */
    double clip; /* limit of the gradient norm; 0: none */
    struct ah_dev_options dev;
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_profile *profile;
};

/* Exits with a message when a call of the library fails. */
void bench_check(int status, const char *what);
#define BENCH(call) bench_check((call), #call)

/* Builds everything from the sizes set in *bench; the other without measuring a profile. */
void bench_open(struct bench *bench);
void bench_open_unprofiled(struct bench *bench);
void bench_close(struct bench *bench);
/* Measures the profile again (the machine drifts). */
void bench_profile(struct bench *bench);

struct bench_steps {
    int64_t median_ns, least_ns;
    int64_t device_used_bytes, host_used_bytes;
    double busy[AH_LANE_COUNT]; /* of the recorded steps */
    double loss;                /* of the last step: equal for equal numbers of steps under any plan */
};
/* Trains `steps` iterations under `plan` on a fresh device; the first three are not counted. Parameters start random
 * or, which takes the same time to train and none to make, at zero. */
void bench_run(struct bench_steps *out, const struct bench *bench, const struct ah_plan *plan, int64_t steps,
               bool random);

/* "cpu model, N cores" */
void bench_machine(FILE *to);
int64_t bench_median(int64_t *values, size_t count);
double bench_quantile(double *values, size_t count, double q);
/* Spearman's rank correlation. */
double bench_rank_correlation(const double *x, const double *y, size_t count);

#endif
