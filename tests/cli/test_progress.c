/* Progress lines where nobody watches: readable, and few. */
#include <math.h>
#include <string.h>

#include "cli/progress.c"
#include "test.h"

static double learned_per_s = 1234.4; /* of the steps that follow */

static int64_t lines(int64_t first, int64_t steps, const char **text)
{
    static char room[1 << 16];
    struct ah_progress progress;
    FILE *to = tmpfile();
    assert_non_null(to);
    ah__progress_init(&progress, to, false);
    assert_false(progress.live);
    for (int64_t step = first; step <= steps; step++) {
        struct ah_step now = {.step = step,
                              .steps = steps,
                              .loss = 2.5,
                              .tokens_per_s = 1234.4,
                              .learned_per_s = learned_per_s,
                              .eta_s = 3725,
                              .lane_busy = {0.98, 0.125, 0.1, 0.5}};
        ah__progress_step(&progress, &now);
    }
    ah__progress_end(&progress);
    rewind(to);
    size_t length = fread(room, 1, sizeof room - 1, to);
    room[length] = 0;
    fclose(to);
    int64_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += room[i] == '\n';
    *text = room;
    return count;
}

static void plain_lines(void **state)
{
    const char *text;
    assert_int_equal(lines(1, 12, &text), 12);
    assert_non_null(strstr(text, "step  1/12  loss 2.5000 mean 2.5000  1234 tokens/s  ETA 1:02:05  "
                                 "c 98% h2d 12% d2h 10% host 50%\n"));
    learned_per_s = 600.2; /* of which the rest is padding, or what others say */
    assert_int_equal(lines(12, 12, &text), 1);
    assert_non_null(strstr(text, "  1234 tokens/s (600 learned)  ETA 1:02:05  c 98%"));
    int64_t many = lines(1, 6000, &text);
    assert_true(many >= 55 && many <= 65);
    assert_non_null(strstr(text, "step    1/6000"));
    assert_non_null(strstr(text, "step 6000/6000"));
    /* a resumed run shows its own first step */
    assert_true(lines(5990, 6000, &text) == 11);
    assert_true(strncmp(text, "step 5990/6000", 14) == 0);
}

static void clock_text(void **state)
{
    char text[24];
    assert_string_equal(ah__progress_clock(text, 0), "0:00");
    assert_string_equal(ah__progress_clock(text, 59.6), "1:00");
    assert_string_equal(ah__progress_clock(text, 3600), "1:00:00");
    assert_string_equal(ah__progress_clock(text, NAN), "-");
    assert_string_equal(ah__progress_clock(text, -1), "-");
    assert_string_equal(ah__progress_clock(text, INFINITY), "-");
}

static void quiet(void **state)
{
    struct ah_progress progress;
    FILE *to = tmpfile();
    assert_non_null(to);
    ah__progress_init(&progress, to, true);
    ah__progress_step(&progress, &(struct ah_step){.step = 1, .steps = 1});
    ah__progress_val(&progress, 1, 1, "byte");
    ah__progress_end(&progress);
    assert_int_equal(ftell(to), 0);
    fclose(to);
}

AH_TEST_CASES("cli/progress", plain_lines, clock_text, quiet)
