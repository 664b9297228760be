#include <string.h>

#include "timeline/synthetic.h"

static void table(void **state)
{
    struct ah_timeline *timeline = synthetic_timeline(3, 5, true);
    char *text;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    assert_ok(ah_timeline_print(timeline, to));
    fclose(to);
    static const char *const words[] = {"predicted timeline: gpt2 <3 blocks>",
                                        "step time 18.300 ms; iterations 2 to 3",
                                        "compute",
                                        "h2d",
                                        "d2h",
                                        "host",
                                        "longest gap",
                                        "of 54.0 MiB"};
    for (size_t i = 0; i < AH_LENGTH(words); i++)
        if (!strstr(text, words[i]))
            fail_msg("no '%s' in:\n%s", words[i], text);
    assert_null(strstr(text, "comm"));
    double busy;
    int items;
    assert_int_equal(sscanf(strstr(text, "compute"), "compute %lf %% %d", &busy, &items), 2);
    /* per iteration: 0.3 + 3 + 1.5 forward, 2 + 2 + 2 + 3 + 0.3 backward, 0.4 update, of 18.3 */
    assert_true(busy > 79.1 && busy < 79.3);
    assert_int_equal(items, 2 * 11);
    free(text);
    ah_timeline_free(timeline);
}

static void empty_record(void **state)
{
    struct ah_timeline *timeline;
    assert_ok(ah__timeline_new(&timeline, 3, 1, 1));
    assert_fails(ah_timeline_print(timeline, stdout), AH_EINPUT, "no complete iteration");
    ah_timeline_free(timeline);
}

AH_TEST_CASES("timeline/print", table, empty_record)
