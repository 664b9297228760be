/* Where everything lies: the device region cut into pools, and host memory, from partition and plan alone.
 * The prediction of both peaks is this layout's size; the runtime places memory by the same numbers. */
#ifndef AH_PLAN_LAYOUT_H
#define AH_PLAN_LAYOUT_H

#include "partition/partition.h"

enum { AH_LAYOUT_ALIGN = 256 };

/* Bytes of one group's optimizer states: fp32 master, m, v, one after the other. */
struct ah_layout_group {
    bool on_host;
    int64_t state_offset; /* in device memory, or in host memory when on_host: p, m, v, each count*4 bytes, aligned */
    int64_t host_grad_offset; /* on_host: where the gradient lands */
    int64_t param_offset; /* embedding and head on the host: their dedicated device parameters; else -1 */
    int64_t grad_offset;  /* embedding and head: their dedicated device gradients; else -1 */
};

struct ah_layout {
    int64_t slots_offset, slot_bytes;   /* pool shared by block parameters and block gradients */
    int64_t inputs_offset, input_bytes; /* layers + 1 boundary activations: inputs of blocks 1..layers and of the head */
    int64_t saved_offset, saved_bytes;  /* activation sets: blocks checkpoint+1..layers, at least one when checkpoint > 0 */
    int saved_sets;
    int64_t boundary_offset;            /* gradient that walks backward */
    int64_t work_offset, work_bytes;    /* scratch; the head's saved set lies in it */
    int64_t head_saved_offset;
    int64_t tokens_offset, tokens_bytes; /* two iterations' ids and targets: ids at 0, targets at tokens_bytes/2, of each half */
    int64_t results_offset, results_bytes; /* two iterations' loss (float at 0) and squared norms (doubles at 64) */
    int64_t device_bytes;
    int64_t host_tokens_offset, host_results_offset; /* same shapes as on the device */
    int64_t host_staging_offset, host_staging_bytes; /* for loading and saving device states in pieces */
    int64_t host_bytes;
    struct ah_layout_group *groups; /* layers + 2 */
};

int ah__layout_new(struct ah_layout **out, const struct ah_partition *partition, const struct ah_plan *plan);
void ah__layout_free(struct ah_layout *layout);

/* The same two totals without placing anything, for the search. */
void ah__layout_bytes(int64_t *device, int64_t *host, const struct ah_partition *partition, const struct ah_plan *plan);

#endif
