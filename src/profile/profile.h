/* What one block (and embedding, head, Adam, copies) costs on a device. Decides nothing.
 *
 * Takes a partition and a device, gives times at full speed, launch gaps and how lanes slow each other. Must not know
 * plans. */
#ifndef AH_PROFILE_PROFILE_H
#define AH_PROFILE_PROFILE_H

#include "partition/partition.h"
#include "sched/costs.h"

struct ah_profile {
    struct ah_costs costs;
    /* Both places of the optimizer, for every class, so that any plan can be priced: costs.ns[UPDATE_HOST] and
     * costs.ns[UPDATE_DEVICE]; PREFETCH, REFETCH and OFFLOAD likewise. */
    char device[64];
    int world_size;          /* times are of one of so many ranks working alike; 0 or 1: one */
    int64_t workspace_bytes; /* scratch that the device asks for beside what programs name */
    int threads, host_threads;
    int64_t link_bytes_per_s;
    int64_t h2d_bytes_per_s, d2h_bytes_per_s;           /* measured, alone */
    int64_t h2d_both_bytes_per_s, d2h_both_bytes_per_s; /* measured, both directions at once */
    /* What was timed, so that rates can be told: 0 where unknown. */
    int64_t params[AH_CLASS_COUNT];  /* elements of a group */
    int64_t trained[AH_CLASS_COUNT]; /* of these */
    double forward_flops[AH_CLASS_COUNT], backward_flops[AH_CLASS_COUNT], recompute_flops[AH_CLASS_COUNT];
    uint64_t partition_signature;
    uint64_t device_signature;
};

/* Whether the machine could hold the model's parameters and optimizer at all, wherever they lie. Asked before anything
 * is timed: a block of a model that can never run here may take minutes. AH_ENOMEM says what is needed and what there
 * is. */
int ah__profile_fits(const struct ah_partition *partition, struct ah_dev *dev);

/* As ah_profile_measure; with `like` (null: none) only what differs is timed, and all else is taken from it. Of the
 * same device that is a profile of the same step in micro-batches of another size: programs are timed. Of another
 * device it is one of the same partition, and the devices differ in their host threads alone: what these do is timed,
 * and how that and other lanes slow each other. `stop` as in struct ah_profile_options. */
int ah__profile_measure_like(struct ah_profile **out, const struct ah_partition *partition, struct ah_dev *dev,
                             const struct ah_profile *like, const volatile int *stop);
/* As ah_profile_measure; measured like `like` where that is not null. */
int ah__profile_measure_kept(struct ah_profile **out, int64_t *kept_s, const struct ah_partition *partition,
                             struct ah_dev *dev, const struct ah_profile *like,
                             const struct ah_profile_options *options);

/* Removes the profile of this partition and device from the cache; *dropped: there was one. With several ranks all
 * call it, and the first removes it. */
int ah__profile_drop(bool *dropped, const struct ah_partition *partition, struct ah_dev *dev,
                     const struct ah_profile_options *options);

/* As a file has it; the caller frees *out with free(). */
int ah__profile_text(char **out, const struct ah_profile *profile);
/* A file's text; `path` for messages. AH_EINPUT. */
int ah__profile_parse(struct ah_profile **out, const char *text, size_t length, const char *path);

#endif
