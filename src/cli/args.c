#include "cli/args.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config_file.h"
#include "cli/nearest.h"

enum { OPTIONS_MOST = 96 };

static enum ah_args_result wrong(struct ah_args_error *error, const char *format, ...) AH_PRINTF(2, 3);

static enum ah_args_result wrong(struct ah_args_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    /* whatever the user typed, the message stays one line */
    for (char *at = error->text; *at; at++)
        if ((unsigned char)*at < 32)
            *at = ' ';
    return AH_ARGS_WRONG;
}

/* ---- unknown options --------------------------------------------------------------------------------------------- */

static enum ah_args_result unknown(const struct ah_command *command, const char *name, size_t length,
                                   struct ah_args_error *error)
{
    const char *names[OPTIONS_MOST + 2] = {"help", "version"};
    size_t count = 2;
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(length < 60 ? length : 60), name);
    for (size_t i = 0; i < command->count; i++)
        if (command->options[i].help)
            names[count++] = command->options[i].name;
    const char *nearest = ah__name_nearest(text, names, count);
    if (nearest)
        return wrong(error, "--%s: unknown option, did you mean --%s?", text, nearest);
    return wrong(error, "--%s: unknown option (see 'autohete %s --help')", text, command->name);
}

/* Reports an option with one dash, like "-model". */
static enum ah_args_result one_dash(const struct ah_command *command, const char *name, struct ah_args_error *error)
{
    size_t length = strcspn(name, "=");
    for (size_t i = 0; i < command->count; i++)
        if (strlen(command->options[i].name) == length && strncmp(command->options[i].name, name, length) == 0)
            return wrong(error, "-%s: unknown option, did you mean --%s?", command->options[i].name,
                         command->options[i].name);
    return wrong(error, "found '-%.100s', expected an option (see 'autohete %s --help')", name, command->name);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool within(const struct ah_arg *option, double value)
{
    return (option->min == 0 && option->max == 0) || (value >= option->min && value <= option->max);
}

static bool parse_int(int64_t *out, const struct ah_arg *option, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || !(*text == '-' || (*text >= '0' && *text <= '9')))
        return false;
    *out = value;
    return within(option, (double)value);
}

static bool parse_switch(const char **out, const struct ah_arg *option, const char *text)
{
    static char pair[64]; /* valid until the next command line is read */
    int64_t value;
    if (!parse_int(&value, option, text))
        return false;
    snprintf(pair, sizeof pair, "%s=%lld", option->name, (long long)value);
    *out = pair;
    return true;
}

static bool parse_seed(uint64_t *out, const char *text)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return !errno && end != text && !*end && *text >= '0' && *text <= '9';
}

static bool parse_real(double *out, const struct ah_arg *option, const char *text)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *text > ' ' && isfinite(*out) && within(option, *out);
}

static bool list_add(struct ah_texts *list, const char *text)
{
    if (list->count == AH_TEXTS_MOST)
        return false;
    list->text[list->count++] = text;
    return true;
}

static bool parse_value(void *to, const struct ah_arg *option, const char *text)
{
    int64_t whole;
    switch (option->kind) {
    case AH_ARG_FLAG:
        return false;
    case AH_ARG_FILE_OF_OPTIONS: /* the file was read before */
        return *text != 0;
    case AH_ARG_TEXT:
    case AH_ARG_OUT:
        *(const char **)to = text;
        return *text != 0;
    case AH_ARG_LIST:
        return *text != 0 && list_add(to, text);
    case AH_ARG_WORDS:
        *(const char **)to = text;
        return true;
    case AH_ARG_INT:
        if (!parse_int(&whole, option, text) || whole < INT32_MIN || whole > INT32_MAX)
            return false;
        *(int *)to = (int)whole;
        return true;
    case AH_ARG_COUNT:
        return parse_int(to, option, text);
    case AH_ARG_AUTO:
        if (strcmp(text, "auto") != 0)
            return parse_int(to, option, text);
        *(int64_t *)to = AH_ARG_IS_AUTO;
        return true;
    case AH_ARG_SWITCH:
        return parse_switch(to, option, text);
    case AH_ARG_SEED:
        return parse_seed(to, text);
    case AH_ARG_REAL:
        return parse_real(to, option, text);
    case AH_ARG_LIMIT:
        if (strcmp(text, "none") == 0) {
            *(int64_t *)to = AH_NO_LIMIT;
            return true;
        }
        return ah_size_parse(to, text) == AH_OK && *(int64_t *)to > 0;
    case AH_ARG_SIZE:
        return ah_size_parse(to, text) == AH_OK && *(int64_t *)to > 0;
    case AH_ARG_RATE:
        return ah_rate_parse(to, text) == AH_OK && *(int64_t *)to > 0 && (double)*(int64_t *)to >= option->min;
    }
    return false;
}

/* Writes what an option expects, like "a whole number from 1 to 8". Returns text. */
static const char *expectation(char *text, size_t size, const struct ah_arg *option)
{
    static const char *const kinds[] = {
        [AH_ARG_FLAG] = "no value",
        [AH_ARG_TEXT] = "a value",
        [AH_ARG_OUT] = "a value",
        [AH_ARG_LIST] = "a value, at most 64 times",
        [AH_ARG_WORDS] = "a text",
        [AH_ARG_INT] = "a whole number",
        [AH_ARG_COUNT] = "a whole number",
        [AH_ARG_AUTO] = "auto or a whole number",
        [AH_ARG_SWITCH] = "a whole number",
        [AH_ARG_SEED] = "a whole number",
        [AH_ARG_REAL] = "a number",
        [AH_ARG_LIMIT] = "a size like 64MiB, or none",
        [AH_ARG_SIZE] = "a size like 64MiB",
        [AH_ARG_RATE] = "a rate like 4GB/s",
        [AH_ARG_FILE_OF_OPTIONS] = "a file",
    };
    if (option->kind == AH_ARG_RATE && option->min > 0)
        snprintf(text, size, "%s, at least %.15g bytes a second", kinds[option->kind], option->min);
    else if (option->kind <= AH_ARG_REAL && (option->min != 0 || option->max != 0))
        snprintf(text, size, "%s from %.15g to %.15g", kinds[option->kind], option->min, option->max);
    else
        snprintf(text, size, "%s", kinds[option->kind]);
    return text;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static const struct ah_arg *find(const struct ah_command *command, const char *name, size_t length)
{
    for (size_t i = 0; i < command->count; i++)
        if (strlen(command->options[i].name) == length && strncmp(command->options[i].name, name, length) == 0)
            return &command->options[i];
    return NULL;
}

static void *words_of(const struct ah_command *command)
{
    return (char *)command->args + command->word;
}

/* Stores a positional argument. Several move to the front of argv, over arguments that were read already. */
static enum ah_args_result take_word(const struct ah_command *command, char *word, struct ah_args_error *error)
{
    struct ah_words *words = words_of(command);
    const char **own = words_of(command);
    if (command->many) {
        words->word[words->count++] = word;
        return AH_ARGS_RUN;
    }
    if (*own)
        return wrong(error, "%s: found '%.100s' and '%.100s', expected one", command->word_meta, *own, word);
    *own = word;
    return AH_ARGS_RUN;
}

static bool has_word(const struct ah_command *command)
{
    const struct ah_words *words = words_of(command);
    const char **own = words_of(command);
    return command->many ? words->count > 0 : *own != NULL;
}

/* Returns true if both rows are names of one option: they fill the same field. */
static bool same_place(const struct ah_arg *a, const struct ah_arg *b)
{
    return a->at == b->at && a->kind != AH_ARG_FILE_OF_OPTIONS && b->kind != AH_ARG_FILE_OF_OPTIONS;
}

/* ---- files of options -------------------------------------------------------------------------------------------- */

/* Returns the path after --config; null: there is none. */
static const char *config_path(const struct ah_command *command, int argc, char **argv)
{
    const struct ah_arg *option = find(command, "config", strlen("config"));
    for (int i = 0; i < argc && option && option->kind == AH_ARG_FILE_OF_OPTIONS; i++)
        if (strncmp(argv[i], "--config=", strlen("--config=")) == 0)
            return argv[i] + strlen("--config=");
        else if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            return argv[i + 1];
    return NULL;
}

/* Returns the option that a key names, with - or _; null: there is none. */
static const struct ah_arg *find_key(const struct ah_command *command, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "%s", key);
    for (char *at = name; *at; at++)
        *at = *at == '_' ? '-' : *at;
    const struct ah_arg *option = strlen(key) < sizeof name ? find(command, name, strlen(name)) : NULL;
    return option && option->kind != AH_ARG_FILE_OF_OPTIONS ? option : NULL;
}

/* Joins the values of a list with commas, as an option that takes one text expects them. The caller frees the result;
 * null: out of memory. */
static char *joined(const struct ah_config_entry *entry)
{
    size_t length = 1;
    for (int i = 0; i < entry->count; i++)
        length += strlen(entry->text[i]) + 1;
    char *text = calloc(length, 1);
    for (int i = 0; i < entry->count && text; i++)
        sprintf(text + strlen(text), "%s%s", i ? "," : "", entry->text[i]);
    return text;
}

static bool entry_set(const struct ah_command *command, const struct ah_arg *option, struct ah_config_entry *entry)
{
    void *to = (char *)command->args + option->at;
    bool good = true;
    if (option->kind == AH_ARG_FLAG) {
        const char *text = entry->count == 1 && !entry->list ? entry->text[0] : "";
        bool yes = strcasecmp(text, "true") == 0;
        *(bool *)to = yes;
        return yes || strcasecmp(text, "false") == 0;
    }
    if (option->kind != AH_ARG_LIST && entry->list) {
        char *text = option->kind == AH_ARG_TEXT && entry->count ? joined(entry) : NULL;
        for (int i = 0; i < entry->count && text; i++)
            good = good && !strchr(entry->text[i], ',');
        if (!text || !good) {
            free(text);
            return false;
        }
        for (int i = 1; i < entry->count; i++)
            free(entry->text[i]);
        free(entry->text[0]);
        entry->text[0] = text;
        entry->count = 1;
    }
    for (int i = 0; i < entry->count; i++)
        good = good && parse_value(to, option, entry->text[i]);
    return good;
}

static enum ah_args_result entry_apply(const struct ah_command *command, const char *path,
                                       struct ah_config_entry *entry, bool *in_file, struct ah_args_error *error)
{
    char expected[96];
    const struct ah_arg *option = find_key(command, entry->key);
    if (!option) {
        struct ah_args_error inner;
        unknown(command, entry->key, strlen(entry->key), &inner);
        return wrong(error, "%.100s: line %zu: key '%.60s': %s", path, entry->line, entry->key,
                     strchr(inner.text, ':') + 2);
    }
    for (size_t i = 0; i < command->count; i++)
        if (in_file[i] && (&command->options[i] == option || same_place(&command->options[i], option)))
            return wrong(error, "%.100s: line %zu: key '%.60s': found '%s' before it, expected the option once", path,
                         entry->line, entry->key, command->options[i].name);
    if (entry->count == 0 && !entry->list)
        return AH_ARGS_RUN; /* a key that is null counts as absent */
    in_file[option - command->options] = true;
    if (entry_set(command, option, entry))
        return AH_ARGS_RUN;
    bool flag = option->kind == AH_ARG_FLAG;
    return wrong(error, "%.100s: line %zu: key '%.60s': found %s%.60s%s, expected %s", path, entry->line, entry->key,
                 entry->list ? "" : "'", entry->list ? "a list" : entry->text[0], entry->list ? "" : "'",
                 flag ? "true or false" : expectation(expected, sizeof expected, option));
}

/* Takes a training's run.json as --like with its folder. */
static enum ah_args_result run_json_apply(const struct ah_command *command, const char *path, bool *in_file,
                                          struct ah_args_error *error)
{
    const struct ah_arg *like = find(command, "like", strlen("like"));
    size_t length = strlen(path) - strlen("run.json");
    if (!like)
        return wrong(error, "--config: found '%.100s', a training's own file, which only train takes", path);
    char *folder = length ? strndup(path, length) : strdup(".");
    if (!folder)
        return wrong(error, "out of host memory");
    in_file[like - command->options] = true;
    *(const char **)((char *)command->args + like->at) = folder;
    return AH_ARGS_RUN;
}

static enum ah_args_result config_apply(const struct ah_command *command, const char *path, bool *in_file,
                                        struct ah_args_error *error)
{
    static struct ah_config_file file; /* options point into it until the next command line is read */
    const char *slash = strrchr(path, '/');
    if (strcmp(slash ? slash + 1 : path, "run.json") == 0)
        return run_json_apply(command, path, in_file, error);
    ah__config_file_free(&file);
    if (!ah__config_file_read(&file, path, error->text, sizeof error->text))
        return AH_ARGS_WRONG;
    enum ah_args_result result = AH_ARGS_RUN;
    for (size_t i = 0; i < file.count && result == AH_ARGS_RUN; i++)
        result = entry_apply(command, path, &file.entries[i], in_file, error);
    return result;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

/* Handles argv[*at], which is not --help or --version, and the value after it; moves *at to the last one read. */
static enum ah_args_result parse_one(const struct ah_command *command, int argc, char **argv, int *at, bool *seen,
                                     bool *in_file, struct ah_args_error *error)
{
    const char *word = argv[*at];
    if (command->word_meta && word[0] && (word[0] != '-' || !word[1])) /* "-": standard input */
        return take_word(command, argv[*at], error);
    if (word[0] == '-' && word[1] && word[1] != '-')
        return one_dash(command, word + 1, error);
    if (strncmp(word, "--", 2) != 0 || !word[2])
        return wrong(error, "found '%.100s', expected an option (see 'autohete %s --help')", word, command->name);
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct ah_arg *option = find(command, name, length);
    if (!option)
        return unknown(command, name, length, error);
    size_t index = (size_t)(option - command->options);
    void *to = (char *)command->args + option->at;
    char expected[96];
    expectation(expected, sizeof expected, option);
    if (seen[index] && option->kind != AH_ARG_LIST)
        return wrong(error, "--%s: found it twice, expected it once", option->name);
    for (size_t i = 0; i < command->count; i++) /* another name of the same option */
        if (i != index && seen[i] && same_place(&command->options[i], option))
            return wrong(error, "--%s: found --%s beside it, which is the same, expected one of them", option->name,
                         command->options[i].name);
    if (option->kind == AH_ARG_LIST && in_file[index] && !seen[index])
        ((struct ah_texts *)to)->count = 0;
    seen[index] = true;
    if (option->kind == AH_ARG_FLAG) {
        *(bool *)to = true;
        return equals ? wrong(error, "--%s: found '%.100s', expected no value", option->name, equals + 1) : AH_ARGS_RUN;
    }
    const char *value = equals ? equals + 1 : *at + 1 < argc ? argv[*at + 1] : NULL;
    if (!value || (!equals && strncmp(value, "--", 2) == 0))
        return wrong(error, "--%s needs %s after it", option->name, expected);
    if (!parse_value(to, option, value))
        return wrong(error, "--%s: found '%.100s', expected %s", option->name, value, expected);
    *at += !equals;
    return AH_ARGS_RUN;
}

static void set_initial(const struct ah_command *command, char **argv)
{
    if (command->init)
        command->init(command->args);
    if (command->word_meta && command->many)
        *(struct ah_words *)words_of(command) = (struct ah_words){argv, 0};
    else if (command->word_meta)
        *(const char **)words_of(command) = NULL;
    for (size_t i = 0; i < command->count; i++) {
        const struct ah_arg *option = &command->options[i];
        /* a default that its own row refuses is a defect of the table */
        if (option->initial && !command->unset &&
            !parse_value((char *)command->args + option->at, option, option->initial))
            abort();
    }
}

static bool asks(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--version") == 0)
            return true;
    return false;
}

static const char *config;

const char *ah__args_config(void)
{
    return config;
}

enum ah_args_result ah__args_parse(const struct ah_command *command, int argc, char **argv, struct ah_args_error *error)
{
    bool seen[OPTIONS_MOST] = {false}, in_file[OPTIONS_MOST] = {false};
    if (command->count > OPTIONS_MOST)
        abort();
    set_initial(command, argv);
    config = asks(argc, argv) ? NULL : config_path(command, argc, argv);
    enum ah_args_result applied = config ? config_apply(command, config, in_file, error) : AH_ARGS_RUN;
    if (applied != AH_ARGS_RUN)
        return applied;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return AH_ARGS_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return AH_ARGS_VERSION;
        enum ah_args_result result = parse_one(command, argc, argv, &i, seen, in_file, error);
        if (result != AH_ARGS_RUN)
            return result;
    }
    for (size_t i = 0; i < command->count; i++)
        if (command->options[i].required && !seen[i] && !in_file[i])
            return wrong(error, "--%s is missing: 'autohete %s' needs it (see 'autohete %s --help')",
                         command->options[i].name, command->name, command->name);
    if (command->word_meta && !has_word(command))
        return wrong(error, "%s is missing: 'autohete %s' needs it (see 'autohete %s --help')", command->word_meta,
                     command->name, command->name);
    return AH_ARGS_RUN;
}
