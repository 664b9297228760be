/* Profiles: times of one block (and embedding, head, Adam, copies) on a device. Decides nothing.
 *
 * Takes a partition and a device, gives times at full speed, launch gaps and how lanes slow each other. Must not know
 * plans. */
#ifndef AH_PROFILE_PROFILE_H
#define AH_PROFILE_PROFILE_H

#include "partition/partition.h"
#include "sched/costs.h"

/* The drive of what is kept on disk; read_bytes_per_s 0: there is none. */
struct ah_profile_drive {
    int64_t read_bytes_per_s, write_bytes_per_s, latency_ns;
    int64_t free_bytes;      /* that scratch space may take; 0: unknown */
    int64_t endurance_bytes; /* that may be written to it, as its maker warrants; 0: unknown */
};

struct ah_profile {
    struct ah_costs costs;
    /* For every class both costs.ns[UPDATE_HOST] and costs.ns[UPDATE_DEVICE], so that any plan can be predicted;
     * PREFETCH, REFETCH and OFFLOAD likewise. */
    char device[64];
    int world_size;          /* times are those of one of so many ranks that work alike; 0 or 1: one */
    int64_t workspace_bytes; /* scratch that the device needs besides the programs' own */
    int threads, host_threads;
    int64_t link_bytes_per_s;
    int64_t h2d_bytes_per_s, d2h_bytes_per_s;           /* measured, alone */
    int64_t h2d_both_bytes_per_s, d2h_both_bytes_per_s; /* measured, both directions at the same time */
    struct ah_profile_drive drive;
    /* The work that was timed, from which rates follow; 0: unknown. */
    int64_t params[AH_CLASS_COUNT];  /* elements of a group */
    int64_t trained[AH_CLASS_COUNT]; /* trained elements of a group */
    double forward_flops[AH_CLASS_COUNT], backward_flops[AH_CLASS_COUNT], recompute_flops[AH_CLASS_COUNT];
    uint64_t partition_signature;
    uint64_t device_signature;
};

/* Checks that the machine has enough memory, device and host together, for the model's parameters and optimizer states.
 * Called before anything is timed, since timing a block of a model that can never run here may take minutes. AH_ENOMEM:
 * the message says how much is needed and how much there is. */
int ah__profile_fits(const struct ah_partition *partition, struct ah_dev *dev);

/* Measures as ah_profile_measure. With `like` (null: none) only differences are timed, and the rest is copied from it.
 * If `like` is of the same device, it is a profile of the same step with micro-batches of another size: programs are
 * timed. If it is of another device, it is one of the same partition, and the devices differ only in their host
 * threads: the work of these is timed, and how they and other lanes slow each other. `stop` as in struct
 * ah_profile_options. */
int ah__profile_measure_like(struct ah_profile **out, const struct ah_partition *partition, struct ah_dev *dev,
                             const struct ah_profile *like, const volatile int *stop);
/* Does the same as ah_profile_measure, but measures only differences to `like` unless it is null. */
int ah__profile_measure_kept(struct ah_profile **out, int64_t *kept_s, const struct ah_partition *partition,
                             struct ah_dev *dev, const struct ah_profile *like,
                             const struct ah_profile_options *options);

/* Removes the profile of this partition and device from the cache; *dropped: there was one. With several ranks all call
 * it, and the first removes it. */
int ah__profile_drop(bool *dropped, const struct ah_partition *partition, struct ah_dev *dev,
                     const struct ah_profile_options *options);

/* Writes a profile as the text of a file; the caller frees *out with free(). */
int ah__profile_text(char **out, const struct ah_profile *profile);
/* Reads a profile from a file's text; `path` is for messages. AH_EINPUT. */
int ah__profile_parse(struct ah_profile **out, const char *text, size_t length, const char *path);

struct ah_hardware;
/* Sets *bytes to the workspace that a described device takes beside the programs' own scratch. AH_EINPUT as for
 * estimates. */
int ah__estimate_workspace(int64_t *bytes, const struct ah_partition *partition, const struct ah_hardware *hardware);

#endif
