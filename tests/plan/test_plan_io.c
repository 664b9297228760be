#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "dev/dev.h"
#include "plan/plan_internal.h"

static const struct ah_plan example = {
    .switches = {.layers = 8,
                 .world_size = 4,
                 .chunks = 2,
                 .out_of_order = 3,
                 .checkpoint = 4,
                 .selective = 3,
                 .staged = 2,
                 .offload_activations = 2,
                 .unsharded = 1,
                 .offload_params = 2,
                 .offload_optimizer = 6,
                 .embedding_on_host = true,
                 .share_embedding_head = true,
                 .buffers = 5,
                 .prefetch_distance = 2,
                 .passes = 3},
    .device_peak_bytes = 67000000,
    .host_peak_bytes = 123456789,
    .step_ns = 123400000,
    .bound_ns = 120000000,
    .bound_lane_ns = 120000000,
    .bound_cycle_ns = 98000000,
    .bound_lane = AH_LANE_HOST,
    .policy = "autohete",
    .signature = UINT64_C(0xfedcba9876543210),
};

static void assert_plan_equal(const struct ah_plan *a, const struct ah_plan *b)
{
    assert_true(ah__switches_equal(&a->switches, &b->switches));
    assert_int_equal(a->device_peak_bytes, b->device_peak_bytes);
    assert_int_equal(a->host_peak_bytes, b->host_peak_bytes);
    assert_int_equal(a->step_ns, b->step_ns);
    assert_int_equal(a->bound_ns, b->bound_ns);
    assert_int_equal(a->bound_lane_ns, b->bound_lane_ns);
    assert_int_equal(a->bound_cycle_ns, b->bound_cycle_ns);
    assert_int_equal(a->bound_lane, b->bound_lane);
    assert_string_equal(a->policy, b->policy);
    assert_true(a->signature == b->signature);
}

static const char *plan_path(void)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/plan.json", ah_test_folder());
    return path;
}

static void saved_plans_come_back(void **state)
{
    const char *path = plan_path();
    struct ah_plan plan;
    assert_ok(ah_plan_save(&example, path));
    assert_ok(ah__plan_read(&plan, path));
    assert_plan_equal(&plan, &example);
}

static void json_has_the_short_names_too(void **state)
{
    char *text;
    assert_ok(ah_plan_json(&text, &example));
    static const char *const parts[] = {"\"c\": 4",
                                        "\"p\": 2",
                                        "\"o\": 6",
                                        "\"checkpoint\": 4",
                                        "\"version\": \"",
                                        "\"bound_lane\": \"host\"",
                                        "\"buffers\": 5",
                                        "\"policy\": \"autohete\"",
                                        "\"signature\": \"fedcba9876543210\""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(text, parts[i]))
            fail_msg("%s is not in %s", parts[i], text);
    assert_null(strchr(text, '\n'));
    free(text);
}

/* Saves the example with one key replaced (value null: removed) and reads it. */
static int read_edited(const char *path, const char *key, const char *value)
{
    char *text;
    assert_ok(ah_plan_json(&text, &example));
    cJSON *tree = cJSON_Parse(text);
    free(text);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, key);
    if (value)
        cJSON_AddItemToObject(tree, key, cJSON_Parse(value));
    assert_ok(ah__json_save(tree, path));
    cJSON_Delete(tree);
    struct ah_plan plan = {.switches.layers = -7};
    int status = ah__plan_read(&plan, path);
    assert_true(status == AH_OK || plan.switches.layers == -7);
    return status;
}

static void refuses_wrong_files(void **state)
{
    const char *path = plan_path();
    static const struct {
        const char *key, *value, *words;
        int status;
    } rows[] = {
        {"layers", "0", "key 'layers': found 0, expected an integer from 1", AH_EINPUT},
        {"layers", "\"8\"", "key 'layers': found '8'", AH_EINPUT},
        {"layers", "8.5", "key 'layers': found 8.5", AH_EINPUT},
        {"buffers", "-1", "key 'buffers': found -1", AH_EINPUT},
        {"prefetch_distance", "0", "key 'prefetch_distance': found 0", AH_EINPUT},
        {"head_on_host", "1", "key 'head_on_host': found 1, expected true or false", AH_EINPUT},
        {"step_ns", "-1", "key 'step_ns': found -1", AH_EINPUT},
        {"bound_lane", "\"gpu\"", "key 'bound_lane': found 'gpu', expected a lane", AH_EINPUT},
        {"policy", "\"best\"", "key 'policy': found 'best', expected a policy", AH_EINPUT},
        {"policy", "\"autohete-with-a-very-long-name-indeed\"", "key 'policy': found", AH_EINPUT},
        {"signature", "\"123\"", "key 'signature': found '123', expected 16 hex", AH_EINPUT},
        {"c", "3", "key 'c': found 3, expected 4", AH_EINPUT},
        {"p", "1", "key 'p': found 1, expected 2", AH_EINPUT},
        {"o", "8", "key 'o': found 8, expected 6", AH_EINPUT},
        {"layers", "5", "o=6: found 6, expected at most layers=5", AH_EINPUT},
        {"layers", "3", "c=4: found 4, expected at most layers=3", AH_EINPUT},
        {"selective", "5", "selective=5: found 5, expected at most layers-c=4", AH_EINPUT},
        {"staged", "7", "staged=7: found 7, expected at most o=6", AH_EINPUT},
        {"offload_activations", "7", "key 'a': found 2, expected 7 as 'offload_activations' says", AH_EINPUT},
        {"unsharded", "3", "unsharded=3: found 3, expected at most layers-o=2", AH_EINPUT},
        {"share_embedding_head", "1", "key 'share_embedding_head': found 1, expected true or false", AH_EINPUT},
        {"colour", "1", "key 'colour': found an unknown key", AH_EINPUT},
        {"version", "\"99.0.0\"", "key 'version': found '99.0.0', expected '", AH_ESTALE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_fails(read_edited(path, rows[i].key, rows[i].value), rows[i].status, rows[i].words);
        assert_non_null(strstr(ah_error(), path));
    }
    struct ah_plan plan;
    assert_fails(ah__plan_read(&plan, "/nowhere/plan.json"), AH_EINPUT, "/nowhere/plan.json");
}

static void every_key_is_required(void **state)
{
    const char *path = plan_path();
    char *text;
    assert_ok(ah_plan_json(&text, &example));
    cJSON *tree = cJSON_Parse(text);
    free(text);
    int keys = 0;
    for (const cJSON *child = tree->child; child; child = child->next, keys++) {
        char words[80];
        int field = ah__switch_find(child->string, strlen(child->string), true);
        int key = ah__switch_find(child->string, strlen(child->string), false); /* said again */
        bool optional = field >= 0 ? ah__switch_table[field].must == AH_MUST_NONE : key >= 0;
        if (optional || strcmp(child->string, "resident_ns") == 0 || strstr(child->string, "frozen") ||
            strcmp(child->string, "blocks_adapted") == 0 || strncmp(child->string, "disk_", 5) == 0) {
            assert_ok(read_edited(path, child->string, NULL));
            continue;
        }
        snprintf(words, sizeof words, "key '%s': found nothing", child->string);
        assert_fails(read_edited(path, child->string, NULL), AH_EINPUT, words);
    }
    assert_int_equal(keys, 23 + AH_SWITCH_COUNT + 6); /* c, p, o, a, disk and sums are there twice */
    cJSON_Delete(tree);
}

/* What plan --json prints is a plan file; it may lack a switch that need not be said. */
static void printed_plans_are_read(void **state)
{
    const char *path = plan_path();
    struct ah_plan plan;
    assert_ok(read_edited(path, "tokens_per_s", "6"));
    assert_ok(read_edited(path, "passes", NULL));
    assert_ok(ah__plan_read(&plan, path));
    assert_int_equal(plan.switches.passes, 1);
    assert_fails(read_edited(path, "slots", "5"), AH_EINPUT, "key 'slots': found an unknown key");
}

static void unwritable_path_is_reported(void **state)
{
    int status = ah_plan_save(&example, "/proc/nowhere/plan.json");
    assert_true(status == AH_EIO || status == AH_EINPUT);
    assert_non_null(strstr(ah_error(), "/proc/nowhere/plan.json"));
}

static void survives_failing_allocations(void **state)
{
    const char *path = plan_path();
    assert_ok(ah_plan_save(&example, path));
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        struct ah_plan plan;
        char *text = NULL;
        ah__alloc_fail_at(n);
        int status = ah__plan_read(&plan, path);
        if (status == AH_OK)
            status = ah_plan_json(&text, &example);
        ah__alloc_fail_at(0);
        free(text);
        if (status == AH_OK)
            break;
        assert_int_equal(status, AH_ENOMEM);
        failures++;
    }
    assert_true(failures > 20);
}

/* ---- specs ---- */

static void specs_are_parsed(void **state)
{
    enum {
        CPO = 1 << AH_SWITCH_checkpoint | 1 << AH_SWITCH_offload_params | 1 << AH_SWITCH_offload_optimizer,
        BUFFERS = 1 << AH_SWITCH_buffers,
        DISTANCE = 1 << AH_SWITCH_prefetch_distance,
        EMB = 1 << AH_SWITCH_embedding_on_host,
        HEAD = 1 << AH_SWITCH_head_on_host
    };
    static const struct {
        const char *text;
        int c, p, o, buffers, ahead;
        bool embedding, head;
        unsigned given;
    } rows[] = {
        {"resident", 0, 0, 0, 0, 0, false, false, EMB | HEAD},
        {"c=8,p=2,o=8", 8, 2, 8, 0, 0, false, false, CPO},
        {"o=3,c=0,p=3", 0, 3, 3, 0, 0, false, false, CPO},
        {"c=8,p=2,o=8,buffers=5,prefetch_distance=2,embedding=host,head=device", 8, 2, 8, 5, 2, true, false,
         CPO | BUFFERS | DISTANCE | EMB | HEAD},
        {"head=host,c=1,p=0,o=0,buffers=1", 1, 0, 0, 1, 0, false, true, CPO | BUFFERS | HEAD},
        {"c=001,p=0,o=0", 1, 0, 0, 0, 0, false, false, CPO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ah_plan plan;
        unsigned given = 99;
        assert_ok(ah__plan_spec(&plan, &given, rows[i].text, 8));
        struct ah_plan expected = {.switches = {.layers = 8,
                                                .checkpoint = rows[i].c,
                                                .offload_params = rows[i].p,
                                                .offload_optimizer = rows[i].o,
                                                .buffers = rows[i].buffers,
                                                .prefetch_distance = rows[i].ahead,
                                                .embedding_on_host = rows[i].embedding,
                                                .head_on_host = rows[i].head}};
        assert_plan_equal(&plan, &expected);
        assert_int_equal(given, rows[i].given);
    }
}

/* Each switch by its key, at both ends of its range. */
static void every_switch_has_its_keys(void **state)
{
    for (int i = 0; i < AH_SWITCH_COUNT; i++) {
        const struct ah_switch_row *row = &ah__switch_table[i];
        const char *const *words = ah__switch_words[row->kind];
        if (row->must == AH_MUST_TEXT)
            continue; /* in every other test */
        int low = row->low, high = words[0] ? 1 : low + 2;
        for (int value = low; value <= high; value += high - low) {
            char number[16], text[200];
            struct ah_plan plan;
            unsigned given;
            snprintf(number, sizeof number, "%d", value);
            snprintf(text, sizeof text, "c=3,p=1,o=4,%s=%s", row->key, words[0] ? words[value] : number);
            assert_ok(ah__plan_spec(&plan, &given, text, 8));
            assert_int_equal(ah__switch_get(&plan.switches, i), value);
            assert_true(given >> i & 1);
        }
    }
}

/* What the short and the whole text of a plan say; the whole one is the same plan again. */
static void switches_make_texts(void **state)
{
    char text[AH_SWITCHES_TEXT];
    struct ah_plan plan;
    unsigned given;
    ah__switches_text(text, &example.switches, ' ', false);
    assert_string_equal(text, "c=4 p=2 o=6 selective=3 staged=2 unsharded=1 a=2 embedding_head=shared");
    ah__switches_text(text, &example.switches, ',', true);
    assert_ok(ah__plan_spec(&plan, &given, text, 8));
    plan.switches.world_size = example.switches.world_size;
    assert_true(ah__switches_equal(&plan.switches, &example.switches));
    assert_int_equal(given, (1 << AH_SWITCH_COUNT) - 1);
}

static void wrong_specs_are_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"c=8,p=9,o=8", "--plan: p=9: found 9, expected at most o=8"},
        {"c=6,p=2,o=8,selective=3", "--plan: selective=3: found 3, expected at most layers-c=2"},
        {"c=6,p=2,o=8,selective=-1", "--plan: selective=-1: found '-1', expected a number from 0 to 1000000"},
        {"c=6,p=2,o=4,staged=5", "--plan: staged=5: found 5, expected at most o=4"},
        {"c=6,p=2,o=4,a=7", "--plan: a=7: found 7, expected at most layers-2=6"},
        {"c=6,p=2,o=4,embedding_head=host", "--plan: embedding_head=host: found 'host', expected shared or separate"},
        {"c=9,p=0,o=8", "--plan: c=9: found 9, expected at most layers=8"},
        {"c=0,p=0,o=9", "--plan: o=9: found 9, expected at most layers=8"},
        {"p=9", "--plan: p=9: found 9, expected at most o=8"},
        {"c=6,selective=3", "--plan: selective=3: found 3, expected at most layers-c=2"},
        {"buffers=33", "--plan: buffers=33: found 33, expected at most 32"},
        {"c=8,p=2,o=8,x=1", "--plan: found key 'x', expected one of c, o, p, selective, staged"},
        {"c=8,p=2,o=8,slots=2", "--plan: found key 'slots', expected one of c, o, p, selective, staged"},
        {"c=8,p=2,o=8,=1", "--plan: found key '', expected one of"},
        {"c=8,p=2,o=8,", "--plan: found '', expected auto"},
        {",c=8,p=2,o=8", "--plan: found '', expected auto"},
        {"", "--plan: found '', expected auto"},
        {"fast", "--plan: found 'fast', expected auto, resident"},
        {"c=8,p=2,o=8,c=8", "--plan: key 'c': found twice"},
        {"c=8x,p=2,o=8", "--plan: c=8x: found '8x', expected a number from 0"},
        {"c=,p=2,o=8", "--plan: c=: found '', expected a number"},
        {"c=-1,p=2,o=8", "--plan: c=-1: found '-1', expected a number from 0"},
        {"c= 1,p=2,o=8", "--plan: c= 1: found ' 1', expected a number"},
        {"c=99999999999999999999,p=2,o=8", "--plan: c=99999999999999999999: found"},
        {"c=8,p=2,o=8,buffers=-1", "--plan: buffers=-1: found '-1', expected a number from 0"},
        {"c=8,p=2,o=8,prefetch_distance=0", "--plan: prefetch_distance=0: found '0', expected a number from 1"},
        {"c=8,p=2,o=8,head=gpu", "--plan: head=gpu: found 'gpu', expected host or device"},
        {"c=8,p=2,o=8,embedding=", "--plan: embedding=: found '', expected host or device"},
        {"Resident", "--plan: found 'Resident', expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ah_plan plan = {.switches.layers = -7};
        unsigned given = 99;
        assert_fails(ah__plan_spec(&plan, &given, rows[i].text, 8), AH_EINPUT, rows[i].words);
        assert_int_equal(plan.switches.layers, -7);
        assert_int_equal(given, 99);
        assert_null(strchr(ah_error(), '\n'));
    }
}

static void check_tells_models_apart(void **state)
{
    struct ah_partition partition = {
        .layers = 8, .signature = example.signature, .shared_group = -1, .step.micro_batches = 3};
    assert_ok(ah__plan_check(&example, &partition));
    partition.step.micro_batches = 2;
    assert_fails(ah__plan_check(&example, &partition), AH_EINPUT, "passes=3: found 3, expected at most 2");
    partition.step.micro_batches = 3;
    partition.layers = 12;
    assert_fails(ah__plan_check(&example, &partition), AH_ESTALE, "layers: found 8, expected 12");
    partition.layers = 8;
    partition.signature++;
    assert_fails(ah__plan_check(&example, &partition), AH_ESTALE,
                 "signature: found fedcba9876543210, expected fedcba9876543211");
    partition.signature--;
    struct ah_plan plan = example;
    plan.switches.offload_params = 7;
    assert_fails(ah__plan_check(&plan, &partition), AH_EINPUT, "p=7: found 7, expected at most o=6");
    plan.switches.offload_params = -1;
    assert_fails(ah__plan_check(&plan, &partition), AH_EINPUT, "p=-1: found -1, expected at least 0");
    partition.shared_group = 0;
    assert_fails(ah__plan_check(&example, &partition), AH_EINPUT,
                 "embedding_head=shared: found an embedding that the head");
    partition.shared_group = -1;
    plan = example;
    plan.switches.world_size = 1;
    assert_fails(
        ah__plan_check(&plan, &partition), AH_EINPUT,
        "embedding_head=shared: found embedding=host and head=device, expected both on the host, or several ranks");
}

/* ---- table ---- */

static char *printed(const struct ah_plan *plan, const struct ah_budget *budget)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    assert_non_null(memory);
    assert_ok(ah_plan_print(plan, budget, memory));
    fclose(memory);
    return text;
}

static void table_of_the_example(void **state)
{
    struct ah_budget budget = {.device_bytes = 67108864};
    char *text = printed(&example, &budget);
    assert_string_equal(text, "plan: c=4 p=2 o=6 of 8 blocks, policy autohete\n"
                              "  switches        selective=3 staged=2 unsharded=1 a=2 embedding_head=shared\n"
                              "  stage             checkpoint  parameters     optimizer  gradient\n"
                              "  embedding         -           fetched once   host       to host\n"
                              "  block 1           recompute   on device      device     on device\n"
                              "  block 2           recompute   unsharded      device     on device\n"
                              "  blocks 3-4        recompute   fetched twice  host       to host\n"
                              "  blocks 5-8        recompute   fetched once   host       to host\n"
                              "  head              -           on device      device     on device\n"
                              "  device memory   63.9 MiB of 64.0 MiB (99.8%)\n"
                              "  host memory     117.7 MiB, no limit\n"
                              "  buffers         5, each as large as one block's parameters\n"
                              "  staged          2 of the 6 offloaded blocks are updated on the device\n"
                              "  activations     of 2 blocks offloaded; 4 blocks use the 2 staging buffers\n"
                              "                  and save all (1), products and attention (3)\n"
                              "  passes          3 rounds over the model, each of a part of the micro-batches\n"
                              "  shared          embedding and head use one device buffer in turn\n"
                              "  re-fetch        up to 2 backward steps early\n"
                              "  step time       123.4 ms predicted, 1.028 x the lower bound:\n"
                              "                  120.0 ms, the host lane (longest cycle 98.0 ms)\n"
                              "  recompute: saves only its input, recomputes the rest in backward\n"
                              "  selective: saves matrix products and attention, recomputes the rest\n"
                              "  fetched twice: releases its parameters after forward, re-fetches them\n"
                              "  unsharded: parameters stay on the device, all-gathered once in a step\n"
                              "  lanes work at once: compute (c), host to device (h2d), device to host (d2h),\n"
                              "  host optimizer (host)\n");
    free(text);
    struct ah_plan plan = example;
    plan.bound_cycle_ns = plan.bound_ns = INT64_C(123000000);
    text = printed(&plan, NULL);
    assert_non_null(strstr(text, "123.0 ms, the longest cycle (host lane 120.0 ms)"));
    assert_null(strstr(text, "although all of it would fit"));
    free(text);
    plan.resident_ns = plan.step_ns + plan.step_ns / 10;
    text = printed(&plan, NULL);
    assert_non_null(strstr(text, "offloaded       although all of it would fit: 10% faster than 135.7 ms"));
    free(text);
}

static void assert_has(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("no '%s' in: %s", words, text);
}

/* What is frozen has no optimizer and no gradient, and blocks without backward no checkpoint. */
static void table_of_frozen_parameters(void **state)
{
    struct ah_plan plan = example, read;
    const char *path = plan_path();
    plan.embedding_frozen = plan.blocks_adapted = true;
    plan.switches.frozen_blocks = 3;
    ah__switches_clamp(&plan.switches);
    assert_ok(ah_plan_save(&plan, path));
    assert_ok(ah__plan_read(&read, path));
    char *text = printed(&read, NULL);
    assert_has(text, "\n  embedding         -           fetched once   frozen     none\n"
                     "  block 1           -           on device      frozen     none\n"
                     "  block 2           -           unsharded      frozen     none\n"
                     "  block 3           -           fetched once   frozen     none\n"
                     "  blocks 4-5        recompute   fetched twice  host       to host\n");
    assert_has(text, "\n  head              -           on device      device     on device\n");
    assert_has(text, "\n  optimizer and gradient of a block are of its trained part alone\n"
                     "  frozen blocks without checkpoint run forward alone; c, p and a count those above\n");
    free(text);
    plan = example;
    plan.blocks_frozen = plan.head_frozen = true;
    text = printed(&plan, NULL);
    assert_has(text, "\n  blocks 5-8        recompute   fetched once   frozen     none\n"
                     "  head              -           on device      frozen     none\n");
    free(text);
}

/* Every block is in exactly one line, whatever the switches, and lines stay narrow for any numbers. */
static void table_covers_all_blocks(void **state)
{
    enum { L = 6 };
    struct ah_plan plan = example;
    struct ah_budget budget = {.device_bytes = INT64_MAX / 2, .host_bytes = INT64_MAX / 2};
    plan.switches.layers = L;
    plan.device_peak_bytes = plan.host_peak_bytes = INT64_MAX / 2;
    plan.step_ns = plan.bound_lane_ns = plan.bound_ns = plan.bound_cycle_ns = INT64_C(1) << 50;
    for (int i = 0; i < (L + 1) * (L + 1) * (L + 1); i++) {
        plan.switches.checkpoint = i % (L + 1);
        plan.switches.offload_optimizer = i / (L + 1) % (L + 1);
        plan.switches.offload_params = i / (L + 1) / (L + 1);
        if (plan.switches.offload_params > plan.switches.offload_optimizer)
            continue;
        char *text = printed(&plan, &budget), *rest = text;
        int next = 1;
        for (char *line; (line = strsep(&rest, "\n"));) {
            int first, last;
            assert_true(strlen(line) < 80);
            if (sscanf(line, "  blocks %d-%d", &first, &last) != 2) {
                if (sscanf(line, "  block %d", &first) != 1)
                    continue;
                last = first;
            }
            assert_int_equal(first, next);
            next = last + 1;
        }
        assert_int_equal(next, L + 1);
        free(text);
    }
}

static void full_disk_is_reported(void **state)
{
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    assert_fails(ah_plan_print(&example, NULL, full), AH_EIO, "plan: writing failed");
    fclose(full);
}

AH_TEST_CASES("plan/plan_io", saved_plans_come_back, json_has_the_short_names_too, refuses_wrong_files,
              every_key_is_required, unwritable_path_is_reported, printed_plans_are_read, survives_failing_allocations,
              specs_are_parsed, every_switch_has_its_keys, switches_make_texts, wrong_specs_are_refused,
              check_tells_models_apart, table_of_the_example, table_of_frozen_parameters, table_covers_all_blocks,
              full_disk_is_reported)
