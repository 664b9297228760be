/* The binder: (item, code, addresses) -> tasks. What an item does is here, once, for runs and for profiles; where its
 * operands lie is the caller's.
 *
 * Takes items of sched/item.h, prepared programs and addresses; gives the tasks of dev/dev.h. Decides nothing, knows no
 * plans and no layouts. */
#ifndef AH_BIND_BIND_H
#define AH_BIND_BIND_H

#include "partition/partition.h"
#include "sched/item.h"

/* Results of an iteration: the loss (a float) at 0, the factor by which gradients are clipped (a float; on the device
 * made by the last backward or its reduction, on the host by whoever hears of the norms), then the squared gradient
 * norms (a double for each group). Where losses are parts of a mean (ah__step_scaled), those of the micro-batches (a
 * float each), which add up to the loss, come behind the norms. With several ranks the totals follow: the same losses
 * and the stop and save flags (below), each the sum over all ranks. */
enum { AH_RESULTS_SCALE = 8, AH_RESULTS_NORMS = 64 };
int64_t ah__results_bytes(const struct ah_partition *partition);
int64_t ah__results_losses(const struct ah_partition *partition); /* the offset of the first loss */
int64_t ah__results_totals(const struct ah_partition *partition); /* of the first total */

/* Tokens of an iteration: ids [micro-batches * batch, seq] at 0, of packed sequences their positions behind; targets at
 * half of all bytes; where losses are parts of a mean what they are multiplied by, a float, comes behind the targets.
 * With several ranks its stop and save flags, AH_FLAGS floats, come behind ids and positions. */
enum { AH_FLAGS = 2 };
int64_t ah__tokens_flags(const struct ah_partition *partition); /* the offset of the first flag */
int64_t ah__tokens_bytes(const struct ah_partition *partition); /* at least; any even number from there on is fine */

/* A partition's programs as one device keeps them. */
struct ah_bound_programs {
    struct ah_dev *dev;
    struct ah_prepared *prepared[AH_CLASS_COUNT][AH_PROGRAM_COUNT];
    struct ah_prepared *other[AH_PROGRAM_COUNT]; /* of blocks of the other kind; null: there are none */
    struct ah_prepared *below[2];                /* of blocks below, by kind; null: there are none */
    int64_t workspace_bytes;                     /* what the neediest asks for */
};
/* Prepares all of them. `partition` must outlive the result. Freed by ah__bound_programs_fini, also after failure. */
int ah__bound_programs_init(struct ah_bound_programs *out, const struct ah_partition *partition, struct ah_dev *dev);
void ah__bound_programs_fini(struct ah_bound_programs *programs);
/* What they would ask for, without keeping them: a plan must know it. */
int ah__workspace_bytes(int64_t *bytes, const struct ah_partition *partition, struct ah_dev *dev);

/* Where everything lies that an item of one partition, block below or group may touch. What its kind does not touch
 * may be null. */
struct ah_addresses {
    /* On the device: parameters of its group and of the group it shares, in the compute dtype; where programs sum
     * their gradients, in F32; where its own stays, in the compute dtype, which may be the same place: where it is not,
     * the sum is brought there when it is complete. */
    char *param, *shared_param, *sum, *shared_sum, *grad;
    char *widened; /* where programs find parameters that are kept in codes; of groups without codes unused */
    char *shard;   /* several ranks: this rank's part of the parameters, where it waits for a CAST; null: in `param` */
    char *frozen;  /* several ranks: this rank's part of what is frozen, where it waits for a CAST; null: in `param` */
    char *reduced; /* several ranks: this rank's part of the summed gradient, where it waits for its update on the
                    * device; null: in `grad` */
    char *input, *output, *saved, *cheap, *work, *workspace, *boundary, *cache;
    char *tokens, *results;           /* of the iteration: ids, and targets tokens_bytes / 2 behind; results as above */
    char *host_tokens, *host_results; /* on the host: the same */
    int64_t tokens_bytes;
    /* Bytes from what one micro-batch has of each to what the next one has; 0: all use the same. */
    int64_t input_step, output_step, saved_step, cheap_step, boundary_step;
    /* With several ranks what follows is of this rank's part alone, but for what is on the device in the compute dtype:
     * there it is of the whole group. */
    char *states[AH_STATE_COUNT];        /* on the side where they stay */
    char *shadow_states[AH_STATE_COUNT]; /* where a speculative update leaves them */
    const char *update_grad;             /* the gradient, on that side */
    char *update_copy;      /* several ranks: where an update on the device puts the parameters, too; null: nowhere */
    char *host_activations; /* on the host: where input and what is kept behind it wait for backward */
    int64_t activation_bytes;
    char *host_param, *host_grad;             /* on the host: what is fetched, and where a gradient arrives */
    char *host_sum;                           /* on the host: where the sum is between rounds */
    char *host_frozen;                        /* on the host: what is fetched beside it and never changes */
    char *stage[AH_STATE_COUNT], *stage_grad; /* on the device: a chunk of states of the host, and of the gradient */
};

/* Elements of the chunks, but for the last ones, into which `count` of them are cut. */
int64_t ah__chunk_count(int64_t count, int chunks);

/* What an item is made of besides addresses. */
struct ah_binding {
    const struct ah_partition *partition;
    const struct ah_bound_programs *programs;
    enum ah_class class; /* of the item's partition */
    bool other;          /* which is a block of the other kind */
    int group;           /* whose model data it moves or updates */
    int rank;            /* of those that the partition's step has */
    int micro_batches;   /* of which forward and backward run the programs */
    bool infer;          /* the head stops at its logits: no targets, no loss */
    struct ah_adam adam; /* updates only */
    double clip;         /* limit of the global norm; 0: none */
};

/* What forward and backward of a block begin with, once for all of their micro-batches, alone: codes become what
 * programs read. No task where there are no codes. */
int ah__bind_widening(struct ah_work *work, const struct ah_item *item, const struct ah_binding *binding,
                      const struct ah_addresses *at);
/* Fills work->task of an item whose label, lane and waits are set. AH_EINTERNAL for a kind that nothing binds. */
int ah__bind(struct ah_work *work, const struct ah_item *item, const struct ah_binding *binding,
             const struct ah_addresses *at);

#endif
