/* What the program checks before a command begins, and what the command line writes whatever texts are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "test.h"

/* A small stack, little address space, no working folder: one line, before anything is done. */
static void surroundings(void **state)
{
    static const char *const rows[][2] = {
        {"ulimit -s 64", "limit of stack (ulimit): found 64 KiB, expected at least"},
        {"d=$(mktemp -d) && cd $d && rmdir $d", "the working folder: cannot find it"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[4200], said[512] = "";
        snprintf(line, sizeof line, "(%s; '%s' devices 2>&1 >/dev/null; echo status $?)", rows[i][0], program());
        FILE *pipe = popen(line, "r");
        assert_non_null(pipe);
        said[fread(said, 1, sizeof said - 1, pipe)] = 0;
        pclose(pipe);
        if (!strstr(said, rows[i][1]) || !strstr(said, "status 2"))
            fail_msg("%s: found '%s'", rows[i][0], said);
    }
}

AH_TEST_CASES("cli/surroundings", surroundings)
