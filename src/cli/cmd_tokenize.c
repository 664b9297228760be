/* autohete tokenize: turns text into token ids, and back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/out.h"

struct tokenize_args {
    const char *model;
    bool decode, document, special, json;
};
#define AT(field) offsetof(struct tokenize_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"model", AH_ARG_TEXT, AT(model), "DIR",
     .help = "folder with tokenizer.json, vocab.json and merges.txt, or tokenizer.model, or a GGUF file; without, "
             "bytes of a "
             "model whose vocab_size is at most 256",
     .required = true},
    {"decode", AH_ARG_FLAG, AT(decode), .help = "read ids and write their text"},
    {"document", AH_ARG_FLAG, AT(document),
     .help = "tokenize as training data, without the tokens that are put around a prompt"},
    {"special", AH_ARG_FLAG, AT(special), .help = "with --decode: show special tokens too"},
    {"json", AH_ARG_FLAG, AT(json), .help = "print one JSON object: ids and tokens, or with --decode the text"},
};

/* ---- input ------------------------------------------------------------------------------------------------------- */

static int no_memory(void)
{
    fprintf(stderr, "autohete: out of host memory: standard input\n");
    return 1;
}

/* Reads all of standard input into *text, zero-terminated, which the caller frees. Returns an exit status. */
static int input_read(char **text, size_t *length)
{
    size_t room = 1 << 16, done = 0, got;
    char *bytes = malloc(room);
    while (bytes && (got = fread(bytes + done, 1, room - 1 - done, stdin)) > 0) {
        done += got;
        if (done + 1 < room)
            continue;
        char *more = realloc(bytes, room *= 2);
        if (!more)
            free(bytes);
        bytes = more;
    }
    if (!bytes)
        return no_memory();
    if (ferror(stdin)) {
        fprintf(stderr, "autohete: standard input: %s\n", strerror(errno));
        free(bytes);
        return 1;
    }
    bytes[done] = 0;
    *text = bytes;
    *length = done;
    return 0;
}

static bool is_between(char c)
{
    return c && strchr(" \t\r\n", c);
}

/* Returns the length of the word at `at`, cut for a message. */
static int word_length(const char *at)
{
    enum { SHOWN_MOST = 40 };
    size_t length = strcspn(at, " \t\r\n");
    return length < SHOWN_MOST ? (int)length : SHOWN_MOST;
}

/* Parses ids separated by spaces and line breaks. A zero byte does not end the text: it is a fault. */
static int ids_parse(int32_t *ids, int64_t *count, const char *text, size_t length)
{
    int64_t done = 0;
    for (const char *at = text, *stop = text + length; at < stop;) {
        if (is_between(*at)) {
            at++;
            continue;
        }
        char *end;
        errno = 0;
        long long id = strtoll(at, &end, 10);
        bool whole = end > at && (end == stop || is_between(*end));
        if (errno || !whole || id < 0 || id > INT32_MAX)
            return ah__out_fault("standard input: id %lld: found '%.*s', expected a whole number from 0 to %d",
                                 (long long)done, word_length(at), at, INT32_MAX);
        ids[done++] = (int32_t)id;
        at = end;
    }
    *count = done;
    return AH_OK;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void ids_print(const int32_t *ids, int64_t count, const char *between)
{
    for (int64_t i = 0; i < count; i++)
        printf("%s%d", i ? between : "", ids[i]);
}

static void encoded_print(const struct ah_tokenizer *tokenizer, const int32_t *ids, int64_t count, bool json)
{
    printf(json ? "{\"ids\": [" : "");
    ids_print(ids, count, json ? ", " : " ");
    if (json)
        printf("], \"tokens\": [");
    for (int64_t i = 0; i < count && json; i++) {
        const char *token = ah_tokenizer_token(tokenizer, ids[i]);
        printf("%s", i ? ", " : "");
        ah__out_string(stdout, token ? token : "");
    }
    printf(json ? "]}\n" : "\n");
}

/* Adds to the library's message that the text is standard input, and whose tokenizer it was. */
static int named(int status, const struct tokenize_args *args)
{
    return status == AH_EINPUT ? ah__out_fault("standard input, by the tokenizer of %s: %s", args->model, ah_error())
                               : status;
}

static int encode(const struct ah_tokenizer *tokenizer, const struct tokenize_args *args, const char *text,
                  size_t length)
{
    int32_t *ids;
    int64_t count;
    int status = ah_tokenizer_encode(&ids, &count, tokenizer, text, length, !args->document);
    if (status != AH_OK)
        return named(status, args);
    encoded_print(tokenizer, ids, count, args->json);
    free(ids);
    return AH_OK;
}

static int decode(const struct ah_tokenizer *tokenizer, const struct tokenize_args *args, const char *input,
                  size_t input_length)
{
    char *text;
    size_t length;
    int64_t count = 0;
    int32_t *ids = calloc(input_length / 2 + 1, sizeof *ids);
    if (!ids) {
        ah__out_fault("out of host memory: %zu bytes of ids", input_length);
        return AH_ENOMEM;
    }
    int status = ids_parse(ids, &count, input, input_length);
    if (status == AH_OK)
        status = named(ah_tokenizer_decode(&text, &length, tokenizer, ids, count, !args->special), args);
    free(ids);
    if (status != AH_OK)
        return status;
    if (args->json) {
        printf("{\"text\": ");
        ah__out_text(stdout, text, length);
        printf("}\n");
    } else {
        fwrite(text, 1, length, stdout);
    }
    free(text);
    return AH_OK;
}

static int run(const void *given)
{
    const struct tokenize_args *args = given;
    const struct ah_tokenizer *tokenizer;
    char *text;
    size_t length;
    int status = ah_tokenizer_open(&tokenizer, args->model);
    if (status == AH_OK)
        ah__out_tokenizer_note(args->model, NULL);
    else
        return ah__out_fail(status);
    int exit_status = input_read(&text, &length);
    if (exit_status == 0) {
        status = (args->decode ? decode : encode)(tokenizer, args, text, length);
        exit_status = status == AH_OK ? 0 : ah__out_fail(status);
        free(text);
    }
    ah_tokenizer_close(tokenizer);
    return exit_status;
}

static struct tokenize_args args;
const struct ah_command ah__command_tokenize = {
    .name = "tokenize",
    .usage = "--model DIR [--decode] [option ...]",
    .summary = "Turn text on standard input into token ids, or ids into text.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
