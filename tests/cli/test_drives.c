/* Drives of machines that one does not own, as a user asks about them: fit, plan and simulate with --disk. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/program.h"

static const char machine_words[] =
    "--hardware rtx4090-64g --model qwen2.5-0.5b --batch 1 --seq 256 --device-memory 3GiB "
    "--host-memory 2GiB";

static double number(const cJSON *tree, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(tree, key);
    if (!cJSON_IsNumber(node))
        fail_msg("'%s' is no number", key);
    return node->valuedouble;
}

/* Runs fit with --json; the caller deletes the tree. */
static cJSON *fit(const char *words)
{
    run("fit %s --json %s 2>/dev/null", machine_words, words);
    assert_ran(0);
    cJSON *tree = cJSON_Parse(ran.out);
    assert_non_null(tree);
    return tree;
}

static const cJSON *row_of(const cJSON *tree)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(tree, "models"), 0);
}

static double speed_with(const char *disk)
{
    char words[64];
    snprintf(words, sizeof words, "--disk %s", disk);
    cJSON *tree = fit(words);
    double speed = number(row_of(tree), "tokens_per_s");
    cJSON_Delete(tree);
    return speed;
}

/* What lacks host memory has a plan with a drive, a faster one with faster drives. */
static void a_drive_makes_a_model_fit(void **state)
{
    cJSON *without = fit(""), *with = fit("--disk nvme-pcie4");
    assert_says(cJSON_GetObjectItemCaseSensitive(row_of(without), "reason")->valuestring, "host memory: ");
    const cJSON *row = row_of(with);
    assert_true(number(row, "disk_peak_bytes") > 1e9 && number(row, "disk_peak_bytes") < number(with, "disk_bytes"));
    assert_true(number(row, "disk_read_bytes") > number(row, "disk_written_bytes"));
    assert_true(number(row, "disk_written_bytes") > 1e9);
    assert_true(number(row, "host_peak_bytes") <= number(with, "host_memory_bytes"));
    assert_true(number(with, "disk_bytes") == 2e12);
    double fast = speed_with("2xnvme-pcie4"), slow = speed_with("sata");
    assert_true(fast > number(row, "tokens_per_s") && slow < number(row, "tokens_per_s"));
    cJSON_Delete(without);
    cJSON_Delete(with);
    run("fit %s --disk nvme-pcie4", machine_words);
    assert_ran(0);
    assert_says(ran.out, "1.8 TiB on the disk nvme-pcie4; predicted, not run");
    assert_says(ran.out, "       disk writes/day\n");
}

static void space_is_a_limit(void **state)
{
    cJSON *tree = fit("--disk nvme-pcie4 --disk-space 1GiB");
    const char *reason = cJSON_GetObjectItemCaseSensitive(row_of(tree), "reason")->valuestring;
    assert_says(reason, "disk space: ");
    assert_null(strchr(reason, '-')); /* no amount is below nothing */
    cJSON_Delete(tree);
    run("plan %s --dtype bf16 --disk nvme-pcie4 --disk-space 1GiB", machine_words);
    assert_refused("disk space: found 1.0 GiB, expected at least ");
}

/* The words and the numbers of a plan's wear: a day's bytes over those that the drive may take. */
static void a_plan_tells_the_wear(void **state)
{
    run("plan %s --dtype bf16 --disk nvme-pcie4 --json", machine_words);
    assert_ran(0);
    assert_says(ran.err, "a day of such steps writes ");
    assert_says(ran.err, "% of the drive's 1200 TBW\n");
    cJSON *tree = cJSON_Parse(ran.out);
    assert_non_null(tree);
    const cJSON *plan = cJSON_GetObjectItemCaseSensitive(tree, "plan");
    plan = plan ? plan : tree;
    double day = number(plan, "disk_written_bytes") * 86400e9 / number(plan, "step_ns");
    double share = atof(strstr(ran.err, "TiB, ") + 5);
    assert_true(share > 0.95 * 100 * day / 1.2e15 && share < 1.05 * 100 * day / 1.2e15);
    assert_true(number(plan, "disk_endurance_bytes") == 1.2e15);
    assert_true(number(plan, "disk_peak_bytes") > 0 && number(plan, "disk_read_bytes") > 0);
    cJSON_Delete(tree);
}

/* Policies without a disk are simulated without one. */
static void simulate_compares_policies_with_a_drive(void **state)
{
    int fitting = 0;
    const cJSON *each;
    run("simulate %s --disk nvme-pcie4 --policy autohete,resident,stronghold --json", machine_words);
    assert_ran(0);
    assert_says(ran.err, "disk nvme-pcie4, 3 policies\n");
    assert_says(ran.err, "   comm    disk\n");
    cJSON *tree = cJSON_Parse(ran.out);
    cJSON_ArrayForEach(each, cJSON_GetObjectItemCaseSensitive(tree, "policies"))
    {
        bool fits = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(each, "fits"));
        bool ours = strcmp(cJSON_GetObjectItemCaseSensitive(each, "policy")->valuestring, "autohete") == 0;
        assert_true(fits == ours && (number(each, "disk_peak_bytes") > 0) == ours);
        fitting += fits;
    }
    assert_int_equal(fitting, 1);
    cJSON_Delete(tree);
}

static void what_is_wrong_is_refused(void **state)
{
    run("fit %s --disk nvme9", machine_words);
    assert_refused("--disk: found 'nvme9', expected a file or one of: nvme-pcie3, nvme-pcie4, nvme-pcie5, sata");
    run("simulate %s --disk 99xsata", machine_words);
    assert_refused("--disk: found '99xsata', expected 1 to 64 drives");
}

AH_TEST_CASES("cli/drives", a_drive_makes_a_model_fit, space_is_a_limit, a_plan_tells_the_wear,
              simulate_compares_policies_with_a_drive, what_is_wrong_is_refused)
