/* What comes from elsewhere, through the command line: bytes that are no text in what is printed, tokenizers without
 * end, a disk that is full, files that are none. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/program.h"

#define WRONG "'a\377\302\23331m\"\300\200\355\240\200'" /* for a shell */

/* One object of JSON whose bytes are UTF-8, without what terminals obey. */
static void assert_json(void)
{
    struct ah_json json;
    size_t length = strlen(ran.out), at = 0;
    assert_ran(0);
    assert_ok(ah__json_parse(&json, ran.out, length, "standard output"));
    ah__json_free(&json);
    for (size_t bytes; at < length; at += bytes) {
        bool control;
        bytes = ah_text_character(&control, ran.out + at, length - at);
        if (bytes == 0 || bytes > length - at || (control && ran.out[at] != '\n'))
            fail_msg("byte %zu is no UTF-8, or a control: %s", at, ran.out);
    }
}

static void json_is_utf8(void **state)
{
    const char *at = folder();
    run("train --model %s/model.json --data %s/text --batch 2 --seq 16 --steps 1 --threads 1 --out %s/bytes" WRONG
        " --json",
        at, at, at);
    assert_json();
    run("generate --model %s/bytes" WRONG " --prompt " WRONG " --tokens 20 --temperature 5 --json", at);
    assert_json();
    assert_says(ran.out, "\"prompt\": \"a\\ufffd\\u009b31m\\\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
    run("inspect --checkpoint %s/bytes" WRONG " --json", at);
    assert_json();
    run("report %s/bytes" WRONG " --json", at);
    assert_json();
    run("eval --model %s/bytes" WRONG " --data %s/text --json", at, at);
    assert_json();
    run("data --model %s/model.json %s/text --out %s/tokens" WRONG " --json", at, at, at);
    assert_json();
    char ids[256];
    snprintf(ids, sizeof ids, "%s/wrong-ids", at);
    assert_ok(ah__file_write(ids, "97 255 194 155 34 192 128", 25));
    run("tokenize --model %s/model.json --decode --json < %s", at, ids);
    assert_json();
}

/* Messages show what the user typed, and a terminal obeys nothing of it. */
static void messages_are_plain(void **state)
{
    static const char *const words[] = {
        "plan --plan " WRONG, "inspect " WRONG,         "data --out x y --seed " WRONG,  WRONG,
        "plan --" WRONG,      "plan --hardware " WRONG, "generate --temperature " WRONG, "plan --seq " WRONG};
    for (size_t i = 0; i < AH_LENGTH(words); i++) {
        run("%s --model %s/model.json", words[i], folder());
        if (ran.status == 0 || !strstr(ran.err, "a?  31m\"") || ran.out[0])
            fail_msg("%s: status %d: %s%s", words[i], ran.status, ran.out, ran.err);
        for (const char *at = ran.err; *at; at++)
            if ((unsigned char)*at >= 0x7f || ((unsigned char)*at < 32 && at[1]))
                fail_msg("%s: byte %d in: %s", words[i], (unsigned char)*at, ran.err);
    }
}

/* A note, or a refusal that writes nothing. */
static void unknown_keys_of_models(void **state)
{
    static const char config[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 256, \"n_positions\": 32, \"n_embd\": 32, "
                                 "\"n_layer\": 3, \"n_head\": 2, \"my_tool\": 1}";
    const char *at = folder();
    char path[256];
    snprintf(path, sizeof path, "%s/unknown.json", at);
    assert_ok(ah__file_write(path, config, strlen(config)));
    run("train --model %s --data %s/text --batch 2 --seq 16 --steps 1 --threads 1", path, at);
    assert_ran(0);
    assert_says(ran.err, "note: /");
    assert_says(ran.err, "unknown.json: keys that are not known here and not read: my_tool\n");
    run("train --model %s --data %s/text --batch 2 --seq 16 --steps 1 --threads 1 --strict --out %s/strict", path, at,
        at);
    assert_refused("unknown.json: keys that are not known here and not read: my_tool; expected none (--strict)");
    snprintf(path, sizeof path, "%s/strict", at);
    assert_int_equal(access(path, F_OK), -1);
    run("plan --model %s/unknown.json --hardware a100-40g --seq 16 --effort 1", at);
    assert_ran(0);
    assert_says(ran.err, "not read: my_tool\n");
    static const char *const commands[] = {"plan", "profile", "simulate"};
    for (size_t i = 0; i < AH_LENGTH(commands); i++) {
        run("%s --model %s/unknown.json --strict --seq 16", commands[i], at);
        assert_refused("not read: my_tool; expected none (--strict)");
    }
}

/* Steps of a regular expression end; the message says where the text was and whose tokenizer it was. */
static void a_slow_tokenizer_is_named(void **state)
{
    static const char tokenizer[] =
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []}, "
        "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a+)+b\"}, \"behavior\": \"Isolated\", "
        "\"invert\": false}}";
    static const char config[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 2, \"n_positions\": 16, \"n_embd\": 8, "
                                 "\"n_layer\": 1, \"n_head\": 2}";
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const char pair[] = "{\"prompt\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", "
                               "\"completion\": \"b\"}\n";
    char path[512], at[256];
    snprintf(at, sizeof at, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/tokenizer.json", at);
    assert_ok(ah__file_write(path, tokenizer, strlen(tokenizer)));
    snprintf(path, sizeof path, "%s/config.json", at);
    assert_ok(ah__file_write(path, config, strlen(config)));
    snprintf(path, sizeof path, "%s/text.txt", at);
    assert_ok(ah__file_write(path, text, strlen(text)));
    run("tokenize --model %s < %s", at, path);
    assert_refused("needs too many steps at byte 0");
    snprintf(path, sizeof path, "standard input, by the tokenizer of %s: ", at);
    assert_says(ran.err, path);
    run("data --model %s %s/text.txt --eos b --out %s/out.bin", at, at, at);
    assert_refused("text.txt");
    assert_says(ran.err, "needs too many steps at byte 0");
    snprintf(path, sizeof path, "%s/pairs.jsonl", at);
    assert_ok(ah__file_write(path, pair, strlen(pair)));
    run("train --model %s --data %s --eos b --batch 1 --seq 16 --steps 1 --out %s/out", at, path, at);
    assert_refused("pairs.jsonl");
    assert_says(ran.err, "needs too many steps at byte 0");
}

/* Whoever wants to hear of errors only hears that checkpoints fail. */
static void a_full_disk_is_said_quietly(void **state)
{
    const char *at = folder();
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 64 << 10, .rlim_max = before.rlim_max}; /* less than the parameters */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    run("train --model %s/model.json --data %s/text --batch 2 --seq 16 --steps 3 --threads 1 --out %s/full "
        "--save-every 1 --quiet",
        at, at, at);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_ran(1);
    assert_string_equal(ran.out, "");
    assert_says(ran.err, "autohete: a checkpoint could not be written, the training goes on: ");
    assert_null(strstr(ran.err, "note:"));
    assert_says(ran.err, "File too large");
}

static void a_socket_is_no_data(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *at = folder();
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", ah_test_folder());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    run("train --model %s/model.json --data %s --batch 2 --seq 16 --steps 1 --out %s/socket-out", at, address.sun_path,
        at);
    close(fd);
    assert_refused("socket");
    char out[256];
    snprintf(out, sizeof out, "%s/socket-out", at);
    assert_int_not_equal(access(out, F_OK), 0);
}

/* A megabyte that unpacks to 257 MiB: `head`, then letters, then `tail`. */
static void bomb_make(const char *path, const char *head, const char *tail)
{
    enum { PIECES = 257 };
    static char piece[1 << 20];
    memset(piece, 'a', sizeof piece);
    gzFile file = gzopen(path, "wb1");
    assert_non_null(file);
    assert_true(gzputs(file, head) >= 0);
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(gzwrite(file, piece, sizeof piece), sizeof piece);
    assert_true(gzputs(file, tail) >= 0);
    assert_int_equal(gzclose(file), Z_OK);
}

/* Refused by what was unpacked so far, not when memory or the file ends. */
static void bombs_are_refused_early(void **state)
{
    static const struct {
        const char *name, *head, *tail, *words;
    } rows[] = {
        {"bomb.txt.gz", "", "", "found more tokens than "},
        {"bomb.jsonl.gz", "{\"text\": \"", "\"}\n", "bomb.jsonl.gz: line 1: found a record of more than 256 MiB"}};
    char path[256];
    struct rusage used;
    const char *at = folder();
    assert_int_equal(setenv("AUTOHETE_HOST_AVAILABLE", "200MiB", 1), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", at, rows[i].name);
        bomb_make(path, rows[i].head, rows[i].tail);
        run("train --model %s/model.json --data %s --batch 2 --seq 16 --steps 1 --threads 1 --out %s/bomb-out", at,
            path, at);
        unlink(path);
        assert_refused(rows[i].words);
        assert_says(ran.err, rows[i].name);
    }
    unsetenv("AUTOHETE_HOST_AVAILABLE");
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &used), 0);
    print_message("%ld KiB\n", used.ru_maxrss);
#ifndef AH_TEST_SANITIZED
    assert_true(used.ru_maxrss < 1 << 20);
#endif
}

/* Under UndefinedBehaviorSanitizer: nothing is copied from nowhere. */
static void empty_texts_train_nothing(void **state)
{
    char path[256];
    const char *at = folder();
    static const char lines[] = "{\"text\":\"\"}\n{\"text\":\"\"}\n{\"text\":\"\"}\n{\"text\":\"\"}\n{\"text\":\"\"}\n";
    static const char pairs[] = "{\"prompt\":\"\",\"completion\":\"\"}\n{\"prompt\":\"\",\"completion\":\"ab\"}\n";
    snprintf(path, sizeof path, "%s/empty.jsonl", at);
    assert_ok(ah__file_write(path, lines, strlen(lines)));
    run("train --model %s/model.json --data %s --batch 1 --seq 2 --steps 1 --threads 1 --plan resident", at, path);
    assert_ran(0); /* the ends of documents are tokens */
    assert_null(strstr(ran.err, "runtime error"));
    assert_ok(ah__file_write(path, pairs, strlen(pairs)));
    run("train --model %s/model.json --data %s --batch 1 --seq 2 --steps 1 --threads 1 --plan resident", at, path);
    assert_null(strstr(ran.err, "runtime error"));
    assert_says(ran.err, "autohete: ");
}

AH_TEST_CASES("cli/foreign", unknown_keys_of_models, json_is_utf8, messages_are_plain, a_slow_tokenizer_is_named,
              a_full_disk_is_said_quietly, a_socket_is_no_data, bombs_are_refused_early, empty_texts_train_nothing)
