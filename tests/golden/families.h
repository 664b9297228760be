/* Reading what families.py wrote: one configuration of a family, and what transformers makes of it. */
#ifndef AH_TESTS_GOLDEN_FAMILIES_H
#define AH_TESTS_GOLDEN_FAMILIES_H

#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "golden/golden.h"

enum { FAMILY_MOST_FLOATS = 20000 };

static const char *const family_cases[] = {
    "gemma-bias",        "gemma-wide",       "gemma2-capped",     "gemma2-plain",       "gemma3_text-mixed",
    "gemma3_text-types", "gpt2-gelu",        "gpt_neox-parallel", "gpt_neox-serial",    "granite-bias",
    "granite-factors",   "llama-bias",       "llama-gqa",         "mistral-wide",       "mistral-window",
    "olmo2-gqa",         "olmo2-whole",      "olmo3-types",       "olmo3-yarn",         "llama-yarn",
    "qwen2-yarn",        "qwen3-dynamic",    "opt-gelu",          "opt-relu",           "phi3-partial",
    "phi3-window",       "phi3-short",       "phi3-long",         "qwen2-tied",         "qwen2-window",
    "qwen3-bias",        "qwen3-wide",       "qwen2-mixed",       "qwen3-mixed",        "smollm3-still",
    "smollm3-bias",      "ministral-mixed",  "qwen3_moe-normal",  "qwen3_moe-plain",    "mixtral-two",
    "mixtral-window",    "olmoe-plain",      "olmoe-gqa",         "granitemoe-factors", "granitemoe-bias",
    "qwen2_moe-plain",   "qwen2_moe-window", "gpt_oss-yarn",      "gpt_oss-plain",
};

struct family_golden {
    char *text;
    const char *config; /* of config.json, one line */
    int batch, seq, vocab, count;
    double clip, losses[GOLDEN_STEPS], norms[GOLDEN_STEPS];
    const char *logits; /* [batch,seq,vocab] */
    struct {
        char name[64];
        int64_t count;
        const char *grad, *after; /* of the first step; after all, null: not kept */
    } tensor[GOLDEN_MOST_TENSORS];
};

/* The lines of tensors; returns where the data begins. */
static inline char *family_tensors(struct family_golden *g, bool kept[GOLDEN_MOST_TENSORS], char *at)
{
    char *next = golden_next_line(at);
    for (; strcmp(at, "data") != 0; at = next, next = golden_next_line(at)) {
        long long count;
        int keep;
        assert_in_range(g->count, 0, GOLDEN_MOST_TENSORS - 1);
        assert_int_equal(sscanf(at, "tensor %63s %lld %d", g->tensor[g->count].name, &count, &keep), 3);
        kept[g->count] = keep;
        g->tensor[g->count++].count = count;
    }
    return next;
}

/* The caller frees g->text with ah__free(). */
static inline void family_load(struct family_golden *g, const char *name)
{
    char path[256], *line[6];
    size_t length;
    bool kept[GOLDEN_MOST_TENSORS];
    *g = (struct family_golden){0};
    snprintf(path, sizeof path, "%s/golden/families/%s.bin", ah_test_source(), name);
    assert_ok(ah__file_read(&g->text, &length, path, GOLDEN_MOST_BYTES));
    line[0] = g->text;
    for (int i = 1; i < 6; i++)
        line[i] = golden_next_line(line[i - 1]);
    assert_memory_equal(line[0], "config ", strlen("config "));
    g->config = line[0] + strlen("config ");
    assert_int_equal(sscanf(line[1], "sizes %d %d %d", &g->batch, &g->seq, &g->vocab), 3);
    assert_int_equal(sscanf(line[2], "clip %lf", &g->clip), 1);
    golden_numbers(g->losses, line[3], "losses");
    golden_numbers(g->norms, line[4], "norms");
    const char *at = family_tensors(g, kept, line[5]);
    g->logits = at;
    at += (int64_t)4 * g->batch * g->seq * g->vocab;
    for (int i = 0; i < g->count; i++) {
        g->tensor[i].grad = at;
        g->tensor[i].after = kept[i] ? at + 4 * g->tensor[i].count : NULL;
        at += (kept[i] ? 8 : 4) * g->tensor[i].count;
    }
    assert_int_equal(at - g->text, length);
}

/* Initial values of tensor number `index`, by the rule of families.py. */
static inline void family_fill_param(float *values, const struct family_golden *g, int index)
{
    const char *name = g->tensor[index].name;
    bool norm = (strstr(name, "norm") || strstr(name, ".ln_")) && strstr(name, "weight");
    norm = norm && !strstr(g->config, "\"model_type\": \"gemma"); /* whose norms add one themselves */
    for (int64_t j = 0; j < g->tensor[index].count; j++) {
        int64_t k = (int64_t)(ah__random_bits(1000 + (uint64_t)index, (uint64_t)j) >> 40) - (1 << 23);
        values[j] = (norm ? 1.0F : 0.0F) + (float)k * 0x1p-26F;
    }
}

/* Ids and targets of a step. */
static inline void family_fill_ids(int32_t *ids, int32_t *targets, const struct family_golden *g, int64_t step)
{
    int64_t count = (int64_t)g->batch * g->seq;
    golden_fill_ids(ids, step * count, count, 1, g->vocab);
    golden_fill_ids(targets, step * count, count, 2, g->vocab);
}

/* Of the key's bias in OPT there is nothing but rounding. */
static inline void family_expect_gradient(const char *name, const float *found, const char *golden, int64_t count)
{
    double most = 0, expected = 0;
    for (int64_t i = 0; i < count; i++) {
        float x;
        memcpy(&x, golden + 4 * i, sizeof x);
        expected = fmax(expected, fabs((double)x));
        most = fmax(most, fabs((double)found[i]));
    }
    if (expected > 1e-12)
        golden_expect_close("gradient", name, found, golden, count);
    else if (!(most <= 1e-7 && strstr(name, "k_proj.bias")))
        fail_msg("gradient of %s: found up to %g, expected none", name, most);
}

#endif
