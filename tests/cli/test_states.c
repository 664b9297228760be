/* Types of optimizer states on the command line: what they need, and that a refusal names those that would do, or a
 * smaller step. */
#include <string.h>

#include "cli/program.h"

static void a_refusal_names_types_that_would_do(void **state)
{
    const char *small = "plan --model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --batch 1 "
                        "--seq 256 --host-memory 900MiB --device-memory %s";
    const char *root = ah_test_source();
    run(small, root, root, "700MiB");
    assert_refused("; --moments bf16 would do within this budget (");
    run(small, root, root, "700MiB --moments bf16");
    assert_ran(0);
    run(small, root, root, "500MiB --moments bf16");
    assert_refused("; --moments int8 would do within this budget");
    run(small, root, root, "500MiB --moments int8");
    assert_ran(0);
    run(small, root, root, "340MiB --master bf16 --moments bf16");
    assert_refused("; --moments int8 would do within this budget");
    run(small, root, root, "340MiB --master bf16 --moments int8");
    assert_ran(0);
    run("plan --model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --batch 1 --seq 256 "
        "--host-memory 600MiB --device-memory 420MiB",
        root, root);
    assert_refused("; --master bf16 --moments int8 would do within this budget");
}

/* One sequence more, in micro-batches of one, does not fit; in the table of `simulate` too. */
static void a_refusal_names_the_longest_step_that_would_do(void **state)
{
    const char *format = "%s --model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --seq 256 "
                         "--device-memory 2GiB --policy autohete-paper --micro-batch 1 --batch %d",
               *root = ah_test_source(), *words = "; --batch ";
    int sequences = 0;
    run(format, "plan", root, root, 512);
    assert_refused(words);
    assert_int_equal(sscanf(strstr(ran.err, words) + strlen(words), "%d would do within this budget", &sequences), 1);
    assert_in_range(sequences, 100, 511);
    run(format, "plan", root, root, sequences);
    assert_ran(0);
    run(format, "plan", root, root, sequences + 1);
    assert_refused(words);
    run(format, "simulate", root, root, sequences + 1);
    assert_ran(0);
    char fits[64];
    snprintf(fits, sizeof fits, "; --batch %d would do\n", sequences);
    assert_says(ran.out, fits);
}

/* In micro-batches of one where no step fits in those that were asked for; a plan file is of its step alone. */
static void a_refusal_speaks_of_what_was_asked(void **state)
{
    char file[300];
    const char *format = "plan --model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --seq 256 "
                         "--policy autohete-paper --batch 512 --device-memory %s %s %s",
               *root = ah_test_source();
    snprintf(file, sizeof file, "%s/plan.json", ah_test_folder());
    run(format, root, root, "2GiB", "", "");
    assert_refused(" --micro-batch 1 would do within this budget");
    run(format, root, root, "30GiB --micro-batch 1 --out", file, "");
    assert_ran(0);
    run(format, root, root, "2GiB --micro-batch 1 --plan", file, "");
    assert_refused("device memory: found 2.0 GiB, expected at least ");
    assert_null(strstr(ran.err, "would do"));
}

static void types_are_checked(void **state)
{
    const char *root = ah_test_source();
    run("plan --model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --master bf16 --dtype fp32",
        root, root);
    assert_refused("master: found bf16 with dtype fp32, expected fp32");
    run("plan --model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --moments int4", root, root);
    assert_refused("moments: found 'int4', expected bf16, fp32 or int8");
    run("plan --model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --master int8", root, root);
    assert_refused("master: dtype: found 'int8', expected bf16 or fp32");
    run("plan --model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --moments int8", root, root);
    assert_ran(0);
}

AH_TEST_CASES("cli/states", a_refusal_names_types_that_would_do, a_refusal_names_the_longest_step_that_would_do,
              a_refusal_speaks_of_what_was_asked, types_are_checked)
