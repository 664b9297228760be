/* Plans that are kept in files: the same question has the same answer, another is told what was found before, and what
 * is damaged is forgotten. */
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "plan/fit.h"
#include "plan/kept.h"
#include "plan/search.h"
#include "plan/world.h"

/* A folder of this test's own; it need not be there. */
static const char *cache_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", ah_test_folder(), name);
    return path;
}

/* Of the only file in a cache. */
static void file_path(char path[1024], const char *cache)
{
    int count = 0;
    DIR *dir = opendir(cache);
    assert_non_null(dir);
    for (const struct dirent *each; (each = readdir(dir));)
        if (strncmp(each->d_name, "plans-", 6) == 0) {
            snprintf(path, 1024, "%s/%s", cache, each->d_name);
            count++;
        }
    closedir(dir);
    assert_int_equal(count, 1);
}

static char *file_text(const char *cache)
{
    char path[1024], *text;
    size_t length;
    file_path(path, cache);
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    return text;
}

static struct ah_plan search(struct ah_search_report *report, const struct world *world, const struct ah_budget *budget,
                             const struct ah_search_options *options)
{
    struct ah_plan plan;
    assert_ok(ah__plan_search_with(&plan, report, &world->predictor, budget, options));
    assert_true(ah__plan_within(&plan, budget));
    return plan;
}

/* Nothing is simulated for a question that was asked before, unless what is kept is to be renewed. */
static void the_same_question_has_the_same_answer(void **state)
{
    (void)state;
    struct world world;
    struct ah_search_report report;
    world_of_pieces(&world, 41);
    struct ah_budget budget = world_budget(&world);
    struct ah_search_options options = {.cache = cache_of("kept-same")}, anew = options;
    struct ah_plan alone = search(&report, &world, &budget, NULL), first = search(&report, &world, &budget, &options);
    expect_same_plan(&first, &alone);
    assert_true(report.simulated > 0);
    char *text = file_text(options.cache);
    struct ah_plan again = search(&report, &world, &budget, &options);
    expect_same_plan(&again, &first);
    assert_int_equal(report.simulated, 0);
    anew.renew = true;
    again = search(&report, &world, &budget, &anew);
    expect_same_plan(&again, &first);
    assert_true(report.simulated > 0);
    char *after = file_text(options.cache);
    assert_string_equal(after, text);
    world.predictor.costs.lanes.slowdown[0][1] += 0.25; /* another machine: another question */
    search(&report, &world, &budget, &options);
    assert_true(report.simulated > 0);
    ah__free(text);
    ah__free(after);
    ah__predictor_fini(&world.predictor);
}

/* What a search would not find by itself wins where it is kept: for a larger budget, and for one that was asked about
 * before it was kept. */
static void more_is_never_worse_than_what_is_kept(void **state)
{
    (void)state;
    int faster = 0, worlds = ah_test_rounds(2, 3, 6);
    for (uint64_t seed = 1; seed <= (uint64_t)worlds; seed++) {
        char name[32];
        struct world world;
        struct ah_search_report report;
        snprintf(name, sizeof name, "kept-more-%d", (int)seed);
        world_of_pieces(&world, 40 + seed);
        struct ah_budget budget = world_budget(&world), more = budget;
        more.device_bytes += more.device_bytes / 100;
        const struct ah_search_options options = {.cache = cache_of(name)};
        struct ah_plan before = search(&report, &world, &more, &options);
        struct ah_plan alone = search(&report, &world, &budget, NULL), planted = world_in_pieces(&world, &alone);
        planted = search(&report, &world, &budget,
                         &(struct ah_search_options){.known = &planted, .known_count = 1, .cache = options.cache});
        struct ah_plan after = search(&report, &world, &more, &options);
        assert_true(after.step_ns <= planted.step_ns && after.step_ns <= before.step_ns);
        faster += after.step_ns < before.step_ns;
        struct ah_plan renewed =
            search(&report, &world, &more, &(struct ah_search_options){.cache = options.cache, .renew = true});
        expect_same_plan(&renewed, &before);
        ah__predictor_fini(&world.predictor);
    }
    assert_true(faster > 0); /* else this would hold without keeping anything */
}

static void write_over(const char *cache, const char *text)
{
    char path[1024];
    file_path(path, cache);
    assert_ok(ah__file_write(path, text, strlen(text)));
}

/* Not the text, half of it, other JSON, or plans of another step. */
static void what_is_damaged_is_forgotten(void **state)
{
    (void)state;
    struct world world;
    struct ah_search_report report;
    world_of_pieces(&world, 42);
    struct ah_budget budget = world_budget(&world);
    const struct ah_search_options options = {.cache = cache_of("kept-damaged")};
    struct ah_plan first = search(&report, &world, &budget, &options);
    char *text = file_text(options.cache), *half = strdup(text), *other = strdup(text);
    half[strlen(half) / 2] = 0;
    char *signature = strstr(other, "\"signature\": \"");
    assert_non_null(signature);
    memset(signature + 14, '5', 16);
    const char *const damaged[] = {"", half, other, "{\"plans\": 3}", "{\"plans\": [3, {}]}", "[]"};
    for (size_t i = 0; i < AH_LENGTH(damaged); i++) {
        write_over(options.cache, damaged[i]);
        struct ah_plan again = search(&report, &world, &budget, &options);
        expect_same_plan(&again, &first);
        assert_true(report.simulated > 0);
        char *whole = file_text(options.cache);
        assert_string_equal(whole, text);
        ah__free(whole);
    }
    ah__free(text);
    free(half);
    free(other);
    ah__predictor_fini(&world.predictor);
}

static bool explanation_says_known(const struct ah_plan *plan, const struct world *world,
                                   const struct ah_budget *budget)
{
    static char text[1 << 14];
    FILE *to = fmemopen(text, sizeof text, "w");
    assert_non_null(to);
    assert_ok(ah_plan_explain(plan, &world->fixture.partition, &world->profile, budget, to));
    fclose(to);
    return strstr(text, "the chosen plan was given or known from before") != NULL;
}

/* Who asks why a plan was chosen that is faster than what a search finds is told so. */
static void an_explanation_says_what_was_known(void **state)
{
    (void)state;
    int faster = 0, worlds = ah_test_rounds(2, 3, 6);
    for (uint64_t seed = 1; seed <= (uint64_t)worlds; seed++) {
        struct world world;
        struct ah_search_report report;
        world_of_pieces(&world, 40 + seed);
        ah__predictor_fini(&world.predictor); /* of the profile alone, as the explanation's is */
        assert_ok(ah__predictor_init(&world.predictor, &world.fixture.partition, &world.profile, "autohete"));
        struct ah_budget budget = world_budget(&world);
        struct ah_plan alone = search(&report, &world, &budget, NULL), planted = world_in_pieces(&world, &alone);
        assert_false(explanation_says_known(&alone, &world, &budget));
        assert_int_equal(explanation_says_known(&planted, &world, &budget), planted.step_ns < alone.step_ns);
        faster += planted.step_ns < alone.step_ns;
        ah__predictor_fini(&world.predictor);
    }
    assert_true(faster > 0);
}

/* The last ones asked for are kept, the newest first, each once. */
static void old_ones_make_room(void **state)
{
    (void)state;
    enum { ASKED = AH_KEPT_MOST + 3 };
    struct world world;
    struct ah_search_report report;
    struct ah_kept kept;
    world_init(&world, 7, 2, "autohete");
    struct ah_budget budget = world_budget(&world);
    const struct ah_search_options options = {.cache = cache_of("kept-many")};
    for (int i = 0; i < ASKED; i++) {
        budget.device_bytes += 256;
        search(&report, &world, &budget, &options);
        search(&report, &world, &budget, &options);
    }
    assert_ok(ah__kept_load(&kept, &world.predictor, &budget, &options));
    assert_int_equal(kept.count, AH_KEPT_MOST);
    assert_true(ah__kept_answers(&kept));
    ah__kept_fini(&kept);
    budget.device_bytes -= 256 * (AH_KEPT_MOST - 1);
    assert_ok(ah__kept_load(&kept, &world.predictor, &budget, &options));
    assert_true(ah__kept_answers(&kept));
    ah__kept_fini(&kept);
    budget.device_bytes -= 256;
    assert_ok(ah__kept_load(&kept, &world.predictor, &budget, &options));
    assert_false(ah__kept_answers(&kept));
    ah__kept_fini(&kept);
    ah__predictor_fini(&world.predictor);
}

/* A folder that cannot be made, and a policy that brings its own placements: as if nothing were kept. */
static void where_nothing_can_be_kept_nothing_is(void **state)
{
    (void)state;
    struct world world;
    struct ah_search_report report;
    struct ah_kept kept;
    world_init(&world, 8, 2, "autohete");
    struct ah_budget budget = world_budget(&world);
    struct ah_search_options options = {.cache = "/dev/null/nowhere"};
    struct ah_plan alone = search(&report, &world, &budget, NULL), plan = search(&report, &world, &budget, &options);
    expect_same_plan(&plan, &alone);
    options.cache = cache_of("kept-placed");
    world.predictor.policy = &ah__policy_zero_offload;
    assert_ok(ah__kept_load(&kept, &world.predictor, &budget, &options));
    assert_true(kept.path == NULL && kept.count == 0);
    ah__kept_add(&kept, &plan);
    assert_false(ah__path_exists(options.cache));
    ah__predictor_fini(&world.predictor);
}

AH_TEST_SUITE("plan/kept", cmocka_unit_test(the_same_question_has_the_same_answer),
              cmocka_unit_test(more_is_never_worse_than_what_is_kept), cmocka_unit_test(what_is_damaged_is_forgotten),
              cmocka_unit_test(old_ones_make_room), cmocka_unit_test(an_explanation_says_what_was_known),
              cmocka_unit_test(where_nothing_can_be_kept_nothing_is))
