/* What a step's micro-batches add up to: the loss and the gradients of one large batch, to rounding. */
#include <math.h>

#include "tiny.h"

#include "partition/models.h"

enum { BATCH = 4, SEQ = 17, VOCAB = 67, EMBD = 24 };

/* Of one step from the same parameters. */
struct sums {
    double loss, norm;
    float grad[TINY_MOST_FLOATS]; /* of all parameters, one after the other */
    int64_t count;
};

/* Targets that are ignored: none, some of the last sequences, every one of the first sequence. */
enum ignored { IGNORED_NONE, IGNORED_SOME, IGNORED_SEQUENCE };

struct one_step {
    struct tiny *tiny;
    enum ignored ignored;
    struct sums *sums;
};

static int give_batch(const struct ah_batch *to, int64_t iteration, void *context)
{
    int32_t *targets = to->targets;
    const struct one_step *step = context;
    tiny_batch(to, iteration, step->tiny);
    for (int64_t i = 0; i < BATCH * SEQ; i++)
        if ((step->ignored == IGNORED_SOME && i > 2 * SEQ && i % 3) || (step->ignored == IGNORED_SEQUENCE && i < SEQ))
            targets[i] = AH_TARGET_IGNORED;
    return AH_OK;
}

static int take_result(const struct ah_run_result *result, void *context)
{
    const struct one_step *step = context;
    step->sums->loss = result->loss;
    step->sums->norm = result->grad_norm;
    return 0;
}

/* The first moment after one step is a tenth of the gradient. */
static void run_step(struct sums *sums, struct tiny *tiny, enum ignored ignored)
{
    const struct ah_plan plan = {
        .switches = {.layers = tiny->partition->layers, .buffers = TINY_LAYERS, .prefetch_distance = 1},
        .policy = "resident"};
    struct one_step step = {tiny, ignored, sums};
    struct steps steps = {.batch = give_batch, .adam = tiny_adam, .result = take_result, .context = &step};
    struct ah_dev_options options = {.threads = 1};
    struct ah_dev *dev;
    struct ah_run *run;
    double eval;
    int32_t ids[BATCH * SEQ], targets[BATCH * SEQ];
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__run_new(&run, tiny->partition, &plan, dev, tiny->clip));
    assert_ok(ah__run_init(run, 11));
    assert_ok(give_batch(&(struct ah_batch){ids, targets, NULL}, 0, &step));
    assert_ok(ah__run_eval(run, &(struct ah_batch){ids, targets, NULL}, &eval));
    steps_train(run, &steps, 0, 1);
    assert_true(eval == sums->loss);
    sums->count = 0;
    for (int p = 0; p < tiny->partition->param_count; p++) {
        int64_t count = ah__shape_count(&tiny->partition->params[p].shape);
        assert_true(sums->count + count <= TINY_MOST_FLOATS);
        assert_ok(ah__run_store(run, p, AH_RUN_MOMENT1, sums->grad + sums->count));
        sums->count += count;
    }
    ah__run_free(run);
    ah_dev_close(dev);
}

static void expect_near(const struct sums *got, const struct sums *want, int micro_batches)
{
    double largest = 0;
    if (!(fabs(got->loss - want->loss) <= 1e-6 * want->loss) || !(fabs(got->norm - want->norm) <= 1e-5 * want->norm))
        fail_msg("%d micro-batches: loss %.9g and norm %.9g, of one batch %.9g and %.9g", micro_batches, got->loss,
                 got->norm, want->loss, want->norm);
    assert_int_equal(got->count, want->count);
    for (int64_t i = 0; i < want->count; i++)
        largest = fmax(largest, fabs((double)want->grad[i]));
    assert_true(largest > 1e-4);
    for (int64_t i = 0; i < want->count; i++)
        if (!(fabs((double)got->grad[i] - (double)want->grad[i]) <= 2e-6 * largest))
            fail_msg("%d micro-batches: gradient %lld is %.9g, of one batch %.9g", micro_batches, (long long)i,
                     (double)got->grad[i], (double)want->grad[i]);
}

static struct sums whole, parts;

static void adds_up(const char *config, enum ignored ignored)
{
    struct tiny tiny;
    tiny_init_micro(&tiny, config, 0, BATCH, 1);
    run_step(&whole, &tiny, ignored);
    tiny_fini(&tiny);
    for (int n = 2; n <= BATCH; n *= 2) {
        tiny_init_micro(&tiny, config, 0, BATCH / n, n);
        run_step(&parts, &tiny, ignored);
        expect_near(&parts, &whole, n);
        tiny_fini(&tiny);
    }
}

static void gradients_are_those_of_one_batch(void **state)
{
    adds_up(tiny_tied, IGNORED_NONE);
    adds_up(tiny_untied, IGNORED_NONE);
}

/* Micro-batches with few tokens that count, or none, weigh what their tokens do. */
static void ignored_targets_are_counted_over_the_step(void **state)
{
    adds_up(tiny_tied, IGNORED_SOME);
    adds_up(tiny_untied, IGNORED_SEQUENCE);
}

/* Other blocks, and a loss that takes logits. */
static struct ah_graph *graph_of(int64_t batch, bool fused)
{
    struct ah_graph *graph;
    assert_ok(ah_graph_new(&graph, AH_F32));
    struct ah_tensor tokens = ah_graph_tokens(graph, batch, SEQ), targets = ah_graph_targets(graph, batch, SEQ);
    struct ah_tensor table = ah_graph_param(graph, "wte", ah_shape2(VOCAB, MODEL_EMBD), AH_INIT_NORMAL, 0.3F);
    struct ah_tensor head = ah_graph_param(graph, "head", ah_shape2(VOCAB, MODEL_EMBD), AH_INIT_NORMAL, 0.3F);
    struct ah_tensor x = ah_graph_embedding(graph, table, tokens);
    for (int i = 0; i < 2; i++) {
        ah_graph_scope_push(graph, "h.%d", i);
        x = model_llama(graph, x, i);
        ah_graph_scope_pop(graph);
    }
    x = model_norm(graph, "norm", x);
    struct ah_tensor loss = {-1};
    if (fused)
        loss = ah_graph_linear_cross_entropy(graph, x, head, targets);
    else
        loss = ah_graph_cross_entropy(graph, ah_graph_linear(graph, x, head, (struct ah_tensor){-1}, true), targets);
    assert_ok(ah_graph_finish(graph, loss));
    return graph;
}

static void both_losses_take_micro_batches(void **state)
{
    for (int fused = 0; fused < 2; fused++) {
        struct tiny tiny;
        tiny_init_graph(&tiny, graph_of(BATCH, fused), 0, 1);
        run_step(&whole, &tiny, IGNORED_NONE);
        tiny_fini(&tiny);
        tiny_init_graph(&tiny, graph_of(1, fused), 0, BATCH);
        run_step(&parts, &tiny, IGNORED_NONE);
        expect_near(&parts, &whole, BATCH);
        tiny_fini(&tiny);
    }
}

/* One micro-batch is no micro-batch: programs and signature are what they are without. */
static void one_micro_batch_changes_nothing(void **state)
{
    struct tiny without, with;
    tiny_init_micro(&without, tiny_tied, 0, 2, 0);
    tiny_init_micro(&with, tiny_tied, 0, 2, 1);
    assert_true(with.partition->signature == without.partition->signature);
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        assert_int_equal(with.partition->code[class].program[AH_PROGRAM_FORWARD_ADD].count, 0);
        assert_int_equal(with.partition->code[class].program[AH_PROGRAM_BACKWARD_ADD].count, 0);
    }
    struct ah_step_options wrong = {.micro_batches = -1}, infers = {.infers = true, .micro_batches = 2};
    struct ah_partition *partition = NULL;
    assert_fails(ah_partition_new(&partition, with.graph, &wrong), AH_EINPUT, "found -1 micro-batches");
    assert_fails(ah_partition_new(&partition, with.graph, &infers), AH_EINPUT, "found 2 micro-batches, expected one");
    tiny_fini(&without);
    tiny_fini(&with);
}

AH_TEST_CASES("run/micro", gradients_are_those_of_one_batch, ignored_targets_are_counted_over_the_step,
              both_losses_take_micro_batches, one_micro_batch_changes_nothing)
