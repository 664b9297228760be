/* Token by token, behind keys and values that were kept: the logits are those of transformers for the whole sequence,
 * for every family, whatever part of it was run at once. */
#include "bind/bind.h"
#include "golden/families.h"
#include "model/model.h"
#include "plan/config.h"
#include "run/exact.h"

struct decoding {
    struct ah_model *model;
    struct ah_graph *graph, *one_graph;
    struct ah_partition *partition, *one;
    struct ah_dev *dev;
    struct ah_run *run;
};

static void partitions_make(struct decoding *d, const char *config, int64_t seq, int64_t cache)
{
    const struct ah_step_options step = {.infers = true}, one_step = {.infers = true, .logits = true};
    struct ah_record_options record = {.batch = 1, .seq = seq, .compute = AH_F32, .cache = cache};
    assert_ok(ah__model_parse(&d->model, config, strlen(config), "config.json"));
    assert_ok(ah_model_record(&d->graph, d->model, &record));
    assert_ok(ah_partition_new(&d->partition, d->graph, &step));
    record.seq = 1;
    record.decodes = true;
    assert_ok(ah_model_record(&d->one_graph, d->model, &record));
    assert_ok(ah_partition_new(&d->one, d->one_graph, &one_step));
    d->partition->work_bytes_least = ah__partition_work_bytes(d->one);
}

static void decoding_init(struct decoding *d, const struct family_golden *g, int64_t seq)
{
    static float values[FAMILY_MOST_FLOATS];
    const struct ah_dev_options options = {.threads = 2};
    struct ah_sched_config config;
    int64_t bytes;
    partitions_make(d, g->config, seq, g->seq);
    struct ah_plan plan = {.switches = {.layers = d->partition->layers,
                                        .world_size = 1,
                                        .chunks = 1,
                                        .prefetch_distance = 1,
                                        .checkpoint = d->partition->layers},
                           .policy = "resident"};
    ah__sched_config_of(&config, &plan.switches, d->partition, ah__policy_find(plan.policy));
    plan.switches.buffers = ah__sched_min_buffers(&config);
    assert_ok(ah_dev_open(&d->dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, d->partition, d->dev));
    assert_ok(ah__workspace_bytes(&bytes, d->one, d->dev));
    plan.workspace_bytes = bytes > plan.workspace_bytes ? bytes : plan.workspace_bytes;
    assert_ok(ah__run_new_decoding(&d->run, d->partition, d->one, &plan, d->dev));
    for (int i = 0; i < g->count; i++) {
        int param = 0;
        while (strcmp(d->partition->params[param].name, g->tensor[i].name) != 0)
            param++;
        family_fill_param(values, g, i);
        assert_ok(ah__run_load(d->run, param, AH_RUN_PARAM, values));
    }
}

static void decoding_fini(struct decoding *d)
{
    ah__run_free(d->run);
    ah_dev_close(d->dev);
    ah_partition_free(d->one);
    ah_graph_free(d->one_graph);
    ah_partition_free(d->partition);
    ah_graph_free(d->graph);
    ah_model_free(d->model);
}

static void token_check(struct decoding *d, const struct family_golden *g, const int32_t *ids, int64_t row, int64_t t)
{
    float *logits = malloc((size_t)g->vocab * sizeof *logits);
    assert_non_null(logits);
    assert_ok(ah__run_decode(d->run, ids[t], (int32_t)t));
    assert_ok(ah__run_logits(d->run, 0, logits));
    golden_expect_close("logits", "token by token", logits,
                        g->logits + (row * g->seq + t) * g->vocab * (int64_t)sizeof(float), g->vocab);
    free(logits);
}

/* `whole` tokens at once, the rest one by one; the last of the whole a second time, as generation does. */
static void sequence_check(const struct family_golden *g, int64_t row, int64_t whole)
{
    struct decoding d = {0};
    size_t bytes = (size_t)(g->batch * g->seq) * sizeof(int32_t);
    int32_t *ids = malloc(bytes), *targets = malloc(bytes);
    assert_non_null(ids);
    assert_non_null(targets);
    family_fill_ids(ids, targets, g, 0);
    decoding_init(&d, g, whole ? whole : 1);
    if (whole)
        assert_ok(ah__run_prefill(d.run, ids + row * g->seq));
    for (int64_t t = whole ? whole - 1 : 0; t < g->seq; t++)
        token_check(&d, g, ids + row * g->seq, row, t);
    decoding_fini(&d);
    free(ids);
    free(targets);
}

static void logits_are_those_of_transformers(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(family_cases); i++) {
        struct family_golden g;
        print_message("%s\n", family_cases[i]);
        family_load(&g, family_cases[i]);
        sequence_check(&g, 0, 0);
        sequence_check(&g, g.batch - 1, g.seq / 2);
        sequence_check(&g, 0, g.seq);
        ah__free(g.text);
    }
}

static void only_inference_keeps_anything(void **state)
{
    static const char config[] = "{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":24,\"n_head\":3,\"vocab_size\":67,"
                                 "\"n_positions\":16}";
    struct ah_record_options record = {.batch = 1, .seq = 4, .compute = AH_F32, .cache = 8};
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    assert_ok(ah__model_parse(&model, config, strlen(config), "config.json"));
    assert_ok(ah_model_record(&graph, model, &record));
    assert_fails(ah_partition_new(&partition, graph, NULL), AH_EINPUT, "only inference keeps them");
    ah_graph_free(graph);
    record.cache = 17;
    assert_fails(ah_model_record(&graph, model, &record), AH_EINPUT, "cache: found 17 positions, expected 1 to 16");
    record.cache = 3;
    assert_fails(ah_model_record(&graph, model, &record), AH_EINPUT, "with S >= 4");
    ah_model_free(model);
}

AH_TEST_CASES("run/decode", logits_are_those_of_transformers, only_inference_keeps_anything)
