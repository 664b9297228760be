#include "partition/section.h"

/* State of copying the operators of one partition from the recorded graph; arrays are indexed by recorded values. */
struct copying {
    const struct ah_cut *cut;
    struct ah_section *section;
    int number, first, end;
    bool overwrites; /* nobody else reads the input */
    int *map;        /* the section's value, -1: not there yet */
    int *last_read;  /* last node of the partition that reads it, -1: none */
    bool *keep;      /* backward will read it */
    struct ah_arena arena;
};

static void note_reads(struct copying *copying, int n)
{
    const struct ah_node *node = &copying->cut->graph->nodes[n];
    const struct ah_op_row *row = ah__op_table[node->op];
    bool learns = ah__cut_learns(copying->cut, copying->number);
    for (int i = 0; i < row->inputs; i++)
        if (node->in[i] >= 0) {
            copying->last_read[node->in[i]] = n;
            copying->keep[node->in[i]] |= learns && row->in[i].backward_reads;
        }
    for (int i = 0; i < row->outputs; i++)
        copying->keep[node->out[i]] |= learns && row->out[i].backward_reads;
}

static int copying_init(struct copying *copying)
{
    size_t count = copying->cut->graph->value_count;
    AH_TRY(ah__arena_new(&copying->arena, &copying->map, count, sizeof *copying->map));
    AH_TRY(ah__arena_new(&copying->arena, &copying->last_read, count, sizeof *copying->last_read));
    AH_TRY(ah__arena_new(&copying->arena, &copying->keep, count, sizeof *copying->keep));
    for (size_t i = 0; i < count; i++) {
        copying->map[i] = copying->last_read[i] = -1;
        copying->keep[i] = false;
    }
    for (int n = copying->first; n < copying->end; n++)
        note_reads(copying, n);
    return AH_OK;
}

/* Adds a value from outside to the section: its input, targets, positions, or a parameter. */
static int bring_in(struct copying *copying, int main)
{
    struct ah_section *section = copying->section;
    struct ah_value value = copying->cut->graph->values[main];
    AH_TRY(ah__graph_value(section->graph, &copying->map[main], &value));
    int made = copying->map[main];
    if (value.kind == AH_VALUE_TARGETS)
        section->graph->targets = made;
    if (value.kind == AH_VALUE_POSITIONS)
        section->graph->positions = made;
    if (value.kind == AH_VALUE_TOKENS)
        section->graph->tokens = made;
    if (value.kind != AH_VALUE_PARAM)
        return AH_OK;
    size_t count = section->param_count + 1;
    AH_TRY(ah__grow(&section->params, &section->param_capacity, count, sizeof *section->params));
    AH_TRY(ah__grow(&section->recorded, &section->recorded_capacity, count, sizeof *section->recorded));
    /* The head has written the gradient of the shared parameter before the embedding's backward adds to it. */
    bool written = copying->number == 0 && copying->cut->shared_by[value.whole] >= 0;
    section->recorded[section->param_count] = main;
    section->params[section->param_count++] =
        (struct ah_autodiff_param){made, written, value.frozen && !copying->cut->infers};
    return AH_OK;
}

static int append_copy(struct ah_section *section, int *value)
{
    int out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__graph_node(section->graph, AH_OP_COPY, &(struct ah_attr){0}, ah__values(*value), NULL, out));
    *value = out[0];
    return AH_OK;
}

/* Keeps an operator from overwriting a value that is still needed. Sums commute bit for bit, so a sum may overwrite its
 * other operand. */
static int protect(struct copying *copying, int n, int *in)
{
    const struct ah_node *node = &copying->cut->graph->nodes[n];
    int input = copying->overwrites ? -1 : copying->section->input, a = node->in[0], b = node->in[1];
    if (ah__op_inplace_output(node->op) < 0 || (!copying->keep[a] && in[0] != input))
        return AH_OK;
    if (node->op == AH_OP_ADD && !copying->keep[b] && in[1] != input && copying->last_read[b] == n) {
        in[0] = copying->map[b];
        in[1] = copying->map[a];
        return AH_OK;
    }
    return append_copy(copying->section, &in[0]);
}

/* Adds the loss's scale: the loss of one micro-batch is not the mean of its own tokens but its part of the mean of
 * all. */
static int bring_scale(struct copying *copying, const struct ah_op_row *row, int *in)
{
    for (int i = 0; copying->cut->scaled && i < row->inputs; i++)
        if (row->in[i].kind == AH_OPERAND_SCALE) {
            struct ah_value scale = {.meta = {AH_F32, ah_shape1(1)}, .kind = AH_VALUE_SCALE};
            AH_TRY(ah__graph_value(copying->section->graph, &in[i], &scale));
            copying->section->scale = in[i];
        }
    return AH_OK;
}

static int copy_node(struct copying *copying, int n)
{
    const struct ah_node *node = &copying->cut->graph->nodes[n];
    const struct ah_op_row *row = ah__op_table[node->op];
    int in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS];
    for (int i = 0; i < row->inputs; i++) {
        if (node->in[i] >= 0 && copying->map[node->in[i]] < 0)
            AH_TRY(bring_in(copying, node->in[i]));
        in[i] = node->in[i] < 0 ? -1 : copying->map[node->in[i]];
    }
    AH_TRY(bring_scale(copying, row, in));
    AH_TRY(protect(copying, n, in));
    struct ah_values values = {in, row->inputs};
    AH_TRY(ah__graph_node(copying->section->graph, node->op, &node->attr, values, NULL, out));
    for (int i = 0; i < row->outputs; i++)
        copying->map[node->out[i]] = out[i];
    return AH_OK;
}

/* Gives the output memory of its own: it must not be the input's, nor a value that backward reads here. A frozen lowest
 * block's output is in the input's memory, and is not written before the input was read. */
static int settle_output(struct copying *copying)
{
    struct ah_section *section = copying->section;
    const struct ah_cut *cut = copying->cut;
    const struct ah_value *values = section->graph->values;
    if (copying->number > cut->layers) {
        section->loss = copying->map[cut->graph->loss];
        return AH_OK;
    }
    int main = cut->entering[copying->number + 1];
    section->output = copying->map[main];
    if (copying->overwrites)
        return values[section->output].storage == values[section->input].storage
                   ? AH_OK
                   : append_copy(section, &section->output);
    if (copying->keep[main] || section->output == section->input)
        return append_copy(section, &section->output);
    return AH_OK;
}

static int copy_forward(struct copying *copying)
{
    AH_TRY(copying_init(copying));
    int entering = copying->cut->entering[copying->number];
    AH_TRY(bring_in(copying, entering));
    copying->section->input = copying->map[entering];
    for (int n = copying->first; n < copying->end; n++)
        AH_TRY(copy_node(copying, n));
    AH_TRY(settle_output(copying));
    copying->section->forward_count = (int)copying->section->graph->node_count;
    return AH_OK;
}

static int differentiate(struct ah_section *section)
{
    bool wanted = section->graph->values[section->input].kind == AH_VALUE_ACTIVATION;
    struct ah_autodiff diff = {
        .graph = section->graph,
        .forward_count = section->forward_count,
        .output = section->output,
        .loss = section->loss,
        .input = wanted ? section->input : -1,
        .params = section->params,
        .param_count = section->param_count,
    };
    int status = ah__autodiff(&diff);
    section->dout = diff.dout;
    section->din = diff.din;
    section->grads = diff.grads;
    section->grad_count = diff.grad_count;
    return status;
}

int ah__section_init(struct ah_section *section, const struct ah_cut *cut, int number)
{
    *section = (struct ah_section){.input = -1, .output = -1, .loss = -1, .scale = -1, .dout = -1, .din = -1};
    AH_TRY(ah_graph_new(&section->graph, cut->graph->compute));
    struct copying copying = {.cut = cut, .section = section, .number = number};
    copying.overwrites = number >= 1 && number <= cut->below;
    copying.first = cut->first_node[number];
    copying.end = cut->first_node[number + 1];
    int status = copy_forward(&copying);
    ah__arena_free(&copying.arena);
    return status == AH_OK && ah__cut_learns(cut, number) ? differentiate(section) : status;
}

void ah__section_fini(struct ah_section *section)
{
    ah_graph_free(section->graph);
    ah__free(section->params);
    ah__free(section->recorded);
    ah__free(section->grads);
    *section = (struct ah_section){0};
}
