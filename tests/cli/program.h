/* Running the program as a user runs it. */
#ifndef AH_TESTS_CLI_PROGRAM_H
#define AH_TESTS_CLI_PROGRAM_H

#include "test.h"
#include "test_paths.h"

/* What one run of the program left. */
struct program_ran {
    char out[1 << 20], err[1 << 20];
    int status;
};
extern struct program_ran ran;

/* AH_BIN, else the program built beside this test. */
const char *program(void);
/* Runs it with these words, through a shell. */
void run(const char *format, ...) AH_PRINTF(1, 2);
/* A folder with a small model (model.json) and some text (text); the same for all tests. */
const char *folder(void);
/* A whole file, in a room that the next call uses again. */
const char *program_file(const char *format, ...) AH_PRINTF(1, 2);

/* Exit status 2, one line on standard error that holds `words`, nothing on standard output. */
void assert_refused(const char *words);

#define assert_ran(expected)                                                                                           \
    do {                                                                                                               \
        if (ran.status != (expected))                                                                                  \
            fail_msg("exit status %d, expected %d\n%s\n%s", ran.status, (expected), ran.out, ran.err);                 \
    } while (0)
#define assert_says(text, words)                                                                                       \
    do {                                                                                                               \
        if (!strstr((text), (words)))                                                                                  \
            fail_msg("no \"%s\" in:\n%s", (words), (text));                                                            \
    } while (0)

#endif
