/* Examples that share a sequence are learned as if each had one of its own: losses, norms and parameters. */
#include "bind/bind.h"
#include "data/pack.h"
#include "golden/families.h"
#include "model/model.h"
#include "run/exact.h"
#include "train/schedule.h"

enum { SEQ = 12, EXAMPLES = 7, STEPS = 3, VOCAB = 67, PARAMS_MOST = 1 << 15 };

/* Of a batch of EXAMPLES sequences, or of fewer packed ones. */
struct lesson {
    struct ah_example examples[EXAMPLES];
    struct ah_pack pack; /* count 0: one in each */
    double losses[STEPS], norms[STEPS];
};

static const int lengths[EXAMPLES] = {13, 3, 7, 2, 5, 8, 4};

static int32_t token(int64_t iteration, int example, int i)
{
    return (int32_t)(ah__random_bits(11 + (uint64_t)iteration, (uint64_t)(100 * example + i)) % VOCAB);
}

/* An example of n ids from place `at` on. Its first target is ignored, as a prompt's are. */
static void example_put(const struct ah_batch *to, int64_t at, int64_t iteration, int example)
{
    for (int i = 0; i + 1 < lengths[example]; i++, at++) {
        to->ids[at] = token(iteration, example, i);
        to->targets[at] = i ? token(iteration, example, i + 1) : AH_TARGET_IGNORED;
        if (to->positions)
            to->positions[at] = i;
    }
}

static int give_batch(const struct ah_batch *to, int64_t iteration, void *context)
{
    const struct lesson *lesson = context;
    int64_t rows = lesson->pack.count ? lesson->pack.count : EXAMPLES;
    for (int64_t i = 0; i < rows * SEQ; i++) {
        to->ids[i] = 1;
        to->targets[i] = AH_TARGET_IGNORED;
        if (to->positions)
            to->positions[i] = 0;
    }
    for (int example = 0; !lesson->pack.count && example < EXAMPLES; example++)
        example_put(to, example * SEQ, iteration, example);
    for (int64_t row = 0; row < lesson->pack.count; row++)
        for (int64_t m = lesson->pack.first[row], at = row * SEQ; m < lesson->pack.first[row + 1]; m++) {
            example_put(to, at, iteration, (int)lesson->pack.members[m]);
            at += lengths[lesson->pack.members[m]] - 1;
        }
    return AH_OK;
}

static void give_adam(struct ah_adam *out, int64_t iteration, void *context)
{
    static const struct ah_adamw hyper = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
    ah__adam_init(out, &hyper, 1e-3, iteration + 1);
}

static int take_result(const struct ah_run_result *result, void *context)
{
    struct lesson *lesson = context;
    lesson->losses[result->iteration] = result->loss;
    lesson->norms[result->iteration] = result->grad_norm;
    return 0;
}

/* `rows` sequences in so many micro-batches. */
static void learn(struct lesson *lesson, float *params, const char *config, int64_t rows, int micro, bool packed)
{
    const struct ah_record_options record = {.batch = rows / micro, .seq = SEQ, .compute = AH_F32, .packed = packed};
    const struct ah_dev_options options = {.threads = 2};
    struct steps steps = {
        .batch = give_batch, .adam = give_adam, .result = take_result, .context = lesson, .packed = packed};
    struct ah_model *model;
    struct ah_graph *graph;
    struct tiny tiny;
    struct ah_dev *dev;
    struct ah_run *run;
    int64_t at = 0;
    assert_ok(ah__model_parse(&model, config, strlen(config), "config.json"));
    assert_ok(ah_model_record(&graph, model, &record));
    tiny_init_graph(&tiny, graph, 1, micro);
    tiny.model = model;
    assert_int_equal(tiny.partition->packed, packed);
    struct ah_plan plan = exact_resident(&tiny);
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, tiny.partition, dev));
    assert_ok(ah__run_new(&run, tiny.partition, &plan, dev, 1));
    assert_ok(ah__run_init(run, 5));
    steps_train(run, &steps, 0, STEPS);
    for (int p = 0; p < tiny.partition->param_count; p++) {
        assert_true(at + ah__shape_count(&tiny.partition->params[p].shape) <= PARAMS_MOST);
        assert_ok(ah__run_store(run, p, AH_RUN_PARAM, params + at));
        at += ah__shape_count(&tiny.partition->params[p].shape);
    }
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&tiny);
}

static void as_if_alone(const char *config, int micro)
{
    static float alone_params[PARAMS_MOST], packed_params[PARAMS_MOST];
    struct lesson alone = {0}, packed = {0};
    for (int i = 0; i < EXAMPLES; i++)
        packed.examples[i].length = lengths[i];
    assert_ok(ah__pack_make(&packed.pack, packed.examples, 0, EXAMPLES, SEQ));
    assert_int_equal(packed.pack.count, 3); /* 12, 7 + 4 + 1, 6 + 3 + 2 */
    learn(&alone, alone_params, config, EXAMPLES, 1, false);
    learn(&packed, packed_params, config, packed.pack.count, micro, true);
    for (int i = 0; i < STEPS; i++) {
        assert_true(isfinite(alone.losses[i]) && alone.norms[i] > 0);
        golden_expect_number("loss", packed.losses[i], alone.losses[i]);
        golden_expect_number("norm", packed.norms[i], alone.norms[i]);
    }
    for (int i = 0; i < PARAMS_MOST; i++)
        if (!(fabsf(packed_params[i] - alone_params[i]) < 2e-5F))
            fail_msg("parameter %d: found %g, expected %g", i, (double)packed_params[i], (double)alone_params[i]);
    ah__pack_free(&packed.pack);
}

#define SIZES                                                                                                          \
    "\"vocab_size\":67,\"hidden_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":4,"                          \
    "\"max_position_embeddings\":24"
#define GATED SIZES ",\"intermediate_size\":40"

static void examples_do_not_see_each_other(void **state)
{
    static const char *const configs[] = {
        "{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":24,\"n_head\":3,\"vocab_size\":67,\"n_positions\":16}",
        "{\"model_type\":\"opt\"," SIZES ",\"ffn_dim\":40}",
        "{\"model_type\":\"llama\"," GATED ",\"num_key_value_heads\":2,\"rope_theta\":100}",
        "{\"model_type\":\"mistral\"," GATED ",\"num_key_value_heads\":2,\"sliding_window\":5}",
        "{\"model_type\":\"gpt_neox\"," GATED ",\"rotary_pct\":0.34}",
    };
    for (size_t i = 0; i < AH_LENGTH(configs); i++) {
        print_message("%s\n", configs[i]);
        as_if_alone(configs[i], 1);
        as_if_alone(configs[i], 3);
    }
}

/* Every example once, whole, and never more than fits; no worse than one after the other. */
static void packing_is_tight(void **state)
{
    enum { COUNT = 3000, LONG = 200 };
    static struct ah_example examples[COUNT];
    static bool seen[COUNT];
    struct ah_pack pack, again;
    int64_t places = 0, in_order = 1, room = LONG;
    for (int i = 0; i < COUNT; i++) {
        examples[i].length = 2 + (int32_t)(ah__random_bits(7, (uint64_t)i) % LONG);
        int64_t taken = examples[i].length - 1;
        places += taken;
        in_order += room < taken;
        room = room < taken ? LONG - taken : room - taken;
    }
    assert_ok(ah__pack_make(&pack, examples, 0, COUNT, LONG));
    for (int64_t s = 0; s < pack.count; s++) {
        int64_t used = 0;
        assert_true(pack.first[s] < pack.first[s + 1]);
        for (int64_t m = pack.first[s]; m < pack.first[s + 1]; m++) {
            assert_false(seen[pack.members[m]]);
            seen[pack.members[m]] = true;
            used += examples[pack.members[m]].length - 1;
        }
        assert_in_range(used, 1, LONG);
    }
    assert_int_equal(pack.first[pack.count], COUNT);
    assert_true(pack.count <= in_order);
    assert_true(pack.count <= places / LONG + 1 + places / LONG / 50); /* two in a hundred above what nobody can beat */
    assert_ok(ah__pack_make(&again, examples, 0, COUNT, LONG));
    assert_memory_equal(pack.members, again.members, COUNT * sizeof *pack.members);
    ah__pack_free(&pack);
    ah__pack_free(&again);
    static const struct ah_example equal[5] = {
        {.length = 3}, {.length = 4}, {.length = 4}, {.length = 4}, {.length = 4}};
    static const int64_t in_order_of_data[5] = {1, 2, 3, 4, 0};
    assert_ok(ah__pack_make(&pack, equal, 0, 5, 6));
    assert_int_equal(pack.count, 3);
    assert_memory_equal(pack.members, in_order_of_data, sizeof in_order_of_data);
    ah__pack_free(&pack);
    assert_ok(ah__pack_make(&pack, examples, 5, 5, LONG));
    assert_int_equal(pack.count, 0);
    ah__pack_free(&pack);
}

AH_TEST_CASES("run/packed", examples_do_not_see_each_other, packing_is_tight)
