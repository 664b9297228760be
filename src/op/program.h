/* Compiled programs: what a device executes. A sequence of operator calls whose operands are a space and an offset;
 * whoever submits a program binds each space to an address. Knows no graph and no kernels. */
#ifndef AH_OP_PROGRAM_H
#define AH_OP_PROGRAM_H

#include "op/op.h"

/* An operand lives at a byte offset in one of these spaces; the runtime binds each to an address per work item. */
enum ah_space {
    AH_SPACE_NONE = 0,    /* absent optional operand */
    AH_SPACE_PARAM,       /* parameters of the partition's own group */
    AH_SPACE_SHARED,      /* parameters of the group it shares (tied embedding) */
    AH_SPACE_GRAD,        /* F32 gradients of PARAM, each at the offset of its parameter counted in elements */
    AH_SPACE_SHARED_GRAD, /* the same of SHARED */
    AH_SPACE_INPUT,       /* activation that enters (token ids for the embedding) */
    AH_SPACE_OUTPUT,      /* activation that leaves */
    AH_SPACE_SAVED,       /* what backward reads besides INPUT, and only products and attention could make again */
    AH_SPACE_CHEAP,       /* the rest of it: made again from INPUT, SAVED and parameters by what costs little */
    AH_SPACE_WORK,        /* scratch, dead between work items */
    AH_SPACE_BOUNDARY,    /* gradient of the output on entry to backward, of the input on exit */
    AH_SPACE_TARGETS,     /* target ids */
    AH_SPACE_POSITIONS,   /* of tokens in their documents */
    AH_SPACE_CACHE,       /* keys and values that stay from one run to the next */
    AH_SPACE_LOSS,        /* one float */
    AH_SPACE_SCALE,       /* one float, what the losses of all micro-batches are multiplied by */
    AH_SPACE_WORKSPACE,   /* scratch of the device that runs the program, as large as it asked for, without operands */
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

/* Floating-point operations of a call, by its operator's row. */
double ah__call_flops(const struct ah_call *call);

struct ah_program {
    int count;
    const struct ah_call *calls;
    int64_t work_bytes; /* of AH_SPACE_WORK */
    double flops;
};

#endif
