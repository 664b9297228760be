/* The compiled programs of every family against transformers in double precision (tests/golden/families.py): logits,
 * loss and gradients of one batch. */
#include "golden/families.h"
#include "model/model.h"
#include "rig.h"

static float *values_of(const struct rig *rig, char *const *groups, const char *name)
{
    const struct ah_param *param = rig_param(rig, name);
    return (float *)(void *)groups[param->group] + param->offset;
}

static void family_rig(struct rig *rig, const struct family_golden *g)
{
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    assert_ok(ah__model_parse(&model, g->config, strlen(g->config), "config.json"));
    assert_ok(ah_model_record(&graph, model,
                              &(struct ah_record_options){.batch = g->batch, .seq = g->seq, .compute = AH_F32}));
    assert_ok(ah_partition_new(&partition, graph, NULL));
    ah_graph_free(graph);
    ah_model_free(model);
    rig_init(rig, partition);
    assert_int_equal(partition->param_count, g->count);
    for (int i = 0; i < g->count; i++) {
        assert_int_equal(ah__shape_count(&rig_param(rig, g->tensor[i].name)->shape), g->tensor[i].count);
        family_fill_param(values_of(rig, rig->param, g->tensor[i].name), g, i);
    }
    family_fill_ids((int32_t *)(void *)rig->input[0], rig->targets, g, 0);
}

/* What is left of a forward pass that keeps nothing. */
static void logits_check(struct rig *rig, const struct family_golden *g)
{
    const struct ah_code *head = rig_code(rig, rig->count - 1);
    rig_forward(rig, true);
    rig_run(rig, rig->count - 1, &head->program[AH_PROGRAM_INFER]);
    golden_expect_close("logits", g->config, (const float *)(const void *)(rig->work + head->logits.offset), g->logits,
                        (int64_t)g->batch * g->seq * g->vocab);
}

static void gradients_check(struct rig *rig, const struct family_golden *g, enum rig_recompute recompute)
{
    bool drop = recompute == RIG_RECOMPUTE_ALL;
    rig_forward(rig, drop);
    if (drop)
        rig_run(rig, rig->count - 1, &rig_code(rig, rig->count - 1)->program[AH_PROGRAM_FORWARD]);
    golden_expect_number("loss", (double)rig->loss, g->losses[0]);
    rig_backward(rig, recompute);
    for (int i = 0; i < g->count; i++)
        family_expect_gradient(g->tensor[i].name, values_of(rig, rig->grad, g->tensor[i].name), g->tensor[i].grad,
                               g->tensor[i].count);
}

static void every_family(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(family_cases); i++)
        for (enum rig_recompute recompute = RIG_RECOMPUTE_NONE; recompute <= RIG_RECOMPUTE_SELECTIVE; recompute++) {
            struct family_golden g;
            struct rig rig;
            print_message("%s\n", family_cases[i]);
            family_load(&g, family_cases[i]);
            family_rig(&rig, &g);
            logits_check(&rig, &g);
            gradients_check(&rig, &g, recompute);
            rig_fini(&rig);
            ah__free(g.text);
        }
}

/* A family's model with some parts frozen. */
struct frozen {
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
};

static void frozen_init(struct frozen *frozen, const struct family_golden *g, const char *freeze)
{
    struct ah_record_options options = {.batch = g->batch, .seq = g->seq, .compute = AH_F32, .tuning.freeze = freeze};
    assert_ok(ah__model_parse(&frozen->model, g->config, strlen(g->config), "config.json"));
    assert_ok(ah_model_record(&frozen->graph, frozen->model, &options));
    assert_ok(ah_partition_new(&frozen->partition, frozen->graph, NULL));
}

static void frozen_fini(struct frozen *frozen)
{
    ah_partition_free(frozen->partition);
    ah_graph_free(frozen->graph);
    ah_model_free(frozen->model);
}

/* All parameters of the parts that `freeze` names are frozen, and no others. */
static void expect_frozen(const struct family_golden *g, const char *freeze, bool ends, bool blocks)
{
    struct frozen frozen;
    frozen_init(&frozen, g, freeze);
    for (int i = 0; i < frozen.partition->param_count; i++) {
        const struct ah_param *param = &frozen.partition->params[i];
        bool in_block = param->group > 0 && param->group <= frozen.partition->layers;
        assert_int_equal(param->frozen, in_block ? blocks : ends);
    }
    frozen_fini(&frozen);
}

/* The embedding and the lowest block, where there is another above. */
static void expect_frozen_below(const struct family_golden *g)
{
    struct frozen frozen;
    frozen_init(&frozen, g, "embedding,blocks:1");
    int layers = ah_model_get(frozen.model)->layers;
    assert_int_equal(frozen.partition->frozen_blocks, layers > 1 ? 1 : 0);
    assert_int_equal(frozen.partition->layers, layers);
    frozen_fini(&frozen);
}

static void parts_are_frozen_by_name(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(family_cases); i++) {
        struct family_golden g;
        family_load(&g, family_cases[i]);
        expect_frozen(&g, "embedding, head", true, false);
        expect_frozen(&g, "blocks", false, true);
        expect_frozen_below(&g);
        ah__free(g.text);
    }
}

AH_TEST_CASES("partition/families", every_family, parts_are_frozen_by_name)
