/* From options to a plan, one stage after another; and a cached profile that a training contradicts. */
#include <string.h>

#include "base/file.h"
#include "test.h"

static char model_path[160], cache[160];

static int write_model(void **state)
{
    static const char config[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 64, \"n_positions\": 16, \"n_embd\": 32,"
                                 " \"n_layer\": 3, \"n_head\": 4}";
    snprintf(model_path, sizeof model_path, "%s/model.json", ah_test_folder());
    return ah__file_write(model_path, config, strlen(config));
}

static struct ah_session_options small(void)
{
    return (struct ah_session_options){.size = sizeof(struct ah_session_options),
                                       .model_path = model_path,
                                       .batch = 4,
                                       .device = "cpu",
                                       .dev.threads = 1};
}

static void one_stage_after_another(void **state)
{
    struct ah_session_options options = small();
    struct ah_session *session;
    assert_ok(ah_session_open(&session, &options));
    const struct ah_session_info *info = ah_session_get(session);
    assert_non_null(ah_session_model(session));
    assert_null(ah_session_partition(session));
    assert_int_equal(info->seq, 16);
    assert_int_equal(info->micro_batch, 4);
    assert_string_equal(info->dtype, "fp32");
    assert_ok(ah_session_reach(session, AH_SESSION_PARTITION));
    assert_non_null(ah_session_graph(session));
    assert_false(info->has_device);
    assert_ok(ah_session_reach(session, AH_SESSION_DEVICE));
    assert_true(info->has_device);
    assert_null(ah_session_profile(session));
    assert_ok(ah_session_reach(session, AH_SESSION_PROFILE));
    assert_int_equal(info->profile_kept_s, -1);
    assert_null(ah_session_plan(session));
    const struct ah_profile *profile = ah_session_profile(session);
    assert_ok(ah_session_reach(session, AH_SESSION_PLAN));
    assert_int_equal(ah_session_plan(session)->switches.layers, 3);
    assert_ok(ah_session_reach(session, AH_SESSION_PLAN)); /* nothing is made twice */
    assert_ptr_equal(profile, ah_session_profile(session));
    ah_session_close(session);
}

static void the_size_of_micro_batches_is_chosen(void **state)
{
    struct ah_session_options options = small();
    struct ah_session *session;
    options.micro_batch = AH_MICRO_BATCH_AUTO;
    assert_ok(ah_session_open(&session, &options));
    const struct ah_session_info *info = ah_session_get(session);
    assert_ok(ah_session_reach(session, AH_SESSION_DEVICE));
    assert_int_equal(info->micro_batch, 0);
    assert_ok(ah_session_reach(session, AH_SESSION_PLAN));
    assert_true(info->micro_batch_chosen);
    assert_int_equal(info->micro_batch * info->micro_batches, 4);
    assert_non_null(ah_session_partition(session));
    assert_non_null(ah_session_plan(session));
    ah_session_close(session);
}

/* No device is opened for times that are not measured here. */
static void a_described_machine(void **state)
{
    struct ah_session_options options = small();
    struct ah_session *session;
    options.hardware = "a100-40g";
    options.hardware_ranks = 4; /* the machine of that name has one device; the next one four */
    options.batch = 8;
    assert_ok(ah_session_open(&session, &options));
    const struct ah_session_info *info = ah_session_get(session);
    assert_string_equal(info->hardware.name, "a100-40g-x4");
    assert_string_equal(info->dtype, "bf16");
    assert_int_equal(info->rank_batch, 2);
    assert_int_equal(info->budget.device_bytes, info->hardware.device_bytes);
    assert_int_equal(info->budget.host_bytes, info->hardware.host_bytes / 4);
    assert_ok(ah_session_reach(session, AH_SESSION_PLAN));
    assert_false(info->has_device);
    assert_non_null(ah_session_plan(session));
    ah_session_close(session);
}

static void what_is_refused(void **state)
{
    struct {
        struct ah_session_options options;
        const char *message;
    } cases[] = {{small(), "policy: found 'best', expected "},
                 {small(), "dtype: found 'fp16', expected bf16 or fp32"},
                 {small(), "micro_batch: found 3, expected a divisor of the batch of 4"},
                 {small(), "micro_batch: found auto beside a saved profile, expected a size"},
                 {small(), "micro_batch: found auto beside hardware, expected a size"},
                 {small(), "profile: found it beside hardware, expected one of them"},
                 {small(), "batch: found 4, expected a multiple of 3, the ranks"},
                 {small(), "ranks: found 64, expected at most 1, the devices of a100-40g"},
                 {small(), "/no/such"},
                 {small(), "ah_session_options: found a size of 0 bytes"},
                 {small(), "ah_session_options: found a size of 100000 bytes"}};
    cases[0].options.policy = "best";
    cases[1].options.dtype = "fp16";
    cases[2].options.micro_batch = 3;
    cases[3].options.micro_batch = AH_MICRO_BATCH_AUTO;
    cases[3].options.profile_path = "x";
    cases[4].options.micro_batch = AH_MICRO_BATCH_AUTO;
    cases[4].options.hardware = "a100-40g";
    cases[5].options.hardware = cases[5].options.profile_path = "a100-40g";
    cases[6].options.hardware = "a100-40g";
    cases[6].options.hardware_ranks = 3;
    cases[7].options.hardware = "a100-40g";
    cases[7].options.hardware_ranks = 64;
    cases[7].options.batch = 64;
    cases[8].options.model_path = "/no/such";
    cases[9].options.size = 0;
    cases[10].options.size = 100000;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ah_session *session = NULL;
        assert_int_equal(ah_session_open(&session, &cases[i].options), AH_EINPUT);
        assert_null(session);
        if (!strstr(ah_error(), cases[i].message))
            fail_msg("found '%s', expected '%s'", ah_error(), cases[i].message);
    }
}

/* A program that was built with fewer options. */
static void options_of_an_older_version(void **state)
{
    static const struct ah_plan never = {.signature = 1};
    struct ah_session_options options = small();
    struct ah_session *session;
    options.warm_start = &never; /* the last member, which is then not read: it would be refused */
    options.size = offsetof(struct ah_session_options, warm_start);
    assert_ok(ah_session_open(&session, &options));
    assert_ok(ah_session_reach(session, AH_SESSION_PLAN));
    ah_session_close(session);
}

static struct ah_session *planned(void)
{
    struct ah_session_options options = small();
    struct ah_session *session;
    options.profile.cache = cache;
    assert_ok(ah_session_open(&session, &options));
    assert_ok(ah_session_reach(session, AH_SESSION_PLAN));
    return session;
}

/* Whether the profile is dropped after so many steps, each `factor` times as long as predicted. */
static bool dropped_after(double factor, int64_t steps)
{
    struct ah_session *session = planned();
    bool dropped;
    double step_ns = factor * (double)ah_session_plan(session)->step_ns;
    assert_ok(ah_session_measured(&dropped, session, (int64_t)step_ns, steps));
    ah_session_close(session);
    return dropped;
}

static int64_t age_of_profile(void)
{
    struct ah_session *session = planned();
    int64_t age_s = ah_session_get(session)->profile_kept_s;
    ah_session_close(session);
    return age_s;
}

static void a_contradicted_profile_is_dropped(void **state)
{
    enum { MANY = 1000000000, FEW = 9 };
    snprintf(cache, sizeof cache, "%s", ah_test_folder()); /* another one at each call */
    assert_int_equal(age_of_profile(), -1);
    assert_false(dropped_after(1, MANY));
    assert_false(dropped_after(1.19, MANY));
    assert_false(dropped_after(3, FEW));
    assert_true(age_of_profile() >= 0);
    assert_true(dropped_after(1.3, MANY));
    assert_int_equal(age_of_profile(), -1); /* measured again, and cached */
    assert_true(age_of_profile() >= 0);
    assert_true(dropped_after(0.7, MANY));
    assert_int_equal(age_of_profile(), -1);
}

AH_TEST_SUITE("session/session", cmocka_unit_test_setup(one_stage_after_another, write_model),
              cmocka_unit_test_setup(the_size_of_micro_batches_is_chosen, write_model),
              cmocka_unit_test_setup(a_described_machine, write_model),
              cmocka_unit_test_setup(what_is_refused, write_model),
              cmocka_unit_test_setup(options_of_an_older_version, write_model),
              cmocka_unit_test_setup(a_contradicted_profile_is_dropped, write_model))
