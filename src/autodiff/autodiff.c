/* The reverse pass: each forward operator gives gradients to its inputs; several gradients of one value are summed in
 * place. */
#include "autodiff/tape.h"

static ah_gradient_rule *const rules[AH_OP_COUNT] = {
#define ENTRY(id, name) [AH_OP_##id] = ah__gradient_##name,
    AH_OP_FORWARD_LIST(ENTRY)
#undef ENTRY
};

static int seed(struct ah_tape *tape)
{
    struct ah_autodiff *diff = tape->diff;
    struct ah_graph *graph = diff->graph;
    diff->dout = diff->din = -1;
    AH_TRY(ah__grow(&tape->states, &tape->capacity, graph->value_count + 1, sizeof *tape->states));
    if (diff->output < 0)
        return AH_OK;
    struct ah_value value = {.meta = graph->values[diff->output].meta, .kind = AH_VALUE_ACTIVATION};
    AH_TRY(ah__graph_value(graph, &diff->dout, &value));
    return ah__tape_add(tape, diff->output, diff->dout);
}

static int reverse_pass(struct ah_tape *tape)
{
    struct ah_autodiff *diff = tape->diff;
    for (int n = diff->forward_count - 1; n >= 0; n--) {
        struct ah_node node = diff->graph->nodes[n]; /* not a pointer: the rule appends nodes */
        int dy = tape->states[node.out[0]].grad_plus_1 - 1;
        if (!rules[node.op])
            return ah__fail(AH_EINTERNAL, "%s has no gradient rule", ah__op_table[node.op]->name);
        if (dy < 0 && node.out[0] != diff->loss)
            return ah__fail(AH_EINTERNAL, "%s: no gradient reaches value %%%d", ah__op_table[node.op]->name,
                            node.out[0]);
        AH_TRY(rules[node.op](tape, &node, dy));
    }
    if (diff->input >= 0)
        diff->din = tape->states[diff->input].grad_plus_1 - 1;
    return AH_OK;
}

int ah__autodiff(struct ah_autodiff *diff)
{
    struct ah_tape tape = {.diff = diff};
    int status = seed(&tape);
    if (status == AH_OK)
        status = reverse_pass(&tape);
    ah__free(tape.states);
    return status;
}
