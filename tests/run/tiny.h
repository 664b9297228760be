/* A tiny GPT-2 and a few training steps of it on the CPU device, under any plan. */
#ifndef AH_TESTS_RUN_TINY_H
#define AH_TESTS_RUN_TINY_H

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "layout/layout.h"
#include "run/steps.h"

enum { TINY_LAYERS = 4, TINY_STEPS = 5, TINY_MOST_FLOATS = 40000 };

static const char tiny_tied[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 67, \"n_positions\": 24, \"n_embd\": 24, "
                                "\"n_layer\": 4, \"n_head\": 3}";
static const char tiny_untied[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 67, \"n_positions\": 24, \"n_embd\": 24, "
                                  "\"n_layer\": 4, \"n_head\": 3, \"tie_word_embeddings\": false}";

struct tiny {
    double clip;            /* limit of the gradient norm, 0: none */
    struct ah_model *model; /* null: the graph was recorded by hand */
    struct ah_graph *graph;
    struct ah_partition *partition;
};

/* Of any recorded graph, which goes to the tiny, as one of a step's micro-batches. */
static inline void tiny_init_graph(struct tiny *tiny, struct ah_graph *graph, double clip, int micro_batches)
{
    struct ah_step_options step = {.clips = clip > 0, .micro_batches = micro_batches};
    *tiny = (struct tiny){.clip = clip, .graph = graph};
    assert_ok(ah_partition_new(&tiny->partition, graph, &step));
}

/* Steps of so many micro-batches, each as `record` has it. */
static inline void tiny_init_record(struct tiny *tiny, const char *config, double clip, int micro_batches,
                                    const struct ah_record_options *record)
{
    char path[160];
    struct ah_model *model;
    struct ah_graph *graph;
    snprintf(path, sizeof path, "%s/config.json", ah_test_folder());
    assert_ok(ah__file_write(path, config, strlen(config)));
    assert_ok(ah_model_load(&model, path));
    assert_ok(ah_model_record(&graph, model, record));
    tiny_init_graph(tiny, graph, clip, micro_batches);
    tiny->model = model;
}

/* Micro-batches of `batch` sequences each, in which `tuning` says what is trained. */
static inline void tiny_init_tuned(struct tiny *tiny, enum ah_dtype compute, const char *config, double clip,
                                   int64_t batch, int micro_batches, const struct ah_tuning *tuning)
{
    const struct ah_record_options record = {.batch = batch, .seq = 17, .compute = compute, .tuning = *tuning};
    tiny_init_record(tiny, config, clip, micro_batches, &record);
}

static inline void tiny_init_in(struct tiny *tiny, enum ah_dtype compute, const char *config, double clip,
                                int64_t batch, int micro_batches)
{
    tiny_init_tuned(tiny, compute, config, clip, batch, micro_batches, &(struct ah_tuning){0});
}

static inline void tiny_init_micro(struct tiny *tiny, const char *config, double clip, int64_t batch, int micro_batches)
{
    tiny_init_in(tiny, AH_F32, config, clip, batch, micro_batches);
}

static inline void tiny_init(struct tiny *tiny, const char *config, double clip)
{
    tiny_init_micro(tiny, config, clip, 2, 1);
}

/* The same with masters and moments in other dtypes. */
static inline void tiny_states(struct tiny *tiny, enum ah_dtype master, enum ah_dtype moments)
{
    struct ah_step_options step = tiny->partition->step;
    step.master = master;
    step.moments = moments;
    ah_partition_free(tiny->partition);
    assert_ok(ah_partition_new(&tiny->partition, tiny->graph, &step));
}

static inline void tiny_fini(struct tiny *tiny)
{
    ah_partition_free(tiny->partition);
    ah_graph_free(tiny->graph);
    ah_model_free(tiny->model);
}

/* What must be the same bits under every plan. */
struct outcome {
    double loss[TINY_STEPS], norm[TINY_STEPS], factor[TINY_STEPS];
    int64_t steps;
    uint64_t states; /* hash of parameters and moments */
};

static inline int tiny_batch(const struct ah_batch *to, int64_t iteration, void *context)
{
    int32_t *ids = to->ids, *targets = to->targets;
    const struct ah_partition *partition = ((struct tiny *)context)->partition;
    int64_t count = ah__step_tokens(partition);
    for (int64_t i = 0; i < count; i++) {
        ids[i] = (int32_t)(ah__random_bits(3, (uint64_t)(iteration * count + i)) % (uint64_t)partition->vocab);
        targets[i] = (int32_t)(ah__random_bits(4, (uint64_t)(iteration * count + i)) % (uint64_t)partition->vocab);
    }
    for (int64_t i = 0; to->positions && i < count; i++) {
        bool begins = i % partition->seq == 0 || ah__random_bits(5, (uint64_t)(iteration * count + i)) % 4 == 0;
        to->positions[i] = begins ? 0 : to->positions[i - 1] + 1;
    }
    return 0;
}

static inline void tiny_adam(struct ah_adam *out, int64_t iteration, void *context)
{
    (void)context;
    float step = (float)(iteration + 1);
    *out = (struct ah_adam){.9F, .1F, .95F, .05F, 1e-8F, 1 - 1e-4F, 1e-2F / step, 1.5F, (uint32_t)iteration};
}

struct tiny_run {
    struct tiny *tiny;
    struct outcome *outcome;
};

static inline int tiny_run_batch(const struct ah_batch *to, int64_t iteration, void *context)
{
    return tiny_batch(to, iteration, ((struct tiny_run *)context)->tiny);
}

static inline int tiny_run_result(const struct ah_run_result *result, void *context)
{
    struct outcome *outcome = ((struct tiny_run *)context)->outcome;
    assert_int_equal(result->iteration, outcome->steps);
    outcome->loss[result->iteration] = result->loss;
    outcome->norm[result->iteration] = result->grad_norm;
    outcome->factor[result->iteration] = result->clip_factor;
    outcome->steps++;
    return 0;
}

static inline struct steps tiny_steps(struct tiny_run *context)
{
    return (struct steps){.batch = tiny_run_batch,
                          .adam = tiny_adam,
                          .result = tiny_run_result,
                          .context = context,
                          .packed = context->tiny->partition->packed};
}

static inline uint64_t tiny_hash_states(struct ah_run *run, const struct ah_partition *partition)
{
    static float values[TINY_MOST_FLOATS];
    uint64_t hash = 0;
    for (int p = 0; p < partition->param_count; p++) {
        int64_t count = ah__shape_count(&partition->params[p].shape);
        assert_in_range(count, 1, TINY_MOST_FLOATS);
        for (int which = 0; which < (partition->params[p].frozen ? 1 : 3); which++) {
            assert_ok(ah__run_store(run, p, (enum ah_run_state)which, values));
            hash = ah__hash(values, (size_t)count * sizeof *values, hash);
        }
    }
    return hash;
}

#endif
