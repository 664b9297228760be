/* The binder: (item, code, addresses) -> tasks. The work of each kind of item is defined here, once, for runs and for
 * profiles; the caller gives the addresses of operands.
 *
 * Takes items of sched/item.h, prepared programs and addresses; gives the tasks of dev/dev.h. Decides nothing, knows no
 * plans and no layouts. */
#ifndef AH_BIND_BIND_H
#define AH_BIND_BIND_H

#include "partition/partition.h"
#include "sched/item.h"

/* Results of an iteration: the loss (a float) at 0; the factor by which gradients are clipped (a float at
 * AH_RESULTS_SCALE; on the device written by the last backward or its reduction, on the host by the reader of the
 * norms); then the squared gradient norms (a double for each group). If losses are parts of a mean (ah__step_scaled),
 * those of the micro-batches (a float each), whose sum is the loss, follow the norms. With several ranks the totals
 * follow: the same losses and the stop and save flags (below), each the sum over all ranks. */
enum { AH_RESULTS_SCALE = 8, AH_RESULTS_NORMS = 64 };
int64_t ah__results_bytes(const struct ah_partition *partition);
int64_t ah__results_losses(const struct ah_partition *partition); /* offset of the first loss */
int64_t ah__results_totals(const struct ah_partition *partition); /* offset of the first total */

/* Tokens of an iteration: ids [micro-batches * batch, seq] at 0, then for packed sequences their positions; targets at
 * half of all bytes. If losses are parts of a mean, their factor, a float, follows the targets. With several ranks the
 * stop and save flags, AH_FLAGS floats, follow ids and positions. */
enum { AH_FLAGS = 2 };
int64_t ah__tokens_flags(const struct ah_partition *partition); /* offset of the first flag */
int64_t ah__tokens_bytes(const struct ah_partition *partition); /* the least; any even number from there on is fine */

/* A partition's programs as one device prepared them. */
struct ah_bound_programs {
    struct ah_dev *dev;
    struct ah_prepared *prepared[AH_CLASSES_MOST][AH_PROGRAM_COUNT];
    int64_t workspace_bytes; /* the most that one program needs */
};
/* Prepares all programs. `partition` must outlive the result. Freed by ah__bound_programs_fini, also after failure. */
int ah__bound_programs_init(struct ah_bound_programs *out, const struct ah_partition *partition, struct ah_dev *dev);
void ah__bound_programs_fini(struct ah_bound_programs *programs);
/* Computes the workspace that the programs need, without keeping them: a plan must know it. */
int ah__workspace_bytes(int64_t *bytes, const struct ah_partition *partition, struct ah_dev *dev);

/* Addresses of all operands that an item of one partition or group may use. Operands that the
 * item's kind does not use may be null. */
struct ah_addresses {
    /* On the device: parameters of the item's group and of the group it shares, in the compute dtype; the sums of
     * gradients to which programs add, in F32; and the group's own gradient, in the compute dtype. The last may be the
     * same address as its sum; if not, the complete sum is copied or rounded there. */
    char *param, *shared_param, *sum, *shared_sum, *grad;
    char *widened; /* where programs read parameters that are kept in codes; unused for groups without codes */
    char *shard;   /* several ranks: this rank's part of the parameters until a CAST; null: it is in `param` */
    char *frozen;  /* several ranks: this rank's part of the frozen parameters until a CAST; null: it is in `param` */
    /* several ranks: this rank's part of the reduced gradient until its update on the device; null: it is in `grad` */
    char *reduced;
    char *input, *output, *saved, *cheap, *work, *workspace, *boundary, *cache;
    char *tokens, *results;           /* of the iteration: ids, and targets at tokens_bytes / 2; results as above */
    char *host_tokens, *host_results; /* on the host: the same as `tokens` and `results` */
    int64_t tokens_bytes;
    /* Bytes from one micro-batch's part of each to the next one's; 0: all micro-batches use the same memory. */
    int64_t input_step, output_step, saved_step, cheap_step, boundary_step;
    /* With several ranks the operands below are of this rank's part only, except those on the device in the compute
     * dtype, which are of the whole group. */
    char *states[AH_STATE_COUNT];        /* on the side, device or host, where they stay */
    char *shadow_states[AH_STATE_COUNT]; /* where a speculative update writes them */
    const char *update_grad;             /* the gradient, on the same side as the states */
    char *update_copy;      /* several ranks: where an update on the device also writes the parameters; null: nowhere */
    char *host_activations; /* on the host: offloaded input and saved activations until backward */
    int64_t activation_bytes;
    char *host_param, *host_grad; /* on the host: parameters to fetch; the gradient buffer */
    char *host_sum;               /* on the host: the sum between rounds */
    char *host_frozen;            /* on the host: frozen parameters, fetched with host_param */
    /* A block on disk: host_param, host_grad, host_frozen and states are a chunk of it, in a host buffer that begins
     * with states[0]. Offsets and bytes on disk of the chunk's states, of the place where a speculative update writes
     * them, of p among the states, of frozen parameters and of the gradient. */
    struct ah_disk *disk; /* null: the block is not on disk */
    int64_t disk_states, disk_shadow, disk_frozen, disk_gradient;
    int64_t disk_states_bytes, disk_param_bytes, disk_frozen_bytes, disk_gradient_bytes;
    /* on the device: staging buffers for a chunk of states and of the gradient */
    char *stage[AH_STATE_COUNT], *stage_grad;
};

/* Returns how many elements a chunk has if `count` elements are divided into `chunks`; the last chunks may have
 * fewer. */
int64_t ah__chunk_count(int64_t count, int chunks);

/* Everything besides addresses that an item is bound with. */
struct ah_binding {
    const struct ah_partition *partition;
    const struct ah_bound_programs *programs;
    int class;           /* class of the item's partition */
    int group;           /* group whose model data the item moves or updates */
    int rank;            /* this rank, of the ranks in the partition's step */
    int micro_batches;   /* micro-batches for which forward and backward run the programs */
    bool infer;          /* the head stops at the logits: no targets, no loss */
    struct ah_adam adam; /* for updates only */
    double clip;         /* limit of the global norm; 0: no limit */
};

/* Binds only the first part of a block's forward and backward: decoding of its codes for the programs, once for all
 * micro-batches. Adds no task if the block has no codes. */
int ah__bind_widening(struct ah_work *work, const struct ah_item *item, const struct ah_binding *binding,
                      const struct ah_addresses *at);
/* Fills work->task of an item whose label, lane and waits are set. AH_EINTERNAL for a kind without a binder. */
int ah__bind(struct ah_work *work, const struct ah_item *item, const struct ah_binding *binding,
             const struct ah_addresses *at);

#endif
