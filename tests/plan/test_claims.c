/* Sentences of bench/paper's summary, each made both ways. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "paper/claims.h"

static struct ah_buf buf;

/* What was said since last asked, and nothing else, is `expected`. */
static void assert_said(const char *expected)
{
    assert_int_equal(buf.status, AH_OK);
    assert_string_equal(buf.text ? buf.text : "", expected);
    ah__buf_free(&buf);
    buf = (struct ah_buf){0};
}

static void ratios_say_which_way_they_differ(void **state)
{
    paper_claim_ratio(&buf, "StrongHold", 1.32, 1.32);
    assert_said("- **Over StrongHold** AutoHete is 1.32 times as fast, about what the paper has (1.32).\n");
    paper_claim_ratio(&buf, "StrongHold", 1.65, 1.32);
    assert_said("- **Over StrongHold** AutoHete is 1.65 times as fast, more than in the paper (1.32) by 25%.\n");
    paper_claim_ratio(&buf, "StrongHold", 1.056, 1.32);
    assert_said("- **Over StrongHold** AutoHete is 1.06 times as fast, less than in the paper (1.32) by 20%.\n");
    paper_claim_ratio(&buf, "StrongHold", 0.97, 1.0);
    assert_said("- **StrongHold is faster** than AutoHete, whose speed is 0.97 of it; the paper has 1.00.\n");
    paper_claim_ratio(&buf, "StrongHold", NAN, 1.32);
    assert_said("");
}

static void limits_come_out_or_do_not(void **state)
{
    paper_claim_limit(&buf, "The largest batch", 12, 12, 0.9);
    assert_said("- **The largest batch** comes out: 12.\n");
    paper_claim_limit(&buf, "The largest batch", 16, 12, 0.962);
    assert_said("- **The largest batch** does not come out: 16 here, 12 in the paper; where the paper's limit lies it "
                "takes 96.2% of the memory.\n");
    paper_claim_limit(&buf, "The largest model", 10, 12, 0);
    assert_said("- **The largest model** does not come out: 10 here, 12 in the paper.\n");
}

static void claims_turn_into_their_opposite(void **state)
{
    paper_claim_above_one(&buf, "12 GB beat 40", 1.08);
    assert_said("- **12 GB beat 40** holds: 1.08 times as fast.\n");
    paper_claim_above_one(&buf, "12 GB beat 40", 0.96);
    assert_said("- **12 GB beat 40** does not hold: 0.96.\n");
    paper_claim_above_one(&buf, "12 GB beat 40", NAN);
    assert_said("");
    paper_claim_runs_out(&buf, "22B", 1.031);
    assert_said("- **22B**: host memory runs out, as in the paper (103.1% of it are needed).\n");
    paper_claim_runs_out(&buf, "22B", 0.991);
    assert_said("- **22B**: host memory is enough, unlike in the paper (99.1% of it are needed).\n");
    paper_claim_gain(&buf, "Over itself", 1.06, 1.2, 1.05);
    assert_said("- **Over itself** AutoHete is 1.06 times as fast, at most 1.20: the aim of 1.05 is reached.\n");
    paper_claim_gain(&buf, "Over itself", 1.06, 1.2, 1.3);
    assert_said("- **Over itself** AutoHete is 1.06 times as fast, at most 1.20: the aim of 1.30 is missed.\n");
}

static void a_window_is_worth_what_it_is(void **state)
{
    paper_claim_window(&buf, "at 10B", 2, 4, 1.13);
    assert_said("- **StrongHold's window** at 10B is 2 by its rule; with 4 it would be 1.13 times as fast.\n");
    paper_claim_window(&buf, "at 10B", 2, 3, 1.04);
    assert_said("- **StrongHold's window** at 10B is 2 by its rule, and no other is much faster.\n");
    paper_claim_window(&buf, "at 10B", 0, 0, NAN);
    assert_said("");
}

static void the_fastest_is_the_one_that_is(void **state)
{
    static const char *const names[] = {"A", "B", "C"};
    paper_claim_fastest(&buf, "at 4B", names, (const double[]){3, 1, 2}, 3);
    assert_said("- **The fastest of the published systems** at 4B is A.\n");
    paper_claim_fastest(&buf, "at 4B", names, (const double[]){0, 1, 2}, 3);
    assert_said("- **The fastest of the published systems** at 4B is C.\n");
    paper_claim_fastest(&buf, "at 4B", names, (const double[]){0, 0, 0}, 3);
    assert_said("");
}

AH_TEST_CASES("plan/claims", ratios_say_which_way_they_differ, limits_come_out_or_do_not,
              claims_turn_into_their_opposite, a_window_is_worth_what_it_is, the_fastest_is_the_one_that_is)
