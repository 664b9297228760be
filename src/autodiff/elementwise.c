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
