/* The published models on the machine they were published on, for tests. */
#ifndef AH_TESTS_PLAN_MACHINES_H
#define AH_TESTS_PLAN_MACHINES_H

#include "test.h"

/* models/NAME.json in bf16, so many sequences of 1024 tokens; `step` may be null; the caller frees it. */
static inline struct ah_partition *gpt_stepped(const char *name, int64_t batch, const struct ah_step_options *step)
{
    char path[512];
    struct ah_model *model = NULL;
    struct ah_graph *graph = NULL;
    struct ah_partition *partition = NULL;
    snprintf(path, sizeof path, "%s/../models/%s.json", ah_test_source(), name);
    assert_ok(ah_model_load(&model, path));
    assert_ok(
        ah_model_record(&graph, model, &(struct ah_record_options){.batch = batch, .seq = 1024, .compute = AH_BF16}));
    assert_ok(ah_partition_new(&partition, graph, step));
    ah_graph_free(graph);
    ah_model_free(model);
    return partition;
}

static inline struct ah_partition *gpt(const char *name, int64_t batch)
{
    return gpt_stepped(name, batch, NULL);
}

/* hardware/NAME.json; `options` may be null: one device, our Adam's rate; the caller frees it. */
static inline struct ah_profile *machine(const char *name, const struct ah_partition *partition,
                                         const struct ah_estimate_options *options)
{
    char path[512];
    struct ah_hardware *hardware = NULL;
    struct ah_profile *profile = NULL;
    snprintf(path, sizeof path, "%s/../hardware/%s.json", ah_test_source(), name);
    assert_ok(ah_hardware_load(&hardware, path));
    assert_ok(ah_profile_estimate(&profile, partition, hardware, options));
    ah_hardware_free(hardware);
    return profile;
}

static inline struct ah_profile *a100(const struct ah_partition *partition)
{
    return machine("a100-40g", partition, NULL);
}

#endif
