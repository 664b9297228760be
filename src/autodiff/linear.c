#include "autodiff/tape.h"

int ah__gradient_linear(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int x = node->in[0], weight = node->in[1], bias = node->in[2], out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_param(tape, AH_OP_LINEAR_BWD_W, node->attr, ah__values(dy, x), weight));
    if (bias >= 0)
        AH_TRY(ah__tape_param(tape, AH_OP_LINEAR_BWD_B, (struct ah_attr){0}, ah__values(dy), bias));
    AH_TRY(ah__tape_emit(tape, AH_OP_LINEAR_BWD_X, node->attr, ah__values(dy, weight), NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, x, out[0]);
}
