/* The compiled programs of a small GPT-2 against PyTorch in double precision (tests/golden/gpt2.py). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "golden/golden.h"
#include "rig.h"

enum { STEPS = GOLDEN_STEPS };

struct golden {
    char *text;
    int layers, embd, heads, vocab, seq, batch, tied, count;
    double losses[STEPS];
    struct {
        char name[64];
        int64_t count;
        const char *grad, *after;
    } tensor[GOLDEN_MOST_TENSORS];
};

static void golden_load(struct golden *g, const char *name)
{
    char path[256];
    size_t length;
    *g = (struct golden){0};
    snprintf(path, sizeof path, "%s/golden/%s.bin", ah_test_source(), name);
    assert_ok(ah__file_read(&g->text, &length, path, GOLDEN_MOST_BYTES));
    char *line = g->text, *next = golden_next_line(line);
    assert_int_equal(sscanf(line, "config %d %d %d %d %d %d %d", &g->layers, &g->embd, &g->heads, &g->vocab, &g->seq,
                            &g->batch, &g->tied),
                     7);
    line = next;
    next = golden_next_line(line);
    line += strlen("losses");
    for (int i = 0; i < STEPS; i++)
        g->losses[i] = strtod(line, &line);
    for (line = next, next = golden_next_line(line); strcmp(line, "data") != 0;
         line = next, next = golden_next_line(line)) {
        long long count;
        assert_int_equal(sscanf(line, "tensor %63s %lld", g->tensor[g->count].name, &count), 2);
        g->tensor[g->count++].count = count;
    }
    for (int i = 0; i < g->count; i++) {
        g->tensor[i].grad = next;
        g->tensor[i].after = next + 4 * g->tensor[i].count;
        next += 8 * g->tensor[i].count;
    }
    assert_int_equal(next - g->text, length);
}

static float *values_of(const struct rig *rig, char *const *groups, const char *name)
{
    const struct ah_param *param = rig_param(rig, name);
    return (float *)(void *)groups[param->group] + param->offset;
}

static void fill_params(const struct rig *rig, const struct golden *g)
{
    for (int i = 0; i < g->count; i++)
        golden_fill_param(values_of(rig, rig->param, g->tensor[i].name), g->tensor[i].count, i, g->tensor[i].name);
}

static void golden_rig(struct rig *rig, const struct golden *g)
{
    char path[256];
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    golden_write_config(path, sizeof path, g->layers, g->embd, g->heads, g->vocab, g->seq, g->tied);
    assert_ok(ah_model_load(&model, path));
    assert_ok(ah_model_record(&graph, model,
                              &(struct ah_record_options){.batch = g->batch, .seq = g->seq, .compute = AH_F32}));
    assert_ok(ah_partition_new(&partition, graph, NULL));
    ah_graph_free(graph);
    ah_model_free(model);
    rig_init(rig, partition);
    fill_params(rig, g);
    golden_fill_ids((int32_t *)(void *)rig->input[0], 0, g->batch * g->seq, 1, g->vocab);
    golden_fill_ids(rig->targets, 0, g->batch * g->seq, 2, g->vocab);
}

static void compare(const char *name, enum rig_recompute recompute)
{
    struct golden g;
    struct rig rig;
    golden_load(&g, name);
    golden_rig(&rig, &g);
    for (int step = 1; step <= STEPS; step++) {
        rig_forward(&rig, false);
        golden_expect_number("loss", (double)rig.loss, g.losses[step - 1]);
        rig_backward(&rig, recompute);
        for (int i = 0; step == 1 && i < g.count; i++)
            golden_expect_close("gradient", g.tensor[i].name, values_of(&rig, rig.grad, g.tensor[i].name),
                                g.tensor[i].grad, g.tensor[i].count);
        rig_adam(&rig, step, 1e-3, 0.1);
    }
    for (int i = 0; i < g.count; i++)
        golden_expect_after(g.tensor[i].name, values_of(&rig, rig.param, g.tensor[i].name), g.tensor[i].after,
                            g.tensor[i].count);
    rig_fini(&rig);
    ah__free(g.text);
}

static void tied(void **state)
{
    compare("gpt2-tied", RIG_RECOMPUTE_NONE);
}

static void untied(void **state)
{
    compare("gpt2-untied", RIG_RECOMPUTE_NONE);
}

static void recomputed(void **state)
{
    compare("gpt2-tied", RIG_RECOMPUTE_ALL);
    compare("gpt2-tied", RIG_RECOMPUTE_SELECTIVE);
}

/* Dropping and recomputing give the same bits as keeping: loss, what is saved, all gradients. */
static void same_bits(void **state)
{
    struct golden g;
    struct rig keep, drop;
    golden_load(&g, "gpt2-tied");
    golden_rig(&keep, &g);
    golden_rig(&drop, &g);
    rig_forward(&keep, false);
    rig_forward(&drop, true);
    assert_memory_equal(&keep.loss, &drop.loss, sizeof keep.loss);
    rig_run(&drop, drop.count - 1, &rig_code(&drop, drop.count - 1)->program[AH_PROGRAM_FORWARD]);
    for (int i = 1; i < keep.count - 1; i++) {
        rig_run(&drop, i, &rig_code(&drop, i)->program[AH_PROGRAM_RECOMPUTE]);
        assert_memory_equal(keep.saved[i], drop.saved[i], (size_t)rig_code(&keep, i)->saved_bytes);
        assert_memory_equal(keep.input[i + 1], drop.input[i + 1], (size_t)rig_code(&keep, i)->output_bytes);
    }
    rig_backward(&keep, RIG_RECOMPUTE_NONE);
    rig_backward(&drop, RIG_RECOMPUTE_ALL);
    for (int i = 0; i < keep.count; i++)
        assert_memory_equal(keep.grad[i], drop.grad[i], (size_t)keep.partition->groups[i].count * 4);
    rig_fini(&keep);
    rig_fini(&drop);
    ah__free(g.text);
}

static double loss_of_logits(const float *logits, const int32_t *targets, int64_t rows, int64_t vocab)
{
    double loss = 0;
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < vocab; i++)
            sum += exp((double)logits[row * vocab + i]);
        loss += log(sum) - (double)logits[row * vocab + targets[row]];
    }
    return loss / (double)rows;
}

/* The loss follows from what infer leaves. */
static void inferred_logits(void **state)
{
    for (int tied = 0; tied < 2; tied++) {
        struct golden g;
        struct rig rig;
        golden_load(&g, tied ? "gpt2-tied" : "gpt2-untied");
        golden_rig(&rig, &g);
        rig_forward(&rig, true);
        const struct ah_code *head = rig_code(&rig, rig.count - 1);
        rig_run(&rig, rig.count - 1, &head->program[AH_PROGRAM_INFER]);
        assert_int_equal(ah__shape_count(&head->logits.meta.shape), g.batch * g.seq * g.vocab);
        const float *logits = (const float *)(const void *)(rig.work + head->logits.offset);
        golden_expect_number("loss", (double)rig.loss, loss_of_logits(logits, rig.targets, g.batch * g.seq, g.vocab));
        rig_fini(&rig);
        ah__free(g.text);
    }
}

AH_TEST_CASES("partition/golden", tied, untied, recomputed, same_bits, inferred_logits)
