/* Machines of paper on the command line: one that was measured here, memory as published systems need it, and
 * sweeps. */
#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/program.h"

static const char *a100(void)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/../hardware/a100-40g.json", ah_test_source());
    return path;
}

/* What the last run printed, a line of JSON. */
static cJSON *printed(void)
{
    cJSON *tree = cJSON_Parse(ran.out);
    if (!cJSON_IsObject(tree))
        fail_msg("no JSON object: %s", ran.out);
    return tree;
}

static double planned_ns(const char *machine, const char *plan)
{
    run("plan --model %s/model.json --batch 2 --seq 32 --dtype fp32 %s --plan %s --json", folder(), machine, plan);
    assert_ran(0);
    cJSON *tree = printed();
    const cJSON *step_ns = cJSON_GetObjectItem(tree, "step_ns");
    assert_true(cJSON_IsNumber(step_ns) && step_ns->valuedouble > 0);
    double found = step_ns->valuedouble;
    cJSON_Delete(tree);
    return found;
}

/* A measured machine as a file: plans for it take about what they do by the profile itself, within a tenth where
 * nothing overlaps, and within a quarter where copies run beside the rest: measured factors for each pair of lanes
 * became bandwidths. */
static void a_profile_becomes_a_machine(void **state)
{
    static const struct {
        const char *plan;
        double within;
    } plans[] = {{"resident", 0.1}, {"c=1,p=1,o=2", 0.25}};
    const char *at = folder();
    char profile[300], hardware[300];
    snprintf(profile, sizeof profile, "--profile %s/own.json", at);
    snprintf(hardware, sizeof hardware, "--hardware %s/box.json", at);
    run("profile --model %s/model.json --batch 2 --seq 32 --dtype fp32 --threads 1 --out %s/own.json --as-hardware "
        "%s/box.json",
        at, at, at);
    assert_ran(0);
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        double own = planned_ns(profile, plans[i].plan), box = planned_ns(hardware, plans[i].plan);
        if (box < (1 - plans[i].within) * own || box > (1 + plans[i].within) * own)
            fail_msg("%s: %.0f ns by the file, %.0f by the profile", plans[i].plan, box, own);
    }
    run("simulate --model %s/model.json --batch 2 --seq 32 --dtype fp32 %s --optimizer pytorch --policy resident", at,
        hardware);
    assert_refused("box lacks 'device.pytorch_training'");
    run("profile --model x --as-hardware /no/such/box.json");
    assert_refused("--as-hardware: /no/such/box.json: cannot write into folder");
}

/* With more memory nothing is slower. */
static void sweeps_of_memory_only_get_faster(void **state)
{
    double before_ns = INFINITY;
    const cJSON *point;
    run("simulate --model %s/model.json --hardware %s --seq 32 --sweep device-memory=1MiB:4MiB:%s --json "
        "2>/dev/null",
        folder(), a100(), ah_test_samples() ? "1MiB" : "256KiB");
    assert_ran(0);
    cJSON *tree = printed();
    cJSON_ArrayForEach(point, cJSON_GetObjectItem(tree, "sweep"))
    {
        const cJSON *ours = cJSON_GetArrayItem(cJSON_GetObjectItem(point, "policies"), 0);
        if (!cJSON_IsTrue(cJSON_GetObjectItem(ours, "fits")))
            continue;
        double step_ns = cJSON_GetNumberValue(cJSON_GetObjectItem(ours, "step_ns"));
        assert_true(step_ns > 0 && step_ns <= before_ns);
        before_ns = step_ns;
    }
    cJSON_Delete(tree);
    assert_true(before_ns < INFINITY);
}

AH_TEST_CASES("cli/machines", a_profile_becomes_a_machine, sweeps_of_memory_only_get_faster)
