/* How large everything is that a layout places, and what it comes to: the totals that the search asks for, without
 * placing anything, and the sizes that layout.c places. Both take them from here, so that they cannot differ.
 *
 * Takes a partition, checked switches and the device's own scratch; must not know where anything lies. */
#ifndef AH_PLAN_SIZES_H
#define AH_PLAN_SIZES_H

#include "partition/partition.h"
#include "sched/switches.h"

enum { AH_LAYOUT_ALIGN = 256 };

/* What one more buffer adds to the device's total: the size of a block's parameters, or of its gradient. */
int64_t ah__layout_buffer_bytes(const struct ah_partition *partition, const struct ah_switches *switches);
/* Device bytes by which a block that stays whole takes more than one of which a rank has its part. */
int64_t ah__layout_whole_bytes(const struct ah_partition *partition, const struct ah_switches *switches);

/* What one more shadow states adds to the host's total. */
int64_t ah__layout_set_bytes(const struct ah_partition *partition, const struct ah_switches *switches);

/* What a block that keeps so much has of a step of one round: its input and that, of all micro-batches. */
int64_t ah__layout_activation_bytes(const struct ah_partition *partition, enum ah_keeping keeping);

/* What a layout comes to on both sides, without placing anything. */
void ah__layout_bytes(int64_t *device, int64_t *host, const struct ah_partition *partition,
                      const struct ah_switches *switches, int64_t workspace_bytes);

/* Bytes on device and host that belong to no block, embedding and head optimized on the device: the paper's M_gc and
 * M_cc. */
void ah__layout_constants(int64_t *device, int64_t *host, const struct ah_partition *partition);

/* ---- what a layout is made of ---- */

/* Everything the layout is made of, before it is placed. Areas are rounded up, so that any order of them is aligned. */
struct ah_sizes {
    bool on_host[AH_CLASS_COUNT];
    bool copies; /* sharded: parameters used on the device are never the states' p itself */
    int64_t state[AH_CLASS_COUNT], moment[AH_CLASS_COUNT]; /* p; m or v: of one group, this rank's part */
    int64_t states[AH_CLASS_COUNT];                        /* p, m, v and the rest */
    int64_t device_state[AH_CLASS_COUNT];  /* p of a group on the device, where products may read it: then all of it */
    int64_t device_states[AH_CLASS_COUNT]; /* all states there: p alone where nothing is updated */
    int64_t frozen[AH_CLASS_COUNT];        /* of one group, this rank's part, in the compute dtype */
    int64_t buffer[AH_CLASS_COUNT];        /* parameters or gradient of one group in the compute dtype */
    int64_t below;                         /* a place through which blocks below pass; 0: they stay on the device */
    int64_t host_grad[AH_CLASS_COUNT];     /* this rank's part of the gradient, on the host */
    bool own_grads;                        /* those of blocks have places of their own, not buffers */
    int64_t block_grad;                    /* each */
    int64_t stage_state, stage_moment, stage_rest; /* p; m or v; the rest: of a chunk that streams */
    int64_t stages;                                /* all of them */
    int64_t widened;                   /* parameters of a block as programs read them, where they are kept in codes */
    int64_t sum;                       /* F32 sum of a block's gradient */
    int sum_places;                    /* 0: it is made where the gradient stays, of which it has the dtype */
    int64_t host_sums;                 /* of all blocks, between rounds; 0: there is one round */
    int64_t head_grad, embedding_grad; /* F32; the latter not rounded: the region ends with it. 0 and that of both where
                                        * they share a place */
    int64_t ends;                      /* parameters of embedding and head in the place that they share */
    /* of one micro-batch */
    int64_t input, saved, kept, embedding_saved, boundary, head_saved;
    int micro_batches, at_once;            /* of a step; of a round */
    int embedded;                          /* whose gradients wait for the embedding's backward */
    int64_t saved_all, kept_all;           /* of all blocks that have places of their own, and of a round's
                                            * micro-batches */
    int64_t activations[AH_KEEPING_COUNT]; /* of a block that keeps so much, with its input; the same */
    int64_t activation_stage;              /* for the activations of any block that passes; 0: none does */
    int64_t cheap; /* where no activation set has room for what selective recomputation makes again */
    int64_t cache; /* of one block */
    int64_t work, head_work, tokens, results, staging, workspace;
    int saved_sets;
};

/* Fills all of *sizes. */
void ah__sizes(struct ah_sizes *sizes, const struct ah_partition *partition, const struct ah_switches *switches,
               int64_t workspace_bytes);

/* With several ranks, blocks that come from the host but keep their parameters on the device keep only this rank's part
 * there, which has the size of its gradient's. */
int ah__shard_count(const struct ah_switches *switches);
/* What waits for the norm of gradients that ranks have summed is a rank's part alone: those of blocks optimized on the
 * device leave their buffers for it. */
int ah__reduced_count(const struct ah_partition *partition, const struct ah_switches *switches);
/* Boundary activations with places of their own: of blocks that do not pass, and the head's. */
int ah__inputs_count(const struct ah_switches *switches);

#endif
