/* Runs a partition's programs on the CPU kernels with every buffer in ordinary memory: the plainest possible training
 * loop. */
#ifndef AH_TESTS_PARTITION_RIG_H
#define AH_TESTS_PARTITION_RIG_H

#include "dev/cpu/cpu.h"
#include "dev/host/task.h"
#include "dev/sim.h"
#include "partition/partition.h"
#include "test.h"

enum { RIG_MOST_PARTITIONS = 8 };

struct rig {
    struct ah_partition *partition;
    struct ah_pool *pool;
    int count; /* partitions */
    char *param[RIG_MOST_PARTITIONS], *grad[RIG_MOST_PARTITIONS], *m[RIG_MOST_PARTITIONS], *v[RIG_MOST_PARTITIONS];
    char *input[RIG_MOST_PARTITIONS + 1], *saved[RIG_MOST_PARTITIONS];
    char *work, *boundary;
    int32_t *targets;
    float loss;
};

/* The rig owns `partition` from here on. Gradients start as NaN, so that a program which adds where it must overwrite
 * shows. */
void rig_init(struct rig *rig, struct ah_partition *partition);
void rig_fini(struct rig *rig);
const struct ah_code *rig_code(const struct rig *rig, int number);
void rig_run(struct rig *rig, int number, const struct ah_program *program);
/* All forward programs; drop: the ones that keep nothing. Fills loss. */
void rig_forward(struct rig *rig, bool drop);
/* All backward programs; of blocks what makes again first what is overwritten before. */
enum rig_recompute { RIG_RECOMPUTE_NONE, RIG_RECOMPUTE_ALL, RIG_RECOMPUTE_SELECTIVE };
void rig_backward(struct rig *rig, enum rig_recompute recompute);
/* One AdamW step of every group, 1-based. */
void rig_adam(struct rig *rig, int step, double lr, double weight_decay);
const struct ah_param *rig_param(const struct rig *rig, const char *name);

#endif
