/* The SVG: well-formed, inside its frame, with everything it promises, from 1 block to 48. */
#include <string.h>

#include "timeline/synthetic.h"

static char svg[4 << 20];

static void draw(const struct ah_timeline *predicted, const struct ah_timeline *measured, int64_t budget)
{
    char path[160];
    snprintf(path, sizeof path, "%s/timeline.svg", ah_test_folder());
    assert_ok(ah_timeline_save_svg(predicted, measured, budget, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(svg, 1, sizeof svg - 1, file);
    fclose(file);
    svg[length] = 0;
}

static int count(const char *words)
{
    int found = 0;
    for (const char *at = svg; (at = strstr(at, words)); at++)
        found++;
    return found;
}

/* Every tag that opens is closed in order; '<' and '>' appear nowhere else. */
static void assert_well_formed(void)
{
    char open[32][24];
    int depth = 0;
    for (const char *at = strchr(svg, '<'); at; at = strchr(at, '<')) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        assert_null(memchr(at + 1, '<', (size_t)(end - at - 1)));
        char name[24];
        assert_int_equal(sscanf(at + 1 + (at[1] == '/'), "%23[a-zA-Z]", name), 1);
        if (at[1] == '/')
            assert_true(depth > 0 && strcmp(open[--depth], name) == 0);
        else if (end[-1] != '/')
            strcpy(open[depth++], name);
        assert_true(depth < 32);
        at = end;
        const char *text = end + 1, *next = strchr(text, '<');
        assert_true(!next || !memchr(text, '>', (size_t)(next - text)));
    }
    assert_int_equal(depth, 0);
}

/* Every rectangle lies in the frame and is not empty. */
static void assert_inside(void)
{
    double width, height;
    assert_int_equal(sscanf(strstr(svg, "width="), "width=\"%lf\" height=\"%lf\"", &width, &height), 2);
    for (const char *at = svg; (at = strstr(at, "<rect x=")); at++) {
        double x, y, w, h;
        assert_int_equal(sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &x, &y, &w, &h), 4);
        assert_true(x >= 0 && y >= 0 && w > 0 && h >= 0 && x + w <= width && y + h <= height);
    }
    assert_int_equal(count("nan"), 0);
    assert_int_equal(count("\"inf"), 0);
}

static void complete_for_few_and_many_blocks(void **state)
{
    static const int layers[] = {1, 2, 3, 12, 48, 64};
    for (size_t i = 0; i < AH_LENGTH(layers); i++) {
        struct ah_timeline *predicted = synthetic_timeline(layers[i], 6, true);
        struct ah_timeline *measured = synthetic_timeline(layers[i], 5, false);
        draw(predicted, measured, predicted->device_budget_bytes);
        assert_well_formed();
        assert_inside();
        assert_true(strstr(svg, "Predicted by the simulator") < strstr(svg, "Measured on the device"));
        assert_non_null(strstr(svg, "Predicted by the simulator"));
        assert_non_null(strstr(svg, "&lt;"));      /* the title, escaped */
        assert_int_equal(count(">iteration "), 4); /* two in each panel */
        assert_int_equal(count("class=\"boundary\""), 2 * 3);
        assert_int_equal(count("class=\"budget\""), 2);
        /* each block's forward in both iterations of the predicted panel, and as many more in the measured one */
        char tip[64];
        snprintf(tip, sizeof tip, "<title>forward block %d, iteration 3:", layers[i]);
        assert_true(count(tip) >= 1);
        ah_timeline_free(predicted);
        ah_timeline_free(measured);
    }
}

static void either_panel_may_be_missing(void **state)
{
    struct ah_timeline *timeline = synthetic_timeline(3, 4, false);
    draw(NULL, timeline, 0);
    assert_well_formed();
    assert_int_equal(count("Predicted"), 0);
    assert_int_equal(count("class=\"budget\""), 0);
    assert_int_equal(count(">iteration "), 2);
    draw(timeline, NULL, 1024LL * SYNTHETIC_MIB);
    assert_int_equal(count("Measured"), 0);
    assert_int_equal(count("class=\"budget\""), 0); /* far above the curve: named, not drawn */
    assert_int_equal(count("budget 1024<"), 1);
    assert_fails(ah_timeline_save_svg(NULL, NULL, 0, "x.svg"), AH_EINPUT, "no timeline to draw");
    ah_timeline_free(timeline);
}

static void one_iteration_is_enough(void **state)
{
    struct ah_timeline *timeline = synthetic_timeline(2, 1, true);
    draw(timeline, NULL, 0);
    assert_well_formed();
    assert_inside();
    assert_int_equal(count(">iteration 0<"), 1);
    assert_int_equal(count("class=\"boundary\""), 2);
    ah_timeline_free(timeline);
}

/* Where the plot of either panel ends. */
static void ends_of(double ends[2])
{
    const char *at = svg;
    for (int i = 0; i < 2; i++)
        for (int line = 0; line < 3; line++) {
            at = strstr(at + 1, "class=\"boundary\"");
            assert_non_null(at);
            assert_int_equal(sscanf(at, "class=\"boundary\" x1=\"%lf\"", &ends[i]), 1);
        }
}

static void same_time_scale(void **state)
{
    struct ah_timeline *fast = synthetic_timeline(3, 6, true), *slow = synthetic_timeline(3, 6, false);
    for (int slower = 0; slower < 2; slower++) {
        double ends[2];
        draw(slower ? fast : slow, slower ? slow : fast, 0);
        ends_of(ends);
        /* the slower one ends at the plot's right edge, the faster one before it, in proportion */
        double share = (ends[!slower] - 124) / (ends[slower] - 124);
        assert_true(ends[slower] == 860);
        assert_true(share > 0.957 && share < 0.96);
    }
    ah_timeline_free(fast);
    ah_timeline_free(slow);
}

static void failing_allocations(void **state)
{
    struct ah_timeline *timeline = synthetic_timeline(2, 3, true);
    char path[160];
    snprintf(path, sizeof path, "%s/timeline.svg", ah_test_folder());
    int status = AH_ENOMEM;
    for (uint64_t n = 1; status != AH_OK; n++) {
        ah__alloc_fail_at(n);
        status = ah_timeline_save_svg(timeline, timeline, 0, path);
        assert_true(status == AH_OK || status == AH_ENOMEM);
        assert_true(n < 100);
    }
    ah__alloc_fail_at(0);
    ah_timeline_free(timeline);
}

AH_TEST_CASES("timeline/svg", complete_for_few_and_many_blocks, either_panel_may_be_missing, one_iteration_is_enough,
              same_time_scale, failing_allocations)
