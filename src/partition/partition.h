/* Partitions: the graph cut into embedding, L equal blocks and head, each compiled once into programs.
 *
 * Takes a finished graph, gives sizes in bytes and programs whose operands are (space, offset). Immutable afterwards.
 * Knows no devices and no plans. Partition and group numbers: 0 embedding, 1..layers blocks, layers+1 head. */
#ifndef AH_PARTITION_PARTITION_H
#define AH_PARTITION_PARTITION_H

#include "base/alloc.h"
#include "dev/dev.h"
#include "op/program.h"
#include "partition/class.h"

struct ah_param {
    const char *name; /* as in checkpoints */
    struct ah_shape shape;
    enum ah_init init;
    float init_std;
    int group;
    /* Elements from the start of its group, a multiple of AH_PARAM_ALIGN; matrices first, frozen ones last. If it is
     * kept in codes, a multiple of 16 bytes. */
    int64_t offset;
    int64_t kept;  /* elements that it takes there: its own number, or the size of its codes in elements of the compute
                     * dtype */
    int64_t place; /* offset at which programs read it: the same, unless codes are decoded first */
    bool adapter;  /* it belongs to an adapter, not to the model */
    bool coded;    /* it is frozen, and kept in codes (op/codes.h) */
    bool frozen;   /* training does not change it: it has the compute dtype only, no gradient and no moments */
};

/* Alignment of parameters in elements: at least 256 bytes in every dtype of parameters, so that any kernel may use wide
 * accesses; and a group of 8-bit moments, so that no update or copy divides such a group. The padding between two
 * parameters of a group is zero, in parameters, gradients and moments alike: memory starts zeroed, all blocks have
 * their padding in the same positions, narrowing in place zeroes it, and an update leaves zeros where the gradient is
 * zero. */
enum { AH_PARAM_ALIGN = AH_CODE8_GROUP };

/* The model data of one partition: the unit of placement. */
struct ah_group {
    int first_param, param_count; /* in ah_partition.params, in order of offset */
    int64_t count;                /* elements as they are kept: all parameters and the padding behind them */
    int64_t placed;               /* elements as programs read them: the same, unless codes are decoded first */
    int64_t coded;                /* elements of `placed` that are kept in codes: [trained, trained + coded) */
    int64_t trained;              /* elements [0, trained) have gradients and optimizer states; the others are frozen */
    int64_t decayed;              /* elements [0, decayed) belong to trained matrices: rank >= 2, and no bias */
    int64_t elements;             /* elements of parameters, without padding */
    int gap_count;                /* ranges of padding between parameters and behind the last, in order */
    int trained_gaps;             /* the first so many ranges are those of [0, trained) */
    const struct ah_range *gaps;
};

/* The programs of a partition: id, name in text and JSON. FORWARD_ADD and BACKWARD_ADD have 0 calls if a step has one
 * micro-batch, or if FORWARD or BACKWARD writes no gradients. */
#define AH_PROGRAM_TABLE(X)                                                                                            \
    X(FORWARD, "forward")                         /* keeps SAVED and CHEAP */                                          \
    X(FORWARD_DROP, "forward_drop")               /* the same with both in WORK: recomputed blocks, evaluation */      \
    X(RECOMPUTE, "recompute")                     /* INPUT -> SAVED and CHEAP, nothing that backward does not read */  \
    X(RECOMPUTE_SELECTIVE, "recompute_selective") /* INPUT, SAVED -> CHEAP, without products and attention */          \
    X(BACKWARD, "backward")         /* BOUNDARY in and out; writes GRAD (first use overwrites, later uses add) */      \
    X(INFER, "infer")               /* head: INPUT -> logits in WORK, without targets; elsewhere 0 calls */            \
    X(FORWARD_ADD, "forward_add")   /* FORWARD of all micro-batches but the first: adds to GRAD */                     \
    X(BACKWARD_ADD, "backward_add") /* BACKWARD of all micro-batches but the first: adds to GRAD */
enum ah_program_kind {
#define AH_PROGRAM_ENUM(id, name) AH_PROGRAM_##id,
    AH_PROGRAM_TABLE(AH_PROGRAM_ENUM)
#undef AH_PROGRAM_ENUM
        AH_PROGRAM_COUNT
};
extern const char *const ah__program_names[AH_PROGRAM_COUNT];

/* The compiled programs and sizes of a class of partitions. */
struct ah_code {
    struct ah_program program[AH_PROGRAM_COUNT];
    struct ah_operand logits; /* head: the result of INFER, [B,T,V]; elsewhere of AH_SPACE_NONE */
    int64_t input_bytes, output_bytes;
    int64_t saved_bytes; /* M_a - M_a' in bytes: of SAVED, then of CHEAP if it follows */
    int64_t kept_bytes;  /* of SAVED alone, a multiple of the alignment of operands in CHEAP */
    int64_t cache_bytes; /* of CACHE */
    int64_t boundary_bytes;
    bool uses_shared;           /* reads SHARED parameters (and adds to SHARED_GRAD in backward) */
    bool backward_needs_params; /* false for an embedding */
};
/* Returns the most scratch that any of its programs except INFER needs. */
int64_t ah__code_work_bytes(const struct ah_code *code);

struct ah_partition {
    struct ah_arena arena;
    enum ah_dtype compute;
    struct ah_step_options step;
    int layers;                /* blocks */
    int frozen_blocks;         /* the lowest of them, if they and the embedding are frozen: they have no backward */
    const char *note;          /* describes the frozen lowest blocks; null: there are none */
    bool frozen;               /* some parameters are frozen */
    enum ah_codes codes;       /* codes of frozen matrices of blocks; AH_CODES_NONE: they are not kept in codes */
    bool packed;               /* a step has positions: its sequences are several documents each */
    int64_t batch, seq, vocab; /* batch and seq: of one micro-batch, for programs; vocab: rows of the logits */
    int class_count;
    /* By class. Sizes of blocks with a backward are as of AH_CLASS_BLOCK. */
    struct ah_code code[AH_CLASSES_MOST];
    /* By class: the class itself; for a class without backward, the class of the same attributes with one, or
     * AH_CLASS_BLOCK. Its forward takes as long. */
    int like[AH_CLASSES_MOST];
    const uint8_t *class_of; /* by partition number */
    /* For each further kind of blocks: their number from a partition on; the last entry is behind the head. */
    const int *blocks_from[AH_CLASSES_MOST];
    int shared_group;             /* group the head also reads (0 if the embedding is tied), -1: none */
    int param_count, group_count; /* groups: layers + 2 */
    struct ah_param *params;
    struct ah_group *groups;
    int64_t work_bytes_least; /* the least scratch, for programs of others that share it; 0 when it is made */
    double flops_forward;     /* of one iteration, forward, all partitions */
    double flops_backward;    /* of one iteration, backward, without recomputation */
    uint64_t signature;       /* of structure, batch, seq, micro-batches, dtype, version */
};

/* Writes the types of its numbers, for captions: "bf16"; "bf16, 4.9 M trained"; "bf16, 4.9 M trained beside nf4";
 * "bf16, 4.9 M trained above 8 frozen blocks". Returns the text. */
enum { AH_PARTITION_TYPES_SIZE = 64 };
const char *ah__partition_types(char text[AH_PARTITION_TYPES_SIZE], const struct ah_partition *partition);

/* Returns the number of blocks of a further kind among [first, last]. */
static inline int64_t ah__blocks_of(const struct ah_partition *partition, int class, int64_t first, int64_t last)
{
    const int *from = partition->blocks_from[class];
    return first <= last ? from[first] - from[last + 1] : 0;
}

/* Returns the programs of a partition. */
static inline const struct ah_code *ah__code_of(const struct ah_partition *partition, int number)
{
    return &partition->code[partition->class_of[number]];
}

/* Returns the most scratch that any program of any partition needs, INFER included. */
int64_t ah__partition_work_bytes(const struct ah_partition *partition);

/* Returns the number of micro-batches of a step, at least 1. */
static inline int ah__micro_batches(const struct ah_partition *partition)
{
    return partition->step.micro_batches > 1 ? partition->step.micro_batches : 1;
}

/* Optimizer states: the parameter in the compute dtype, its moments, and the rest: the 16 bits that a master in F32 has
 * besides a parameter in BF16 (dev/planes.h). */
enum { AH_STATE_REST = 3, AH_STATE_COUNT = 4 };

/* Returns true if masters have a rest. They have none if nothing is updated. */
static inline bool ah__has_rest(const struct ah_partition *partition)
{
    return partition->compute != partition->step.master && !partition->step.infers;
}

/* Returns the format of a state: of the master, regardless of its planes, or of moments 1 and 2. */
static inline enum ah_dtype ah__state_dtype(const struct ah_partition *partition, int which)
{
    return which == 0 ? partition->step.master : partition->step.moments;
}
/* Returns the bytes of `count` elements of a state, which begin where a group of moments may: parameters, parts of
 * ranks and chunks do. */
static inline int64_t ah__state_size(const struct ah_partition *partition, int which, int64_t count)
{
    if (which == AH_STATE_REST)
        return ah__has_rest(partition) ? count * ah__dtype_bytes(AH_BF16) : 0;
    return ah__state_bytes(which == 0 ? partition->compute : partition->step.moments, count);
}
/* Returns the bytes of all states of one trained parameter element. */
static inline double ah__states_each(const struct ah_partition *partition)
{
    double bytes = 0;
    for (int which = 0; which < AH_STATE_COUNT; which++)
        bytes += (double)ah__state_size(partition, which, AH_PARAM_ALIGN) / AH_PARAM_ALIGN;
    return bytes;
}

/* Returns the format of a state of one parameter. */
static inline enum ah_dtype ah__kept_dtype(const struct ah_partition *partition, int param, int which)
{
    return partition->params[param].frozen ? partition->compute : ah__state_dtype(partition, which);
}

/* Returns the number of devices that train together, at least 1. */
static inline int ah__step_ranks(const struct ah_partition *partition)
{
    return partition->step.world_size > 1 ? partition->step.world_size : 1;
}

/* Returns true if a program's loss is part of a mean: then it is multiplied by a factor that the host sends with the
 * tokens. */
static inline bool ah__step_scaled(const struct ah_partition *partition)
{
    return ah__micro_batches(partition) > 1 || ah__step_ranks(partition) > 1;
}

/* Returns the elements of a group that each of `ranks` devices has: equal parts that begin at multiples of
 * AH_PARAM_ALIGN. The last parts may reach beyond the group, whose buffers are as large as all parts. */
static inline int64_t ah__part_count(int64_t count, int ranks)
{
    if (ranks <= 1)
        return count;
    int64_t part = (count + ranks - 1) / ranks;
    return (part + AH_PARAM_ALIGN - 1) / AH_PARAM_ALIGN * AH_PARAM_ALIGN;
}

/* Returns the elements [*first, *first + result) of a group that belong to one rank: its part, as far as it is in the
 * group. */
static inline int64_t ah__part_range(int64_t *first, int64_t count, int rank, int ranks)
{
    int64_t part = ah__part_count(count, ranks);
    *first = rank * part < count ? rank * part : count;
    return count - *first < part ? count - *first : part;
}

/* Returns the number of a group's frozen elements, which follow its trained ones; each rank has a part of them too. */
static inline int64_t ah__frozen_count(const struct ah_group *group)
{
    return group->count - group->trained;
}

/* Returns the group of a block with a backward; all such groups are alike. */
static inline const struct ah_group *ah__block_group(const struct ah_partition *partition)
{
    return &partition->groups[partition->layers];
}

/* Returns true if gradients of blocks have memory of their own. If some parameters of blocks are frozen, gradients of
 * the others are small, and buffers, which are as large as a whole block, are for parameters only. */
static inline bool ah__blocks_keep_gradients(const struct ah_partition *partition)
{
    return ah__frozen_count(ah__block_group(partition)) > 0;
}

/* Returns the size of the codes of `count` elements, in elements of the compute dtype. */
static inline int64_t ah__codes_kept(const struct ah_partition *partition, int64_t count)
{
    return ah__codes_bytes(partition->codes, count) / ah__dtype_bytes(partition->compute);
}

/* Returns true if programs read decoded parameters of a group, not the kept ones. */
static inline bool ah__is_widened(const struct ah_group *group)
{
    return group->coded > 0;
}

/* Returns the number of elements of all parameters. */
static inline int64_t ah__partition_params(const struct ah_partition *partition)
{
    int64_t elements = 0;
    for (int i = 0; i < partition->group_count; i++)
        elements += partition->groups[i].elements;
    return elements;
}

/* Returns the number of elements of trained parameters. */
static inline int64_t ah__partition_trained(const struct ah_partition *partition)
{
    int64_t elements = 0;
    for (int i = 0; i < partition->param_count; i++)
        elements += partition->params[i].frozen ? 0 : ah__shape_count(&partition->params[i].shape);
    return elements;
}

/* Returns the elements of the largest parameter, in whole groups of AH_PARAM_ALIGN: so many floats hold it in any
 * dtype. */
static inline int64_t ah__partition_largest(const struct ah_partition *partition)
{
    int64_t largest = 0;
    for (int i = 0; i < partition->param_count; i++) {
        int64_t count = ah__shape_count(&partition->params[i].shape);
        largest = count > largest ? count : largest;
    }
    return (largest + AH_PARAM_ALIGN - 1) / AH_PARAM_ALIGN * AH_PARAM_ALIGN;
}

/* Returns the tokens of a step, of all its micro-batches. */
static inline int64_t ah__step_tokens(const struct ah_partition *partition)
{
    return ah__micro_batches(partition) * partition->batch * partition->seq;
}

#endif
