/* Compiled programs, which devices execute. A program is a sequence of operator calls whose operands are a space and an
 * offset; the submitter binds each space to an address. Knows no graph and no kernels. */
#ifndef AH_OP_PROGRAM_H
#define AH_OP_PROGRAM_H

#include "op/op.h"

/* Spaces. An operand is at a byte offset in one of them; the runtime binds each to an address for each work item. */
enum ah_space {
    AH_SPACE_NONE = 0,    /* absent optional operand */
    AH_SPACE_PARAM,       /* parameters of the partition's own group */
    AH_SPACE_SHARED,      /* parameters of the group it shares (tied embedding) */
    AH_SPACE_GRAD,        /* F32 gradients of PARAM, each at the offset of its parameter counted in elements */
    AH_SPACE_SHARED_GRAD, /* F32 gradients of SHARED, in the same way */
    AH_SPACE_INPUT,       /* activation that enters the partition (token ids for the embedding) */
    AH_SPACE_OUTPUT,      /* activation that leaves the partition */
    AH_SPACE_SAVED,     /* values that backward reads, besides INPUT, and only products and attention could recompute */
    AH_SPACE_CHEAP,     /* other values that backward reads: cheap to recompute from INPUT, SAVED and parameters */
    AH_SPACE_WORK,      /* scratch, dead between work items */
    AH_SPACE_BOUNDARY,  /* gradient of the output on entry to backward, of the input on exit */
    AH_SPACE_TARGETS,   /* target ids */
    AH_SPACE_POSITIONS, /* positions of tokens in their documents */
    AH_SPACE_CACHE,     /* keys and values, kept from one run to the next */
    AH_SPACE_LOSS,      /* one float */
    AH_SPACE_SCALE,     /* one float, the factor of the losses of all micro-batches */
    AH_SPACE_WORKSPACE, /* scratch of the device, as large as it asks for, without operands */
    AH_SPACE_COUNT
};

/* Elements [from, to) of an array. */
struct ah_range {
    int64_t from, to;
};

struct ah_operand {
    enum ah_space space;
    int64_t offset; /* bytes */
    struct ah_meta meta;
};

struct ah_call {
    enum ah_op op;
    struct ah_attr attr;
    struct ah_operand in[AH_OP_MAX_INPUTS];
    struct ah_operand out[AH_OP_MAX_OUTPUTS];
};

/* Returns the floating-point operations of a call, by its operator's row. */
double ah__call_flops(const struct ah_call *call);

struct ah_program {
    int count;
    const struct ah_call *calls;
    int64_t work_bytes; /* size of AH_SPACE_WORK */
    double flops;
};

#endif
