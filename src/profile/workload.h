/* Internals of the profiler: a model of one block on the device, and the loops that time it.
 *
 * The block exists in a few copies with their own data, used in turn, so that each use finds the caches as cold as in a
 * real step; there are never more copies than the model has blocks. A `place` is the embedding (0), a copy (1..copies)
 * or the head (copies + 1). A few of a step's micro-batches exist, which one item runs as in a real step; the others
 * are assumed to take as long. Streams on different lanes touch disjoint memory or only read it. */
#ifndef AH_PROFILE_WORKLOAD_H
#define AH_PROFILE_WORKLOAD_H

#include "bind/bind.h"
#include "layout/sizes.h"
#include "profile/profile.h"

enum { AH_SAMPLES_MOST = 128, AH_WORKLOAD_MICRO_BATCHES = 4 };

struct ah_samples {
    int count; /* the first AH_SAMPLES_MOST are kept */
    int64_t ns[AH_SAMPLES_MOST];
};

struct ah_workload_place {
    int class;                          /* of a block in the current round */
    int group;                          /* group of the partition */
    int64_t count, trained;             /* elements of the group */
    char *state[AH_STATE_COUNT], *grad; /* device */
    char *param;                        /* device: parameters that products read; with one rank the states' p */
    char *fetched;                      /* device: memory that PREFETCH writes */
    char *exchange;                     /* device: memory of a block's collectives, with several ranks; else null */
    char *input, *output, *saved;       /* device; input is the output of the previous place */
    int64_t saved_step;                 /* from one micro-batch to the next */
    char *host_state[AH_STATE_COUNT];
    char *host_grad;        /* gradient of host updates; also fetched, since no update writes it */
    char *host_grad_buffer; /* destination of offloaded gradients */
    char *host_frozen;      /* frozen elements */
    char *frozen;           /* several ranks: this rank's part of the frozen elements, on the device */
};

struct ah_workload {
    struct ah_dev *dev;
    const struct ah_partition *partition;
    struct ah_comm *comm;     /* the ranks that are profiled together */
    const volatile int *stop; /* as in struct ah_profile_options */
    bool owns_memory;         /* device and host memory are released at the end */
    int copies, places;       /* places = copies + 2 */
    int micro_batches;        /* micro-batches that programs run: those of the step, at most
                                        * AH_WORKLOAD_MICRO_BATCHES */
    struct ah_sizes sizes;    /* of a run's areas */
    struct ah_workload_place *place;
    char *tokens, *boundary, *work, *workspace, *results; /* device */
    char *host_tokens, *host_results;
    char *widened;                    /* device: decoded parameters of a block, if they are kept in codes */
    char *accumulator;                /* device: F32 gradients of blocks; null: `grad` is F32 */
    char *host_spare[AH_STATE_COUNT]; /* states of a block, for speculative updates */
    struct ah_bound_programs programs;
    /* times measured by rounds; `recomputed`, `selective`: of BACKWARD with recomputation */
    struct ah_samples samples[AH_ITEM_COUNT][AH_CLASSES_MOST];
    struct ah_samples recomputed[AH_CLASSES_MOST], selective[AH_CLASSES_MOST];
    struct ah_samples gaps[AH_LANE_COUNT]; /* gaps between items that waited for nothing */
};

/* ---- workload.c */

/* Allocates device and host memory for one block, embedding and head and fills it with small random numbers. After a
 * failure the caller still calls ah__workload_fini, which frees all of it. */
int ah__workload_init(struct ah_workload *workload, const struct ah_partition *partition, struct ah_dev *dev);
void ah__workload_fini(struct ah_workload *workload);
/* Waits for all ranks, so that they continue in step: AH_OK if all arrived with AH_OK, else the failure of one. After a
 * failure of this rank nothing is in flight any more, so that its memory can be freed. Collective. */
int ah__workload_agree(struct ah_workload *workload, int status);
/* Returns on all ranks the time since start_ns by the device's clock on rank 0, so that all decide alike how often to
 * repeat. Collective. */
int ah__workload_elapsed(int64_t *out_ns, struct ah_workload *workload, int64_t start_ns);
/* Makes the work of an item at a place (item->partition), bound to its buffers. AH_ESTOP if `stop` is set. */
int ah__workload_work(struct ah_work *work, const struct ah_workload *workload, const struct ah_item *item);
/* Makes the work of decoding a block's codes alone; without a task if the block has no codes. */
int ah__workload_widening(struct ah_work *work, const struct ah_workload *workload);

/* ---- rounds.c */

/* Times every item alone on the machine, or at the same time as the same item of the other ranks, into costs->ns,
 * recompute_ns, selective_ns and widen_ns, and the gaps between items into launch_ns. Items that run programs are
 * assumed to take as long for each micro-batch. Collective, as all functions below: ranks begin each kind of round in
 * step. */
int ah__profile_rounds(struct ah_workload *workload, struct ah_costs *costs);
/* Times the collectives of several ranks. */
int ah__profile_rounds_together(struct ah_workload *workload, struct ah_costs *costs);
/* Times only the host's work: UPDATE_HOST, UPDATE_SPECULATIVE and the lane's gaps; the rest of *costs stays. */
int ah__profile_rounds_host(struct ah_workload *workload, struct ah_costs *costs);
/* Times only the programs: FORWARD, BACKWARD, recompute_ns, selective_ns and widen_ns; the rest of *costs stays. */
int ah__profile_rounds_programs(struct ah_workload *workload, struct ah_costs *costs);
int64_t ah__samples_median(struct ah_samples *samples);
void ah__samples_add(struct ah_samples *samples, int64_t ns);

/* ---- streams.c */

/* Measures how lanes slow each other, on all ranks in step, into costs->lanes.slowdown, and the link's rates. */
int ah__profile_streams(struct ah_workload *workload, struct ah_profile *profile);
/* Measures only the host lane against each of the others; the rest of *profile stays. */
int ah__profile_streams_host(struct ah_workload *workload, struct ah_profile *profile);
/* Measures the time from a completion through the calling thread to the start of the next work on a lane. */
int ah__profile_notify(int64_t *notify_ns, struct ah_dev *dev);

#endif
