#include "autodiff/tape.h"

int ah__gradient_attention(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int qkv = node->in[0], y = node->out[0], lse = node->out[1], out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_emit(tape, AH_OP_ATTENTION_BWD, node->attr, ah__values(dy, qkv, y, lse), NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, qkv, out[0]);
}
