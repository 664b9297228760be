#include "autodiff/tape.h"

/* Adds the gradient of the logits, which forward has already written over them. */
int ah__gradient_cross_entropy(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    (void)dy;
    return ah__tape_add(tape, node->in[0], node->out[1]);
}

/* Adds both gradients, which forward computes. The weight's is either the first to be written or adds to the earlier
 * ones. */
int ah__gradient_linear_cross_entropy(struct ah_tape *tape, const struct ah_node *node, int dy)
{
    (void)dy;
    struct ah_graph *graph = tape->diff->graph;
    ah__tape_param_begin(tape, &graph->nodes[graph->values[node->out[3]].producer].attr, 3, node->in[1]);
    AH_TRY(ah__tape_param_end(tape, node->in[1], node->out[3]));
    return ah__tape_add(tape, node->in[0], node->out[2]);
}
