/* The programs of a model recorded in bf16 against those of the same model in fp32, from the same parameters. */
#include "base/hash.h"
#include "models.h"
#include "rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2 };

static uint16_t rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

static float widened(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* Parameters that bf16 holds exactly; norms around one, so that nothing is close to zero by construction. */
static void fill(const struct rig *rig)
{
    const struct ah_partition *partition = rig->partition;
    for (int i = 0; i < partition->param_count; i++) {
        const struct ah_param *param = &partition->params[i];
        float base = param->init == AH_INIT_ONES ? 1.0F : 0.0F;
        for (int64_t j = 0; j < ah__shape_count(&param->shape); j++) {
            uint16_t value = rounded(base + 0.2F * (float)ah__random_normal(100 + (uint64_t)i, (uint64_t)j));
            if (partition->compute == AH_BF16)
                ((uint16_t *)(void *)rig->param[param->group])[param->offset + j] = value;
            else
                ((float *)(void *)rig->param[param->group])[param->offset + j] = widened(value);
        }
    }
    for (int64_t i = 0; i < MODEL_BATCH * MODEL_SEQ; i++) {
        ((int32_t *)(void *)rig->input[0])[i] = (int32_t)(ah__random_bits(1, (uint64_t)i) % MODEL_VOCAB);
        rig->targets[i] = (int32_t)(ah__random_bits(2, (uint64_t)i) % MODEL_VOCAB);
    }
}

static void begin(struct rig *rig, enum ah_dtype compute, model_block block, bool tied)
{
    struct ah_partition *partition;
    struct ah_graph *graph = model_graph_in(compute, block, LAYERS, tied);
    assert_ok(ah_partition_new(&partition, graph, NULL));
    ah_graph_free(graph);
    rig_init(rig, partition);
    fill(rig);
}

/* |a - b| and |b| of a whole group's gradients; what no parameter covers was never written and is left out. */
static double group_difference(const struct rig *half, const struct rig *full, int group, double *norm)
{
    double difference = 0;
    *norm = 0;
    for (int i = 0; i < full->partition->param_count; i++) {
        const struct ah_param *param = &full->partition->params[i];
        const float *a = (const float *)(const void *)half->grad[group] + param->offset;
        const float *b = (const float *)(const void *)full->grad[group] + param->offset;
        for (int64_t j = 0; param->group == group && j < ah__shape_count(&param->shape); j++) {
            double d = (double)a[j] - (double)b[j];
            difference += d * d;
            *norm += (double)b[j] * (double)b[j];
        }
    }
    *norm = sqrt(*norm);
    return sqrt(difference);
}

/* As if every parameter had been rounded to bf16 once more. */
static void nudge(const struct rig *rig)
{
    for (int i = 0; i < rig->partition->param_count; i++) {
        const struct ah_param *param = &rig->partition->params[i];
        float *value = (float *)(void *)rig->param[param->group] + param->offset;
        for (int64_t j = 0; j < ah__shape_count(&param->shape); j++)
            value[j] *= 1 + 0x1p-9F * (float)ah__random_normal(900 + (uint64_t)i, (uint64_t)j);
    }
}

/* How far bf16 may be from fp32 depends on the model: what roundings of its parameters alone do to it in fp32 is the
 * measure, of which it may be a few times as much. */
static void agree(const struct model_case *c, bool tied)
{
    struct rig half, full, nudged, *const all[] = {&half, &full, &nudged};
    double norm, most = 4;
    begin(&half, AH_BF16, c->block, tied);
    begin(&full, AH_F32, c->block, tied);
    begin(&nudged, AH_F32, c->block, tied);
    nudge(&nudged);
    for (size_t i = 0; i < AH_LENGTH(all); i++) {
        rig_forward(all[i], false);
        rig_backward(all[i], RIG_RECOMPUTE_NONE);
    }
    if (!(fabs((double)half.loss - (double)full.loss) <= 0.01 * (double)full.loss))
        fail_msg("%s: loss %.9g, in fp32 %.9g", c->name, (double)half.loss, (double)full.loss);
    for (int group = 0; group < full.count; group++) {
        double difference = group_difference(&half, &full, group, &norm);
        double measure = group_difference(&nudged, &full, group, &norm);
        if (!(measure < 0.1 * norm && difference <= most * measure))
            fail_msg("%s, group %d: gradients of size %g differ by %g, nudged by %g", c->name, group, norm, difference,
                     measure);
    }
    for (size_t i = 0; i < AH_LENGTH(all); i++)
        rig_fini(all[i]);
}

static void agrees_with_fp32(void **state)
{
    for (int i = 0; i < model_case_count; i++)
        for (int tied = 0; tied < 2; tied++)
            agree(&model_cases[i], tied);
}

/* Gradients are fp32 and not rounded on the way: their lower halves hold something. */
static void gradients_are_fp32(void **state)
{
    struct rig rig;
    int64_t fine = 0, all = 0;
    begin(&rig, AH_BF16, model_cases[0].block, true);
    rig_forward(&rig, false);
    rig_backward(&rig, RIG_RECOMPUTE_NONE);
    for (int i = 0; i < rig.partition->param_count; i++) {
        const struct ah_param *param = &rig.partition->params[i];
        const uint32_t *bits = (const uint32_t *)(const void *)rig.grad[param->group] + param->offset;
        for (int64_t j = 0; j < ah__shape_count(&param->shape); j++, all++)
            fine += (bits[j] & 0xFFFFU) != 0;
    }
    assert_true(fine > all * 9 / 10 - MODEL_VOCAB * MODEL_EMBD);
    rig_fini(&rig);
}

/* Dropping and recomputing give the same bits as keeping. */
static void recomputing_gives_the_same_bits(void **state)
{
    for (int i = 0; i < model_case_count; i++) {
        struct rig keep, drop;
        begin(&keep, AH_BF16, model_cases[i].block, true);
        begin(&drop, AH_BF16, model_cases[i].block, true);
        rig_forward(&keep, false);
        rig_forward(&drop, true);
        assert_memory_equal(&keep.loss, &drop.loss, sizeof keep.loss);
        rig_run(&drop, drop.count - 1, &rig_code(&drop, drop.count - 1)->program[AH_PROGRAM_FORWARD]);
        rig_backward(&keep, RIG_RECOMPUTE_NONE);
        rig_backward(&drop, RIG_RECOMPUTE_ALL);
        for (int group = 0; group < keep.count; group++)
            assert_memory_equal(keep.grad[group], drop.grad[group], (size_t)keep.partition->groups[group].count * 4);
        rig_fini(&keep);
        rig_fini(&drop);
    }
}

AH_TEST_CASES("partition/bf16", agrees_with_fp32, gradients_are_fp32, recomputing_gives_the_same_bits)
