#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct program_ran ran;

const char *program(void)
{
    const char *given = getenv("AH_BIN");
    return given ? given : AH_TEST_PROGRAM;
}

static void slurp(char *text, size_t size, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s: cannot be read", path);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

void run(const char *format, ...)
{
    char words[2048], line[8192], path[256];
    const char *into = ah_test_folder();
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "'%s' %s >%s/out 2>%s/err", program(), words, into, into);
    int status = system(line);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    snprintf(path, sizeof path, "%s/out", into);
    slurp(ran.out, sizeof ran.out, path);
    snprintf(path, sizeof path, "%s/err", into);
    slurp(ran.err, sizeof ran.err, path);
}

static void write_text(const char *into, const char *name, void (*fill)(FILE *to))
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", into, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fill(file);
    fclose(file);
}

static void fill_model(FILE *to)
{
    fputs("{\"model_type\": \"gpt2\", \"vocab_size\": 256, \"n_positions\": 32, \"n_embd\": 32, \"n_layer\": 3, "
          "\"n_head\": 2}\n",
          to);
}

static void fill_text(FILE *to)
{
    for (int i = 0; i < 2000; i++)
        fprintf(to, "%d little words in a row. ", i * 7919 % 1000);
}

const char *folder(void)
{
    static char path[128];
    if (path[0])
        return path;
    snprintf(path, sizeof path, "%s", ah_test_folder());
    write_text(path, "model.json", fill_model);
    write_text(path, "text", fill_text);
    return path;
}

const char *program_file(const char *format, ...)
{
    static char text[4 << 20];
    char path[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    slurp(text, sizeof text, path);
    return text;
}

void assert_refused(const char *words)
{
    assert_ran(2);
    assert_string_equal(ran.out, "");
    if (strncmp(ran.err, "autohete: ", 10) != 0 || !strstr(ran.err, words) ||
        strchr(ran.err, '\n') != ran.err + strlen(ran.err) - 1)
        fail_msg("found \"%s\", expected one line with \"%s\"", ran.err, words);
}
