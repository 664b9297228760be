/* The memory layout: cuts the device region into pools, and host memory, from partition, switches and the device's own
 * scratch only.
 *
 * Takes a partition and checked switches, gives byte offsets. The prediction of both peaks is this layout's size; the
 * runtime places memory by the same numbers. Must not know devices, times or which plan is good.
 *
 * Every offset is a multiple of AH_LAYOUT_ALIGN. If an area repeats (buffers, boundary inputs, saved sets, the two
 * iterations of tokens and results), its *_bytes is the distance from one to the next: the k-th begins at offset + k *
 * bytes.
 *
 * The last area is the embedding's gradient; it is as large as the head's if both share it. Without it the gradient of
 * the last block or of the head comes last, else the first iteration's tokens. Each training step writes and reads this
 * area whole, so the highest byte that a device sees in use is device_bytes - 1.
 *
 * Gradients are summed in F32 in every compute dtype. A block's are summed in one of one or two areas that blocks use
 * in turn, so that the padding between parameters stays zero. The embedding's and the head's, to which several items
 * add, are summed in their own gradient memory; so are those of blocks whose sums stay on the device between rounds. */
#ifndef AH_LAYOUT_LAYOUT_H
#define AH_LAYOUT_LAYOUT_H

#include "layout/sizes.h"

/* One group's optimizer states (parameter p, moments m and v, and p's rest if its master has one) and memory of its
 * own. Blocks on the host have their states in sets (struct ah_layout), and their fetched parameters and gradients in
 * buffers. Parameters optimized on the device are used where they are stored. If nothing is updated
 * (ah_step_options.infers), a group on the device has p only, and no gradient. */
struct ah_layout_group {
    bool on_host, on_disk;
    int64_t state_offset;              /* all states, in device memory, or in host memory if on_host; -1: in a set, or
                                        * on disk */
    int64_t state_bytes, moment_bytes; /* of p; of m or v: rounded up. ah__state_at returns their offsets */
    int64_t host_frozen_offset;        /* on_host: frozen parameters, fetched after the trained ones; else -1, and on
                                        * disk */
    int64_t frozen_offset;             /* several ranks: this rank's part of the frozen parameters, on the device; -1:
                                        * on_host, or it is part of param_offset */
    int64_t host_grad_offset;          /* on_host: the host gradient buffer; else -1, and on disk */
    /* Dedicated device parameters of unsharded blocks, and of embedding and head if they are on the host or there are
     * several ranks; else -1. The same bytes for embedding and head if the plan says so (share_embedding_head). */
    int64_t param_offset;
    /* Dedicated device gradients, of trained elements, of embedding and head, of blocks that have frozen parameters,
     * and of blocks whose sums stay; else -1. Gradients of embedding and head, and sums that stay, are F32 while they
     * are summed, then narrowed to the compute dtype in place. Embedding and head have the same offset if they share
     * their parameters' buffer and no update of the head waits for the norm. */
    int64_t grad_offset;
    int64_t input_offset;            /* blocks and head: the input activation */
    int64_t saved_offset;            /* blocks: activations that are saved or recomputed */
    int64_t host_activations_offset; /* offloaded input and saved activations */
    int64_t disk_offset;             /* on_disk: its part of the scratch space: for each chunk the frozen parameters,
                                      * its gradient, then the places of its states */
    int64_t activation_bytes;        /* of input and saved activations; 0: they stay on the device */
};

struct ah_layout {
    int64_t buffers_offset, buffer_bytes; /* pool shared by block parameters and block gradients */
    int64_t stages_offset, stage_bytes;   /* AH_STAGING_BUFFERS, each for a chunk's states and gradient */
    int64_t stage_at[AH_STATE_COUNT + 1]; /* offsets in a staging buffer: of each state, then of the gradient */
    /* Several ranks: shards that stay on the device, of blocks that are fetched only once (ah__shard_count); else
     * empty. Each has trained elements, then at reduced_bytes frozen ones. */
    int64_t shards_offset, shard_bytes;
    /* Several ranks, if updates wait for the norm: this rank's part of the reduced gradient of each block optimized on
     * the device. */
    int64_t reduced_offset, reduced_bytes;
    int64_t inputs_offset,
        input_bytes; /* boundary activations: inputs of the head and of the blocks that do not use staging buffers */
    int64_t activation_stages_offset,
        activation_stage_bytes; /* AH_ACTIVATION_BUFFERS, each for input and saved activations of a block */
    /* Distances, in bytes, from one micro-batch's boundary activation, saved set or boundary gradient to the next
     * one's. Recomputed activations exist for one micro-batch. */
    int64_t input_step, saved_step, kept_step, embedding_saved_step, head_saved_step, boundary_step;
    /* Activation sets of the blocks that keep all activations and use no staging buffers. If there is no such block,
     * and none that recomputes selectively, one set for recomputed activations. */
    int64_t saved_offset, saved_bytes;
    int saved_sets;
    int64_t kept_offset, kept_bytes; /* saved activations of blocks that recompute selectively */
    int kept_sets;
    /* Activations that are cheap to recompute, of all blocks that recompute. In the first activation set, which its own
     * block no longer needs by then; if there is no set, in memory of their own. */
    int64_t cheap_offset;
    int64_t embedding_saved_offset;    /* activations that the embedding's backward reads besides the ids (mostly
                                        * none) */
    int64_t boundary_offset;           /* gradient that passes from block to block */
    int64_t work_offset, work_bytes;   /* scratch; the head's saved set is in it, above its programs' own scratch */
    int64_t head_saved_offset;         /* offset in the region, not in work */
    int64_t workspace_offset;          /* the device's own scratch, as large as its programs need */
    int64_t cache_offset, cache_bytes; /* keys and values that one block's attention caches between evaluations; 0:
                                        * none */
    int64_t widened_offset;            /* decoded parameters of the running block, if they are kept in codes */
    /* F32 sums of blocks' gradients: one, or AH_SUM_PLACES if a step has several rounds. -1: gradients are summed in
     * their own memory, since the compute dtype is F32 and there is one round, or all sums stay. The lowest blocks with
     * a backward, staying_sums of them, have their sums at grad_offset. */
    int64_t sums_offset, sum_bytes;
    int staying_sums;
    /* The embedding's backward is in the last round, so that boundary gradients and its saved activations exist for all
     * micro-batches of a step, not only for those of a round. */
    bool embeds_late;
    int64_t tokens_offset, tokens_bytes;   /* of one iteration, as bind/bind.h says; there are two */
    int64_t results_offset, results_bytes; /* of one iteration, as bind/bind.h says; there are two */
    int64_t device_bytes;
    int64_t host_sums_offset; /* several rounds: sums of the other blocks in their order, between rounds */
    int64_t host_tokens_offset, host_results_offset; /* two of each, as on the device */
    /* ah__host_sets() sets of blocks' host states. The states in a set are as in groups[layers], the first block that
     * is offloaded. */
    int64_t sets_offset, set_bytes;
    int64_t host_staging_offset,
        host_staging_bytes; /* for loading and saving device states in pieces; 0 bytes: no state is on the device */
    /* Blocks on disk: host buffers (ah__disk_slots), each for a chunk. States begin it, its gradient follows; its
     * frozen parameters are behind p, where a fetch needs neither moments nor rest. */
    int64_t slots_offset, slot_bytes;
    struct ah_disk_chunk disk_chunk[2]; /* of blocks with a backward; of the lowest `frozen_blocks`, without */
    int frozen_blocks;
    int64_t disk_bytes;
    int64_t host_bytes;
    struct ah_layout_group *groups; /* layers + 2 */
};

/* Returns the offset from p of a group to its state `which`: 0 p, 1 m, 2 v, AH_STATE_REST. */
static inline int64_t ah__state_at(const struct ah_layout_group *group, int which)
{
    return which == 0 ? 0 : group->state_bytes + (which - 1) * group->moment_bytes;
}

/* Returns the sizes of a chunk of a block. */
const struct ah_disk_chunk *ah__disk_chunk_of(const struct ah_layout *layout, int group);
/* Returns the offset on disk of a part of a chunk: its frozen parameters, its gradient, or its states in a place, which
 * are p, m, v and the rest in one piece. */
int64_t ah__disk_frozen_at(const struct ah_layout *layout, int group, int chunk);
int64_t ah__disk_gradient_at(const struct ah_layout *layout, int group, int chunk);
int64_t ah__disk_states_at(const struct ah_layout *layout, int group, int chunk, int place);

/* Makes a layout. The caller frees *out with ah__layout_free. AH_ENOMEM. */
int ah__layout_new(struct ah_layout **out, const struct ah_partition *partition, const struct ah_switches *switches,
                   int64_t workspace_bytes);
void ah__layout_free(struct ah_layout *layout);

#endif
