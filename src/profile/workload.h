/* Inside the profiler: a model of one block on the device, and the loops that time it.
 *
 * The block exists in a few copies with data of their own, taken in turn, so that each use finds the caches as cold as
 * a real step leaves them; there are never more copies than the model has blocks. A `place` is one of embedding (0),
 * copies (1..copies) and head (copies + 1). Of a step's micro-batches a few are there, which one item runs as in a real
 * step; the others are taken to be alike. Streams on different lanes touch disjoint memory or only read it. */
#ifndef AH_PROFILE_WORKLOAD_H
#define AH_PROFILE_WORKLOAD_H

#include "bind/bind.h"
#include "profile/profile.h"

enum { AH_SAMPLES_MOST = 128, AH_WORKLOAD_MICRO_BATCHES = 4 };

struct ah_samples {
    int count; /* the first AH_SAMPLES_MOST are kept */
    int64_t ns[AH_SAMPLES_MOST];
};

struct ah_workload_place {
    enum ah_class class;
    bool other;                         /* the block is of the other kind, in this round */
    int group;                          /* in the partition */
    int64_t count, trained, decayed;    /* of the group */
    char *state[AH_STATE_COUNT], *grad; /* device */
    char *param;                        /* device: what products read; of one rank the states' p */
    char *fetched;                      /* device: where PREFETCH writes */
    char *exchange;                     /* device: what collectives of a block work on, of several ranks; else null */
    char *input, *output, *saved;       /* device; input is the output of the place before */
    int64_t saved_step;                 /* from one micro-batch to the next */
    char *host_state[AH_STATE_COUNT];
    char *host_grad;        /* host update; fetched, too, since no update writes it */
    char *host_grad_buffer; /* where a gradient arrives */
    char *host_frozen;      /* and what never changes */
    char *frozen;           /* several ranks: a rank's part of that, on the device */
};

struct ah_workload {
    struct ah_dev *dev;
    const struct ah_partition *partition;
    struct ah_comm *comm;              /* the ranks that are profiled together */
    const volatile int *stop;          /* as in struct ah_profile_options */
    bool owns_memory;                  /* what was handed out to us is released at the end */
    int copies, places;                /* places = copies + 2 */
    int micro_batches;                 /* that programs run; of the step's, at most AH_WORKLOAD_MICRO_BATCHES */
    int64_t input_step, boundary_step; /* from one micro-batch to the next */
    struct ah_workload_place *place;
    char *tokens, *boundary, *work, *workspace, *results; /* device */
    char *host_tokens, *host_results;
    char *widened;                       /* device: parameters of a block, where they are kept in codes */
    char *accumulator;                   /* device: gradients of blocks in F32; null: `grad` is that */
    char *host_spare[AH_STATE_COUNT];    /* states of a block, for speculative updates */
    int64_t tokens_bytes, results_bytes; /* of all micro-batches of the step */
    struct ah_bound_programs programs;
    /* what rounds have seen; `recomputed`, `selective`: BACKWARD with recomputation */
    struct ah_samples samples[AH_ITEM_COUNT][AH_CLASS_COUNT];
    struct ah_samples recomputed[AH_CLASS_COUNT], selective[AH_CLASS_COUNT];
    struct ah_samples other[AH_ITEM_COUNT], other_recomputed, other_selective; /* of blocks of the other kind */
    struct ah_samples gaps[AH_LANE_COUNT]; /* between items that waited for nothing */
};

/* ---- setup.c */

/* Takes device and host memory for one block, embedding and head and fills it with small random numbers. On failure the
 * caller still calls ah__workload_fini, which frees all of it. */
int ah__workload_init(struct ah_workload *workload, const struct ah_partition *partition, struct ah_dev *dev);
void ah__workload_fini(struct ah_workload *workload);
/* Waits for all ranks, so that they go on in step: AH_OK where all came so far with AH_OK, else the failure of one.
 * After one of this rank nothing is in flight any more, so that its memory can go. Collective. */
int ah__workload_agree(struct ah_workload *workload, int status);
/* What has passed since start_ns by the device's clock on rank 0, for all: they decide alike how often to repeat.
 * Collective. */
int ah__workload_elapsed(int64_t *out_ns, struct ah_workload *workload, int64_t start_ns);
/* The work of an item at a place (item->partition), bound to its buffers. AH_ESTOP when told to stop. */
int ah__workload_work(struct ah_work *work, const struct ah_workload *workload, const struct ah_item *item);
/* That of a block's widening alone; without a task where nothing is widened. */
int ah__workload_widening(struct ah_work *work, const struct ah_workload *workload);

/* ---- rounds.c */

/* Times every item alone on the machine, or beside the same item of the other ranks, into costs->ns, recompute_ns,
 * selective_ns and widen_ns, and the gaps between items into launch_ns. What runs programs is taken to last as long for
 * each micro-batch. Collective, as all that follows: ranks begin each kind of round in step. */
int ah__profile_rounds(struct ah_workload *workload, struct ah_costs *costs);
/* Several ranks: what they do together. */
int ah__profile_rounds_together(struct ah_workload *workload, struct ah_costs *costs);
/* What the host's threads do alone: UPDATE_HOST, UPDATE_SPECULATIVE and the lane's gaps; the rest of *costs stays. */
int ah__profile_rounds_host(struct ah_workload *workload, struct ah_costs *costs);
/* The programs alone: FORWARD, BACKWARD, recompute_ns, selective_ns and widen_ns; the rest of *costs stays. */
int ah__profile_rounds_programs(struct ah_workload *workload, struct ah_costs *costs);
int64_t ah__samples_median(struct ah_samples *samples);
void ah__samples_add(struct ah_samples *samples, int64_t ns);

/* ---- streams.c */

/* Lanes against each other, on all ranks in step, into costs->lanes.slowdown, and the link's rates. */
int ah__profile_streams(struct ah_workload *workload, struct ah_profile *profile);
/* Only the host lane against each of the others; the rest of *profile stays. */
int ah__profile_streams_host(struct ah_workload *workload, struct ah_profile *profile);
/* What passes from a completion through the calling thread until a lane starts. */
int ah__profile_notify(int64_t *notify_ns, struct ah_dev *dev);

#endif
