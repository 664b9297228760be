/* Partitions: the graph cut into embedding, L equal blocks and head, each compiled once into programs.
 *
 * Takes a finished graph, gives sizes in bytes and programs whose operands are (space, offset). Immutable afterwards.
 * Knows no devices and no plans. Partition and group numbers: 0 embedding, 1..layers blocks, layers+1 head. */
#ifndef AH_PARTITION_PARTITION_H
#define AH_PARTITION_PARTITION_H

#include "base/alloc.h"
#include "op/program.h"

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

/* One compiled partition structure. Its programs are listed once more in AH_CODE_PROGRAMS. */
struct ah_code {
    struct ah_program forward;      /* keeps SAVED */
    struct ah_program forward_drop; /* the same arithmetic with SAVED operands in WORK; for checkpointed blocks and
                                       inference */
    struct ah_program recompute;    /* INPUT -> SAVED, nothing that backward does not read */
    struct ah_program backward;     /* BOUNDARY in and out; writes GRAD (first use overwrites, later uses add) */
    struct ah_program infer;        /* head: INPUT -> logits in WORK, without targets; elsewhere of 0 calls */
    struct ah_operand logits;       /* head: where infer leaves them, [B,T,V]; elsewhere of AH_SPACE_NONE */
    int64_t input_bytes, output_bytes;
    int64_t saved_bytes;            /* M_a - M_a' in bytes */
    int64_t boundary_bytes;
    bool uses_shared;               /* reads SHARED parameters (and adds to SHARED_GRAD in backward) */
    bool backward_needs_params;     /* false for an embedding */
};

/* The programs of struct ah_code. */
#define AH_CODE_PROGRAMS(X) X(forward) X(forward_drop) X(recompute) X(backward) X(infer)
enum {
#define AH_CODE_PROGRAM_ENUM(name) AH_CODE_PROGRAM_##name,
    AH_CODE_PROGRAMS(AH_CODE_PROGRAM_ENUM)
#undef AH_CODE_PROGRAM_ENUM
        AH_CODE_PROGRAM_COUNT
};

struct ah_partition {
    struct ah_arena arena;
    enum ah_dtype compute;
    int layers;
    int64_t batch, seq, vocab;    /* vocab: rows of the logits */
    struct ah_code code[3];       /* indexed by enum ah_class: embedding, block, head */
    int shared_group;             /* group the head also reads (0 when the embedding is tied), -1: none */
    int param_count, group_count; /* groups: layers + 2 */
    struct ah_param *params;
    struct ah_group *groups;
    double flops_forward;         /* of one iteration, forward, all partitions */
    double flops_backward;        /* without recompute */
    uint64_t signature;           /* of structure, batch, seq, dtype, version */
};

/* Program `number` of AH_CODE_PROGRAMS, and its name. */
const struct ah_program *ah__code_program(const struct ah_code *code, int number);
const char *ah__code_program_name(int number);

#endif
