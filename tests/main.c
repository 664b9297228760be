/* Runs every registered suite; an argument filters by suite name, or suite name and test as FOLDER/NAME:test. */
#include "test.h"

#include <fnmatch.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEST_SECONDS = 120 };

static struct ah_suite *suites;

void ah_suite_add(struct ah_suite *suite)
{
    struct ah_suite **at = &suites;
    while (*at && strcmp((*at)->name, suite->name) < 0)
        at = &(*at)->next;
    suite->next = *at;
    *at = suite;
}

void ah_assert_fails(int status, int expected, const char *words, const char *call, const char *file, int line)
{
    if (status != expected)
        print_error("%s gave %s (%s), expected %s\n", call, ah_status_name(status), ah_error(),
                    ah_status_name(expected));
    else if (!strstr(ah_error(), words))
        print_error("%s: the message \"%s\" does not say \"%s\"\n", call, ah_error(), words);
    else
        return;
    _fail(file, line);
}

static char folder[64];

static void folder_remove(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        perror(folder);
}

bool ah_test_soaks(void)
{
    return getenv("AUTOHETE_SOAK") != NULL;
}

int ah_test_rounds(int sampled, int usual, int whole)
{
    return ah_test_soaks() ? whole : AH_TEST_SAMPLED ? sampled : usual;
}

const char *ah_test_folder(void)
{
    static int made;
    static char path[96];
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/autohete-test-XXXXXX");
        if (!mkdtemp(folder))
            abort();
        atexit(folder_remove);
    }
    snprintf(path, sizeof path, "%s/%d", folder, made++);
    char command[128];
    snprintf(command, sizeof command, "mkdir '%s'", path);
    if (system(command) != 0)
        abort();
    return path;
}

/* What localedef makes of LC_NUMERIC with decimal_point "," and neither grouping nor a separator. */
static const unsigned char comma_numeric[] = {
    0x14, 0x11, 0x03, 0x20, 6, 0, 0, 0,    0x20, 0, 0, 0,    0x22, 0, 0, 0, 0x23, 0, 0, 0,   0x24, 0,   0,   0,   0x28,
    0,    0,    0,    0x2c, 0, 0, 0, 0x2c, 0,    0, 0, 0x2c, 0,    0, 0, 0, 0,    0, 0, 'U', 'T',  'F', '-', '8', 0};

void ah_test_comma(bool on)
{
    static char path[128];
    if (!on) {
        setlocale(LC_NUMERIC, "C");
        return;
    }
    if (!path[0]) {
        char name[160];
        snprintf(path, sizeof path, "%s", ah_test_folder());
        setenv("LOCPATH", path, 1);
        snprintf(name, sizeof name, "mkdir '%s/comma'", path);
        if (system(name) != 0)
            abort();
        snprintf(name, sizeof name, "%s/comma/LC_NUMERIC", path);
        FILE *file = fopen(name, "w");
        if (!file || fwrite(comma_numeric, sizeof comma_numeric, 1, file) != 1 || fclose(file) != 0)
            abort();
    }
    char text[8];
    if (setlocale(LC_NUMERIC, "comma"))
        snprintf(text, sizeof text, "%.1f", 0.5);
    if (!setlocale(LC_NUMERIC, NULL) || strcmp(text, "0,5") != 0)
        fail_msg("there is no locale with a decimal comma");
}

const char *ah_test_source(void)
{
    return AH_TEST_SOURCE;
}

static int arm(void **state)
{
    (void)state;
    const char *scale = getenv("AH_TEST_TIME_SCALE");
    alarm(TEST_SECONDS * (unsigned)(scale ? atoi(scale) : 1));
    return 0;
}

static int disarm(void **state)
{
    (void)state;
    alarm(0);
    return 0;
}

/* cmocka's own setup and teardown slots arm the time limit where a test has none of its own. */
static int run_suite(const struct ah_suite *suite)
{
    struct CMUnitTest tests[64];
    if (suite->count > sizeof tests / sizeof tests[0])
        abort();
    memcpy(tests, suite->tests, suite->count * sizeof tests[0]);
    for (size_t i = 0; i < suite->count; i++) {
        if (!tests[i].setup_func)
            tests[i].setup_func = arm;
        if (!tests[i].teardown_func)
            tests[i].teardown_func = disarm;
    }
    return _cmocka_run_group_tests(suite->name, tests, suite->count, NULL, NULL);
}

/* Programs that tests start must neither find profiles of other days nor leave any. */
static void cache_init(void)
{
    if (setenv("XDG_CACHE_HOME", ah_test_folder(), 1) != 0)
        abort();
}

int main(int argc, char **argv)
{
    cache_init();
    const char *filter = argc > 1 ? argv[1] : "*";
    char name[128];
    snprintf(name, sizeof name, "%s", filter);
    char *colon = strchr(name, ':');
    if (colon) {
        *colon = 0;
        cmocka_set_test_filter(colon + 1);
    }
    int failed = 0, ran = 0;
    for (struct ah_suite *suite = suites; suite; suite = suite->next) {
        if (fnmatch(name, suite->name, 0) != 0)
            continue;
        failed += run_suite(suite);
        ran++;
    }
    if (!ran)
        fprintf(stderr, "no suite matches %s\n", filter);
    return failed || !ran;
}
