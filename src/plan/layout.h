/* Where everything lies: the device region cut into pools, and host memory, from partition, switches and the
 * device's own scratch alone.
 *
 * Takes a partition and checked switches, gives byte offsets. The prediction of both peaks is this layout's size; the
 * runtime places memory by the same numbers. Must not know devices, times or which plan is good.
 *
 * Every offset is a multiple of AH_LAYOUT_ALIGN. Where an area repeats (buffers, boundary inputs, saved sets, the two
 * iterations of tokens and results), its *_bytes is the distance from one to the next: the k-th begins at offset + k *
 * bytes.
 *
 * The last area is the embedding's gradient; it is as large as the head's if both share it. Without it the gradient of
 * the last block or of the head comes last, else the first iteration's tokens. Each training step writes and reads this
 * area whole, so the highest byte that a device sees in use is device_bytes - 1.
 *
 * Gradients are summed in F32 whatever the compute dtype is. A block's are summed in one of one or two areas that
 * blocks take in turn, so that the padding between parameters stays zero. The embedding's and the head's, which
 * several items add to, are summed where they stay. */
#ifndef AH_PLAN_LAYOUT_H
#define AH_PLAN_LAYOUT_H

#include "plan/sizes.h"

/* One group's optimizer states (parameter p, moments m and v, and where its master has one p's rest) and buffers of its
 * own. Blocks on the host have their states in sets (struct ah_layout), take parameters that come from there, and their
 * gradients, from the buffers. Parameters optimized on the device are used where they lie. Where nothing is updated
 * (ah_step_options.infers) a group on the device has p alone, and no gradient. */
struct ah_layout_group {
    bool on_host;
    int64_t state_offset;              /* in device memory, or in host memory when on_host: all; -1: in a set */
    int64_t state_bytes, moment_bytes; /* of p; of m or v: rounded up. ah__state_at says where each lies */
    int64_t host_frozen_offset;        /* on_host: what is fetched behind the trained elements; else -1 */
    int64_t frozen_offset;             /* several ranks: this rank's part of what is frozen, on the device; -1: on_host,
                                        * or it lies where the parameters have a place of their own */
    int64_t host_grad_offset;          /* on_host: where the gradient lands; else -1 */
    /* Unsharded blocks; embedding and head on the host or of several ranks: their dedicated device parameters; else -1.
     * Where the plan says so (share_embedding_head) the same bytes for embedding and head. */
    int64_t param_offset;
    int64_t grad_offset;  /* embedding and head, and blocks where parameters are frozen: their dedicated device
                               * gradients, of trained elements; else -1. Those of embedding and head are F32 while
                               * they are summed, then narrowed to the compute dtype in their place. The same place for
                               * both where they share their parameters' and no update of the head waits for the norm */
    int64_t input_offset; /* blocks and head: the activation that enters */
    int64_t saved_offset; /* blocks: what is kept for backward, or made again */
    int64_t host_activations_offset; /* where input and what is kept behind it wait for backward */
    int64_t activation_bytes;        /* of both; 0: they stay on the device */
};

struct ah_layout {
    int64_t buffers_offset, buffer_bytes; /* pool shared by block parameters and block gradients */
    int64_t stages_offset,
        stage_bytes; /* where states are staged: AH_STAGING_BUFFERS, each a chunk's states and gradient */
    int64_t stage_state_bytes, stage_moment_bytes, stage_rest_bytes; /* of p; of m or v; of the rest: each follows the
                                                                      * other, the gradient the rest */
    int64_t shards_offset, shard_bytes;    /* several ranks: parts of blocks that stay, see layout.c; else nothing. Of
                                         * trained elements, then, reduced_bytes behind, of frozen ones */
    int64_t reduced_offset, reduced_bytes; /* several ranks, where updates wait for the norm: of each block optimized on
                                            * the device, this rank's part of its summed gradient */
    int64_t inputs_offset,
        input_bytes; /* boundary activations: inputs of the blocks that do not pass the stages, and of the head */
    int64_t activation_stages_offset,
        activation_stage_bytes; /* AH_ACTIVATION_BUFFERS, each the input of a block that passes and what it keeps */
    /* From what one micro-batch has of a boundary activation, a saved set, the boundary's gradient to what the next one
     * has. What is made again is of one micro-batch. */
    int64_t input_step, saved_step, kept_step, embedding_saved_step, head_saved_step, boundary_step;
    /* Activation sets of the blocks that keep all, the last ones of those that do not pass; where there is neither such
     * a block nor one that recomputes selectively, one for what is made again. */
    int64_t saved_offset, saved_bytes;
    int saved_sets;
    int64_t kept_offset, kept_bytes; /* of blocks that recompute selectively: what they keep */
    int kept_sets;
    int64_t cheap_offset; /* where blocks that recompute, selectively or not, make again what costs little: in the first
                           * activation set, whose block is done with it by then, or where there is none apart */
    int64_t embedding_saved_offset;    /* what the embedding's backward reads besides the ids (mostly nothing) */
    int64_t boundary_offset;           /* gradient that crosses from block to block */
    int64_t work_offset, work_bytes;   /* scratch; the head's saved set lies in it, above its programs' own scratch */
    int64_t head_saved_offset;         /* in the region, not in work */
    int64_t workspace_offset;          /* scratch of the device's own, as large as its programs asked for */
    int64_t cache_offset, cache_bytes; /* of one block, what its attention keeps from run to run; 0: nothing */
    int64_t widened_offset;            /* parameters of the block that computes, where they are kept in codes */
    int64_t below_offset, below_bytes; /* AH_BELOW_PLACES, where blocks below come from the host; 0 bytes: they stay */
    int64_t sums_offset, sum_bytes;    /* F32 sums of blocks' gradients: one, of several rounds AH_SUM_PLACES; -1: the
                                     * compute dtype is F32 and the round the only one, so that they are made where
                                     * gradients stay */
    bool embeds_late; /* boundary gradients and what the embedding saves exist for all micro-batches of a step, not for
                       * those of a round alone: its backward is in the last round */
    int64_t tokens_offset, tokens_bytes;   /* of one iteration, as bind/bind.h says; there are two */
    int64_t results_offset, results_bytes; /* of one iteration, as bind/bind.h says; two */
    int64_t device_bytes;
    int64_t host_sums_offset; /* of several rounds: sums of all blocks, from 1 on, between them */
    int64_t host_tokens_offset, host_results_offset; /* two of each, same shapes as on the device */
    /* Host states of blocks, ah__host_sets() of them, each as in groups[layers], the first to go there. */
    int64_t sets_offset, set_bytes;
    int64_t host_staging_offset,
        host_staging_bytes; /* for loading and saving device states in pieces; 0 bytes: no device state */
    int64_t host_bytes;
    struct ah_layout_group *groups; /* layers + 2 */
};

/* From p of a group to its state `which`: 0 p, 1 m, 2 v, AH_STATE_REST. */
static inline int64_t ah__state_at(const struct ah_layout_group *group, int which)
{
    return which == 0 ? 0 : group->state_bytes + (which - 1) * group->moment_bytes;
}

/* The caller frees *out with ah__layout_free. AH_ENOMEM. */
int ah__layout_new(struct ah_layout **out, const struct ah_partition *partition, const struct ah_switches *switches,
                   int64_t workspace_bytes);
void ah__layout_free(struct ah_layout *layout);

#endif
