#include "autodiff/tape.h"

int ah__gradient_route(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int logits = node->in[0], out[AH_OP_MAX_OUTPUTS];
    struct ah_values in = ah__values(logits, dy, node->out[0], node->out[1], node->out[3]);
    AH_TRY(ah__tape_emit(tape, AH_OP_ROUTE_BWD, node->attr, in, NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, logits, out[0]);
}

/* Emits the operator that takes the gradient's rows back to where they came from. */
static int back(struct ah_tape *tape, const struct ah_node *node, int dy, enum ah_op op)
{
    int out[AH_OP_MAX_OUTPUTS];
    struct ah_values in = ah__values(dy, node->in[1], node->in[2]);
    AH_TRY(ah__tape_emit(tape, op, (struct ah_attr){0}, in, NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, node->in[0], out[0]);
}

int ah__gradient_dispatch(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return back(tape, node, dy, AH_OP_COMBINE);
}

int ah__gradient_combine(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    return back(tape, node, dy, AH_OP_DISPATCH);
}

int ah__gradient_scale_rows(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int x = node->in[0], weights = node->in[1], source = node->in[2], over = dy, out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_own(tape, &over));
    struct ah_values in = ah__values(over, x, weights, source);
    AH_TRY(ah__tape_emit(tape, AH_OP_SCALE_ROWS_BWD, (struct ah_attr){0}, in, NULL, out));
    ah__tape_release(tape, dy);
    AH_TRY(ah__tape_add(tape, x, out[0]));
    return ah__tape_add(tape, weights, out[1]);
}

int ah__gradient_gate_rows(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int x = node->in[0], gate = node->in[1], out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_emit(tape, AH_OP_GATE_ROWS_BWD, (struct ah_attr){0}, ah__values(dy, x, gate), NULL, out));
    ah__tape_release(tape, dy);
    AH_TRY(ah__tape_add(tape, x, out[0]));
    return ah__tape_add(tape, gate, out[1]);
}

int ah__gradient_shares(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int weights = node->in[1], out[AH_OP_MAX_OUTPUTS];
    struct ah_values in = ah__values(dy, node->in[2], node->in[3]);
    AH_TRY(ah__tape_emit(tape, AH_OP_SHARES_BWD, (struct ah_attr){0}, in, NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, weights, out[0]);
}

int ah__gradient_grouped_linear(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int x = node->in[0], weight = node->in[1], ends = node->in[2], bias = node->in[3], out[AH_OP_MAX_OUTPUTS];
    struct ah_attr attr = {0};
    AH_TRY(ah__tape_param(tape, AH_OP_GROUPED_LINEAR_BWD_W, attr, ah__values(dy, x, ends), weight));
    if (bias >= 0)
        AH_TRY(ah__tape_param(tape, AH_OP_GROUPED_LINEAR_BWD_B, attr, ah__values(dy, ends), bias));
    AH_TRY(ah__tape_emit(tape, AH_OP_GROUPED_LINEAR_BWD_X, attr, ah__values(dy, weight, ends), NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, x, out[0]);
}
