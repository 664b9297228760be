/* Compiled programs are run on tagged memory: every cell remembers which value was written there. An operand whose
 * cells do not all hold one value was overwritten too early. The results must be those of the operators on values
 * without memory. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "dev/sim.h"
#include "models.h"
#include "partition/compile.h"

enum { MOST_VALUES = 256, CELL_BYTES = 2 };

struct memory {
    uint64_t *cell[AH_SPACE_COUNT];
    int64_t bytes[AH_SPACE_COUNT];
};

static uint64_t cell_of(uint64_t tag, int64_t index)
{
    return tag ^ ah__random_bits(7, (uint64_t)index);
}

static int64_t operand_bytes(const struct ah_operand *operand)
{
    return ah__shape_count(&operand->meta.shape) * ah__dtype_bytes(operand->meta.dtype);
}

static uint64_t *cells_of(const struct memory *memory, const struct ah_operand *operand)
{
    int64_t end = operand->offset + operand_bytes(operand);
    if (operand->offset < 0 || end > memory->bytes[operand->space])
        fail_msg("space %d: operand ends at %lld of %lld", (int)operand->space, (long long)end,
                 (long long)memory->bytes[operand->space]);
    return memory->cell[operand->space] + operand->offset / CELL_BYTES;
}

static uint64_t read_tag(const struct memory *memory, const struct ah_operand *operand)
{
    const uint64_t *cells = cells_of(memory, operand);
    uint64_t tag = cells[0] ^ cell_of(0, 0);
    for (int64_t i = 0; i < operand_bytes(operand) / CELL_BYTES; i++)
        if (cells[i] != cell_of(tag, i))
            fail_msg("space %d offset %lld: cell %lld was overwritten", (int)operand->space, (long long)operand->offset,
                     (long long)i);
    return tag;
}

static void write_tag(const struct memory *memory, const struct ah_operand *operand, uint64_t tag)
{
    uint64_t *cells = cells_of(memory, operand);
    for (int64_t i = 0; i < operand_bytes(operand) / CELL_BYTES; i++)
        cells[i] = cell_of(tag, i);
}

/* What output `which` is worth, given its inputs: a copy is its input, a sum does not know its sides. */
static uint64_t result_tag(enum ah_op op, const struct ah_attr *attr, const uint64_t *in, int which)
{
    if (op == AH_OP_COPY)
        return in[0];
    if (op == AH_OP_ADD)
        return ah__hash_int(in[0] + in[1], (uint64_t)op);
    uint64_t tag = ah__hash_int((uint64_t)op * 8 + (uint64_t)which, (uint64_t)attr->heads * 2 + attr->out_in);
    for (int i = 0; i < ah__op_table[op]->inputs; i++)
        tag = ah__hash_int(in[i], tag);
    return tag;
}

static uint64_t added(uint64_t before, uint64_t more)
{
    return ah__hash_int(more, before);
}

static void run(const struct memory *memory, const struct ah_program *program)
{
    for (int n = 0; n < program->count; n++) {
        const struct ah_call *call = &program->calls[n];
        uint64_t in[AH_OP_MAX_INPUTS] = {0}, out[AH_OP_MAX_OUTPUTS] = {0};
        for (int i = 0; i < ah__op_table[call->op]->inputs; i++)
            if (call->in[i].space != AH_SPACE_NONE)
                in[i] = read_tag(memory, &call->in[i]);
        for (int i = 0; i < ah__op_table[call->op]->outputs; i++) {
            if (call->out[i].space == AH_SPACE_NONE)
                continue;
            out[i] = result_tag(call->op, &call->attr, in, i);
            if (call->attr.acc >> i & 1)
                out[i] = added(read_tag(memory, &call->out[i]), out[i]);
            else if (i != ah__op_inplace_output(call->op))
                write_tag(memory, &call->out[i], 0); /* a kernel may write before it has read all */
        }
        for (int i = 0; i < ah__op_table[call->op]->inputs; i++)
            if (call->in[i].space != AH_SPACE_NONE && (i > 0 || ah__op_inplace_output(call->op) < 0))
                assert_true(read_tag(memory, &call->in[i]) == in[i]);
        for (int i = 0; i < ah__op_table[call->op]->outputs; i++)
            if (call->out[i].space != AH_SPACE_NONE)
                write_tag(memory, &call->out[i], out[i]);
    }
}

/* ---- one partition ---------------------------------------------------------------------------------------------- */

struct check {
    struct ah_partition *partition;
    struct ah_cut cut;
    struct ah_section section;
    int number;
    const struct ah_code *code;
    struct memory memory;
    uint64_t tag[MOST_VALUES];            /* of the section's values */
    uint64_t grad[MOST_VALUES];           /* final, by section parameter */
    struct ah_operand param[MOST_VALUES]; /* by section parameter, its place in PARAM or SHARED */
};

static uint64_t tag_entering(const struct check *check, int value)
{
    return ah__hash_int((uint64_t)check->section.graph->values[value].kind * 1000 + (uint64_t)value, 99);
}

static void evaluate(struct check *check)
{
    const struct ah_graph *graph = check->section.graph;
    assert_true(graph->value_count < MOST_VALUES);
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].producer < 0)
            check->tag[v] = tag_entering(check, (int)v);
    for (size_t n = 0; n < graph->node_count; n++) {
        uint64_t in[AH_OP_MAX_INPUTS] = {0};
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
            in[i] = graph->nodes[n].in[i] < 0 ? 0 : check->tag[graph->nodes[n].in[i]];
        for (int i = 0; i < ah__op_table[graph->nodes[n].op]->outputs; i++)
            check->tag[graph->nodes[n].out[i]] = result_tag(graph->nodes[n].op, &graph->nodes[n].attr, in, i);
    }
    for (size_t p = 0; p < check->section.param_count; p++)
        check->grad[p] = 0;
    for (size_t i = 0; i < check->section.grad_count; i++) {
        const struct ah_autodiff_grad *grad = &check->section.grads[i];
        bool first = check->grad[grad->param] == 0;
        bool shared = first && check->number == 0 && check->partition->shared_group == 0 && grad->param == 0;
        uint64_t before = shared ? 5 : check->grad[grad->param], tag = check->tag[grad->value];
        check->grad[grad->param] = first && !shared ? tag : added(before, tag);
    }
}

static void find_params(struct check *check)
{
    for (size_t p = 0; p < check->section.param_count; p++) {
        const struct ah_value *value = &check->cut.graph->values[check->section.recorded[p]];
        const char *name = check->cut.graph->values[value->whole].name;
        for (int i = 0; i < check->partition->param_count; i++) {
            const struct ah_param *param = &check->partition->params[i];
            if (strcmp(param->name, name) == 0)
                check->param[p] =
                    (struct ah_operand){param->group == check->number ? AH_SPACE_PARAM : AH_SPACE_SHARED,
                                        (param->offset + value->first) * ah__dtype_bytes(check->partition->compute),
                                        {check->partition->compute, value->meta.shape}};
        }
    }
}

static struct ah_operand whole(enum ah_space space, const struct check *check, int value)
{
    return (struct ah_operand){space, 0, check->section.graph->values[value].meta};
}

static struct ah_operand grad_operand(const struct check *check, size_t param)
{
    struct ah_operand operand = check->param[param];
    operand.space = operand.space == AH_SPACE_PARAM ? AH_SPACE_GRAD : AH_SPACE_SHARED_GRAD;
    operand.offset = operand.offset / ah__dtype_bytes(operand.meta.dtype) * 4; /* gradients are fp32 */
    operand.meta.dtype = AH_F32;
    return operand;
}

static void poison(struct check *check, enum ah_space space)
{
    for (int64_t i = 0; i < check->memory.bytes[space] / CELL_BYTES; i++)
        check->memory.cell[space][i] = (uint64_t)rand();
}

static void memory_init(struct check *check)
{
    const struct ah_code *code = check->code;
    int64_t own = check->partition->groups[check->number].count, shared = check->partition->groups[0].count;
    int64_t element = ah__dtype_bytes(check->partition->compute);
    int64_t bytes[AH_SPACE_COUNT] = {
        [AH_SPACE_PARAM] = own * element,
        [AH_SPACE_GRAD] = own * 4,
        [AH_SPACE_SHARED] = shared * element,
        [AH_SPACE_SHARED_GRAD] = shared * 4,
        [AH_SPACE_INPUT] = code->input_bytes,
        [AH_SPACE_OUTPUT] = code->output_bytes,
        [AH_SPACE_SAVED] = code->kept_bytes,
        [AH_SPACE_CHEAP] = code->saved_bytes - code->kept_bytes,
        [AH_SPACE_BOUNDARY] = code->boundary_bytes,
        [AH_SPACE_TARGETS] = MODEL_BATCH * MODEL_SEQ * 4,
        [AH_SPACE_LOSS] = 4,
    };
    for (int i = 0; i < AH_PROGRAM_COUNT; i++)
        bytes[AH_SPACE_WORK] += code->program[i].work_bytes;
    for (int s = 0; s < AH_SPACE_COUNT; s++) {
        check->memory.bytes[s] = bytes[s];
        check->memory.cell[s] = calloc((size_t)bytes[s] / CELL_BYTES + 1, sizeof *check->memory.cell[s]);
        poison(check, (enum ah_space)s);
    }
    for (size_t p = 0; p < check->section.param_count; p++) {
        write_tag(&check->memory, &check->param[p], tag_entering(check, check->section.params[p].value));
    }
    struct ah_operand input = whole(AH_SPACE_INPUT, check, check->section.input);
    write_tag(&check->memory, &input, tag_entering(check, check->section.input));
    if (check->section.graph->targets >= 0) {
        struct ah_operand targets = whole(AH_SPACE_TARGETS, check, check->section.graph->targets);
        write_tag(&check->memory, &targets, tag_entering(check, check->section.graph->targets));
    }
    check->memory.bytes[AH_SPACE_WORK] = 0;
}

/* Runs with exactly the work room the program asks for, holding nothing at the start. */
static void run_program(struct check *check, const struct ah_program *program)
{
    check->memory.bytes[AH_SPACE_WORK] = program->work_bytes;
    poison(check, AH_SPACE_WORK);
    run(&check->memory, program);
}

static void expect_tag(const struct check *check, struct ah_operand operand, uint64_t tag)
{
    assert_true(read_tag(&check->memory, &operand) == tag);
}

static void expect_forward(const struct check *check)
{
    if (check->section.output >= 0)
        expect_tag(check, whole(AH_SPACE_OUTPUT, check, check->section.output), check->tag[check->section.output]);
    else
        expect_tag(check, whole(AH_SPACE_LOSS, check, check->section.loss), check->tag[check->section.loss]);
    expect_tag(check, whole(AH_SPACE_INPUT, check, check->section.input), check->tag[check->section.input]);
}

enum { NO_GRADIENT = 5 }; /* a tag */

static void clear_gradients(struct check *check)
{
    for (size_t p = 0; p < check->section.param_count; p++) {
        struct ah_operand grad = grad_operand(check, p);
        write_tag(&check->memory, &grad, NO_GRADIENT);
    }
}

static void expect_no_gradients(const struct check *check)
{
    for (size_t p = 0; p < check->section.param_count; p++)
        expect_tag(check, grad_operand(check, p), NO_GRADIENT);
}

static void run_backward(struct check *check)
{
    if (check->section.dout >= 0) {
        struct ah_operand dout = whole(AH_SPACE_BOUNDARY, check, check->section.dout);
        write_tag(&check->memory, &dout, tag_entering(check, check->section.dout));
    }
    run_program(check, &check->code->program[AH_PROGRAM_BACKWARD]);
    for (size_t p = 0; p < check->section.param_count; p++)
        expect_tag(check, grad_operand(check, p), check->grad[p]);
    if (check->section.din >= 0)
        expect_tag(check, whole(AH_SPACE_BOUNDARY, check, check->section.din), check->tag[check->section.din]);
}

/* The head's logits come from its input and parameters alone; no other partition has any. */
static void expect_infer(struct check *check)
{
    static const enum ah_space unread[] = {AH_SPACE_TARGETS, AH_SPACE_LOSS, AH_SPACE_SAVED, AH_SPACE_CHEAP,
                                           AH_SPACE_BOUNDARY};
    const struct ah_operand *logits = &check->code->logits;
    if (check->section.loss < 0) {
        assert_int_equal(check->code->program[AH_PROGRAM_INFER].count, 0);
        assert_int_equal(logits->space, AH_SPACE_NONE);
        return;
    }
    const struct ah_graph *graph = check->section.graph;
    const struct ah_node *loss = &graph->nodes[graph->values[check->section.loss].producer];
    for (size_t i = 0; i < AH_LENGTH(unread); i++)
        check->memory.bytes[unread[i]] = -1; /* any operand there ends the test */
    run_program(check, &check->code->program[AH_PROGRAM_INFER]);
    assert_int_equal(logits->space, AH_SPACE_WORK);
    struct ah_shape shape = {3, {MODEL_BATCH, MODEL_SEQ, check->partition->vocab, 0}};
    assert_true(ah__shape_equal(&logits->meta.shape, &shape));
    uint64_t linear[AH_OP_MAX_INPUTS] = {check->tag[loss->in[0]], check->tag[loss->in[1]]};
    if (loss->op == AH_OP_LINEAR_CROSS_ENTROPY)
        expect_tag(check, *logits, result_tag(AH_OP_LINEAR, &(struct ah_attr){.out_in = true}, linear, 0));
    else
        expect_tag(check, *logits, check->tag[loss->in[0]]);
}

static void check_init(struct check *check, const struct ah_graph *graph, int number)
{
    memset(check, 0, sizeof *check);
    assert_ok(ah_partition_new(&check->partition, graph, NULL));
    assert_ok(ah__cut_init(&check->cut, graph, false));
    assert_ok(ah__section_init(&check->section, &check->cut, number));
    check->number = number;
    check->code = &check->partition->code[ah__class_of(number, check->partition->layers)];
    find_params(check);
    evaluate(check);
    memory_init(check);
}

static void check_fini(struct check *check)
{
    for (int s = 0; s < AH_SPACE_COUNT; s++)
        free(check->memory.cell[s]);
    ah__section_fini(&check->section);
    ah__cut_fini(&check->cut);
    ah_partition_free(check->partition);
}

static void check_partition(const struct ah_graph *graph, int number)
{
    struct check check;
    check_init(&check, graph, number);
    clear_gradients(&check);
    run_program(&check, &check.code->program[AH_PROGRAM_FORWARD]);
    expect_forward(&check);
    run_backward(&check);
    poison(&check, AH_SPACE_CHEAP);
    clear_gradients(&check);
    run_program(&check, &check.code->program[AH_PROGRAM_RECOMPUTE_SELECTIVE]);
    if (check.section.loss < 0) /* else the loss makes gradients in forward already */
        run_backward(&check);
    poison(&check, AH_SPACE_SAVED);
    poison(&check, AH_SPACE_CHEAP);
    poison(&check, AH_SPACE_OUTPUT);
    clear_gradients(&check);
    run_program(&check, &check.code->program[AH_PROGRAM_FORWARD_DROP]);
    expect_forward(&check);
    expect_no_gradients(&check);
    run_program(&check, &check.code->program[AH_PROGRAM_RECOMPUTE]);
    run_backward(&check);
    expect_infer(&check);
    check_fini(&check);
}

static void no_overlap(void **state)
{
    for (int i = 0; i < 2 * model_case_count; i++)
        for (int tied = 0; tied < 2; tied++) {
            struct ah_graph *graph = model_graph_in(i % 2 ? AH_BF16 : AH_F32, model_cases[i / 2].block, 2, tied);
            for (int number = 0; number < 4; number += number == 1 ? 2 : 1)
                check_partition(graph, number);
            ah_graph_free(graph);
        }
}

typedef struct ah_tensor (*head)(struct ah_graph *graph, struct ah_tensor x);

static struct ah_tensor logits_enter(struct ah_graph *graph, struct ah_tensor x)
{
    return x;
}

static struct ah_tensor logits_in_place(struct ah_graph *graph, struct ah_tensor x)
{
    struct ah_tensor a = model_linear(graph, "a", x, MODEL_EMBD, 5), b = model_linear(graph, "b", x, MODEL_EMBD, 5);
    return ah_graph_add_inplace(graph, a, ah_graph_gelu(graph, b));
}

/* Backward of the attention reads its result, over which the loss must not write. */
static struct ah_tensor logits_kept(struct ah_graph *graph, struct ah_tensor x)
{
    return ah_graph_attention(graph, model_linear(graph, "a", x, MODEL_EMBD, 12), 2, NULL);
}

static struct ah_tensor logits_apart(struct ah_graph *graph, struct ah_tensor x)
{
    return model_linear(graph, "a", model_norm(graph, "ln_f", x), MODEL_EMBD, 9);
}

/* Heads whose loss is not made of the weight too. */
static void other_heads(void **state)
{
    static const head heads[] = {logits_enter, logits_in_place, logits_kept, logits_apart};
    for (size_t i = 0; i < AH_LENGTH(heads); i++) {
        struct ah_graph *graph;
        assert_ok(ah_graph_new(&graph, AH_F32));
        struct ah_tensor tokens = ah_graph_tokens(graph, MODEL_BATCH, MODEL_SEQ);
        struct ah_tensor targets = ah_graph_targets(graph, MODEL_BATCH, MODEL_SEQ);
        struct ah_shape shape = ah_shape2(MODEL_VOCAB, MODEL_EMBD);
        struct ah_tensor table = ah_graph_param(graph, "wte", shape, AH_INIT_NORMAL, 0.02f);
        struct ah_tensor x = ah_graph_embedding(graph, table, tokens);
        ah_graph_scope_push(graph, "h.0");
        x = model_cases[0].block(graph, x, 0);
        ah_graph_scope_pop(graph);
        assert_ok(ah_graph_finish(graph, ah_graph_cross_entropy(graph, heads[i](graph, x), targets)));
        check_partition(graph, 2);
        ah_graph_free(graph);
    }
}

/* The section computes what was recorded, whatever copies and exchanged sums it has. */
static void section_is_recording(void **state)
{
    for (int m = 0; m < model_case_count; m++) {
        struct ah_graph *graph = model_graph(model_cases[m].block, 2, true);
        struct check check;
        uint64_t tag[MOST_VALUES];
        check_init(&check, graph, 1);
        for (size_t p = 0; p < check.section.param_count; p++)
            tag[check.section.recorded[p]] = check.tag[check.section.params[p].value];
        tag[check.cut.entering[1]] = check.tag[check.section.input];
        for (int n = check.cut.first_node[1]; n < check.cut.first_node[2]; n++) {
            uint64_t in[AH_OP_MAX_INPUTS] = {0};
            for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
                in[i] = graph->nodes[n].in[i] < 0 ? 0 : tag[graph->nodes[n].in[i]];
            for (int i = 0; i < ah__op_table[graph->nodes[n].op]->outputs; i++)
                tag[graph->nodes[n].out[i]] = result_tag(graph->nodes[n].op, &graph->nodes[n].attr, in, i);
        }
        assert_true(tag[check.cut.entering[2]] == check.tag[check.section.output]);
        check_fini(&check);
        ah_graph_free(graph);
    }
}

static int count_op(const struct ah_program *program, enum ah_op op)
{
    int count = 0;
    for (int i = 0; i < program->count; i++)
        count += program->calls[i].op == op;
    return count;
}

/* Looks at two blocks of each of the models, partitioned. */
static void models_each(void (*look)(const struct ah_partition *partition, int model))
{
    for (int i = 0; i < model_case_count; i++) {
        struct ah_graph *graph = model_graph(model_cases[i].block, 2, true);
        struct ah_partition *partition;
        assert_ok(ah_partition_new(&partition, graph, NULL));
        look(partition, i);
        ah_partition_free(partition);
        ah_graph_free(graph);
    }
}

static void copies_only_where_needed_in(const struct ah_partition *partition, int model)
{
    const struct ah_code *code = &partition->code[AH_CLASS_BLOCK];
    int forward = count_op(&code->program[AH_PROGRAM_FORWARD], AH_OP_COPY);
    int backward = count_op(&code->program[AH_PROGRAM_BACKWARD], AH_OP_COPY);
    if (forward != model_cases[model].forward_copies || backward != model_cases[model].backward_copies)
        fail_msg("%s: %d copies forward and %d backward", model_cases[model].name, forward, backward);
}

static void copies_only_where_needed(void **state)
{
    models_each(copies_only_where_needed_in);
}

static bool reads(const struct ah_call *call, const struct ah_operand *operand)
{
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        if (call->in[i].space == operand->space && call->in[i].offset == operand->offset)
            return true;
    return false;
}

static bool is_read(const struct ah_program *program, int from, const struct ah_call *by)
{
    for (int j = 0; j < ah__op_table[by->op]->outputs; j++)
        for (int i = from; i < program->count; i++)
            if (reads(&program->calls[i], &by->out[j]))
                return true;
    return false;
}

/* Every recomputed result is read by a later recomputed operator or by backward; what is dropped is what only
 * leaves. */
static void recompute_is_lean_in(const struct ah_partition *partition, int model)
{
    const struct ah_code *code = &partition->code[AH_CLASS_BLOCK];
    for (int n = 0; n < code->program[AH_PROGRAM_RECOMPUTE].count; n++) {
        const struct ah_call *call = &code->program[AH_PROGRAM_RECOMPUTE].calls[n];
        assert_true(is_read(&code->program[AH_PROGRAM_RECOMPUTE], n + 1, call) ||
                    is_read(&code->program[AH_PROGRAM_BACKWARD], 0, call));
    }
    if (model == 0) {
        assert_int_equal(code->program[AH_PROGRAM_FORWARD].count, 10);
        assert_int_equal(code->program[AH_PROGRAM_RECOMPUTE].count, 8);
    }
    assert_int_equal(partition->code[AH_CLASS_EMBEDDING].program[AH_PROGRAM_RECOMPUTE].count, 0);
}

static void recompute_is_lean(void **state)
{
    models_each(recompute_is_lean_in);
}

/* Selective recomputation makes again what backward reads, without a product or attention; what is left to keep are
 * results of these, and sums with them. */
static void selective_is_cheap_in(const struct ah_partition *partition, int model)
{
    const struct ah_code *code = &partition->code[AH_CLASS_BLOCK];
    const struct ah_program *again = &code->program[AH_PROGRAM_RECOMPUTE_SELECTIVE];
    assert_true((again->count > 0) == (code->kept_bytes < code->saved_bytes));
    assert_true(code->kept_bytes <= code->saved_bytes);
    for (int n = 0; n < again->count; n++) {
        const struct ah_call *call = &again->calls[n];
        assert_int_equal(ah__op_table[call->op]->limit, AH_OP_LIMIT_MEMORY);
        assert_true(is_read(again, n + 1, call) || is_read(&code->program[AH_PROGRAM_BACKWARD], 0, call));
        for (int j = 0; j < ah__op_table[call->op]->outputs; j++)
            assert_true(call->out[j].space == AH_SPACE_CHEAP || call->out[j].space == AH_SPACE_WORK);
    }
    if (model == 0) { /* two norms and the activation function: 4 of 11 widths, and statistics */
        assert_int_equal(again->count, 3);
        assert_true(code->saved_bytes - code->kept_bytes > code->input_bytes * 4);
        assert_true(code->saved_bytes - code->kept_bytes < code->input_bytes * 5);
    }
}

static void selective_is_cheap(void **state)
{
    models_each(selective_is_cheap_in);
}

static void place_is_exact(void **state)
{
    enum { COUNT = 24 };
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct ah_interval all[COUNT];
        int64_t total, lower = 0;
        for (uint64_t i = 0; i < COUNT; i++) {
            int first = (int)(ah__random_bits(seed, 3 * i) % 30);
            all[i] = (struct ah_interval){first, first + (int)(ah__random_bits(seed, 3 * i + 1) % 8),
                                          64 * (int64_t)(ah__random_bits(seed, 3 * i + 2) % 5), -1};
        }
        assert_ok(ah__intervals_place(all, COUNT, &total));
        for (int at = 0; at < 40; at++) {
            int64_t alive = 0;
            for (int i = 0; i < COUNT; i++)
                alive += all[i].first <= at && at <= all[i].last ? all[i].bytes : 0;
            lower = alive > lower ? alive : lower;
        }
        for (int i = 0; i < COUNT; i++) {
            assert_true(all[i].offset >= 0 && all[i].offset % 64 == 0 && all[i].offset + all[i].bytes <= total);
            for (int j = 0; j < i; j++)
                assert_true(all[i].last < all[j].first || all[j].last < all[i].first ||
                            all[i].offset + all[i].bytes <= all[j].offset ||
                            all[j].offset + all[j].bytes <= all[i].offset);
        }
        assert_true(total >= lower && total <= lower + lower / 2 + 64);
    }
}

AH_TEST_CASES("partition/compile", no_overlap, other_heads, section_is_recording, copies_only_where_needed,
              recompute_is_lean, selective_is_cheap, place_is_exact)
