/* Trainings of a tiny model by several ranks, which are threads, each with a device of its own. */
#ifndef AH_TESTS_RUN_JOINT_H
#define AH_TESTS_RUN_JOINT_H

#include "comm/threads.h"
#include "run/exact.h"

/* One training of all ranks. */
struct joint {
    const char *config;
    enum ah_dtype dtype, master, moments;
    struct ah_tuning tuning;
    int world_size, micro_batches; /* of each rank */
    int64_t batch;                 /* sequences of a micro-batch */
    double clip;
    struct ah_plan plan;
    const char *device; /* null: "cpu", with threads and a link that can be slowed down */
    struct ah_dev_options options;
    int steps; /* trained in two stretches with an evaluation between when fewer than all */
};

struct rank_run {
    const struct joint *joint;
    struct tiny tiny;
    struct outcome outcome;
    double eval;
    float *states; /* rank 0: all parameters and moments */
    int64_t state_count;
};

struct team_run {
    const struct joint *joint;
    struct rank_run rank[THREADS_MOST];
};

/* The batch hook: of all ranks; context: the rank's struct rank_run. */
int joint_batch(const struct ah_batch *to, int64_t iteration, void *context);
/* Writes the model's configuration, before ranks start; makes a rank's partition of it, freed with tiny_fini(). */
void joint_config(const char *config);
void joint_partition(struct rank_run *self);
/* Both, in the scratch, by the calling thread. */
const struct ah_partition *joint_partition_of(struct rank_run *scratch, const struct joint *joint);
/* Everything stays on the device: buffers enough for what is gathered and what waits for the norm. */
struct ah_plan joint_resident(int ranks, int layers);
/* Peaks are as predicted, the timeline is possible, all ranks hear the same. To be freed. */
void joint_train(struct team_run *team, const struct joint *joint);
void joint_free(struct team_run *team);
/* A training that gives the same bits. */
void joint_same(const struct team_run *expected, const struct joint *joint);
/* Every `of`-th (c, p, o) under the policy as resident on as many ranks; other switches and options are drawn. */
void joint_every_plan(struct joint joint, const char *policy, int of);

#endif
