#include "autodiff/tape.h"

int ah__gradient_attention(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int qkv = node->in[0], positions = node->in[1], y = node->out[0], lse = node->out[1], out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_emit(tape, AH_OP_ATTENTION_BWD, node->attr, ah__values(dy, qkv, y, lse, positions), NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, qkv, out[0]);
}

int ah__gradient_attention_qkv(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int q = node->in[0], k = node->in[1], v = node->in[2], positions = node->in[3], y = node->out[0];
    int lse = node->out[1], sinks = node->in[4], out[AH_OP_MAX_OUTPUTS];
    struct ah_values in = ah__values(dy, q, k, v, y, lse, positions);
    if (sinks >= 0)
        AH_TRY(ah__tape_param(tape, AH_OP_SINKS_BWD, (struct ah_attr){0}, ah__values(dy, y, lse, sinks), sinks));
    AH_TRY(ah__tape_emit(tape, AH_OP_ATTENTION_QKV_BWD, node->attr, in, NULL, out));
    ah__tape_release(tape, dy);
    AH_TRY(ah__tape_add(tape, q, out[0]));
    AH_TRY(ah__tape_add(tape, k, out[1]));
    return ah__tape_add(tape, v, out[2]);
}
