/* Runs the cases that the arguments name, each in a process of its own: no case sees what another left behind, so that
 * it does alone what it does among others, and a crash or a time-out ends one case. */
#include "test.h"
#include "test_paths.h"

#include <fnmatch.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

enum { CASE_SECONDS = 300 };

static const char usage[] =
    "usage: ah_tests [-v] [--list | --here] [FOLDER/SUITE[:CASE] ...]\n"
    "Runs all cases, or those that a name or a pattern of the shell matches, each in a process of its own. A case "
    "that\n"
    "fails shows what it printed. The last line says how many cases passed and failed; exit status 0: none failed.\n"
    "  -v, --verbose  shows also what passing cases printed\n"
    "  --list         prints the names of the cases\n"
    "  --here         runs the cases in this process, without a time limit: for a debugger\n"
    "AH_TEST_TIME_SCALE multiplies the 300 seconds that a case may take. Long loops take a sample; with AUTOHETE_FULL\n"
    "they are longer, with AUTOHETE_SOAK whole.\n";

static struct ah_suite *suites;

void ah_suite_add(struct ah_suite *suite)
{
    struct ah_suite **at = &suites;
    while (*at && strcmp((*at)->name, suite->name) < 0)
        at = &(*at)->next;
    suite->next = *at;
    *at = suite;
}

void ah_suite_add_cases(struct ah_suite *suite, struct CMUnitTest *tests, const CMUnitTestFunction *functions,
                        const char *names)
{
    for (size_t i = 0; i < suite->count; i++) {
        names += strspn(names, ", ");
        size_t length = strcspn(names, ",");
        tests[i] = (struct CMUnitTest){.name = strndup(names, length), .test_func = functions[i]};
        names += length;
    }
    ah_suite_add(suite);
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

bool ah_test_soaks(void)
{
    return getenv("AUTOHETE_SOAK") != NULL;
}

bool ah_test_samples(void)
{
    return !ah_test_soaks() && (AH_TEST_SAMPLED || !getenv("AUTOHETE_FULL"));
}

int ah_test_rounds(int sampled, int usual, int whole)
{
    return ah_test_soaks() ? whole : ah_test_samples() ? sampled : usual;
}

static uint64_t seed;

uint64_t ah_test_seed(void)
{
    return seed;
}

const char *ah_test_source(void)
{
    return AH_TEST_SOURCE;
}

/* ---- folders: one for each suite, in it "case" of the case that runs, "shared" and "cache" of all its cases ---- */

static char folder[64];

static void shell(const char *command, const char *in, const char *name)
{
    char text[192];
    snprintf(text, sizeof text, "%s '%s/%s'", command, in, name);
    if (system(text) != 0) {
        perror(text);
        abort();
    }
}

/* Programs that tests start must neither find profiles of other days nor leave any. */
static void folder_make(void)
{
    char path[96];
    snprintf(folder, sizeof folder, "/tmp/ah-test-XXXXXX");
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof path, "%s/cache", folder);
    if (setenv("XDG_CACHE_HOME", path, 1) != 0)
        abort();
    shell("mkdir", folder, "cache");
    shell("mkdir", folder, "shared");
}

static void folder_remove(void)
{
    if (folder[0])
        shell("rm -rf", folder, "");
    folder[0] = 0;
}

const char *ah_test_folder(void)
{
    static int made;
    static char path[96];
    snprintf(path, sizeof path, "%s/case/%d", folder, made++);
    shell("mkdir", path, "");
    return path;
}

const char *ah_test_shared(void)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/shared", folder);
    return path;
}

/* ---- a decimal comma --------------------------------------------------------------------------------------------- */

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
        shell("mkdir", path, "comma");
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

/* ---- cases ------------------------------------------------------------------------------------------------------- */

struct options {
    bool verbose, list, here;
};

struct tally {
    int passed, failed, skipped;
};

/* What one case came to: why it failed is empty where it did not. */
struct end {
    char why[64];
    double seconds, cpu_seconds;
};

static int case_here(const struct CMUnitTest *test)
{
    seed = ah__hash(test->name, strlen(test->name), 0);
    return _cmocka_run_group_tests(test->name, test, 1, NULL, NULL);
}

static unsigned case_seconds(void)
{
    const char *scale = getenv("AH_TEST_TIME_SCALE");
    return CASE_SECONDS * (unsigned)(scale ? atoi(scale) : 1);
}

/* The case that runs leads a group of processes, with which it ends. */
static volatile sig_atomic_t running;

static void interrupted(int number)
{
    if (running)
        kill(-(pid_t)running, SIGKILL);
    signal(number, SIG_DFL);
    raise(number);
}

static void case_child(const struct CMUnitTest *test, FILE *output)
{
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (!freopen("/dev/null", "r", stdin) || dup2(fileno(output), 1) < 0 || dup2(fileno(output), 2) < 0)
        abort();
    alarm(case_seconds());
    exit(case_here(test) != 0);
}

static double seconds_of(const struct timeval *at)
{
    return (double)at->tv_sec + (double)at->tv_usec * 1e-6;
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void end_read(struct end *end, int status, const struct rusage *used)
{
    end->why[0] = 0;
    end->cpu_seconds = seconds_of(&used->ru_utime) + seconds_of(&used->ru_stime);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(end->why, sizeof end->why, "stopped after %u s", case_seconds());
    else if (WIFSIGNALED(status))
        snprintf(end->why, sizeof end->why, "%s", strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        snprintf(end->why, sizeof end->why, "exit status %d", WEXITSTATUS(status));
}

static void case_run(struct end *end, const struct CMUnitTest *test, FILE *output)
{
    int status;
    struct rusage used;
    double from = now();
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0)
        case_child(test, output);
    setpgid(child, child); /* so too the child: whoever comes first */
    running = (sig_atomic_t)child;
    while (wait4(child, &status, 0, &used) < 0)
        ;
    kill(-child, SIGKILL); /* programs that it started and left */
    running = 0;
    end->seconds = now() - from;
    end_read(end, status, &used);
}

/* Prints what a case said, without cmocka's banners if it is not all wanted; returns whether the case was skipped. */
static bool output_read(FILE *output, bool print)
{
    char line[4096];
    bool skipped = false;
    rewind(output);
    while (fgets(line, sizeof line, output)) {
        bool error = strncmp(line, "[  ERROR ", 9) == 0 || strncmp(line, "[   LINE ", 9) == 0;
        skipped |= strncmp(line, "[  SKIPPED ] ", 13) == 0;
        if (print && (line[0] != '[' || error))
            printf("    %s", line);
    }
    return skipped;
}

static void case_report(struct tally *tally, const struct ah_suite *suite, const struct CMUnitTest *test,
                        const struct options *options)
{
    struct end end;
    FILE *output = tmpfile();
    if (!output)
        abort();
    shell("mkdir", folder, "case");
    case_run(&end, test, output);
    shell("rm -rf", folder, "case");
    bool failed = end.why[0] != 0, skipped = output_read(output, failed || options->verbose) && !failed;
    fclose(output);
    *(failed ? &tally->failed : skipped ? &tally->skipped : &tally->passed) += 1;
    printf("%s %s:%s %.2f s (CPU %.2f s)%s%s\n",
           failed    ? "not ok"
           : skipped ? "skipped"
                     : "ok",
           suite->name, test->name, end.seconds, end.cpu_seconds, failed ? ": " : "", end.why);
}

static void suite_run(struct tally *tally, const struct ah_suite *suite, const char *pattern,
                      const struct options *options)
{
    for (size_t i = 0; i < suite->count; i++) {
        const struct CMUnitTest *test = &suite->tests[i];
        if (fnmatch(pattern, test->name, 0) != 0)
            continue;
        if (options->list) {
            printf("%s:%s\n", suite->name, test->name);
            tally->passed++;
            continue;
        }
        if (!folder[0])
            folder_make();
        if (!options->here) {
            case_report(tally, suite, test, options);
            continue;
        }
        shell("mkdir -p", folder, "case");
        *(case_here(test) ? &tally->failed : &tally->passed) += 1;
    }
    folder_remove();
}

/* Whether there is such a case. */
static bool pattern_run(struct tally *tally, const char *argument, const struct options *options)
{
    char name[256];
    struct tally before = *tally;
    snprintf(name, sizeof name, "%s", argument);
    char *colon = strchr(name, ':');
    if (colon)
        *colon = 0;
    for (const struct ah_suite *suite = suites; suite; suite = suite->next)
        if (fnmatch(name, suite->name, 0) == 0)
            suite_run(tally, suite, colon ? colon + 1 : "*", options);
    return memcmp(&before, tally, sizeof before) != 0;
}

/* The patterns among the arguments come behind the options, from optind on; a wrong option ends the program. */
static void options_parse(struct options *out, int argc, char **argv)
{
    static const struct option known[] = {{"verbose", no_argument, NULL, 'v'},
                                          {"list", no_argument, NULL, 'l'},
                                          {"here", no_argument, NULL, 'd'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *out = (struct options){false, false, false};
    for (int option; (option = getopt_long(argc, argv, "vh", known, NULL)) != -1;)
        switch (option) {
        case 'v':
            out->verbose = true;
            break;
        case 'l':
            out->list = true;
            break;
        case 'd':
            out->here = true;
            break;
        default:
            fputs(usage, option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : 2);
        }
}

int main(int argc, char **argv)
{
    static char *all[] = {"*"};
    struct options options;
    struct tally tally = {0, 0, 0};
    int missing = 0;
    options_parse(&options, argc, argv);
    bool some = optind < argc;
    char **patterns = some ? argv + optind : all;
    int count = some ? argc - optind : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGINT, interrupted);
    signal(SIGTERM, interrupted);
    for (int i = 0; i < count; i++)
        if (!pattern_run(&tally, patterns[i], &options)) {
            fprintf(stderr, "no case matches %s\n", patterns[i]);
            missing++;
        }
    if (!options.list)
        printf("%d passed, %d failed, %d skipped\n", tally.passed, tally.failed, tally.skipped);
    return missing ? 2 : tally.failed != 0;
}
