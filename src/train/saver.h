/* Saves checkpoints while the training goes on: states are copied into host memory, and a thread of the saver writes
 * them. Without memory for a copy, and for the last checkpoint, the training waits until it is written. The loop
 * decides when to save. */
#ifndef AH_TRAIN_SAVER_H
#define AH_TRAIN_SAVER_H

#include "dev/host/job.h"
#include "dev/host/pages.h"
#include "train/checkpoint.h"

struct ah_saver {
    /* Set by the caller before ah__saver_init; all must outlive the saver. */
    const char *dir;
    const struct ah_model *model;
    const struct ah_partition *partition;
    struct ah_checkpoint state; /* content of the next state.json; the saver sets step and loss */
    int64_t copy_most_bytes;    /* bytes that a copy may take; at most half of the machine's free memory is taken */

    /* Private. */
    float *buffer;        /* twice ah__partition_largest floats */
    int64_t *offsets;     /* offsets in a copy: of each parameter's master, then of the first, then of the second
                           * moments */
    int64_t bytes;        /* size of a copy */
    struct ah_pages copy; /* all parameters, then all first, then all second moments */
    struct ah_job writing;
};

/* Allocates the buffers. AH_ENOMEM. The other calls also take a zero-initialized saver. */
int ah__saver_init(struct ah_saver *saver);
/* Waits for a checkpoint that is being written, and frees all. */
void ah__saver_fini(struct ah_saver *saver);

/* Returns true while a checkpoint is being written. */
bool ah__saver_busy(struct ah_saver *saver);
/* Saves the states of the drained run, while no checkpoint is being written. With `wait` returns when it is durable,
 * else perhaps sooner: then ah__saver_wait returns its status. AH_EIO, AH_ENUMERIC. */
int ah__saver_save(struct ah_saver *saver, int64_t step, double loss, struct ah_run *run, bool wait);
/* Waits until no checkpoint is being written; returns its status once. */
int ah__saver_wait(struct ah_saver *saver);

#endif
