/* Reverse-mode differentiation of one partition. Each forward operator hands gradients to its inputs; several gradients of one
 * value are summed in place. A gradient's memory may be that of several values (a residual sum passes one gradient to both
 * sides), so memory is written over only while exactly one value still holds it. */
#include "partition/section.h"

struct slot {
    int grad_plus_1; /* by forward value: its gradient so far */
    int holders;     /* by storage of a gradient: values that still hold it */
};

struct tape {
    struct ah_section *section;
    struct slot *slots;
    size_t capacity;
};

static struct slot *holders_of(const struct tape *tape, int grad)
{
    return &tape->slots[tape->section->graph->values[grad].storage];
}

static int emit(struct tape *tape, enum ah_op op, struct ah_attr attr, const int *in, const struct ah_meta *given, int *out)
{
    AH_TRY(ah__graph_node(tape->section->graph, op, &attr, in, given, out));
    return ah__grow(&tape->slots, &tape->capacity, tape->section->graph->value_count, sizeof *tape->slots);
}

static int emit_copy(struct tape *tape, int *value)
{
    int in[AH_OP_MAX_INPUTS] = {*value, -1, -1, -1, -1}, out[AH_OP_MAX_OUTPUTS];
    AH_TRY(emit(tape, AH_OP_COPY, (struct ah_attr){0}, in, NULL, out));
    *value = out[0];
    return AH_OK;
}

static int emit_add(struct tape *tape, int to, int from, int *sum)
{
    int in[AH_OP_MAX_INPUTS] = {to, from, -1, -1, -1}, out[AH_OP_MAX_OUTPUTS];
    AH_TRY(emit(tape, AH_OP_ADD, (struct ah_attr){0}, in, NULL, out));
    *sum = out[0];
    return AH_OK;
}

static int accumulate(struct tape *tape, int value, int grad)
{
    int have = tape->slots[value].grad_plus_1 - 1, sum;
    struct ah_graph *graph = tape->section->graph;
    bool same = graph->values[have].storage == graph->values[grad].storage;
    if (!same && holders_of(tape, have)->holders == 1)
        AH_TRY(emit_add(tape, have, grad, &sum));
    else if (!same && holders_of(tape, grad)->holders == 0)
        AH_TRY(emit_add(tape, grad, have, &sum));
    else {
        int copy = have;
        AH_TRY(emit_copy(tape, &copy));
        AH_TRY(emit_add(tape, copy, grad, &sum));
    }
    holders_of(tape, have)->holders--;
    holders_of(tape, sum)->holders++;
    tape->slots[value].grad_plus_1 = sum + 1;
    return AH_OK;
}

static int give(struct tape *tape, int value, int grad)
{
    if (tape->slots[value].grad_plus_1)
        return accumulate(tape, value, grad);
    tape->slots[value].grad_plus_1 = grad + 1;
    holders_of(tape, grad)->holders++;
    return AH_OK;
}

static void let_go(struct tape *tape, int grad)
{
    holders_of(tape, grad)->holders--;
}

/* ---- gradients of parameters ----------------------------------------------------------------------------------------- */

static int param_index(const struct tape *tape, int value)
{
    int index = 0;
    while (tape->section->params[index].value != value)
        index++;
    return index;
}

/* Sets output bit `output` of attr->acc when the parameter's gradient has been written before, and remembers that it now is. */
static void param_begin(struct tape *tape, struct ah_attr *attr, int output, int param)
{
    struct ah_section_param *p = &tape->section->params[param_index(tape, param)];
    attr->acc |= (unsigned)p->written << output;
    p->written = true;
}

static int param_end(struct tape *tape, int param, int grad)
{
    struct ah_section *section = tape->section;
    AH_TRY(ah__grow(&section->grads, &section->grad_capacity, section->grad_count + 1, sizeof *section->grads));
    section->grads[section->grad_count++] = (struct ah_section_grad){grad, param_index(tape, param)};
    return AH_OK;
}

static int param_grad(struct tape *tape, enum ah_op op, struct ah_attr attr, int dy, int operand, int param)
{
    int in[AH_OP_MAX_INPUTS] = {dy, operand, -1, -1, -1}, out[AH_OP_MAX_OUTPUTS];
    struct ah_meta meta = tape->section->graph->values[param].meta;
    param_begin(tape, &attr, 0, param);
    AH_TRY(emit(tape, op, attr, in, &meta, out));
    return param_end(tape, param, out[0]);
}

/* ---- one rule per operator ------------------------------------------------------------------------------------------- */

/* `dy` is the gradient of output 0; the rule lets go of it before its last gift. */
typedef int (*rule)(struct tape *tape, const struct ah_node *node, int dy);

static int embedding_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    AH_TRY(param_grad(tape, AH_OP_EMBEDDING_BWD, (struct ah_attr){0}, dy, node->in[1], node->in[0]));
    let_go(tape, dy);
    return AH_OK;
}

static int add_position_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    AH_TRY(param_grad(tape, AH_OP_POSITION_BWD, (struct ah_attr){0}, dy, -1, node->in[1]));
    let_go(tape, dy);
    return give(tape, node->in[0], dy);
}

static int layernorm_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    int in[AH_OP_MAX_INPUTS] = {dy, node->in[0], node->in[1], node->out[1], node->out[2]}, out[AH_OP_MAX_OUTPUTS];
    struct ah_attr attr = node->attr;
    param_begin(tape, &attr, 1, node->in[1]);
    param_begin(tape, &attr, 2, node->in[2]);
    AH_TRY(emit(tape, AH_OP_LAYERNORM_BWD, attr, in, NULL, out));
    AH_TRY(param_end(tape, node->in[1], out[1]));
    AH_TRY(param_end(tape, node->in[2], out[2]));
    let_go(tape, dy);
    return give(tape, node->in[0], out[0]);
}

static int linear_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    int in[AH_OP_MAX_INPUTS] = {dy, node->in[1], -1, -1, -1}, out[AH_OP_MAX_OUTPUTS];
    AH_TRY(param_grad(tape, AH_OP_LINEAR_BWD_W, node->attr, dy, node->in[0], node->in[1]));
    if (node->in[2] >= 0)
        AH_TRY(param_grad(tape, AH_OP_LINEAR_BWD_B, (struct ah_attr){0}, dy, -1, node->in[2]));
    AH_TRY(emit(tape, AH_OP_LINEAR_BWD_X, node->attr, in, NULL, out));
    let_go(tape, dy);
    return give(tape, node->in[0], out[0]);
}

static int attention_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    int in[AH_OP_MAX_INPUTS] = {dy, node->in[0], node->out[0], node->out[1], -1}, out[AH_OP_MAX_OUTPUTS];
    AH_TRY(emit(tape, AH_OP_ATTENTION_BWD, node->attr, in, NULL, out));
    let_go(tape, dy);
    return give(tape, node->in[0], out[0]);
}

static int pointwise_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    int to = dy, out[AH_OP_MAX_OUTPUTS];
    if (holders_of(tape, dy)->holders > 1)
        AH_TRY(emit_copy(tape, &to));
    int in[AH_OP_MAX_INPUTS] = {to, node->in[0], -1, -1, -1};
    AH_TRY(emit(tape, node->op == AH_OP_GELU ? AH_OP_GELU_BWD : AH_OP_RELU_BWD, (struct ah_attr){0}, in, NULL, out));
    let_go(tape, dy);
    return give(tape, node->in[0], out[0]);
}

static int add_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    AH_TRY(give(tape, node->in[0], dy));
    let_go(tape, dy);
    return give(tape, node->in[1], dy);
}

static int copy_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    let_go(tape, dy);
    return give(tape, node->in[0], dy);
}

/* Forward has already put the gradient of the logits where they were. */
static int cross_entropy_rule(struct tape *tape, const struct ah_node *node, int dy)
{
    (void)dy;
    return give(tape, node->in[0], node->out[1]);
}

static const struct {
    rule backward;
    struct ah_backward_reads reads;
} rules[AH_OP_COUNT] = {
    [AH_OP_EMBEDDING] = {embedding_rule, {2, 0}},     [AH_OP_ADD_POSITION] = {add_position_rule, {0, 0}},
    [AH_OP_LAYERNORM] = {layernorm_rule, {3, 6}},     [AH_OP_LINEAR] = {linear_rule, {3, 0}},
    [AH_OP_ATTENTION] = {attention_rule, {1, 3}},     [AH_OP_GELU] = {pointwise_rule, {1, 0}},
    [AH_OP_RELU] = {pointwise_rule, {1, 0}},          [AH_OP_ADD] = {add_rule, {0, 0}},
    [AH_OP_CROSS_ENTROPY] = {cross_entropy_rule, {0, 2}}, [AH_OP_COPY] = {copy_rule, {0, 0}},
};

struct ah_backward_reads ah__backward_reads(enum ah_op op)
{
    return rules[op].reads;
}

/* ---- the walk -------------------------------------------------------------------------------------------------------- */

static int seed(struct tape *tape)
{
    struct ah_section *section = tape->section;
    AH_TRY(ah__grow(&tape->slots, &tape->capacity, section->graph->value_count + 1, sizeof *tape->slots));
    if (section->output < 0)
        return AH_OK;
    struct ah_value value = {.meta = section->graph->values[section->output].meta, .kind = AH_VALUE_ACTIVATION};
    AH_TRY(ah__graph_value(section->graph, &section->dout, &value));
    return give(tape, section->output, section->dout);
}

static int walk_back(struct tape *tape)
{
    struct ah_section *section = tape->section;
    for (int n = section->forward_count - 1; n >= 0; n--) {
        struct ah_node node = section->graph->nodes[n];
        int dy = tape->slots[node.out[0]].grad_plus_1 - 1;
        if (dy < 0 && node.out[0] != section->loss)
            return ah__fail(AH_EINTERNAL, "%s: no gradient reaches value %%%d", ah__op_table[node.op].name, node.out[0]);
        AH_TRY(rules[node.op].backward(tape, &node, dy));
    }
    if (section->graph->values[section->input].kind == AH_VALUE_ACTIVATION)
        section->din = tape->slots[section->input].grad_plus_1 - 1;
    return AH_OK;
}

int ah__section_differentiate(struct ah_section *section)
{
    struct tape tape = {.section = section};
    int status = seed(&tape);
    if (status == AH_OK)
        status = walk_back(&tape);
    ah__free(tape.slots);
    return status;
}
