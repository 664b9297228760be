/* One test binary: every tests/FOLDER/test_NAME.c registers its cases under "FOLDER/NAME" with AH_TEST_CASES, or with
 * AH_TEST_SUITE, where cases have a setup. Each case runs in a process of its own.
 *     static void adds(void **state) { assert_int_equal(1 + 1, 2); }
 *     AH_TEST_CASES("base/size", adds) */
#ifndef AH_TESTS_TEST_H
#define AH_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "autohete.h"

/* Most cases do not use the state that cmocka gives them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct ah_suite {
    const char *name;
    const struct CMUnitTest *tests;
    size_t count;
    struct ah_suite *next;
};
void ah_suite_add(struct ah_suite *suite);
/* Fills the suite's tests with functions, whose names are separated by ", ", and adds it. */
void ah_suite_add_cases(struct ah_suite *suite, struct CMUnitTest *tests, const CMUnitTestFunction *functions,
                        const char *names);

#define AH_TEST_SUITE(suite_name, ...)                                                                                 \
    static const struct CMUnitTest suite_tests[] = {__VA_ARGS__};                                                      \
    static struct ah_suite suite = {suite_name, suite_tests, sizeof suite_tests / sizeof suite_tests[0], 0};           \
    __attribute__((constructor)) static void suite_register(void)                                                      \
    {                                                                                                                  \
        ah_suite_add(&suite);                                                                                          \
    }

#define AH_TEST_CASES(suite_name, ...)                                                                                 \
    static const CMUnitTestFunction suite_cases[] = {__VA_ARGS__};                                                     \
    static struct CMUnitTest suite_tests[sizeof suite_cases / sizeof suite_cases[0]];                                  \
    static struct ah_suite suite = {suite_name, suite_tests, sizeof suite_cases / sizeof suite_cases[0], 0};           \
    __attribute__((constructor)) static void suite_register(void)                                                      \
    {                                                                                                                  \
        ah_suite_add_cases(&suite, suite_tests, suite_cases, #__VA_ARGS__);                                            \
    }

/* The call must succeed; else the test fails with ah_error(). */
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        if ((call) != AH_OK)                                                                                           \
            fail_msg("%s: %s", #call, ah_error());                                                                     \
    } while (0)
/* The call must fail with `expected` and a message that contains `words`. */
void ah_assert_fails(int status, int expected, const char *words, const char *call, const char *file, int line);
#define assert_fails(call, expected, words) ah_assert_fails((call), (expected), (words), #call, __FILE__, __LINE__)

/* How much of a long loop is run. A sample: in ./check, and under sanitizers, which slow everything many times. More:
 * with AUTOHETE_FULL. All there is: with AUTOHETE_SOAK. What is in a sample is also in the longer loops. */
bool ah_test_samples(void); /* whether a sample is wanted */
bool ah_test_soaks(void);   /* whether everything is */
int ah_test_rounds(int sampled, int usual, int whole);

/* A number of the case at hand, for the random numbers that it draws. */
uint64_t ah_test_seed(void);

/* Of the build, where a constant is needed: whether it is for a sanitizer. */
#ifdef AH_TEST_SANITIZED
enum { AH_TEST_SAMPLED = 1 };
#else
enum { AH_TEST_SAMPLED = 0 };
#endif

/* A fresh empty folder under the system's temporary folder; removed at the end of the case. */
const char *ah_test_folder(void);
/* A folder of the suite: what one case leaves there the next ones find, and a case that runs alone makes itself. */
const char *ah_test_shared(void);
/* A locale whose numbers have a decimal comma, which this process makes for itself; false: back to the C locale. */
void ah_test_comma(bool on);
/* The repository's tests/ folder (for golden files). */
const char *ah_test_source(void);

#endif
