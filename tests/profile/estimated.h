/* Profiles estimated from bundled machines, for tests that hold them against numbers worked out by hand. */
#ifndef AH_TESTS_PROFILE_ESTIMATED_H
#define AH_TESTS_PROFILE_ESTIMATED_H

#include "test.h"

#include <math.h>

#include "profile/hardware.h"
#include "profile/profile.h"

static inline struct ah_hardware *machine(const char *name)
{
    char path[512];
    struct ah_hardware *hardware = NULL;
    snprintf(path, sizeof path, "%s/../hardware/%s.json", ah_test_source(), name);
    assert_ok(ah_hardware_load(&hardware, path));
    return hardware;
}

/* `freeze`: patterns of names; null: nothing. */
static inline struct ah_partition *gpt_10b(int64_t batch, enum ah_dtype compute, const char *freeze)
{
    char path[512];
    struct ah_model *model = NULL;
    struct ah_graph *graph = NULL;
    struct ah_partition *partition = NULL;
    snprintf(path, sizeof path, "%s/../models/gpt-10b.json", ah_test_source());
    assert_ok(ah_model_load(&model, path));
    const struct ah_record_options options = {.batch = batch, .seq = 1024, .compute = compute, .tuning.freeze = freeze};
    assert_ok(ah_model_record(&graph, model, &options));
    assert_ok(ah_partition_new(&partition, graph, NULL));
    ah_graph_free(graph);
    ah_model_free(model);
    return partition;
}

static inline struct ah_profile *estimate(const char *name, const struct ah_partition *partition, int ranks,
                                          const char *optimizer)
{
    struct ah_hardware *hardware = machine(name);
    struct ah_profile *profile = NULL;
    assert_ok(
        ah_profile_estimate(&profile, partition, hardware, &(struct ah_estimate_options){ranks, optimizer, NULL}));
    ah_hardware_free(hardware);
    return profile;
}

static inline void assert_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * fabs(expected)))
        fail_msg("found %.6g, expected %.6g within %g%%", found, expected, tolerance * 100);
}

static inline double block_ms(const struct ah_profile *profile, enum ah_item_kind kind)
{
    return (double)profile->costs.ns[kind][AH_CLASS_BLOCK] * 1e-6;
}

#endif
