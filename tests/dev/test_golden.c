/* The kernels of single operators, and what their gradient rules emit, against PyTorch in double precision
 * (tests/golden/operators.py), on every device that computes. */
#include "autodiff/autodiff.h"
#include "base/file.h"
#include "dev/device_case.h"
#include "test_paths.h"

#include <math.h>
#include <stdio.h>

enum { MOST_TENSORS = 16, MOST_BYTES = 1 << 18, NAME_BYTES = 32, MOST_VALUES = 32, ROOM_BYTES = 1 << 16 };
static const double tolerance = 1e-5; /* of the largest element of a tensor */

struct tensor {
    char name[NAME_BYTES];
    struct ah_shape shape;
    const char *values; /* in the file, float32 */
};

/* A case of the file: tensors are the inputs, the result, its gradient and the gradients of the inputs. */
struct golden {
    char name[NAME_BYTES];
    enum ah_op op;
    struct ah_attr attr;
    struct tensor tensor[MOST_TENSORS];
    int count;
};

static enum ah_op op_named(const char *name)
{
    for (int op = 0; op < AH_OP_COUNT; op++)
        if (strcmp(ah__op_table[op]->name, name) == 0)
            return (enum ah_op)op;
    fail_msg("no operator %s", name);
    return AH_OP_COUNT;
}

static void case_parse(struct golden *g, const char *line)
{
    char op[NAME_BYTES];
    *g = (struct golden){0};
    struct ah_attr *a = &g->attr;
    int by_head, ramp;
    assert_int_equal(sscanf(line, "case %31s %31s %d %d %f %d %f %f %f %f %d %d %d %d %f %f %d %f %f %f", g->name, op,
                            &a->heads, &a->kv_heads, &a->theta, &a->dims, &a->eps, &a->factor, &a->low, &a->high,
                            &a->original, &by_head, &a->window, &a->first, &a->offset, &a->scale, &ramp, &a->magnitude,
                            &a->cap, &a->limit),
                     20);
    a->by_head = by_head;
    a->ramp = ramp;
    g->op = op_named(op);
}

static void tensor_parse(struct golden *g, const char *line)
{
    struct tensor *t = &g->tensor[g->count++];
    long long dim[3];
    int rank = sscanf(line, "tensor %31s %lld %lld %lld", t->name, &dim[0], &dim[1], &dim[2]) - 1;
    assert_in_range(rank, 1, 3);
    assert_in_range(g->count, 1, MOST_TENSORS);
    t->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        t->shape.dim[i] = dim[i];
}

static char *next_line(char *at)
{
    char *end = strchr(at, '\n');
    assert_non_null(end);
    *end = 0;
    return end + 1;
}

static int64_t tensor_bytes(const struct tensor *t)
{
    return ah__shape_count(&t->shape) * (int64_t)sizeof(float);
}

/* Null: there is none. */
static const struct tensor *tensor_find(const struct golden *g, const char *prefix, const char *name)
{
    char full[2 * NAME_BYTES];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    for (int i = 0; i < g->count; i++)
        if (strcmp(g->tensor[i].name, full) == 0)
            return &g->tensor[i];
    return NULL;
}

static const struct tensor *tensor_named(const struct golden *g, const char *prefix, const char *name)
{
    const struct tensor *found = tensor_find(g, prefix, name);
    if (!found)
        fail_msg("%s: no tensor %s%s", g->name, prefix, name);
    return found;
}

static bool absent(const struct golden *g, int input)
{
    const struct ah_op_operand *row = &ah__op_table[g->op]->in[input];
    return row->optional && !tensor_find(g, "", row->name);
}

/* ---- a graph of one operator and its gradient, run node by node -------------------------------------------------- */

struct single {
    const struct golden *golden;
    struct ah_graph *graph;
    struct ah_autodiff diff;
    struct ah_autodiff_param params[AH_OP_MAX_INPUTS];
    int in[AH_OP_MAX_INPUTS], y;
    char *room;
    int64_t used, place[MOST_VALUES]; /* of the storage with that number, -1: none yet */
};

static int64_t place_of(struct single *s, int value)
{
    int storage = s->graph->values[value].storage;
    assert_in_range(storage, 0, MOST_VALUES - 1);
    if (s->place[storage] < 0) {
        s->place[storage] = s->used;
        s->used += (ah__meta_bytes(&s->graph->values[storage].meta) + 63) / 64 * 64;
        assert_in_range(s->used, 0, ROOM_BYTES);
    }
    return s->place[storage];
}

static void fill(struct single *s, int value, const struct tensor *from)
{
    memcpy(s->room + place_of(s, value), from->values, (size_t)tensor_bytes(from));
}

static void single_init(struct single *s, const struct golden *g)
{
    const struct ah_op_row *row = ah__op_table[g->op];
    int out[AH_OP_MAX_OUTPUTS];
    *s = (struct single){.golden = g, .room = aligned_alloc(64, ROOM_BYTES)};
    assert_non_null(s->room);
    memset(s->room, 0xFF, ROOM_BYTES); /* NaN */
    memset(s->place, 0xFF, sizeof s->place);
    assert_ok(ah_graph_new(&s->graph, AH_F32));
    for (int i = 0; i < row->inputs; i++) {
        bool param = row->in[i].kind == AH_OPERAND_PARAM;
        s->in[i] = -1;
        if (absent(g, i))
            continue;
        const struct tensor *t = tensor_named(g, "", row->in[i].name);
        struct ah_value value = {.meta = {AH_F32, t->shape}, .kind = param ? AH_VALUE_PARAM : AH_VALUE_ACTIVATION};
        assert_ok(ah__graph_value(s->graph, &s->in[i], &value));
        fill(s, s->in[i], t);
        if (param)
            s->params[s->diff.param_count++] = (struct ah_autodiff_param){.value = s->in[i]};
    }
    assert_ok(ah__graph_node(s->graph, g->op, &g->attr, (struct ah_values){s->in, row->inputs}, NULL, out));
    s->y = out[0];
}

static void single_fini(struct single *s)
{
    free(s->room);
    ah_graph_free(s->graph);
}

static struct ah_operand operand_of(struct single *s, int value)
{
    if (value < 0)
        return (struct ah_operand){.space = AH_SPACE_NONE};
    return (struct ah_operand){AH_SPACE_WORK, place_of(s, value), s->graph->values[value].meta};
}

static void node_run(struct single *s, struct test_device *device, const struct ah_node *node)
{
    struct ah_call call = {.op = node->op, .attr = node->attr};
    struct ah_program program = {.count = 1, .calls = &call};
    const struct ah_op_row *row = ah__op_table[node->op];
    for (int i = 0; i < row->inputs; i++)
        call.in[i] = operand_of(s, node->in[i]);
    for (int i = 0; i < row->outputs; i++)
        call.out[i] = operand_of(s, node->out[i]);
    test_device_run(device, &program, s->room, ROOM_BYTES, 0);
}

static void expect_close(struct single *s, int value, const struct tensor *golden)
{
    const float *found = (const float *)(const void *)(s->room + place_of(s, value));
    double error = 0, largest = 0;
    assert_true(ah__shape_equal(&s->graph->values[value].meta.shape, &golden->shape));
    for (int64_t i = 0; i < ah__shape_count(&golden->shape); i++) {
        float expected;
        memcpy(&expected, golden->values + (size_t)i * sizeof expected, sizeof expected);
        double difference = fabs((double)found[i] - (double)expected);
        error = difference <= error ? error : difference; /* NaN counts as an error */
        largest = fmax(largest, fabs((double)expected));
    }
    if (!(error <= tolerance * largest))
        fail_msg("%s: %s: error %g of %g", s->golden->name, golden->name, error, largest);
}

static int grad_of(const struct single *s, int param)
{
    for (size_t i = 0; i < s->diff.grad_count; i++)
        if (s->params[s->diff.grads[i].param].value == param)
            return s->diff.grads[i].value;
    fail_msg("%s: a parameter without gradient", s->golden->name);
    return -1;
}

/* The gradient of input `number`: each activation is asked for in a graph of its own, parameters come by the way. */
static void gradient_check(struct test_device *device, const struct golden *g, int number)
{
    struct single s;
    single_init(&s, g);
    const struct ah_op_operand *input = &ah__op_table[g->op]->in[number];
    bool param = input->kind == AH_OPERAND_PARAM;
    s.diff.graph = s.graph;
    s.diff.forward_count = 1;
    s.diff.output = s.y;
    s.diff.loss = -1;
    s.diff.input = param ? -1 : s.in[number];
    s.diff.params = s.params;
    assert_ok(ah__autodiff(&s.diff));
    node_run(&s, device, &s.graph->nodes[0]);
    expect_close(&s, s.y, tensor_named(g, "", "y"));
    fill(&s, s.diff.dout, tensor_named(g, "", "dy"));
    for (size_t n = 1; n < s.graph->node_count; n++)
        node_run(&s, device, &s.graph->nodes[n]);
    expect_close(&s, param ? grad_of(&s, s.in[number]) : s.diff.din, tensor_named(g, "d", input->name));
    ah__free(s.diff.grads);
    single_fini(&s);
}

/* Reads the lines, gives the number of cases. */
static int file_parse(struct golden *cases, int most, char *text, size_t length)
{
    int count = 0;
    char *line = text, *next = next_line(line);
    for (; strcmp(line, "data") != 0; line = next, next = next_line(line))
        if (strncmp(line, "case ", 5) == 0) {
            assert_in_range(count, 0, most - 1);
            case_parse(&cases[count++], line);
        } else
            tensor_parse(&cases[count - 1], line);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < cases[c].count; i++) {
            cases[c].tensor[i].values = next;
            next += tensor_bytes(&cases[c].tensor[i]);
        }
    assert_int_equal(next - text, length);
    return count;
}

static void device_check(const char *name)
{
    enum { MOST_CASES = 48 };
    static struct golden cases[MOST_CASES];
    struct test_device device = test_device_open(name);
    char path[256], *text;
    size_t length;
    snprintf(path, sizeof path, "%s/golden/operators.bin", ah_test_source());
    assert_ok(ah__file_read(&text, &length, path, MOST_BYTES));
    int count = file_parse(cases, MOST_CASES, text, length);
    assert_in_range(count, 1, MOST_CASES);
    for (int i = 0; i < count; i++)
        for (int input = 0; input < ah__op_table[cases[i].op]->inputs; input++)
            if (!absent(&cases[i], input))
                gradient_check(&device, &cases[i], input);
    ah__free(text);
    test_device_close(&device);
}

static void operators_match_pytorch(void **state)
{
    device_check("cpu");
}

static void cuda_operators_match_pytorch(void **state)
{
#ifdef AH_TEST_EMULATION
    device_check("cuda");
#else
    skip();
#endif
}

AH_TEST_CASES("dev/golden", operators_match_pytorch, cuda_operators_match_pytorch)
