/* Attention through cuDNN's graphs, on a stand-in of cuDNN that knows every attribute's type and runs the graphs
 * operation by operation: what the graphs compute, when they are asked for, and what happens when cuDNN refuses. What
 * cuDNN's own kernels make of them, only a GPU shows. */
#include "dev/cuda/attention_cases.h"
#include "dev/cuda/emulated.h"
#include "dev/cuda/operators.h"
#include "dev/cuda/state.h"
#include "dev/value_cases.h"

#define VERSION "91900"

enum { NOT_SUPPORTED = 3000, BAD_PARAM = 2000, NO_MEMORY = 4003 }; /* of cudnnStatus_t */

/* Side by side and apart, as many heads and shared ones, several sequences, lengths that fill no chunk. */
static const struct op_case sdpa_cases[] = {
    OP("attention of 7", ATTENTION, IN(S3(2, 7, 3 * 3 * 16)), .heads = 3),
    OP("attention of 66, head 64", ATTENTION, IN(S3(2, 66, 3 * 2 * 64)), .heads = 2),
    OP("attention_qkv of 40, head 80", ATTENTION_QKV, IN(S3(1, 40, 320), S3(1, 40, 160), S3(1, 40, 160)), .heads = 4,
       .kv_heads = 2),
    OP("attention by head of 160", ATTENTION, IN(S3(2, 20, 3 * 320)), .heads = 2, .by_head = true),
    OP("attention_qkv with a window", ATTENTION_QKV, IN(S3(1, 40, 64), S3(1, 40, 32), S3(1, 40, 32)), .heads = 4,
       .kv_heads = 2, .window = 7),
    OP("attention of documents", ATTENTION, IN(S3(3, 67, 3 * 2 * 16), S2(3, 67)), .heads = 2),
    OP("attention_qkv of documents, with a window", ATTENTION_QKV,
       IN(S3(2, 40, 64), S3(2, 40, 32), S3(2, 40, 32), S2(2, 40)), .heads = 4, .kv_heads = 2, .window = 11),
    OP("attention_qkv with sinks", ATTENTION_QKV, IN(S3(2, 40, 64), S3(2, 40, 32), S3(2, 40, 32), {0}, S1(4)),
       .heads = 4, .kv_heads = 2),
    OP("attention_qkv of documents, with sinks and a window", ATTENTION_QKV,
       IN(S3(2, 40, 64), S3(2, 40, 32), S3(2, 40, 32), S2(2, 40), S1(4)), .heads = 4, .kv_heads = 2, .window = 11),
    OP("attention_bwd of documents, by head", ATTENTION_BWD,
       IN(S3(3, 30, 32), S3(3, 30, 96), S3(3, 30, 32), S3(3, 2, 30), S2(3, 30)), .heads = 2, .by_head = true),
    OP("attention_qkv_bwd of documents, with a window", ATTENTION_QKV_BWD,
       IN(S3(2, 66, 64), S3(2, 66, 64), S3(2, 66, 32), S3(2, 66, 32), S3(2, 66, 64), S3(2, 4, 66), S2(2, 66)),
       .heads = 4, .kv_heads = 2, .window = 25),
    OP("attention_bwd by head, with a window", ATTENTION_BWD,
       IN(S3(2, 30, 512), S3(2, 30, 1536), S3(2, 30, 512), S3(2, 2, 30)), .heads = 2, .by_head = true, .window = 9),
    OP("attention_bwd of 30, head 16", ATTENTION_BWD, IN(S3(2, 30, 48), S3(2, 30, 144), S3(2, 30, 48), S3(2, 3, 30)),
       .heads = 3),
    OP("attention_bwd of 65, head 64", ATTENTION_BWD, IN(S3(1, 65, 128), S3(1, 65, 384), S3(1, 65, 128), S3(1, 2, 65)),
       .heads = 2),
    OP("attention_qkv_bwd of 33, head 128", ATTENTION_QKV_BWD,
       IN(S3(2, 33, 512), S3(2, 33, 512), S3(2, 33, 256), S3(2, 33, 256), S3(2, 33, 512), S3(2, 4, 33)), .heads = 4,
       .kv_heads = 2),
};

/* More scores than backward makes at once: sequence by sequence, and some heads of one at a time. */
static const struct {
    struct op_case op;
    long pieces;
} piece_cases[] = {
    {OP("three sequences", ATTENTION_BWD, IN(S3(3, 2, 16384), S3(3, 2, 49152), S3(3, 2, 16384), S3(3, 2048, 2)),
        .heads = 2048),
     3},
    {OP("shared heads", ATTENTION_QKV_BWD,
        IN(S3(1, 2, 48000), S3(1, 2, 48000), S3(1, 2, 24000), S3(1, 2, 24000), S3(1, 2, 48000), S3(1, 6000, 2)),
        .heads = 6000, .kv_heads = 3000),
     2},
};

static struct device_pair pair_open(const char *version)
{
    setenv("AUTOHETE_EMULATION_CUDNN", version, 1);
    struct device_pair p = device_pair_open();
    return p;
}

static void pair_close(struct device_pair *p)
{
    device_pair_close(p);
    unsetenv("AUTOHETE_EMULATION_CUDNN");
    emulated_assert_clean();
}

static long products_so_far(void)
{
    struct emulation_counts counts;
    emulation_counts(&counts);
    return counts.products;
}

/* What backward reads is made by the CPU device's forward in fp32 from the same numbers, so that probabilities are
 * some: the graph rounds them to bf16, and with logarithms that belong to other scores they would be of any size. */
static void saved_make(struct op_data *b)
{
    bool packed = b->call.op == AH_OP_ATTENTION_BWD;
    struct test_device cpu = test_device_open("cpu");
    struct op_case forward = {"", packed ? AH_OP_ATTENTION : AH_OP_ATTENTION_QKV, b->call.attr, {{0}}, {0}, 0};
    int inputs = packed ? 1 : 3;
    struct op_data f;
    forward.attr.acc = 0;
    for (int i = 0; i < inputs; i++)
        forward.in[i] = b->call.in[1 + i].meta.shape;
    const struct ah_operand *positions = &b->call.in[inputs + 3];
    forward.in[inputs] = positions->meta.shape;
    op_data_init_in(&f, &forward, AH_F32, 1);
    if (positions->space)
        memcpy(operand_at(&f, &f.call.in[inputs]), operand_at(b, positions), (size_t)operand_bytes(positions));
    for (int i = 0; i < inputs; i++)
        for (int64_t j = 0; j < ah__shape_count(&forward.in[i]); j++)
            operand_set(&f, &f.call.in[i], j, operand_get(b, &b->call.in[1 + i], j));
    struct ah_program program = {.count = 1, .calls = &f.call};
    test_device_run(&cpu, &program, f.memory, f.bytes, 0);
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; j < ah__shape_count(&f.call.out[i].meta.shape); j++)
            operand_set(b, &b->call.in[1 + inputs + i], j, operand_get(&f, &f.call.out[i], j));
    op_data_fini(&f);
    test_device_close(&cpu);
}

static bool is_backward(enum ah_op op)
{
    return ah__op_table[op]->limit == AH_OP_LIMIT_ATTENTION_BWD;
}

/* Probabilities and the gradients of scores are rounded to bf16 before they are multiplied, and with shared heads each
 * head's gradient before they are summed: 2^-9 of the largest for each, and the result's own rounding. */
static void sdpa_check(struct device_pair *p, const struct op_case *c, long executions)
{
    struct bound bound = {.of_value = 0x1p-7, .of_largest = 0x1p-7};
    long before = products_so_far();
    operator_check(p, c, AH_BF16, bound, is_backward(c->op) ? saved_make : NULL);
    assert_int_equal(products_so_far() - before, 2 * executions);
}

/* Whoever does each: what is not for cuDNN is own kernels', in the same bounds. */
static void attention_check(struct device_pair *p, const struct op_case *cases, size_t count)
{
    struct bound bound = {.of_value = 0x1p-7, .of_largest = 0x1p-7};
    for (size_t i = 0; i < count; i += ah_test_samples() ? 3 : 1) {
        enum ah_op_limit limit = ah__op_table[cases[i].op]->limit;
        if (limit == AH_OP_LIMIT_ATTENTION || limit == AH_OP_LIMIT_ATTENTION_BWD)
            operator_check(p, &cases[i], AH_BF16, bound, is_backward(cases[i].op) ? saved_make : NULL);
    }
}

static void all_attention_agrees_with_the_cpu(void **state)
{
    struct device_pair p = pair_open(VERSION);
    attention_check(&p, value_cases, AH_LENGTH(value_cases));
    attention_check(&p, attention_cases, AH_LENGTH(attention_cases));
    pair_close(&p);
}

static void graphs_agree_with_the_cpu(void **state)
{
    struct device_pair p = pair_open(VERSION);
    for (size_t i = 0; i < AH_LENGTH(sdpa_cases); i++)
        sdpa_check(&p, &sdpa_cases[i], 1);
    pair_close(&p);
}

static void long_sequences_go_in_pieces(void **state)
{
    struct device_pair p = pair_open(VERSION);
    for (size_t i = 0; i < AH_LENGTH(piece_cases); i++)
        sdpa_check(&p, &piece_cases[i].op, piece_cases[i].pieces);
    pair_close(&p);
}

/* Of more sequences than there is room for masks, some at a time, also in forward: three by one, four by two. */
static void masks_of_documents_go_in_pieces(void **state)
{
    enum { TWO_MASKS = 2 * 2 * 67 * 128 };
    static const struct op_case three = OP("three", ATTENTION, IN(S3(3, 67, 3 * 2 * 16), S2(3, 67)), .heads = 2);
    static const struct op_case four = OP("four", ATTENTION, IN(S3(4, 67, 3 * 2 * 16), S2(4, 67)), .heads = 2);
    struct device_pair p = pair_open(VERSION);
    ((struct ah_cuda *)p.cuda.dev)->scores_bytes = TWO_MASKS;
    sdpa_check(&p, &three, 3);
    sdpa_check(&p, &four, 2);
    pair_close(&p);
}

/* ---- who is asked ------------------------------------------------------------------------------------------------ */

/* Executions of cuDNN's that the call takes when it runs twice. */
static long executions_of(struct device_pair *p, const struct op_case *c, enum ah_dtype dtype)
{
    struct bound any = {.of_value = 0x1p-7, .of_largest = 0x1p-7};
    long before = products_so_far();
    operator_check(p, c, dtype, any, is_backward(c->op) ? saved_make : NULL);
    return products_so_far() - before;
}

static void own_kernels_do_what_cudnn_is_not_for(void **state)
{
    static const struct op_case others[] = {
        OP("one token", ATTENTION, IN(S3(2, 1, 48)), .heads = 1),
        OP("head of 12", ATTENTION, IN(S3(1, 9, 72)), .heads = 2),
        OP("capped", ATTENTION, IN(S3(2, 7, 144)), .heads = 3, .cap = 2),
        OP("adding", ATTENTION_BWD, IN(S3(2, 30, 48), S3(2, 30, 144), S3(2, 30, 48), S3(2, 3, 30)), .heads = 3,
           .acc = 1),
    };
    struct device_pair p = pair_open(VERSION);
    for (size_t i = 0; i < AH_LENGTH(others); i++)
        assert_int_equal(executions_of(&p, &others[i], AH_BF16), 0);
    for (size_t i = 0; i < AH_LENGTH(sdpa_cases); i++)
        assert_int_equal(executions_of(&p, &sdpa_cases[i], AH_F32), 0);
    pair_close(&p);
    p = pair_open("91501");
    assert_int_equal(executions_of(&p, &sdpa_cases[0], AH_BF16), 0);
    pair_close(&p);
}

/* What the device says of it, once it has prepared programs. */
static void attention_said(const struct test_device *gpu, const char *text)
{
    struct ah_dev_info info;
    gpu->dev->ops->info(gpu->dev, &info);
    if (!strstr(info.attention, text))
        fail_msg("found \"%s\", expected \"%s\" in it", info.attention, text);
}

static void who_does_attention_is_said(void **state)
{
    static const struct op_case one = OP("one token", ATTENTION, IN(S3(2, 1, 48)), .heads = 1);
    static const struct op_case odd = OP("head of 12", ATTENTION, IN(S3(1, 9, 72)), .heads = 2);
    struct device_pair p = pair_open(VERSION);
    attention_said(&p.cuda, "");
    (void)executions_of(&p, &sdpa_cases[0], AH_BF16);
    (void)executions_of(&p, &one, AH_BF16);
    attention_said(&p.cuda, "cuDNN " VERSION);
    (void)executions_of(&p, &odd, AH_BF16);
    attention_said(&p.cuda, "own kernels do forward of heads of 12 channels: heads are no multiple of 8 channels");
    pair_close(&p);
    setenv("AUTOHETE_CUDA_ATTENTION", "own", 1);
    p = pair_open(VERSION);
    assert_int_equal(executions_of(&p, &sdpa_cases[0], AH_BF16), 0);
    attention_said(&p.cuda, "AUTOHETE_CUDA_ATTENTION is own");
    pair_close(&p);
    setenv("AUTOHETE_CUDA_ATTENTION", "mine", 1);
    struct ah_dev *dev;
    assert_fails(emulated_open(&dev, NULL), AH_EINPUT,
                 "AUTOHETE_CUDA_ATTENTION: found \"mine\", expected own or cudnn");
    unsetenv("AUTOHETE_CUDA_ATTENTION");
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static int prepare_case(struct test_device *gpu, const struct op_case *c, int64_t *workspace)
{
    struct op_data data;
    struct ah_prepared *prepared = NULL;
    op_data_init_in(&data, c, AH_BF16, 1);
    struct ah_program program = {.count = 1, .calls = &data.call};
    int status = gpu->dev->ops->prepare(gpu->dev, &program, &prepared);
    *workspace = prepared ? prepared->workspace_bytes : -1;
    gpu->dev->ops->prepared_free(gpu->dev, prepared);
    op_data_fini(&data);
    return status;
}

static const struct op_case *const refused_case = &sdpa_cases[AH_LENGTH(sdpa_cases) - 3];

/* How the nth call from now ends that fails while a plan is made. */
enum outcome { PLANNED, OWN_KERNELS, REFUSED, OUTCOMES };

static enum outcome call_fails(struct test_device *gpu, const char *call, long nth, int error, int64_t with)
{
    int64_t workspace, without = 2 * 3 * 30 * (int64_t)sizeof(float);
    emulation_fail(call, nth, error);
    int status = prepare_case(gpu, refused_case, &workspace);
    emulation_reset();
    if (status == AH_OK) {
        assert_true(workspace == with || workspace == without);
        return workspace == with ? PLANNED : OWN_KERNELS;
    }
    assert_fails(status, error == NO_MEMORY ? AH_ENOMEM : AH_EDEVICE, "attention");
    assert_non_null(strstr(ah_error(), call));
    assert_non_null(strstr(ah_error(), "cuDNN: "));
    return REFUSED;
}

/* Every call of a kind fails in turn. A graph that is refused is one line, and so is a lack of memory wherever it is
 * met; a configuration that is refused, for whatever reason, makes room for the next, and after the last for own
 * kernels. Nothing is left over. */
static void a_plan_that_cannot_be_made_is_one_line_or_own_kernels(void **state)
{
    enum { MOST = 400 };
    static const char *const making[] = {"cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
                                         "cudnnBackendFinalize", "cudnnBackendGetAttribute"};
    static const int errors[] = {NOT_SUPPORTED, BAD_PARAM, NO_MEMORY};
    struct device_pair p = pair_open(VERSION);
    int64_t with;
    assert_ok(prepare_case(&p.cuda, refused_case, &with));
    for (size_t i = 0; i < AH_LENGTH(making); i++)
        for (size_t j = 0; j < AH_LENGTH(errors); j++) {
            int seen[OUTCOMES] = {0}, last_bad = 0;
            for (int nth = 1; nth < MOST && nth < last_bad + 20; nth++) {
                enum outcome outcome = call_fails(&p.cuda, making[i], nth, errors[j], with);
                last_bad = outcome == PLANNED ? last_bad : nth;
                seen[outcome]++;
            }
            bool graph = strcmp(making[i], "cudnnBackendGetAttribute") != 0;
            assert_int_equal(seen[REFUSED] > 0, graph || errors[j] == NO_MEMORY);
            assert_int_equal(seen[OWN_KERNELS] > 0, errors[j] != NO_MEMORY);
            assert_true(seen[PLANNED] > 0);
        }
    pair_close(&p);
}

/* A plan was made, and then it does not run. */
static void an_execution_that_fails_ends_the_work(void **state)
{
    static const char *const running[] = {"cudnnSetStream", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
                                          "cudnnBackendFinalize", "cudnnBackendExecute"};
    for (size_t i = 0; i < AH_LENGTH(running); i++) {
        struct device_pair p = pair_open(VERSION);
        struct ah_dev *dev = p.cuda.dev;
        struct op_data data;
        struct ah_prepared *prepared;
        op_data_init_in(&data, &sdpa_cases[0], AH_BF16, 1);
        struct ah_program program = {.count = 1, .calls = &data.call};
        assert_ok(dev->ops->prepare(dev, &program, &prepared));
        struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_PROGRAM}}};
        work.task[0].as.program.prepared = prepared;
        work.task[0].as.program.base[AH_SPACE_WORK] = p.cuda.region;
        work.task[0].as.program.base[AH_SPACE_WORKSPACE] = p.cuda.region + (16 << 20);
        emulation_fail(running[i], 1, BAD_PARAM);
        assert_fails(ah__dev_run(dev, &work, NULL), AH_EDEVICE, "attention: cuDNN: ");
        emulation_reset();
        dev->ops->prepared_free(dev, prepared);
        op_data_fini(&data);
        pair_close(&p);
    }
}

AH_TEST_CASES("dev/cuda/cudnn", graphs_agree_with_the_cpu, all_attention_agrees_with_the_cpu,
              who_does_attention_is_said, long_sequences_go_in_pieces, masks_of_documents_go_in_pieces,
              own_kernels_do_what_cudnn_is_not_for, a_plan_that_cannot_be_made_is_one_line_or_own_kernels,
              an_execution_that_fails_ends_the_work)
