#include "autodiff/tape.h"

/* Emits a backward operator that overwrites dy. */
static int in_place(struct ah_tape *tape, const struct ah_node *node, int dy, enum ah_op backward)
{
    int over = dy, out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_own(tape, &over));
    AH_TRY(ah__tape_emit(tape, backward, (struct ah_attr){0}, ah__values(over, node->in[0]), NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, node->in[0], out[0]);
}

int ah__gradient_gelu(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return in_place(tape, node, dy, AH_OP_GELU_BWD);
}

int ah__gradient_gelu_erf(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return in_place(tape, node, dy, AH_OP_GELU_ERF_BWD);
}

int ah__gradient_relu(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return in_place(tape, node, dy, AH_OP_RELU_BWD);
}

static int gated(struct ah_tape *tape, const struct ah_node *node, int dy, enum ah_op backward)
{
    int gate = node->in[0], up = node->in[1], over = dy, out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_own(tape, &over));
    AH_TRY(ah__tape_emit(tape, backward, (struct ah_attr){0}, ah__values(over, gate, up), NULL, out));
    ah__tape_release(tape, dy);
    AH_TRY(ah__tape_add(tape, gate, out[0]));
    return ah__tape_add(tape, up, out[1]);
}

int ah__gradient_silu_mul(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return gated(tape, node, dy, AH_OP_SILU_MUL_BWD);
}

/* Emits the gradient of an operator whose gate and other factor are halves of a row. */
static int halves(struct ah_tape *tape, const struct ah_node *node, int dy, enum ah_op op)
{
    int out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_emit(tape, op, node->attr, ah__values(dy, node->in[0]), NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, node->in[0], out[0]);
}

int ah__gradient_silu_mul_halves(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return halves(tape, node, dy, AH_OP_SILU_MUL_HALVES_BWD);
}

int ah__gradient_swiglu_clamped(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return halves(tape, node, dy, AH_OP_SWIGLU_CLAMPED_BWD);
}

int ah__gradient_gelu_mul(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return gated(tape, node, dy, AH_OP_GELU_MUL_BWD);
}
