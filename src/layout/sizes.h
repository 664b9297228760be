/* Sizes of everything that a layout places, and their totals: the search asks for totals without placing anything,
 * layout.c places the sizes, and a profile places those of one block of each class. All take them from here, so that
 * they cannot differ.
 *
 * Takes a partition, checked switches and the device's own scratch; must not know addresses. */
#ifndef AH_LAYOUT_SIZES_H
#define AH_LAYOUT_SIZES_H

#include "partition/partition.h"
#include "sched/switches.h"

enum { AH_LAYOUT_ALIGN = 256 };

/* Returns the device bytes that one more buffer adds: the size of a block's parameters, or of its gradient. */
int64_t ah__layout_buffer_bytes(const struct ah_partition *partition, const struct ah_switches *switches);
/* Returns the device bytes that an unsharded block takes more than a sharded one. */
int64_t ah__layout_whole_bytes(const struct ah_partition *partition, const struct ah_switches *switches);

/* Returns the bytes of a block's gradient sum. */
int64_t ah__layout_sum_bytes(const struct ah_partition *partition);

/* Returns the host bytes that one more set of shadow states adds. */
int64_t ah__layout_set_bytes(const struct ah_partition *partition, const struct ah_switches *switches);

/* Returns the bytes of a block's input and saved activations, for all micro-batches of a step of one round. */
int64_t ah__layout_activation_bytes(const struct ah_partition *partition, enum ah_keeping keeping);

/* Computes a layout's total bytes on both sides, without placing anything. */
void ah__layout_bytes(int64_t *device, int64_t *host, const struct ah_partition *partition,
                      const struct ah_switches *switches, int64_t workspace_bytes);

/* Computes the bytes on device and host that belong to no block, with embedding and head optimized on the device: the
 * paper's M_gc and M_cc. */
void ah__layout_constants(int64_t *device, int64_t *host, const struct ah_partition *partition);

/* Computes the bytes on disk. */
int64_t ah__layout_disk_bytes(const struct ah_partition *partition, const struct ah_switches *switches);
/* Bytes between host and disk of one block: read for a fetch, of a block without backward too (0: there is none); of
 * its gradient, written once it is offloaded and read for the update; of its states, read and written for that. */
struct ah_disk_traffic {
    int64_t fetched, fetched_frozen, gradient, states;
};
struct ah_disk_traffic ah__layout_disk_traffic(const struct ah_partition *partition,
                                               const struct ah_switches *switches);

/* ---- sizes of a layout's parts ---- */

/* Sizes of a chunk of a block on disk, in bytes: of this rank's part, multiples of AH_DISK_ALIGN. */
struct ah_disk_chunk {
    int64_t state, moment, rest; /* p; m or v; the rest */
    int64_t states;              /* all of them */
    int64_t gradient;            /* of the trained parameters */
    int64_t frozen;              /* frozen parameters */
    int places;                  /* copies of the states */
    int64_t bytes;               /* on disk: frozen parameters, gradient and all places */
};

/* Classes by size: those of class.h, and blocks without backward. */
enum { AH_SIZED_FROZEN = AH_CLASS_COUNT, AH_SIZED_COUNT };
static inline int ah__sized(const struct ah_switches *switches, int group)
{
    return ah__is_frozen(switches, group) ? AH_SIZED_FROZEN : (int)ah__class_of(group, switches->layers);
}

/* Sizes of all areas of a layout, in bytes, before they are placed. They are rounded up, so that areas in any order are
 * aligned. */
struct ah_sizes {
    bool on_host[AH_SIZED_COUNT];
    bool copies; /* sharded: parameters used on the device are always copies of the states' p */
    int64_t state[AH_SIZED_COUNT][AH_STATE_COUNT]; /* each of p, m, v and the rest: of one group, this rank's part */
    int64_t states[AH_SIZED_COUNT];                /* all of them */
    int64_t device_state[AH_SIZED_COUNT];          /* p of a group on the device, whole if products may read it there */
    int64_t device_states[AH_SIZED_COUNT];         /* all states there: only p if nothing is updated */
    int64_t frozen[AH_SIZED_COUNT];       /* frozen parameters of one group, this rank's part, in the compute dtype */
    int64_t buffer[AH_SIZED_COUNT];       /* parameters or gradient of one group in the compute dtype */
    int64_t host_grad[AH_SIZED_COUNT];    /* this rank's part of the gradient, on the host */
    int64_t summed[AH_SIZED_COUNT];       /* one group's gradient where it is summed in F32; not rounded up */
    bool own_grads;                       /* gradients of blocks have memory of their own, not buffers */
    int64_t block_grad;                   /* of each block whose sum does not stay */
    int64_t stage_at[AH_STATE_COUNT + 1]; /* offsets in a staging buffer: of the chunk's states, then of its gradient */
    int64_t stages;                       /* all staging buffers */
    int64_t widened;                      /* decoded parameters of a block, if they are kept in codes */
    int64_t sum;                          /* F32 sum of a block's gradient */
    int sum_places;    /* sums on the device that blocks use in turn; 0: gradients are summed in their own memory */
    int staying_sums;  /* blocks whose sums stay on the device between rounds, and are their gradients */
    int64_t host_sums; /* sums of the other blocks between rounds; 0: there is one round */
    /* F32. The embedding's is not rounded up: the region ends with it. If both share memory, the head's is 0 and the
     * embedding's is for both. */
    int64_t head_grad, embedding_grad;
    int64_t ends; /* parameters of embedding and head in their shared buffer */
    /* of one micro-batch: */
    int64_t input, saved, kept, embedding_saved, boundary, head_saved;
    int micro_batches, at_once;            /* in a step; in a round */
    int embedded;                          /* micro-batches whose gradients wait for the embedding's backward */
    int64_t saved_all, kept_all;           /* of all blocks with memory of their own, for a round's micro-batches */
    int64_t activations[AH_KEEPING_COUNT]; /* of a block, with its input, for the same micro-batches */
    int64_t activation_stage;              /* for the activations of any block that uses staging buffers; 0: no such
                                            * block */
    int64_t cheap; /* for selectively recomputed activations, if no activation set has room for them */
    int64_t cache; /* of one block */
    int64_t work, head_work, tokens, results, staging, workspace;
    int64_t program_work; /* scratch of the program that needs most, under whatever plan it runs */
    int saved_sets;
    struct ah_disk_chunk disk_chunk[2]; /* of blocks with a backward; of those without */
    int64_t slot;                       /* a host buffer for a chunk of any of them; 0: no block is on disk */
};

/* Fills all of *sizes. */
void ah__sizes(struct ah_sizes *sizes, const struct ah_partition *partition, const struct ah_switches *switches,
               int64_t workspace_bytes);

/* Returns the number of shards on the device. With several ranks, blocks that are fetched from the host once keep this
 * rank's part of their parameters there, which is as large as its part of the gradient. */
int ah__shard_count(const struct ah_switches *switches);
/* Returns the number of reduced gradients on the device that wait for the norm. Only a rank's part of a reduced
 * gradient waits: gradients of blocks optimized on the device are copied out of their buffers. */
int ah__reduced_count(const struct ah_partition *partition, const struct ah_switches *switches);
/* Returns the number of boundary activations outside the staging buffers: inputs of the head and of other blocks. */
int ah__inputs_count(const struct ah_switches *switches);

#endif
