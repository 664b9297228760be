#include "autodiff/tape.h"

int ah__gradient_add(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    AH_TRY(ah__tape_add(tape, node->in[0], dy));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, node->in[1], dy);
}

int ah__gradient_copy(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, node->in[0], dy);
}

int ah__gradient_scale(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int over = dy, out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_own(tape, &over));
    AH_TRY(ah__tape_emit(tape, AH_OP_SCALE, node->attr, ah__values(over), NULL, out));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, node->in[0], out[0]);
}
