#include "autodiff/tape.h"

/* Forward has already put the gradient of the logits where they were. */
int ah__gradient_cross_entropy(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    (void)dy;
    return ah__tape_add(tape, node->in[0], node->out[1]);
}

/* Forward gives both gradients. The weight's is the first that is written, or adds to what is there. */
int ah__gradient_linear_cross_entropy(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    (void)dy;
    struct ah_graph *graph = tape->diff->graph;
    ah__tape_param_begin(tape, &graph->nodes[graph->values[node->out[3]].producer].attr, 3, node->in[1]);
    AH_TRY(ah__tape_param_end(tape, node->in[1], node->out[3]));
    return ah__tape_add(tape, node->in[0], node->out[2]);
}
