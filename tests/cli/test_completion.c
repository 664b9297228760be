/* Completion: each shell takes it, and what it offers is what the commands have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/program.h"

static char script[512];

static void written(const char *shell)
{
    snprintf(script, sizeof script, "%s/completion", ah_test_folder());
    run("completion %s", shell);
    assert_ran(0);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    fputs(ran.out, file);
    fclose(file);
}

/* What bash offers for the last of these words. */
static const char *offered(const char *words)
{
    static char text[1 << 14];
    char line[2048];
    snprintf(line, sizeof line,
             "bash -c 'source %s; set -- %s; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _autohete; "
             "printf \"<%%s>\" \"${COMPREPLY[@]}\"'",
             script, words);
    FILE *from = popen(line, "r");
    assert_non_null(from);
    text[fread(text, 1, sizeof text - 1, from)] = 0;
    assert_int_equal(pclose(from), 0);
    return text;
}

static void bash_offers(void **state)
{
    written("bash");
    assert_string_equal(offered("autohete tr"), "<train>");
    assert_says(offered("autohete \"\""), "<simulate>");
    assert_string_equal(offered("autohete train --device-m"), "<--device-memory>");
    assert_says(offered("autohete plan --"), "<--explain>");
    assert_string_equal(offered("autohete fit --har"), "<--hardware>");
    assert_says(offered("autohete fit --model /etc/passw"), "</etc/passwd>");
    assert_null(strstr(offered("autohete train --"), "jitter")); /* not for users */
    assert_string_equal(offered("autohete train --dtype b"), "<bf16>");
    assert_string_equal(offered("autohete plan --micro-batch a"), "<auto>");
    assert_string_equal(offered("autohete profile --micro-batch a"), "<>");
    assert_says(offered("autohete simulate --policy \"\""), "<stronghold>");
    assert_says(offered("autohete train --model /etc/passw"), "</etc/passwd>");
    assert_says(offered("autohete completion z"), "<zsh>");
}

static void shells_take_it(void **state)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        char line[1024];
        written(shells[i]);
        assert_says(ran.out, "device-memory");
        snprintf(line, sizeof line, "command -v %s >/dev/null || exit 0; %s -n '%s'", shells[i], shells[i], script);
        int status = system(line);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    run("completion tcsh");
    assert_ran(2);
    assert_says(ran.err, "expected bash, zsh or fish");
}

AH_TEST_CASES("cli/completion", bash_offers, shells_take_it)
