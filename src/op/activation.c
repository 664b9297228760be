/* Functions of one element. Backward is in place on the gradient that comes in. */
#include "op/rules.h"

AH_OP_FLOPS_PER_ELEMENT(gelu_flops, 12.0)
AH_OP_FLOPS_PER_ELEMENT(gelu_bwd_flops, 20.0)

const struct ah_op_row ah__op_gelu = {
    .name = "gelu",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = ah__op_infer_same,
    .flops = gelu_flops,
};

const struct ah_op_row ah__op_gelu_bwd = {
    .name = "gelu_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT, .in_place = true}),
    .infer = ah__op_infer_pair,
    .flops = gelu_bwd_flops,
};

const struct ah_op_row ah__op_relu = {
    .name = "relu",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = ah__op_infer_same,
    .flops = ah__op_one_flop,
};

const struct ah_op_row ah__op_relu_bwd = {
    .name = "relu_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT, .in_place = true}),
    .infer = ah__op_infer_pair,
    .flops = ah__op_one_flop,
};
