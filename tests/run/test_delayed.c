/* Updates one iteration late: which version of its parameters an iteration computes with follows from the plan alone.
 * Checked against a training by hand that takes gradients one step at a time from a run under `resident` and updates
 * its own states: iteration k computes with what the gradients up to k - 2 made of a group whose optimizer is on the
 * host, and up to k - 1 of one on the device. */
#include <math.h>

#include "tiny.h"

#include "base/alloc.h"
#include "bind/bind.h"
#include "plan/config.h"
#include "run/internal.h"
#include "sched/switches.h"

static const double LIMIT = 1.45; /* clips some steps */

/* Parameters and moments of everything, one parameter behind the other. */
struct states {
    float *p, *m, *v;
    float *used; /* what the next iteration computes with */
};

static uint64_t drawn;

static int draw(int from, int to)
{
    return from + (int)(ah__random_bits(31, drawn++) % (uint64_t)(to - from + 1));
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* With these an update leaves the parameters and makes the first moment the gradient, scaled. */
static void gradients_only(struct ah_adam *out, int64_t iteration, void *context)
{
    (void)iteration, (void)context;
    *out = (struct ah_adam){.one_minus_beta1 = 1, .one_minus_beta2 = 1, .eps = 1, .decay_factor = 1};
}

static void update(struct states *s, int64_t at, float gradient, const struct ah_adam *a, bool decayed)
{
    s->m[at] = fmaf(a->beta1, s->m[at], a->one_minus_beta1 * gradient);
    s->v[at] = fmaf(a->beta2, s->v[at], a->one_minus_beta2 * gradient * gradient);
    float p = decayed ? s->p[at] * a->decay_factor : s->p[at];
    s->p[at] = fmaf(-a->step_size, s->m[at] / (sqrtf(s->v[at]) * a->inv_sqrt_bias2 + a->eps), p);
}

static int64_t count_of(const struct ah_partition *partition, int param)
{
    return ah__shape_count(&partition->params[param].shape);
}

/* The states of one run hold the parameters that the iteration is to use; its gradients update ours. */
static void iteration_by_hand(struct states *s, struct tiny *tiny, struct ah_run *run, int64_t iteration,
                              const struct ah_switches *switches)
{
    static float gradient[TINY_MOST_FLOATS], zeros[TINY_MOST_FLOATS];
    const struct ah_partition *partition = tiny->partition;
    struct ah_adam adam;
    int64_t at = 0, done;
    tiny_adam(&adam, iteration, NULL);
    for (int p = 0; p < partition->param_count; at += count_of(partition, p++)) {
        assert_ok(ah__run_load(run, p, AH_RUN_PARAM, s->used + at));
        assert_ok(ah__run_load(run, p, AH_RUN_MOMENT1, zeros));
        assert_ok(ah__run_load(run, p, AH_RUN_MOMENT2, zeros));
    }
    assert_ok(ah__run_steps(run, 1, &done));
    at = 0;
    for (int p = 0; p < partition->param_count; at += count_of(partition, p++)) {
        const struct ah_param *param = &partition->params[p];
        bool late = ah__on_host(switches, param->group);
        assert_ok(ah__run_store(run, p, AH_RUN_MOMENT1, gradient));
        for (int64_t i = 0; i < count_of(partition, p); i++) {
            float before = s->p[at + i];
            update(s, at + i, gradient[i], &adam, param->shape.rank >= 2);
            s->used[at + i] = late ? before : s->p[at + i];
        }
    }
}

static uint64_t states_hash(const struct states *s, const struct ah_partition *partition)
{
    uint64_t hash = 0;
    int64_t at = 0;
    for (int p = 0; p < partition->param_count; at += count_of(partition, p++)) {
        const float *which[] = {s->p, s->m, s->v};
        for (int i = 0; i < 3; i++)
            hash = ah__hash(which[i] + at, (size_t)count_of(partition, p) * sizeof(float), hash);
    }
    return hash;
}

static struct ah_run *run_open(struct ah_dev **dev, struct tiny *tiny, struct ah_plan *plan,
                               const struct ah_run_hooks *hooks, const struct ah_dev_options *options)
{
    struct ah_run *run;
    assert_ok(ah_dev_open(dev, "cpu", options));
    assert_ok(ah__workspace_bytes(&plan->workspace_bytes, tiny->partition, *dev));
    assert_ok(ah__run_new(&run, tiny->partition, plan, *dev, hooks));
    assert_ok(ah__run_init(run, 11));
    return run;
}

static void by_hand(struct outcome *outcome, struct tiny *tiny, const struct ah_switches *switches)
{
    struct ah_plan plan = {.switches = {.layers = TINY_LAYERS, .buffers = TINY_LAYERS + 1, .prefetch_distance = 1},
                           .policy = "resident"};
    const struct ah_partition *partition = tiny->partition;
    struct tiny_run context = {tiny, outcome};
    struct ah_run_hooks hooks = tiny_hooks(&context);
    struct states s;
    struct ah_dev *dev;
    int64_t total = 0, at = 0;
    hooks.adam = gradients_only;
    *outcome = (struct outcome){.steps = 0};
    for (int p = 0; p < partition->param_count; p++)
        total += count_of(partition, p);
    float **const arrays[] = {&s.p, &s.m, &s.v, &s.used};
    for (size_t i = 0; i < AH_LENGTH(arrays); i++)
        assert_ok(ah__new(arrays[i], (size_t)total, sizeof(float)));
    struct ah_run *run = run_open(&dev, tiny, &plan, &hooks, &(struct ah_dev_options){.threads = 1});
    for (int p = 0; p < partition->param_count; at += count_of(partition, p++))
        assert_ok(ah__run_store(run, p, AH_RUN_PARAM, s.p + at));
    memcpy(s.used, s.p, (size_t)total * sizeof(float));
    for (int64_t k = 0; k < TINY_STEPS; k++)
        iteration_by_hand(&s, tiny, run, k, switches);
    outcome->states = states_hash(&s, partition);
    ah__run_free(run);
    ah_dev_close(dev);
    for (size_t i = 0; i < AH_LENGTH(arrays); i++)
        ah__free(*arrays[i]);
}

/* ---- by the scheduler -------------------------------------------------------------------------------------------- */

static void by_plan(struct outcome *outcome, struct tiny *tiny, const struct ah_switches *switches)
{
    static const int64_t links[] = {0, 0, 50000000, 400000000};
    struct ah_dev_options options = {.threads = draw(1, 3),
                                     .host_threads = draw(1, 3),
                                     .link_bytes_per_s = links[draw(0, 3)],
                                     .jitter_seed = (uint64_t)draw(0, 9)};
    struct ah_plan plan = {.switches = *switches, .policy = "zero-offload-dpu"};
    struct tiny_run context = {tiny, outcome};
    struct ah_run_hooks hooks = tiny_hooks(&context);
    struct ah_dev *dev;
    int64_t done;
    *outcome = (struct outcome){.steps = 0};
    struct ah_run *run = run_open(&dev, tiny, &plan, &hooks, &options);
    assert_ok(ah__run_steps(run, TINY_STEPS, &done));
    assert_int_equal(done, TINY_STEPS);
    outcome->states = tiny_hash_states(run, tiny->partition);
    ah__run_free(run);
    ah_dev_close(dev);
}

static void compare(struct tiny *tiny, struct ah_switches switches)
{
    struct outcome expected, found;
    struct ah_sched_config config;
    switches.embedding_on_host = draw(0, 1);
    switches.head_on_host = draw(0, 1);
    ah__sched_config_of(&config, &switches, tiny->partition, ah__policy_find("zero-offload-dpu"));
    by_hand(&expected, tiny, &switches);
    for (int i = 0; i < 3; i++) {
        switches.buffers = ah__sched_min_buffers(&config) + draw(0, 1) * draw(0, 4);
        switches.prefetch_distance = draw(1, TINY_LAYERS + 1);
        switches.chunks = draw(0, 1) ? 1 : draw(2, 5);
        by_plan(&found, tiny, &switches);
        if (memcmp(&expected, &found, sizeof found) != 0)
            fail_msg("c=%d p=%d o=%d buffers=%d ahead=%d chunks=%d embedding %d head %d is not one step late",
                     switches.checkpoint, switches.offload_params, switches.offload_optimizer, switches.buffers,
                     switches.prefetch_distance, switches.chunks, switches.embedding_on_host, switches.head_on_host);
    }
}

static void every_plan(const char *config, double clip)
{
    struct tiny tiny;
    struct ah_switches at = {.layers = TINY_LAYERS};
    tiny_init(&tiny, config, clip);
    for (at.checkpoint = 0; at.checkpoint <= TINY_LAYERS; at.checkpoint += ah_test_soaks() ? 1 : TINY_LAYERS)
        for (at.offload_optimizer = 0; at.offload_optimizer <= TINY_LAYERS; at.offload_optimizer++)
            for (at.offload_params = 0; at.offload_params <= at.offload_optimizer; at.offload_params++)
                compare(&tiny, at);
    tiny_fini(&tiny);
}

static void every_plan_is_one_step_late(void **state)
{
    (void)state;
    every_plan(tiny_tied, 0);
    every_plan(tiny_untied, LIMIT);
}

AH_TEST_SUITE("run/delayed", cmocka_unit_test(every_plan_is_one_step_late))
