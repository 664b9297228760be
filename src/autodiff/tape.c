#include "autodiff/tape.h"

static struct ah_grad_state *state_of(const struct ah_tape *tape, int grad)
{
    return &tape->states[tape->diff->graph->values[grad].storage];
}

int ah__tape_emit(struct ah_tape *tape, enum ah_op op, struct ah_attr attr, struct ah_values in,
                  const struct ah_meta *given, int *out)
{
    struct ah_graph *graph = tape->diff->graph;
    AH_TRY(ah__graph_node(graph, op, &attr, in, given, out));
    return ah__grow(&tape->states, &tape->capacity, graph->value_count, sizeof *tape->states);
}

static int emit_copy(struct ah_tape *tape, int *value)
{
    int out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_emit(tape, AH_OP_COPY, (struct ah_attr){0}, ah__values(*value), NULL, out));
    *value = out[0];
    return AH_OK;
}

static int emit_add(struct ah_tape *tape, int to, int from, int *sum)
{
    int out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__tape_emit(tape, AH_OP_ADD, (struct ah_attr){0}, ah__values(to, from), NULL, out));
    *sum = out[0];
    return AH_OK;
}

/* Adds two gradients; the sum overwrites one that no other value holds, or else a copy. */
static int accumulate(struct ah_tape *tape, int value, int grad)
{
    int have = tape->states[value].grad_plus_1 - 1, sum;
    bool same = state_of(tape, have) == state_of(tape, grad);
    if (!same && state_of(tape, have)->holders == 1)
        AH_TRY(emit_add(tape, have, grad, &sum));
    else if (!same && state_of(tape, grad)->holders == 0)
        AH_TRY(emit_add(tape, grad, have, &sum));
    else {
        int copy = have;
        AH_TRY(emit_copy(tape, &copy));
        AH_TRY(emit_add(tape, copy, grad, &sum));
    }
    state_of(tape, have)->holders--;
    state_of(tape, sum)->holders++;
    tape->states[value].grad_plus_1 = sum + 1;
    return AH_OK;
}

int ah__tape_add(struct ah_tape *tape, int value, int grad)
{
    if (tape->states[value].grad_plus_1)
        return accumulate(tape, value, grad);
    tape->states[value].grad_plus_1 = grad + 1;
    state_of(tape, grad)->holders++;
    return AH_OK;
}

void ah__tape_release(struct ah_tape *tape, int grad)
{
    state_of(tape, grad)->holders--;
}

int ah__tape_own(struct ah_tape *tape, int *grad)
{
    return state_of(tape, *grad)->holders > 1 ? emit_copy(tape, grad) : AH_OK;
}

/* ---- gradients of parameters ------------------------------------------------------------------------------------ */

static size_t param_index(const struct ah_tape *tape, int value)
{
    size_t index = 0;
    while (tape->diff->params[index].value != value)
        index++;
    return index;
}

void ah__tape_param_begin(struct ah_tape *tape, struct ah_attr *attr, int output, int param)
{
    struct ah_autodiff_param *p = &tape->diff->params[param_index(tape, param)];
    attr->acc |= (unsigned)p->written << output;
    p->written = true;
}

int ah__tape_param_end(struct ah_tape *tape, int param, int grad)
{
    struct ah_autodiff *diff = tape->diff;
    if (diff->params[param_index(tape, param)].frozen)
        return AH_OK;
    AH_TRY(ah__grow(&diff->grads, &diff->grad_capacity, diff->grad_count + 1, sizeof *diff->grads));
    diff->grads[diff->grad_count++] = (struct ah_autodiff_grad){grad, (int)param_index(tape, param)};
    return AH_OK;
}

int ah__tape_param(struct ah_tape *tape, enum ah_op op, struct ah_attr attr, struct ah_values in, int param)
{
    struct ah_meta meta = {AH_F32, tape->diff->graph->values[param].meta.shape};
    int out[AH_OP_MAX_OUTPUTS];
    if (tape->diff->params[param_index(tape, param)].frozen)
        return AH_OK;
    ah__tape_param_begin(tape, &attr, 0, param);
    AH_TRY(ah__tape_emit(tape, op, attr, in, &meta, out));
    return ah__tape_param_end(tape, param, out[0]);
}
