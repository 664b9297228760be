#include "autodiff/tape.h"

int ah__gradient_embedding(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    int table = node->in[0], ids = node->in[1];
    AH_TRY(ah__tape_param(tape, AH_OP_EMBEDDING_BWD, node->attr, ah__values(dy, ids), table));
    ah__tape_release(tape, dy);
    return AH_OK;
}

int ah__gradient_add_position(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    AH_TRY(ah__tape_param(tape, AH_OP_POSITION_BWD, node->attr, ah__values(dy), node->in[1]));
    ah__tape_release(tape, dy);
    return ah__tape_add(tape, node->in[0], dy);
}
