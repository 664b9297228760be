/* Saves checkpoints while the training goes on: states are copied into host memory, and a thread of its own writes
 * them. Where there is no memory for a copy, and for the last checkpoint, the training waits for the writing. When to
 * save is the loop's to know. */
#ifndef AH_TRAIN_SAVER_H
#define AH_TRAIN_SAVER_H

#include "dev/host/job.h"
#include "dev/host/pages.h"
#include "train/checkpoint.h"

struct ah_saver {
    /* The caller's, before ah__saver_init; all must outlive the saver. */
    const char *dir;
    const struct ah_model *model;
    const struct ah_partition *partition;
    struct ah_checkpoint state; /* what the next checkpoint says; the saver sets step and loss */
    int64_t copy_most_bytes;    /* that a copy may take; never more than half of what the machine has free */

    /* Private. */
    float *buffer;        /* ah__partition_largest, twice */
    int64_t *offsets;     /* in a copy: of each parameter's master, then of the first, then of the second moments */
    int64_t bytes;        /* of a copy */
    struct ah_pages copy; /* all parameters, then all first, then all second moments */
    struct ah_job writing;
};

/* AH_ENOMEM. A zero-initialised saver is fine for the other calls. */
int ah__saver_init(struct ah_saver *saver);
/* Waits for what is being written. */
void ah__saver_fini(struct ah_saver *saver);

/* Whether a checkpoint is being written now. */
bool ah__saver_busy(struct ah_saver *saver);
/* Saves what the drained run holds, while nothing is being written. With `wait` returns when it is durable, else
 * perhaps sooner: then ah__saver_wait tells how it went. AH_EIO, AH_ENUMERIC. */
int ah__saver_save(struct ah_saver *saver, int64_t step, double loss, struct ah_run *run, bool wait);
/* Waits until nothing is being written; how it went, told once. */
int ah__saver_wait(struct ah_saver *saver);
/* Bytes that a copy takes. */
int64_t ah__saver_copy_bytes(const struct ah_saver *saver);

#endif
