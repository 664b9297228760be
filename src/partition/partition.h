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
    int64_t offset; /* elements from the start of its group, a multiple of AH_PARAM_ALIGN; rank >= 2 first, the frozen
                     * ones behind all others. Of what is kept in codes a multiple of 16 bytes */
    int64_t kept;   /* elements that it takes there: as many as it has, or what its codes take of the compute dtype */
    int64_t place;  /* where programs find it, counted as `offset`: the same, but where codes are widened first */
    bool adapter;   /* it is an adapter's, not the model's own */
    bool coded;     /* it is frozen, and kept in codes (op/codes.h) */
    bool frozen;    /* training leaves it as it is: it has the compute dtype alone, no gradient and no moments */
};

/* Elements: 256 bytes at least in every dtype that parameters have, so that any kernel may use wide accesses, and the
 * groups of moments in 8 bits, so that nothing that is updated or copied as one cuts through a group. What lies between
 * two parameters of a group is zero, in parameters, gradients and moments alike: memory starts zeroed, all blocks have
 * their gaps in the same places, what is narrowed in its place is zeroed there, and an update leaves zeros where the
 * gradient is zero. */
enum { AH_PARAM_ALIGN = AH_CODE8_GROUP };

/* The model data of one partition: the unit of placement. */
struct ah_group {
    int first_param, param_count; /* in ah_partition.params, in order of offset */
    int64_t count;                /* elements, all parameters and the gaps behind them, as they are kept */
    int64_t placed;               /* elements as programs find them: the same, but where codes are widened first */
    int64_t coded;                /* of those, how many codes stand for: [trained, trained + coded) */
    int64_t trained;              /* elements [0, trained) have gradients and optimizer states; the others are frozen */
    int64_t below;                /* elements of frozen blocks, the last ones of the embedding's; all as long */
    int64_t decayed;              /* elements [0, decayed) belong to trained parameters of rank >= 2 */
    int64_t elements;             /* of parameters alone */
    int gap_count;                /* what lies between parameters and behind the last, in order */
    int trained_gaps;             /* the first so many are those of [0, trained) */
    const struct ah_range *gaps;
};

/* The programs of a partition. id, name in text and JSON */
#define AH_PROGRAM_TABLE(X)                                                                                            \
    X(FORWARD, "forward")                         /* keeps SAVED and CHEAP */                                          \
    X(FORWARD_DROP, "forward_drop")               /* the same with both in WORK: recomputed blocks, evaluation */      \
    X(RECOMPUTE, "recompute")                     /* INPUT -> SAVED and CHEAP, nothing that backward does not read */  \
    X(RECOMPUTE_SELECTIVE, "recompute_selective") /* INPUT, SAVED -> CHEAP, without products and attention */          \
    X(BACKWARD, "backward")         /* BOUNDARY in and out; writes GRAD (first use overwrites, later uses add) */      \
    X(INFER, "infer")               /* head: INPUT -> logits in WORK, without targets; elsewhere of 0 calls */         \
    X(FORWARD_ADD, "forward_add")   /* FORWARD and BACKWARD of all micro-batches but the first: they add to what */    \
    X(BACKWARD_ADD, "backward_add") /* is in GRAD. Of 0 calls where there is one, or the other writes no gradients */
enum ah_program_kind {
#define AH_PROGRAM_ENUM(id, name) AH_PROGRAM_##id,
    AH_PROGRAM_TABLE(AH_PROGRAM_ENUM)
#undef AH_PROGRAM_ENUM
        AH_PROGRAM_COUNT
};
extern const char *const ah__program_names[AH_PROGRAM_COUNT];

/* One compiled partition structure. */
struct ah_code {
    struct ah_program program[AH_PROGRAM_COUNT];
    struct ah_operand logits; /* head: where INFER leaves them, [B,T,V]; elsewhere of AH_SPACE_NONE */
    int64_t input_bytes, output_bytes;
    int64_t saved_bytes; /* M_a - M_a' in bytes: of SAVED, then of CHEAP where that lies behind it */
    int64_t kept_bytes;  /* of SAVED alone, a multiple of what operands in CHEAP are aligned to */
    int64_t cache_bytes; /* of CACHE */
    int64_t boundary_bytes;
    bool uses_shared;           /* reads SHARED parameters (and adds to SHARED_GRAD in backward) */
    bool backward_needs_params; /* false for an embedding */
};
/* The most scratch that any of its programs needs but INFER. */
int64_t ah__code_work_bytes(const struct ah_code *code);

struct ah_partition {
    struct ah_arena arena;
    enum ah_dtype compute;
    struct ah_step_options step;
    int layers;                /* blocks, without those below */
    int below;                 /* the lowest of the model's blocks, frozen as its embedding is: they go with it */
    const char *note;          /* says so; null: there are none */
    bool frozen;               /* some parameters are */
    enum ah_codes codes;       /* what frozen matrices of blocks are kept in; of none where there are none */
    bool packed;               /* a step has positions: its sequences are several documents each */
    int64_t batch, seq, vocab; /* of one micro-batch: what programs work on; vocab: rows of the logits */
    int class_count;
    struct ah_code code[AH_CLASSES_MOST]; /* by class; sizes of blocks are as of AH_CLASS_BLOCK, and the programs of a
                                           * class of which all blocks are below are of 0 calls */
    const uint8_t *class_of;              /* by partition number */
    const int *blocks_from[AH_CLASSES_MOST]; /* of each further kind: how many blocks there are from a partition on, the
                                              * last behind the head */
    /* FORWARD_DROP of blocks below, in INPUT and OUTPUT of one place, by class, of 0 calls where there is none so; and
     * the class of each, from 1 on. */
    struct ah_program below_forward[AH_CLASSES_MOST];
    const uint8_t *below_class;
    int shared_group;             /* group the head also reads (0 when the embedding is tied), -1: none */
    int param_count, group_count; /* groups: layers + 2 */
    struct ah_param *params;
    struct ah_group *groups;
    int64_t work_bytes_least; /* of scratch, whatever its own programs need: others share it. 0 when it is made */
    double flops_forward;     /* of one iteration, forward, all partitions */
    double flops_backward;    /* without recompute */
    uint64_t signature;       /* of structure, batch, seq, micro-batches, dtype, version */
};

/* What its numbers are in, for captions: "bf16"; "bf16, 4.9 M trained"; "bf16, 4.9 M trained beside nf4";
 * "bf16, 4.9 M trained above 8 frozen blocks". Returns the text. */
enum { AH_PARTITION_TYPES_SIZE = 64 };
const char *ah__partition_types(char text[AH_PARTITION_TYPES_SIZE], const struct ah_partition *partition);

/* The model's blocks, those below among them. */
static inline int ah__partition_blocks(const struct ah_partition *partition)
{
    return partition->below + partition->layers;
}

/* What runs the number-th block below. */
static inline const struct ah_program *ah__below_program(const struct ah_partition *partition, int number)
{
    return &partition->below_forward[partition->below_class[number]];
}

/* The most scratch that one needs. */
static inline int64_t ah__below_work_bytes(const struct ah_partition *partition)
{
    int64_t most = 0;
    for (int class = 0; class < AH_CLASSES_MOST; class ++)
        most = partition->below_forward[class].work_bytes > most ? partition->below_forward[class].work_bytes : most;
    return most;
}

/* Of the embedding's group: its own elements, and those of one block below. */
static inline int64_t ah__embedding_count(const struct ah_partition *partition)
{
    return partition->groups[0].count - partition->groups[0].below;
}

static inline int64_t ah__below_count(const struct ah_partition *partition)
{
    return partition->below > 0 ? partition->groups[0].below / partition->below : 0;
}

/* How many blocks of a further kind there are among [first, last]. */
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

/* The most scratch that any program of any partition needs, INFER included. */
int64_t ah__partition_work_bytes(const struct ah_partition *partition);

/* How many micro-batches a step has; at least 1. */
static inline int ah__micro_batches(const struct ah_partition *partition)
{
    return partition->step.micro_batches > 1 ? partition->step.micro_batches : 1;
}

/* Optimizer states: the parameter as it is computed with, its moments, and the rest: the 16 bits by which a master in
 * F32 is more than a parameter in BF16 (dev/planes.h). */
enum { AH_STATE_REST = 3, AH_STATE_COUNT = 4 };

/* Masters have a rest. Where nothing is updated there is none. */
static inline bool ah__has_rest(const struct ah_partition *partition)
{
    return partition->compute != partition->step.master && !partition->step.infers;
}

/* The format of the master, whatever planes it is kept in, and of moments 1 and 2. */
static inline enum ah_dtype ah__state_dtype(const struct ah_partition *partition, int which)
{
    return which == 0 ? partition->step.master : partition->step.moments;
}
/* Bytes of `count` elements of a state, which begin where a group may: parameters, parts of ranks and chunks do. */
static inline int64_t ah__state_size(const struct ah_partition *partition, int which, int64_t count)
{
    if (which == AH_STATE_REST)
        return ah__has_rest(partition) ? count * ah__dtype_bytes(AH_BF16) : 0;
    return ah__state_bytes(which == 0 ? partition->compute : partition->step.moments, count);
}
/* Bytes of all that a parameter takes. */
static inline double ah__states_each(const struct ah_partition *partition)
{
    double bytes = 0;
    for (int which = 0; which < AH_STATE_COUNT; which++)
        bytes += (double)ah__state_size(partition, which, AH_PARAM_ALIGN) / AH_PARAM_ALIGN;
    return bytes;
}

/* The same of one parameter. */
static inline enum ah_dtype ah__kept_dtype(const struct ah_partition *partition, int param, int which)
{
    return partition->params[param].frozen ? partition->compute : ah__state_dtype(partition, which);
}

/* How many devices train together; at least 1. */
static inline int ah__step_ranks(const struct ah_partition *partition)
{
    return partition->step.world_size > 1 ? partition->step.world_size : 1;
}

/* A loss of the programs is part of a mean, so that it is multiplied by what the host sends along with the tokens. */
static inline bool ah__step_scaled(const struct ah_partition *partition)
{
    return ah__micro_batches(partition) > 1 || ah__step_ranks(partition) > 1;
}

/* Elements of the part of a group that each of `ranks` devices has: equal, and beginning at multiples of
 * AH_PARAM_ALIGN; the last ones may reach beyond the group, whose buffers are of so many parts. */
static inline int64_t ah__part_count(int64_t count, int ranks)
{
    if (ranks <= 1)
        return count;
    int64_t part = (count + ranks - 1) / ranks;
    return (part + AH_PARAM_ALIGN - 1) / AH_PARAM_ALIGN * AH_PARAM_ALIGN;
}

/* The elements [*first, *first + result) of a group that are one rank's: what of its part lies within the group. */
static inline int64_t ah__part_range(int64_t *first, int64_t count, int rank, int ranks)
{
    int64_t part = ah__part_count(count, ranks);
    *first = rank * part < count ? rank * part : count;
    return count - *first < part ? count - *first : part;
}

/* The frozen elements of a group, which lie behind its trained ones; of these too each rank has a part. */
static inline int64_t ah__frozen_count(const struct ah_group *group)
{
    return group->count - group->trained;
}

/* Where some parameters of blocks are frozen, gradients of the others are small: they have places of their own, so that
 * buffers, which have room for all of a block, hold parameters alone. */
static inline bool ah__blocks_keep_gradients(const struct ah_partition *partition)
{
    return ah__frozen_count(&partition->groups[1]) > 0;
}

/* Elements of the compute dtype that the codes of `count` elements take. */
static inline int64_t ah__codes_kept(const struct ah_partition *partition, int64_t count)
{
    return ah__codes_bytes(partition->codes, count) / ah__dtype_bytes(partition->compute);
}

/* Elements of a group that are fetched, cast and gathered as one: of one rank, blocks below come by themselves. */
static inline int64_t ah__moved_count(const struct ah_partition *partition, int group)
{
    const struct ah_group *of = &partition->groups[group];
    return of->count - (ah__step_ranks(partition) == 1 ? of->below : 0);
}

/* Whether programs read a group from elsewhere than where it is kept. */
static inline bool ah__is_widened(const struct ah_group *group)
{
    return group->coded > 0;
}

/* Elements of all parameters. */
static inline int64_t ah__partition_params(const struct ah_partition *partition)
{
    int64_t elements = 0;
    for (int i = 0; i < partition->group_count; i++)
        elements += partition->groups[i].elements;
    return elements;
}

/* Elements of those that training changes. */
static inline int64_t ah__partition_trained(const struct ah_partition *partition)
{
    int64_t elements = 0;
    for (int i = 0; i < partition->param_count; i++)
        elements += partition->params[i].frozen ? 0 : ah__shape_count(&partition->params[i].shape);
    return elements;
}

/* Elements of the largest parameter, in whole groups of AH_PARAM_ALIGN: so many floats hold it in any dtype. */
static inline int64_t ah__partition_largest(const struct ah_partition *partition)
{
    int64_t largest = 0;
    for (int i = 0; i < partition->param_count; i++) {
        int64_t count = ah__shape_count(&partition->params[i].shape);
        largest = count > largest ? count : largest;
    }
    return (largest + AH_PARAM_ALIGN - 1) / AH_PARAM_ALIGN * AH_PARAM_ALIGN;
}

/* Tokens of a step, of all its micro-batches. */
static inline int64_t ah__step_tokens(const struct ah_partition *partition)
{
    return ah__micro_batches(partition) * partition->batch * partition->seq;
}

#endif
