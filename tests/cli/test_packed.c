/* --pack of the commands that only ask: what they make is for a training with --pack, and for no other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"

static const char *const shape = "--batch 2 --seq 32 --threads 1";

static const char *examples(void)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/examples.jsonl", folder());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 64; i++)
        fprintf(file, "{\"prompt\": \"%d:\", \"completion\": \"%d\"}\n", i, i * i % 10);
    fclose(file);
    return path;
}

static void a_profile_serves_its_own_kind(void **state)
{
    static const char *const pack[] = {"", "--pack"};
    const char *at = folder(), *data = examples(), *stale = "profile: found one of another model, batch";
    for (int made = 0; made < 2; made++) {
        run("profile --model %s/model.json %s %s --out %s/kind.json", at, shape, pack[made], at);
        assert_ran(0);
        run("train --model %s/model.json --data %s %s --steps 2 --profile %s/kind.json --quiet %s", at, data, shape, at,
            pack[made]);
        assert_ran(0);
        run("train --model %s/model.json --data %s %s --steps 2 --profile %s/kind.json --quiet %s", at, data, shape, at,
            pack[!made]);
        assert_refused(stale);
        static const char *const asking[] = {"plan", "simulate", "simulate --policy autohete,stronghold"};
        for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++) {
            run("%s --model %s/model.json %s --profile %s/kind.json %s", asking[i], at, shape, at, pack[made]);
            assert_ran(0);
            run("%s --model %s/model.json %s --profile %s/kind.json %s", asking[i], at, shape, at, pack[!made]);
            assert_ran(2);
            assert_says(ran.err, stale);
        }
    }
}

/* A machine that is not at hand. */
static void a_plan_serves_its_own_kind(void **state)
{
    char machine[4400];
    const char *at = folder(), *flags = "--batch 2 --seq 32 --hardware";
    snprintf(machine, sizeof machine, "--model %s/model.json %s %s/../hardware/a100-40g.json", at, flags,
             ah_test_source());
    run("plan %s --pack --out %s/packed-plan.json", machine, at);
    assert_ran(0);
    run("simulate %s --pack --plan %s/packed-plan.json", machine, at);
    assert_ran(0);
    run("simulate %s --plan %s/packed-plan.json", machine, at);
    assert_refused("signature: found ");
}

/* What plan measured, with sizes of micro-batches to choose from, train finds again. */
static void plan_measures_what_train_needs(void **state)
{
    const char *at = folder(), *data = examples();
    assert_int_equal(setenv("XDG_CACHE_HOME", at, 1), 0);
    run("plan --model %s/model.json %s --micro-batch auto --pack", at, shape);
    assert_ran(0);
    assert_null(strstr(ran.out, "profile: cached"));
    run("train --model %s/model.json --data %s %s --micro-batch auto --pack --steps 2", at, data, shape);
    assert_ran(0);
    assert_says(ran.out, "profile: cached ");
    run("plan --model %s/model.json %s --micro-batch auto", at, shape);
    assert_ran(0);
    assert_null(strstr(ran.out, "profile: cached"));
}

static void inspect_shows_it(void **state)
{
    for (int pack = 0; pack < 2; pack++) {
        run("inspect --model %s/model.json --graph %s", folder(), pack ? "--pack" : "");
        assert_ran(0);
        assert_int_equal(strstr(ran.out, "positions") != NULL, pack);
    }
}

AH_TEST_CASES("cli/packed", a_profile_serves_its_own_kind, a_plan_serves_its_own_kind, plan_measures_what_train_needs,
              inspect_shows_it)
