/* Sums and copies. Their gradient rules need no operators of their own. */
#include "op/rules.h"

/* a += b */
const struct ah_op_row ah__op_add = {
    .name = "add",
    AH_OP_INPUTS({.name = "a", .kind = AH_OPERAND_ACTIVATION}, {.name = "b", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "a", .kind = AH_OPERAND_ACTIVATION, .in_place = true}),
    .infer = ah__op_infer_pair,
    .flops = ah__op_one_flop,
};

/* y is never x. */
const struct ah_op_row ah__op_copy = {
    .name = "copy",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = ah__op_infer_same,
    .flops = ah__op_no_flops,
};
