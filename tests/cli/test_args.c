/* The option parser: every kind of value, every kind of mistake, each with its one line. */
#include <math.h>
#include <string.h>

#include "cli/args.c"
#include "cli/config_file.c"
#include "cli/help.c"
#include "cli/input.c"
#include "cli/nearest.c"
#include "test.h"

struct sample {
    bool flag;
    struct ah_texts files;
    const char *text, *hidden, *words;
    int whole;
    int64_t count, size, rate;
    uint64_t seed;
    double real;
};

static const struct ah_arg rows[] = {
    AH_ARG_CONFIG,
    {"json", AH_ARG_FLAG, offsetof(struct sample, flag), .help = "a flag"},
    {"model", AH_ARG_TEXT, offsetof(struct sample, text), "FILE", .help = "a text", .required = true},
    {"threads", AH_ARG_INT, offsetof(struct sample, whole), "N", .help = "an int", .min = 1, .max = 64},
    {"batch", AH_ARG_COUNT, offsetof(struct sample, count), "B", .help = "a count", .initial = "8", .min = 1,
     .max = 1000},
    {"seed", AH_ARG_SEED, offsetof(struct sample, seed), "S", .help = "a seed"},
    {"lr", AH_ARG_REAL, offsetof(struct sample, real), "X", .help = "a real", .max = 10},
    {"device-memory", AH_ARG_SIZE, offsetof(struct sample, size), "SIZE", .help = "a size"},
    {"link", AH_ARG_RATE, offsetof(struct sample, rate), "RATE", .help = "a rate"},
    {"prompt", AH_ARG_WORDS, offsetof(struct sample, words), "TEXT", .help = "words"},
    {"file", AH_ARG_LIST, offsetof(struct sample, files), "FILE", .help = "files"},
    {"learning-rate", AH_ARG_REAL, offsetof(struct sample, real), "X", .help = "the same", .max = 10},
    {"jitter-seed", AH_ARG_TEXT, offsetof(struct sample, hidden), .meta = "S"},
};
static struct sample got;
static const struct ah_command command = {
    .name = "train",
    .usage = "--model FILE",
    .summary = "Sums up.",
    .options = rows,
    .count = sizeof rows / sizeof rows[0],
    .args = &got,
};

/* Parses words separated by single blanks; '_' stands for an empty word. */
static enum ah_args_result parse(const char *line, struct ah_args_error *error)
{
    static char words[512];
    char *argv[32];
    int argc = 0;
    got = (struct sample){.whole = -1, .real = NAN};
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "_") == 0 ? word + 1 : word;
    return ah__args_parse(&command, argc, argv, error);
}

/* An option that may be given several times keeps what it was given, in order, up to what there is room for. */
static void lists(void **state)
{
    struct ah_args_error error;
    assert_int_equal(parse("--model m.json --file b --json --file=a", &error), AH_ARGS_RUN);
    assert_int_equal(got.files.count, 2);
    assert_string_equal(got.files.text[0], "b");
    assert_string_equal(got.files.text[1], "a");
    assert_int_equal(parse("--model m.json --file _", &error), AH_ARGS_WRONG);
    assert_string_equal(error.text, "--file: found '', expected a value, at most 64 times");
    char *argv[2 * (AH_TEXTS_MOST + 1)];
    char option[] = "--file", value[] = "x";
    for (int i = 0; i < AH_TEXTS_MOST + 1; i++) {
        argv[2 * i] = option;
        argv[2 * i + 1] = value;
    }
    got = (struct sample){0};
    assert_int_equal(ah__args_parse(&command, 2 * (AH_TEXTS_MOST + 1), argv, &error), AH_ARGS_WRONG);
    assert_string_equal(error.text, "--file: found 'x', expected a value, at most 64 times");
}

static void every_kind(void **state)
{
    struct ah_args_error error;
    const char *line = "--model m.json --json --threads 2 --batch=16 --seed 18446744073709551615 --lr 3e-4 "
                       "--device-memory 64MiB --link=4GB/s --jitter-seed 7";
    assert_int_equal(parse(line, &error), AH_ARGS_RUN);
    assert_string_equal(got.text, "m.json");
    assert_true(got.flag);
    assert_int_equal(got.whole, 2);
    assert_int_equal(got.count, 16);
    assert_true(got.seed == UINT64_MAX);
    assert_true(got.real == 3e-4);
    assert_int_equal(got.size, 64 << 20);
    assert_true(got.rate == 4000000000);
    assert_string_equal(got.hidden, "7");
}

static void absent_options(void **state)
{
    struct ah_args_error error;
    assert_int_equal(parse("--model m", &error), AH_ARGS_RUN);
    assert_int_equal(got.count, 8);  /* the row's default */
    assert_int_equal(got.whole, -1); /* left as it was */
    assert_true(isnan(got.real));
    assert_false(got.flag);
}

static void words_may_be_none_and_sizes_a_letter(void **state)
{
    struct ah_args_error error;
    assert_int_equal(parse("--model m --prompt _ --device-memory 48G", &error), AH_ARGS_RUN);
    assert_string_equal(got.words, "");
    assert_true(got.size == 48LL << 30);
    assert_int_equal(parse("--model m --prompt=", &error), AH_ARGS_RUN);
    assert_string_equal(got.words, "");
    assert_int_equal(parse("--model m --link 4G/s", &error), AH_ARGS_WRONG); /* of a rate nobody knows which */
}

/* A command that takes a word of its own. */
static void a_word(void **state)
{
    static struct {
        const char *dir;
        bool json;
    } own;
    static const struct ah_arg own_rows[] = {{"json", AH_ARG_FLAG, sizeof own.dir, .help = "a flag"}};
    const struct ah_command report = {.name = "report",
                                      .usage = "DIR",
                                      .summary = "",
                                      .options = own_rows,
                                      .count = 1,
                                      .args = &own,
                                      .word_meta = "DIR",
                                      .word = 0};
    struct ah_args_error error;
    char *argv[] = {"--json", "run", "other"};
    assert_int_equal(ah__args_parse(&report, 2, argv, &error), AH_ARGS_RUN);
    assert_string_equal(own.dir, "run");
    assert_int_equal(ah__args_parse(&report, 3, argv, &error), AH_ARGS_WRONG);
    assert_string_equal(error.text, "DIR: found 'run' and 'other', expected one");
    assert_int_equal(ah__args_parse(&report, 1, argv, &error), AH_ARGS_WRONG);
    assert_string_equal(error.text, "DIR is missing: 'autohete report' needs it (see 'autohete report --help')");
}

/* A command that takes as many as there are. */
static void many_words(void **state)
{
    static struct {
        struct ah_words words;
        bool json;
    } own;
    static const struct ah_arg own_rows[] = {{"json", AH_ARG_FLAG, sizeof own.words, .help = "a flag"}};
    const struct ah_command data = {.name = "data",
                                    .usage = "INPUT ...",
                                    .summary = "",
                                    .options = own_rows,
                                    .count = 1,
                                    .args = &own,
                                    .word_meta = "INPUT",
                                    .word = 0,
                                    .many = true};
    struct ah_args_error error;
    char *argv[] = {"a", "--json", "b", "c"}, *none[] = {"--json"};
    assert_int_equal(ah__args_parse(&data, 4, argv, &error), AH_ARGS_RUN);
    assert_true(own.json && own.words.count == 3);
    assert_string_equal(own.words.word[0], "a");
    assert_string_equal(own.words.word[1], "b");
    assert_string_equal(own.words.word[2], "c");
    assert_int_equal(ah__args_parse(&data, 1, none, &error), AH_ARGS_WRONG);
    assert_string_equal(error.text, "INPUT is missing: 'autohete data' needs it (see 'autohete data --help')");
}

static void mistakes(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--model m --device-memory 64Mib", "--device-memory: found '64Mib', expected a size like 64MiB"},
        {"--model m --device-memory 0", "--device-memory: found '0', expected a size like 64MiB"},
        {"--model m --link 4GB", "--link: found '4GB', expected a rate like 4GB/s"},
        {"--modle m", "--modle: unknown option, did you mean --model?"},
        {"--model m --device 1", "--device: unknown option, did you mean --device-memory?"},
        {"--model m --hlep", "--hlep: unknown option, did you mean --help?"},
        {"--model m --jitter-sed 1", "--jitter-sed: unknown option (see 'autohete train --help')"},
        {"--model m --frobnicate", "--frobnicate: unknown option (see 'autohete train --help')"},
        {"--model m --model m", "--model: found it twice, expected it once"},
        {"--model m --json --json", "--json: found it twice, expected it once"},
        {"--model m --json=1", "--json: found '1', expected no value"},
        {"--model m --lr", "--lr needs a number from 0 to 10 after it"},
        {"--model m --lr --json", "--lr needs a number from 0 to 10 after it"},
        {"--model m --lr fast", "--lr: found 'fast', expected a number from 0 to 10"},
        {"--model m --lr nan", "--lr: found 'nan', expected a number from 0 to 10"},
        {"--model m --lr -1", "--lr: found '-1', expected a number from 0 to 10"},
        {"--model m --lr 1x", "--lr: found '1x', expected a number from 0 to 10"},
        {"--model m --batch 0", "--batch: found '0', expected a whole number from 1 to 1000"},
        {"--model m --batch 1.5", "--batch: found '1.5', expected a whole number from 1 to 1000"},
        {"--model m --batch 9999999999999999999",
         "--batch: found '9999999999999999999', expected a whole number from 1 to 1000"},
        {"--model m --threads +2", "--threads: found '+2', expected a whole number from 1 to 64"},
        {"--model m --seed -1", "--seed: found '-1', expected a whole number"},
        {"--model m --seed 18446744073709551616", "--seed: found '18446744073709551616', expected a whole number"},
        {"--model _", "--model: found '', expected a value"},
        {"--json", "--model is missing: 'autohete train' needs it (see 'autohete train --help')"},
        {"m.json", "found 'm.json', expected an option (see 'autohete train --help')"},
        {"-m", "found '-m', expected an option (see 'autohete train --help')"},
        {"-model m", "-model: unknown option, did you mean --model?"},
        {"-lr=3", "-lr: unknown option, did you mean --lr?"},
        {"--", "found '--', expected an option (see 'autohete train --help')"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ah_args_error error = {""};
        assert_int_equal(parse(cases[i].line, &error), AH_ARGS_WRONG);
        assert_string_equal(error.text, cases[i].message);
    }
}

static void help_and_version(void **state)
{
    struct ah_args_error error;
    assert_int_equal(parse("--help", &error), AH_ARGS_HELP);
    assert_int_equal(parse("--model m -h --frobnicate", &error), AH_ARGS_HELP);
    assert_int_equal(parse("--version", &error), AH_ARGS_VERSION);
    assert_int_equal(parse("--frobnicate --help", &error), AH_ARGS_WRONG);
    char *text;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    ah__args_help(&command, to);
    fclose(to);
    assert_non_null(strstr(text, "usage: autohete train --model FILE\n"));
    assert_non_null(strstr(text, "--batch B"));
    assert_non_null(strstr(text, "a count (default 8)\n"));
    assert_non_null(strstr(text, "a text (required)\n"));
    assert_null(strstr(text, "jitter"));
    free(text);
}

static void messages_stay_one_line(void **state)
{
    struct ah_args_error error;
    char *argv[] = {"--model", "m", "--batch", "1\n\033[31m2"};
    assert_int_equal(ah__args_parse(&command, 4, argv, &error), AH_ARGS_WRONG);
    assert_null(strpbrk(error.text, "\n\033"));
    char long_word[2000];
    memset(long_word, 'x', sizeof long_word);
    long_word[sizeof long_word - 1] = 0;
    argv[3] = long_word;
    assert_int_equal(ah__args_parse(&command, 4, argv, &error), AH_ARGS_WRONG);
    memcpy(long_word, "--", 2);
    argv[0] = long_word;
    assert_int_equal(ah__args_parse(&command, 1, argv, &error), AH_ARGS_WRONG);
    assert_true(strlen(error.text) < 200);
}

/* ---- files of options -------------------------------------------------------------------------------------------- */

/* The text as a file that is given before what `line` has. */
static enum ah_args_result parse_file(const char *text, const char *line, struct ah_args_error *error)
{
    char path[300], words[512];
    snprintf(path, sizeof path, "%s/o.yaml", ah_test_folder());
    FILE *to = fopen(path, "w");
    assert_true(to && fputs(text, to) >= 0 && fclose(to) == 0);
    snprintf(words, sizeof words, "--config %s %s", path, line);
    return parse(words, error);
}

static void files_of_options(void **state)
{
    struct ah_args_error error;
    const char *text = "# a training\nmodel: m.json\nbatch: 16\nlr: 2e-4\ndevice_memory: 64MiB\njson: true\n"
                       "file: [a, b]\nseed: null\nprompt: \"x: y\"\n";
    assert_int_equal(parse_file(text, "", &error), AH_ARGS_RUN);
    assert_string_equal(got.text, "m.json");
    assert_int_equal(got.count, 16);
    assert_true(got.real == 2e-4 && got.flag && got.size == 64 << 20);
    assert_int_equal(got.files.count, 2);
    assert_string_equal(got.words, "x: y");
    /* the command line comes first, by whatever name, and lists are not put together */
    assert_int_equal(parse_file(text, "--batch 4 --learning-rate 1 --file c", &error), AH_ARGS_RUN);
    assert_true(got.count == 4 && got.real == 1 && got.files.count == 1);
    assert_int_equal(parse_file("{\"model\": [\"a\", \"b\"], \"json\": false}", "", &error), AH_ARGS_RUN);
    assert_string_equal(got.text, "a,b");
    assert_false(got.flag);
}

static void files_of_options_are_refused(void **state)
{
    static const struct {
        const char *text, *expected;
    } wrong_files[] = {
        {"model: m\nbtch: 8\n", "line 2: key 'btch': unknown option, did you mean --batch?"},
        {"batch: x\n", "line 1: key 'batch': found 'x', expected a whole number from 1 to 1000"},
        {"batch: 5000\n", "found '5000', expected a whole number from 1 to 1000"},
        {"json: maybe\n", "key 'json': found 'maybe', expected true or false"},
        {"batch: [1, 2]\n", "key 'batch': found a list, expected a whole number from 1 to 1000"},
        {"model: [\"a,b\"]\n", "key 'model': found a list, expected a value"},
        {"batch: 1\nbatch: 2\n", "line 2: key 'batch': found 'batch' before it, expected the option once"},
        {"lr: 1\nlearning_rate: 2\n", "key 'learning_rate': found 'lr' before it, expected the option once"},
        {"optimizer: {lr: 1}\n", "line 1: key 'optimizer': found a list or an object, expected a text"},
        {"config: a\n", "key 'config': unknown option"},
        {"- a\n- b\n", "line 1: expected names of options and their values"},
        {"", "line 1: expected names of options and their values"},
        {"model: &a m\nprompt: *a\n", "line 2: key 'prompt': found an alias"},
        {"model: m\n---\nmodel: n\n", "found a second document, expected one"},
        {"model: \"m\n", "expected YAML or JSON"},
        {"model: m\n\tbatch: 1\n", "expected YAML or JSON"},
    };
    struct ah_args_error error;
    for (size_t i = 0; i < sizeof wrong_files / sizeof wrong_files[0]; i++) {
        assert_int_equal(parse_file(wrong_files[i].text, "--model m", &error), AH_ARGS_WRONG);
        if (!strstr(error.text, wrong_files[i].expected) || !strstr(error.text, "/o.yaml"))
            fail_msg("'%s': found '%s', expected '%s'", wrong_files[i].text, error.text, wrong_files[i].expected);
    }
    assert_int_equal(parse("--config /nowhere/o.yaml", &error), AH_ARGS_WRONG);
    assert_string_equal(error.text, "/nowhere/o.yaml: cannot open: No such file or directory");
    assert_int_equal(parse("--config /dev/zero", &error), AH_ARGS_WRONG);
    assert_string_equal(error.text, "/dev/zero: found more than 16777216 bytes, expected at most that");
    assert_int_equal(parse("--config /tmp", &error), AH_ARGS_WRONG);
    assert_string_equal(error.text, "/tmp: cannot read: Is a directory");
    assert_int_equal(parse("--config /nowhere/run.json", &error), AH_ARGS_WRONG);
    assert_non_null(strstr(error.text, "a training's own file, which only train takes"));
}

AH_TEST_CASES("cli/args", every_kind, lists, absent_options, mistakes, words_may_be_none_and_sizes_a_letter, a_word,
              many_words, help_and_version, messages_stay_one_line, files_of_options, files_of_options_are_refused)
