#include "autodiff/tape.h"

int ah__gradient_layernorm(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int x = node->in[0], weight = node->in[1], bias = node->in[2], mean = node->out[1], rstd = node->out[2];
    int out[AH_OP_MAX_OUTPUTS];
    struct ah_attr attr = node->attr;
    ah__tape_param_begin(tape, &attr, 1, weight);
    if (bias >= 0)
        ah__tape_param_begin(tape, &attr, 2, bias);
    AH_TRY(ah__tape_emit(tape, AH_OP_LAYERNORM_BWD, attr, ah__values(dy, x, weight, mean, rstd), NULL, out));
    AH_TRY(ah__tape_param_end(tape, weight, out[1]));
    if (bias >= 0)
        AH_TRY(ah__tape_param_end(tape, bias, out[2]));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, x, out[0]);
}

int ah__gradient_rmsnorm(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int x = node->in[0], weight = node->in[1], rstd = node->out[1], out[AH_OP_MAX_OUTPUTS];
    struct ah_attr attr = node->attr;
    ah__tape_param_begin(tape, &attr, 1, weight);
    AH_TRY(ah__tape_emit(tape, AH_OP_RMSNORM_BWD, attr, ah__values(dy, x, weight, rstd), NULL, out));
    AH_TRY(ah__tape_param_end(tape, weight, out[1]));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, x, out[0]);
}
