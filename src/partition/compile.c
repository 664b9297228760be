#include "partition/compile.h"

#include <string.h>

/* Kinds of programs, which decide the spaces of their values. */
enum mode { MODE_FORWARD, MODE_FORWARD_DROP, MODE_RECOMPUTE, MODE_RECOMPUTE_SELECTIVE, MODE_BACKWARD, MODE_INFER };

struct place {
    enum ah_space space; /* AH_SPACE_NONE: in WORK */
    int64_t offset;
};

struct compiling {
    struct ah_code *code;
    struct ah_partition *partition;
    struct ah_section *section;
    int number;
    const int *param_of;
    bool *wanted;          /* by value: backward reads it, or it is needed to compute a value that backward reads */
    bool *cheap_wanted;    /* by value: the same for values that selective recomputation recomputes */
    bool *leads;           /* by value: it is the logits, or needed to compute them */
    bool *saved;           /* by storage: it is in SAVED, or in CHEAP if `cheap` is set */
    bool *cheap;           /* by storage: selective recomputation recomputes it */
    int64_t *saved_offset; /* in SAVED or CHEAP */
    struct place *places;  /* by storage, for the program being compiled */
    bool *absent;          /* by value: an optional result that the program being compiled leaves out */
    struct ah_live *live;
    struct ah_interval *intervals;
    int *nodes; /* of the program being compiled */
    int count;
    bool din_at_boundary; /* din's own memory is BOUNDARY from its first write on */
    struct ah_arena arena;
};

static int64_t align_up(int64_t bytes)
{
    return (bytes + AH_OPERAND_ALIGN - 1) / AH_OPERAND_ALIGN * AH_OPERAND_ALIGN;
}

static int storage_of(const struct compiling *c, int value)
{
    return c->section->graph->values[value].storage;
}

static bool in_forward(const struct compiling *c, int value)
{
    int producer = c->section->graph->values[value].producer;
    return producer >= 0 && producer < c->section->forward_count;
}

static void take_backward(struct compiling *c)
{
    c->count = 0;
    for (int n = c->section->forward_count; n < (int)c->section->graph->node_count; n++)
        c->nodes[c->count++] = n;
}

static void take_forward(struct compiling *c)
{
    for (c->count = 0; c->count < c->section->forward_count; c->count++)
        c->nodes[c->count] = c->count;
}

/* ---- saved activations ------------------------------------------------------------------------------------------ */

/* Places the caches, which have the same offset in every program. */
static void place_caches(struct compiling *c)
{
    const struct ah_graph *graph = c->section->graph;
    int64_t bytes = 0;
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].kind == AH_VALUE_CACHE && graph->values[v].storage == (int)v) {
            c->places[v] = (struct place){AH_SPACE_CACHE, bytes};
            bytes += align_up(ah__value_bytes(&graph->values[v]));
        }
    c->code->cache_bytes = bytes;
}

static void find_saved(struct compiling *c)
{
    const struct ah_graph *graph = c->section->graph;
    int64_t bytes = 0;
    for (int n = c->section->forward_count; n < (int)graph->node_count; n++)
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++) {
            int value = graph->nodes[n].in[i];
            if (value < 0 || !in_forward(c, value))
                continue;
            c->wanted[value] = true;
            c->saved[storage_of(c, value)] = true;
        }
    ah__cheap_find(c->cheap, c->section, c->saved);
    for (int part = 0; part < 2; part++) {
        int64_t start = bytes;
        for (size_t v = 0; v < graph->value_count; v++)
            if (c->saved[v] && c->cheap[v] == (part == 1)) {
                c->saved_offset[v] = bytes - start;
                bytes += align_up(ah__value_bytes(&graph->values[v]));
            }
        c->code->kept_bytes = part == 0 ? bytes : start;
    }
    c->code->saved_bytes = bytes;
}

/* Takes the forward operators that compute needed values. Their inputs are needed too, if they are in `made` (by
 * storage; null: all are). */
static void take_needed(struct compiling *c, bool *needed, const bool *made)
{
    const struct ah_graph *graph = c->section->graph;
    int kept = 0;
    for (int n = c->section->forward_count - 1; n >= 0; n--) {
        const struct ah_node *node = &graph->nodes[n];
        bool keep = false;
        for (int i = 0; i < ah__op_table[node->op]->outputs; i++)
            keep = keep || needed[node->out[i]];
        for (int i = 0; keep && i < AH_OP_MAX_INPUTS; i++)
            if (node->in[i] >= 0 && (!made || made[storage_of(c, node->in[i])]))
                needed[node->in[i]] = true;
        if (keep)
            c->nodes[kept++] = n;
    }
    for (int i = 0; i < kept / 2; i++) {
        int other = c->nodes[kept - 1 - i];
        c->nodes[kept - 1 - i] = c->nodes[i];
        c->nodes[i] = other;
    }
    c->count = kept;
}

/* Finds the cheap values that backward reads. Called before other values are marked as wanted. */
static void find_cheap_wanted(struct compiling *c)
{
    for (size_t v = 0; v < c->section->graph->value_count; v++)
        c->cheap_wanted[v] = c->wanted[v] && c->cheap[storage_of(c, (int)v)];
}

static int copy_din(struct ah_section *section)
{
    int out[AH_OP_MAX_OUTPUTS];
    AH_TRY(ah__graph_node(section->graph, AH_OP_COPY, &(struct ah_attr){0}, ah__values(section->din), NULL, out));
    section->din = out[0];
    return AH_OK;
}

/* Places the gradient of the input in BOUNDARY, from which the gradient of the output is read. Mostly it is there
 * already, or can be written there because the gradient of the output is dead; else a copy is added at the end. */
static int settle_boundary(struct compiling *c)
{
    struct ah_section *section = c->section;
    if (section->din < 0 || (section->dout >= 0 && storage_of(c, section->din) == storage_of(c, section->dout)))
        return AH_OK;
    take_backward(c);
    ah__graph_live(c->live, section->graph, c->nodes, c->count);
    int din = storage_of(c, section->din), busy = section->dout < 0 ? -1 : c->live[storage_of(c, section->dout)].last;
    bool own = section->graph->values[din].producer >= section->forward_count;
    if (!own || c->live[din].first <= busy)
        AH_TRY(copy_din(section));
    c->din_at_boundary = true;
    return AH_OK;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static void place(struct compiling *c, int value, enum ah_space space, int64_t offset)
{
    if (value >= 0)
        c->places[storage_of(c, value)] = (struct place){space, offset};
}

static void place_params(struct compiling *c)
{
    const struct ah_section *section = c->section;
    int64_t element = ah__dtype_bytes(c->partition->compute);
    for (size_t i = 0; i < section->param_count; i++) {
        const struct ah_param *param = &c->partition->params[c->param_of[section->recorded[i]]];
        place(c, section->params[i].value, param->group == c->number ? AH_SPACE_PARAM : AH_SPACE_SHARED,
              (param->place + section->graph->values[section->params[i].value].first) * element);
    }
    for (size_t i = 0; i < section->grad_count; i++) {
        int index = section->grads[i].param, read = section->params[index].value;
        const struct ah_param *param = &c->partition->params[c->param_of[section->recorded[index]]];
        int64_t bytes = ah__dtype_bytes(section->graph->values[section->grads[i].value].meta.dtype);
        place(c, section->grads[i].value, param->group == c->number ? AH_SPACE_GRAD : AH_SPACE_SHARED_GRAD,
              (param->offset + section->graph->values[read].first) * bytes);
    }
}

static bool is_gradient(const struct compiling *c, int value)
{
    const struct ah_section *section = c->section;
    for (size_t i = 0; i < section->grad_count; i++)
        if (section->grads[i].value == value)
            return true;
    return false;
}

/* Marks the optional results that a program leaves out. They are for backward; optional gradients of parameters that
 * are frozen or absent are not needed at all. */
static void leave_out(struct compiling *c, enum mode mode)
{
    const struct ah_graph *graph = c->section->graph;
    memset(c->absent, 0, graph->value_count * sizeof *c->absent);
    for (int n = 0; n < c->count; n++) {
        const struct ah_node *node = &graph->nodes[c->nodes[n]];
        for (int i = 0; i < ah__op_table[node->op]->outputs; i++) {
            const struct ah_op_operand *out = &ah__op_table[node->op]->out[i];
            bool learned = out->kind != AH_OPERAND_PARAM_GRADIENT || is_gradient(c, node->out[i]);
            c->absent[node->out[i]] = out->optional && (mode == MODE_FORWARD_DROP || !learned);
        }
    }
}

static void place_fixed(struct compiling *c, enum mode mode)
{
    const struct ah_section *section = c->section;
    memset(c->places, 0, section->graph->value_count * sizeof *c->places);
    leave_out(c, mode);
    place_params(c);
    place_caches(c);
    place(c, section->input, AH_SPACE_INPUT, 0);
    place(c, section->graph->targets, AH_SPACE_TARGETS, 0);
    place(c, section->graph->positions, AH_SPACE_POSITIONS, 0);
    place(c, section->loss, AH_SPACE_LOSS, 0);
    place(c, section->scale, AH_SPACE_SCALE, 0);
    place(c, section->dout, AH_SPACE_BOUNDARY, 0);
    if (mode != MODE_RECOMPUTE && mode != MODE_RECOMPUTE_SELECTIVE)
        place(c, section->output, AH_SPACE_OUTPUT, 0);
    if (c->din_at_boundary)
        place(c, section->din, AH_SPACE_BOUNDARY, 0);
    bool keep = mode != MODE_FORWARD_DROP && mode != MODE_INFER;
    for (size_t v = 0; keep && v < section->graph->value_count; v++)
        if (c->saved[v])
            c->places[v] = (struct place){c->cheap[v] ? AH_SPACE_CHEAP : AH_SPACE_SAVED, c->saved_offset[v]};
}

static int place_work(struct compiling *c, int64_t *work_bytes)
{
    const struct ah_graph *graph = c->section->graph;
    int count = 0;
    ah__graph_live(c->live, graph, c->nodes, c->count);
    for (int pass = 0; pass < 2; pass++) {
        int at = 0;
        for (size_t v = 0; v < graph->value_count; v++) {
            if (c->live[v].first < 0 || c->places[v].space != AH_SPACE_NONE || c->absent[v])
                continue;
            if (pass == 0)
                c->intervals[count++] = (struct ah_interval){c->live[v].first, c->live[v].last,
                                                             align_up(ah__value_bytes(&graph->values[v])), 0};
            else
                c->places[v] = (struct place){AH_SPACE_WORK, c->intervals[at++].offset};
        }
        if (pass == 0)
            AH_TRY(ah__intervals_place(c->intervals, count, work_bytes));
    }
    return AH_OK;
}

/* ---- programs --------------------------------------------------------------------------------------------------- */

static struct ah_operand operand(const struct compiling *c, int value)
{
    if (value < 0 || c->absent[value])
        return (struct ah_operand){.space = AH_SPACE_NONE};
    const struct place *at = &c->places[storage_of(c, value)];
    return (struct ah_operand){at->space, at->offset, c->section->graph->values[value].meta};
}

static int emit_program(struct compiling *c, struct ah_program *program, enum mode mode)
{
    struct ah_call *calls;
    *program = (struct ah_program){.count = c->count};
    place_fixed(c, mode);
    AH_TRY(place_work(c, &program->work_bytes));
    AH_TRY(ah__arena_new(&c->partition->arena, &calls, (size_t)c->count, sizeof *calls));
    for (int i = 0; i < c->count; i++) {
        const struct ah_node *node = &c->section->graph->nodes[c->nodes[i]];
        calls[i] = (struct ah_call){.op = node->op, .attr = node->attr};
        for (int j = 0; j < AH_OP_MAX_INPUTS; j++)
            calls[i].in[j] = operand(c, node->in[j]);
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            calls[i].out[j] = operand(c, node->out[j]);
        program->flops += ah__call_flops(&calls[i]);
    }
    program->calls = calls;
    return AH_OK;
}

static bool writes_gradient(const struct ah_operand *out)
{
    return out->space == AH_SPACE_GRAD || out->space == AH_SPACE_SHARED_GRAD;
}

/* Makes the same program, but adding to every gradient of a parameter that it writes. */
static int emit_adding(struct compiling *c, struct ah_program *adding, const struct ah_program *program)
{
    struct ah_call *calls;
    bool writes = false;
    if (c->partition->step.micro_batches < 2)
        return AH_OK;
    AH_TRY(ah__arena_new(&c->partition->arena, &calls, (size_t)program->count, sizeof *calls));
    for (int i = 0; i < program->count; i++) {
        calls[i] = program->calls[i];
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            if (writes_gradient(&calls[i].out[j])) {
                calls[i].attr.acc |= 1U << j;
                writes = true;
            }
    }
    if (!writes)
        return AH_OK;
    *adding = *program;
    adding->calls = calls;
    return AH_OK;
}

/* Finds the value of the logits: an input of the loss, or computed for this program from inputs of the loss by nodes
 * from *appended on. */
static int logits_find(struct compiling *c, int *logits, int *appended)
{
    struct ah_graph *graph = c->section->graph;
    struct ah_node loss = graph->nodes[graph->values[c->section->loss].producer];
    *appended = (int)graph->node_count;
    if (loss.op != AH_OP_LINEAR_CROSS_ENTROPY) {
        *logits = loss.in[0];
        c->leads[*logits] = true;
        return AH_OK;
    }
    int out[AH_OP_MAX_OUTPUTS];
    struct ah_attr attr = {.out_in = true};
    AH_TRY(ah__graph_node(graph, AH_OP_LINEAR, &attr, ah__values(loss.in[0], loss.in[1]), NULL, out));
    *logits = out[0];
    if (loss.attr.cap > 0) {
        attr = (struct ah_attr){.cap = loss.attr.cap};
        AH_TRY(ah__graph_node(graph, AH_OP_SOFT_CAP, &attr, ah__values(*logits), NULL, out));
        *logits = out[0];
    }
    c->leads[loss.in[0]] = true;
    return AH_OK;
}

/* Compiles the head without the loss: its logits stay in WORK, since nothing follows them. */
static int emit_infer(struct compiling *c)
{
    int logits, appended;
    if (c->section->loss < 0)
        return AH_OK;
    AH_TRY(logits_find(c, &logits, &appended));
    take_needed(c, c->leads, NULL);
    for (; appended < (int)c->section->graph->node_count; appended++)
        c->nodes[c->count++] = appended;
    AH_TRY(emit_program(c, &c->code->program[AH_PROGRAM_INFER], MODE_INFER));
    c->code->logits = operand(c, logits);
    return AH_OK;
}

static bool reads_space(const struct ah_program *program, enum ah_space space)
{
    for (int i = 0; i < program->count; i++)
        for (int j = 0; j < AH_OP_MAX_INPUTS; j++)
            if (program->calls[i].in[j].space == space)
                return true;
    return false;
}

static int64_t bytes_of(const struct compiling *c, int value)
{
    return value < 0 ? 0 : ah__value_bytes(&c->section->graph->values[value]);
}

static int compile(struct compiling *c)
{
    struct ah_code *code = c->code;
    AH_TRY(settle_boundary(c));
    find_saved(c);
    take_forward(c);
    AH_TRY(emit_program(c, &code->program[AH_PROGRAM_FORWARD], MODE_FORWARD));
    AH_TRY(emit_program(c, &code->program[AH_PROGRAM_FORWARD_DROP], MODE_FORWARD_DROP));
    find_cheap_wanted(c);
    take_needed(c, c->wanted, NULL);
    AH_TRY(emit_program(c, &code->program[AH_PROGRAM_RECOMPUTE], MODE_RECOMPUTE));
    take_needed(c, c->cheap_wanted, c->cheap);
    AH_TRY(emit_program(c, &code->program[AH_PROGRAM_RECOMPUTE_SELECTIVE], MODE_RECOMPUTE_SELECTIVE));
    take_backward(c);
    AH_TRY(emit_program(c, &code->program[AH_PROGRAM_BACKWARD], MODE_BACKWARD));
    AH_TRY(emit_infer(c));
    AH_TRY(emit_adding(c, &code->program[AH_PROGRAM_FORWARD_ADD], &code->program[AH_PROGRAM_FORWARD]));
    AH_TRY(emit_adding(c, &code->program[AH_PROGRAM_BACKWARD_ADD], &code->program[AH_PROGRAM_BACKWARD]));
    int64_t dout_bytes = bytes_of(c, c->section->dout), din_bytes = bytes_of(c, c->section->din);
    code->input_bytes = bytes_of(c, c->section->input);
    code->output_bytes = bytes_of(c, c->section->output);
    code->boundary_bytes = dout_bytes > din_bytes ? dout_bytes : din_bytes;
    code->uses_shared = reads_space(&code->program[AH_PROGRAM_FORWARD], AH_SPACE_SHARED);
    const struct ah_program *backward = &code->program[AH_PROGRAM_BACKWARD];
    code->backward_needs_params = reads_space(backward, AH_SPACE_PARAM) || reads_space(backward, AH_SPACE_SHARED);
    return AH_OK;
}

static int allocate(struct compiling *c)
{
    /* Room for three more nodes and values: settle_boundary may append a copy, logits_find a product and its cap. */
    size_t values = c->section->graph->value_count + 3, nodes = c->section->graph->node_count + 3;
    AH_TRY(ah__arena_new(&c->arena, &c->wanted, values, sizeof *c->wanted));
    AH_TRY(ah__arena_new(&c->arena, &c->cheap_wanted, values, sizeof *c->cheap_wanted));
    AH_TRY(ah__arena_new(&c->arena, &c->leads, values, sizeof *c->leads));
    AH_TRY(ah__arena_new(&c->arena, &c->cheap, values, sizeof *c->cheap));
    AH_TRY(ah__arena_new(&c->arena, &c->saved, values, sizeof *c->saved));
    AH_TRY(ah__arena_new(&c->arena, &c->saved_offset, values, sizeof *c->saved_offset));
    AH_TRY(ah__arena_new(&c->arena, &c->places, values, sizeof *c->places));
    AH_TRY(ah__arena_new(&c->arena, &c->absent, values, sizeof *c->absent));
    AH_TRY(ah__arena_new(&c->arena, &c->live, values, sizeof *c->live));
    AH_TRY(ah__arena_new(&c->arena, &c->intervals, values, sizeof *c->intervals));
    return ah__arena_new(&c->arena, &c->nodes, nodes, sizeof *c->nodes);
}

const char *const ah__program_names[AH_PROGRAM_COUNT] = {
#define AH_PROGRAM_NAME(id, name) [AH_PROGRAM_##id] = name,
    AH_PROGRAM_TABLE(AH_PROGRAM_NAME)
#undef AH_PROGRAM_NAME
};

int64_t ah__code_work_bytes(const struct ah_code *code)
{
    int64_t most = 0;
    for (int i = 0; i < AH_PROGRAM_COUNT; i++)
        if (i != AH_PROGRAM_INFER && code->program[i].work_bytes > most)
            most = code->program[i].work_bytes;
    return most;
}

int ah__code_compile(struct ah_code *code, struct ah_partition *partition, struct ah_section *section, int number,
                     const int *param_of)
{
    struct compiling c = {
        .code = code, .partition = partition, .section = section, .number = number, .param_of = param_of};
    int status = allocate(&c);
    if (status == AH_OK)
        status = compile(&c);
    ah__arena_free(&c.arena);
    return status;
}
