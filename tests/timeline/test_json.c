/* The Chrome trace: what every viewer relies on, and that arrows join what they should. */
#include <string.h>

#include "base/json.h"
#include "timeline/synthetic.h"

static const char *trace_path(void)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/timeline.json", ah_test_folder());
    return path;
}

static double number(const cJSON *event, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(event, key);
    if (!cJSON_IsNumber(node))
        fail_msg("no number '%s' in %s", key, cJSON_PrintUnformatted(event));
    return node->valuedouble;
}

static const char *string(const cJSON *event, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(event, key);
    if (!cJSON_IsString(node))
        fail_msg("no string '%s' in %s", key, cJSON_PrintUnformatted(event));
    return node->valuestring;
}

/* Saves a synthetic timeline and reads it back. */
static cJSON *trace(struct ah_timeline *timeline)
{
    const char *path = trace_path();
    assert_ok(ah_timeline_save(timeline, path));
    static char text[8 << 20];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    cJSON *tree = cJSON_ParseWithOpts(text, NULL, true);
    assert_non_null(tree);
    return tree;
}

/* The event of phase "X" on a row that covers a time; `at_start`: that begins there. */
static const cJSON *slice_at(const cJSON *events, double tid, double ts, bool at_start)
{
    const cJSON *event;
    cJSON_ArrayForEach(event, events)
    {
        if (strcmp(string(event, "ph"), "X") != 0 || number(event, "tid") != tid)
            continue;
        double start = number(event, "ts");
        if (at_start ? start == ts : start <= ts && ts < start + number(event, "dur"))
            return event;
    }
    return NULL;
}

static void slices_and_rows(void **state)
{
    struct ah_timeline *timeline = synthetic_timeline(3, 4, true);
    cJSON *tree = trace(timeline);
    size_t slices = 0;
    bool named[AH_LANE_COUNT] = {false}, sorted[AH_LANE_COUNT] = {false};
    double until[AH_LANE_COUNT] = {0}, most = 0;
    const cJSON *event;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(tree, "traceEvents"))
    {
        const char *phase = string(event, "ph"), *name = string(event, "name");
        if (strcmp(phase, "X") == 0) {
            int tid = (int)number(event, "tid");
            slices++;
            assert_true(named[tid] && sorted[tid]); /* its row was described before */
            assert_true(number(event, "ts") >= until[tid] - 1e-6);
            until[tid] = number(event, "ts") + number(event, "dur");
            assert_true(cJSON_IsBool(cJSON_GetObjectItem(cJSON_GetObjectItem(event, "args"), "recompute")));
        } else if (strcmp(phase, "M") == 0 && strcmp(name, "process_name") != 0) {
            bool *seen = strcmp(name, "thread_name") == 0 ? named : sorted;
            seen[(int)number(event, "tid")] = true;
        } else if (strcmp(phase, "C") == 0) {
            double bytes = number(cJSON_GetObjectItem(event, "args"), "bytes");
            most = bytes > most ? bytes : most;
        }
    }
    assert_int_equal(slices, timeline->span_count);
    assert_true(most == (double)timeline->device_peak_bytes);
    assert_false(named[AH_LANE_COMM]);
    const cJSON *about = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "otherData"), "predicted");
    assert_string_equal(string(about, "title"), timeline->title);
    assert_true(number(about, "device_budget_bytes") == (double)timeline->device_budget_bytes);
    cJSON_Delete(tree);
    ah_timeline_free(timeline);
}

static void times_keep_their_nanoseconds(void **state)
{
    struct ah_timeline *timeline;
    assert_ok(ah__timeline_new(&timeline, 2, 1, 1));
    struct ah_span span = {.item = {.kind = AH_ITEM_BACKWARD, .partition = 2, .iteration = 5, .recompute = true},
                           .lane = AH_LANE_COMPUTE,
                           .start_ns = 1234567,
                           .end_ns = 2000006};
    ah__timeline_span(timeline, &span);
    cJSON *tree = trace(timeline);
    const cJSON *slice = slice_at(cJSON_GetObjectItem(tree, "traceEvents"), 0, 1234.567, true), *args;
    assert_non_null(slice);
    assert_true(number(slice, "dur") == 765.439);
    assert_string_equal(string(slice, "name"), "B 2");
    args = cJSON_GetObjectItem(slice, "args");
    assert_true(number(args, "iteration") == 5 && number(args, "partition") == 2);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(args, "recompute")));
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(args, "selective")));
    cJSON_Delete(tree);
    ah_timeline_free(timeline);
}

static void arrows_join_cause_and_effect(void **state)
{
    /* from, to: how many in three iterations of three blocks of which one, two give parameters back */
    static struct {
        const char *from, *to;
        int expected, found;
    } joins[] = {
        {"backward", "offload", 4 * 3, 0}, {"offload", "host update", 4 * 3, 0}, {"host update", "prefetch", 4 * 2, 0},
        {"prefetch", "forward", 4 * 2, 0}, {"forward", "refetch", 3, 0},         {"refetch", "backward", 3, 0},
        {"backward", "update", 3, 0},      {"update", "forward", 2, 0},          {"input", "forward", 3, 0},
    };
    struct ah_timeline *timeline = synthetic_timeline(3, 3, true);
    cJSON *tree = trace(timeline);
    const cJSON *events = cJSON_GetObjectItem(tree, "traceEvents"), *tail;
    int arrows = 0, expected = 0;
    cJSON_ArrayForEach(tail, events)
    {
        if (strcmp(string(tail, "ph"), "s") != 0)
            continue;
        const cJSON *head = tail->next;
        assert_string_equal(string(head, "ph"), "f");
        assert_string_equal(string(head, "bp"), "e");
        assert_true(number(head, "id") == number(tail, "id") && number(tail, "id") == ++arrows);
        assert_true(number(tail, "ts") <= number(head, "ts"));
        const cJSON *from = slice_at(events, number(tail, "tid"), number(tail, "ts"), false);
        const cJSON *to = slice_at(events, number(head, "tid"), number(head, "ts"), true);
        assert_non_null(from);
        assert_non_null(to);
        assert_true(number(cJSON_GetObjectItem(from, "args"), "partition") ==
                    number(cJSON_GetObjectItem(to, "args"), "partition"));
        for (size_t i = 0; i < AH_LENGTH(joins); i++)
            if (strcmp(string(from, "cat"), joins[i].from) == 0 && strcmp(string(to, "cat"), joins[i].to) == 0)
                joins[i].found++;
    }
    for (size_t i = 0; i < AH_LENGTH(joins); i++) {
        if (joins[i].found != joins[i].expected)
            fail_msg("%s -> %s: %d arrows, expected %d", joins[i].from, joins[i].to, joins[i].found, joins[i].expected);
        expected += joins[i].expected;
    }
    assert_int_equal(arrows, expected);
    cJSON_Delete(tree);
    ah_timeline_free(timeline);
}

static void a_cause_has_one_arrow_of_a_kind(void **state)
{
    static const enum ah_item_kind kinds[] = {AH_ITEM_UPDATE_DEVICE, AH_ITEM_FORWARD, AH_ITEM_FORWARD};
    struct ah_timeline *timeline;
    assert_ok(ah__timeline_new(&timeline, 1, 1, 3));
    for (int i = 0; i < 3; i++) {
        struct ah_span span = {.item = {.kind = kinds[i], .partition = 1, .iteration = i},
                               .lane = AH_LANE_COMPUTE,
                               .start_ns = i * 10,
                               .end_ns = i * 10 + 10};
        ah__timeline_span(timeline, &span);
    }
    cJSON *tree = trace(timeline);
    const cJSON *event;
    int tails = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(tree, "traceEvents")) tails += strcmp(string(event, "ph"), "s") == 0;
    assert_int_equal(tails, 1);
    cJSON_Delete(tree);
    ah_timeline_free(timeline);
}

/* One block's items, one after the other, each on its lane. The caller frees it with ah_timeline_free. */
static struct ah_timeline *of_kinds(const enum ah_item_kind *kinds, int count)
{
    struct ah_timeline *timeline;
    assert_ok(ah__timeline_new(&timeline, 1, 1, 3));
    for (int i = 0; i < count; i++) {
        struct ah_span span = {.item = {.kind = kinds[i], .partition = 1},
                               .lane = ah__item_lanes[kinds[i]],
                               .start_ns = i * 10,
                               .end_ns = i * 10 + 10};
        ah__timeline_span(timeline, &span);
    }
    return timeline;
}

/* As a viewer shows them: "F 1". */
static void every_kind_has_a_name(void **state)
{
    enum ah_item_kind kinds[AH_ITEM_COUNT];
    for (int kind = 0; kind < AH_ITEM_COUNT; kind++)
        kinds[kind] = (enum ah_item_kind)kind;
    struct ah_timeline *timeline = of_kinds(kinds, AH_ITEM_COUNT);
    cJSON *tree = trace(timeline);
    const cJSON *event;
    int slices = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(tree, "traceEvents"))
    {
        if (strcmp(string(event, "ph"), "X") != 0)
            continue;
        const char *name = string(event, "name");
        size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyzFB");
        if (letters == 0 || strcmp(name + letters, " 1") != 0)
            fail_msg("%s: found '%s', expected a name and the block", string(event, "cat"), name);
        slices++;
    }
    assert_int_equal(slices, AH_ITEM_COUNT);
    cJSON_Delete(tree);
    ah_timeline_free(timeline);
}

/* The arrows of some items, as "from>to from>to". */
static void expect_arrows(const enum ah_item_kind *kinds, int count, const char *expected)
{
    struct ah_timeline *timeline = of_kinds(kinds, count);
    cJSON *tree = trace(timeline);
    const cJSON *events = cJSON_GetObjectItem(tree, "traceEvents"), *tail;
    char found[400] = "";
    size_t length = 0;
    cJSON_ArrayForEach(tail, events)
    {
        if (strcmp(string(tail, "ph"), "s") != 0)
            continue;
        const cJSON *from = slice_at(events, number(tail, "tid"), number(tail, "ts"), false);
        const cJSON *to = slice_at(events, number(tail->next, "tid"), number(tail->next, "ts"), true);
        length += (size_t)snprintf(found + length, sizeof found - length, "%s%s>%s", length ? ", " : "",
                                   string(from, "cat"), string(to, "cat"));
        assert_true(length < sizeof found);
    }
    assert_string_equal(found, expected);
    cJSON_Delete(tree);
    ah_timeline_free(timeline);
}

/* Between ranks a gradient is summed on its way, and parameters are gathered on theirs; what has been updated before
 * the norm was known may be updated again. No arrow goes past where it went through. */
static void arrows_pass_through_every_hand(void **state)
{
    static const enum ah_item_kind ranks[] = {AH_ITEM_BACKWARD, AH_ITEM_REDUCE,  AH_ITEM_OFFLOAD, AH_ITEM_UPDATE_HOST,
                                              AH_ITEM_PREFETCH, AH_ITEM_GATHER,  AH_ITEM_FORWARD, AH_ITEM_REFETCH,
                                              AH_ITEM_GATHER,   AH_ITEM_BACKWARD};
    expect_arrows(ranks, AH_LENGTH(ranks),
                  "backward>reduce-scatter, reduce-scatter>offload, offload>host update, host update>prefetch, "
                  "prefetch>all-gather, all-gather>forward, forward>refetch, refetch>all-gather, all-gather>backward");
    static const enum ah_item_kind on_device[] = {AH_ITEM_BACKWARD, AH_ITEM_REDUCE, AH_ITEM_UPDATE_DEVICE,
                                                  AH_ITEM_CAST,     AH_ITEM_GATHER, AH_ITEM_FORWARD};
    expect_arrows(on_device, AH_LENGTH(on_device),
                  "backward>reduce-scatter, reduce-scatter>update, update>cast, cast>all-gather, all-gather>forward");
    static const enum ah_item_kind kept[] = {AH_ITEM_OFFLOAD, AH_ITEM_UPDATE_SPECULATIVE, AH_ITEM_PREFETCH};
    expect_arrows(kept, AH_LENGTH(kept), "offload>speculative update, speculative update>prefetch");
    static const enum ah_item_kind clipped[] = {AH_ITEM_OFFLOAD, AH_ITEM_UPDATE_SPECULATIVE, AH_ITEM_UPDATE_HOST,
                                                AH_ITEM_PREFETCH};
    expect_arrows(clipped, AH_LENGTH(clipped),
                  "offload>speculative update, speculative update>host update, host update>prefetch");
}

static void failing_allocations(void **state)
{
    struct ah_timeline *timeline = synthetic_timeline(2, 2, true);
    const char *path = trace_path();
    int status = AH_ENOMEM;
    for (uint64_t n = 1; status != AH_OK; n++) {
        ah__alloc_fail_at(n);
        status = ah_timeline_save(timeline, path);
        assert_true(status == AH_OK || status == AH_ENOMEM);
        assert_true(n < 100);
    }
    ah__alloc_fail_at(0);
    assert_fails(ah_timeline_save(timeline, "/no/such/folder/t.json"), AH_EINPUT, "/no/such/folder");
    ah_timeline_free(timeline);
}

AH_TEST_CASES("timeline/json", slices_and_rows, times_keep_their_nanoseconds, arrows_join_cause_and_effect,
              a_cause_has_one_arrow_of_a_kind, every_kind_has_a_name, arrows_pass_through_every_hand,
              failing_allocations)
