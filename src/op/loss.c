/* The loss. Forward writes the gradient of the logits where they were, so no operator of its own makes it. */
#include "op/rules.h"

static int cross_entropy_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("logits", &in[0], 3, 3));
    AH_TRY(ah__op_expect("targets", &in[1], AH_I32, ah_shape2(in[0].shape.dim[0], in[0].shape.dim[1])));
    out[0] = ah__op_floats(1);
    out[1] = in[0];
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(cross_entropy_flops, 5.0)

/* (logits [B,T,V], targets [B,T]) -> (loss [1], dlogits) */
const struct ah_op_row ah__op_cross_entropy = {
    .name = "cross_entropy",
    AH_OP_INPUTS({.name = "logits", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "targets", .kind = AH_OPERAND_TARGETS}),
    AH_OP_OUTPUTS({.name = "loss", .kind = AH_OPERAND_LOSS},
                  {.name = "dlogits", .kind = AH_OPERAND_GRADIENT, .backward_reads = true, .in_place = true}),
    .infer = cross_entropy_infer,
    .flops = cross_entropy_flops,
};
