/* A program that uses the library may have any locale: pictures and tables are the same bytes. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "timeline/synthetic.h"

/* All that the timeline writes, as one text. The caller frees. */
static char *everything(const struct ah_timeline *timeline)
{
    char path[160], *parts[3];
    size_t length;
    snprintf(path, sizeof path, "%s/timeline", ah_test_folder());
    assert_ok(ah_timeline_save_svg(timeline, timeline, 1 << 20, path));
    assert_ok(ah__file_read(&parts[0], &length, path, 64 << 20));
    assert_ok(ah_timeline_save(timeline, path));
    assert_ok(ah__file_read(&parts[1], &length, path, 64 << 20));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_ok(ah_timeline_print(timeline, file));
    fclose(file);
    assert_ok(ah__file_read(&parts[2], &length, path, 64 << 20));
    char *all;
    assert_ok(ah__sprintf(&all, "%s%s%s", parts[0], parts[1], parts[2]));
    for (int i = 0; i < 3; i++)
        ah__free(parts[i]);
    return all;
}

static void the_same_under_a_decimal_comma(void **state)
{
    struct ah_timeline *timeline = synthetic_timeline(3, 3, true);
    char *plain = everything(timeline);
    ah_test_comma(true);
    char *comma = everything(timeline);
    ah_test_comma(false);
    assert_string_equal(plain, comma);
    ah__free(plain);
    ah__free(comma);
    ah_timeline_free(timeline);
}

AH_TEST_CASES("timeline/locale", the_same_under_a_decimal_comma)
