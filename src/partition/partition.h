/* Partitions: the graph cut into embedding, L equal blocks and head, each compiled once into programs.
 *
 * Takes a finished graph, gives sizes in bytes and programs whose operands are (space, offset). Immutable afterwards. Knows no
 * devices and no plans. Partition and group numbers: 0 embedding, 1..layers blocks, layers+1 head. */
#ifndef AH_PARTITION_PARTITION_H
#define AH_PARTITION_PARTITION_H

#include "base/alloc.h"
#include "op/program.h"
#include "partition/class.h"

struct ah_param {
    const char *name; /* as in checkpoints */
    struct ah_shape shape;
    enum ah_init init;
    float init_std;
    int group;
    int64_t offset; /* elements from the start of its group; parameters are packed without gaps, rank >= 2 first */
};

/* The model data of one partition: the unit of placement. */
struct ah_group {
    int first_param, param_count; /* in ah_partition.params, in order of offset */
    int64_t count;                /* elements, all parameters */
    int64_t decayed;              /* elements [0, decayed) belong to parameters of rank >= 2 */
};

/* One compiled partition structure. */
struct ah_code {
    struct ah_program forward;      /* keeps SAVED */
    struct ah_program forward_drop; /* the same arithmetic with SAVED operands in WORK; for checkpointed blocks and inference */
    struct ah_program recompute;    /* INPUT -> SAVED, nothing that backward does not read */
    struct ah_program backward;     /* BOUNDARY in and out; writes GRAD (first use overwrites, later uses add) */
    int64_t input_bytes, output_bytes;
    int64_t saved_bytes;            /* M_a - M_a' in bytes */
    int64_t boundary_bytes;
    bool uses_shared;               /* reads SHARED parameters (and adds to SHARED_GRAD in backward) */
    bool backward_needs_params;     /* false for an embedding */
};

struct ah_partition {
    struct ah_arena arena;
    enum ah_dtype compute;
    int layers;
    int64_t batch, seq, vocab;    /* vocab: rows of the logits */
    struct ah_code code[AH_CLASS_COUNT];
    int shared_group;             /* group the head also reads (0 when the embedding is tied), -1: none */
    int param_count, group_count; /* groups: layers + 2 */
    struct ah_param *params;
    struct ah_group *groups;
    double flops_forward;         /* of one iteration, forward, all partitions */
    double flops_backward;        /* without recompute */
    uint64_t signature;           /* of structure, batch, seq, dtype, version */
};

#endif
