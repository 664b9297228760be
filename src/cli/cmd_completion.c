/* autohete completion: prints a shell's completion of commands and options, made from their tables. */
#include <string.h>

#include "cli/commands.h"
#include "cli/out.h"

struct completion_args {
    const char *shell;
};

/* The kind of value after an option. */
enum value { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_FOLDER, VALUE_WORDS };

/* Returns the names of all policies, separated by blanks. */
static const char *policies(void)
{
    static char text[512];
    text[0] = 0;
    for (const char *const *each = ah_policy_names(); *each; each++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? " " : "", *each);
    return text;
}

static const char *words_of(const struct ah_arg *option)
{
    if (option->words)
        return option->words;
    if (option->kind == AH_ARG_AUTO)
        return "auto";
    return strcmp(option->name, "policy") == 0 ? policies() : NULL;
}

static enum value value_of(const struct ah_arg *option)
{
    if (option->kind == AH_ARG_FLAG)
        return VALUE_NONE;
    if (words_of(option))
        return VALUE_WORDS;
    bool file = option->meta && (strncmp(option->meta, "FILE", 4) == 0 || strcmp(option->meta, "PLAN") == 0);
    bool folder = option->meta && strcmp(option->meta, "DIR") == 0;
    return file ? VALUE_FILE : folder ? VALUE_FOLDER : VALUE_ANY;
}

/* Prints text for single quotes of a shell, with a backslash before each character of `also`. */
static void quoted(const char *text, const char *also, bool fish)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(fish ? "\\'" : "'\\''", stdout);
        else if (strchr(also, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void description(const struct ah_arg *option, const char *also, bool fish)
{
    quoted(option->help, also, fish);
    if (option->initial)
        printf(" (default %s)", option->initial);
}

/* ---- bash -------------------------------------------------------------------------------------------------------- */

static void bash_values(const struct ah_command *command)
{
    static const char *const actions[] = {
        [VALUE_NONE] = "", [VALUE_ANY] = "", [VALUE_FILE] = "-f", [VALUE_FOLDER] = "-d", [VALUE_WORDS] = "-W"};
    for (size_t i = 0; i < command->count; i++) {
        const struct ah_arg *option = &command->options[i];
        enum value value = value_of(option);
        if (!option->help || value == VALUE_NONE)
            continue;
        printf("    '%s --%s') ", command->name, option->name);
        if (value == VALUE_WORDS)
            printf("COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", words_of(option));
        else if (value == VALUE_ANY)
            printf("return ;;\n");
        else
            printf("COMPREPLY=($(compgen %s -- \"$cur\")); return ;;\n", actions[value]);
    }
}

static void bash_options(const struct ah_command *command)
{
    printf("    %s) words='", command->name);
    for (size_t i = 0; i < command->count; i++)
        if (command->options[i].help)
            printf("--%s ", command->options[i].name);
    printf("--help' ;;\n");
}

static void bash(void)
{
    printf("# autohete completion bash > /etc/bash_completion.d/autohete\n"
           "_autohete() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    for (const struct ah_command *const *each = ah__commands; *each; each++)
        printf("%s ", (*each)->name);
    printf("--help --version' -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    compopt -o filenames 2>/dev/null\n"
           "    case \"${COMP_WORDS[1]} $prev\" in\n");
    for (const struct ah_command *const *each = ah__commands; *each; each++)
        bash_values(*each);
    printf("    esac\n"
           "    case ${COMP_WORDS[1]} in\n");
    for (const struct ah_command *const *each = ah__commands; *each; each++)
        bash_options(*each);
    printf("    esac\n"
           "    case $cur in\n"
           "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
           "    *) case ${COMP_WORDS[1]} in\n"
           "       data) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
           "       report) COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n"
           "       completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")) ;;\n"
           "       *) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
           "       esac ;;\n"
           "    esac\n"
           "}\n"
           "complete -F _autohete autohete\n");
}

/* ---- zsh --------------------------------------------------------------------------------------------------------- */

static void zsh_option(const struct ah_arg *option)
{
    printf("        '--%s[", option->name);
    description(option, "[]:\\", false);
    printf("]");
    switch (value_of(option)) {
    case VALUE_NONE:
        break;
    case VALUE_ANY:
        printf(":%s: ", option->meta ? option->meta : "value");
        break;
    case VALUE_FILE:
        printf(":%s:_files", option->meta);
        break;
    case VALUE_FOLDER:
        printf(":%s:_files -/", option->meta);
        break;
    case VALUE_WORDS:
        printf(":%s:(%s)", option->meta ? option->meta : "value", words_of(option));
        break;
    }
    printf("' \\\n");
}

static void zsh(void)
{
    printf("#compdef autohete\n"
           "# autohete completion zsh > \"${fpath[1]}/_autohete\"\n"
           "_autohete() {\n"
           "    local -a commands=(\n");
    for (const struct ah_command *const *each = ah__commands; *each; each++) {
        printf("        '%s:", (*each)->name);
        quoted((*each)->summary, ":\\", false);
        printf("'\n");
    }
    printf("    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local command=$words[2]\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $command in\n");
    for (const struct ah_command *const *each = ah__commands; *each; each++) {
        const struct ah_command *command = *each;
        printf("    %s) _arguments \\\n", command->name);
        for (size_t i = 0; i < command->count; i++)
            if (command->options[i].help)
                zsh_option(&command->options[i]);
        if (command->word_meta && command->many)
            printf("        '*:%s:_files' \\\n", command->word_meta);
        else if (command->word_meta)
            printf("        '1:%s:%s' \\\n", command->word_meta,
                   strcmp(command->word_meta, "DIR") == 0 ? "_files -/" : "(bash zsh fish)");
        printf("        '--help[what there is]' ;;\n");
    }
    printf("    esac\n"
           "}\n"
           "if [ \"$funcstack[1]\" = _autohete ]; then\n" /* autoloaded by compinit at the first completion */
           "    _autohete \"$@\"\n"
           "else\n"
           "    compdef _autohete autohete\n"
           "fi\n");
}

/* ---- fish -------------------------------------------------------------------------------------------------------- */

static void fish_option(const struct ah_command *command, const struct ah_arg *option)
{
    printf("complete -c autohete -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->name);
    switch (value_of(option)) {
    case VALUE_NONE:
        break;
    case VALUE_ANY:
        printf(" -x");
        break;
    case VALUE_FILE:
        printf(" -r -F");
        break;
    case VALUE_FOLDER:
        printf(" -x -a '(__fish_complete_directories)'");
        break;
    case VALUE_WORDS:
        printf(" -x -a '%s'", words_of(option));
        break;
    }
    printf(" -d '");
    description(option, "\\", true);
    printf("'\n");
}

static void fish(void)
{
    printf("# autohete completion fish > ~/.config/fish/completions/autohete.fish\n"
           "complete -c autohete -f\n");
    for (const struct ah_command *const *each = ah__commands; *each; each++) {
        const struct ah_command *command = *each;
        printf("complete -c autohete -n __fish_use_subcommand -a %s -d '", command->name);
        quoted(command->summary, "\\", true);
        printf("'\n");
        for (size_t i = 0; i < command->count; i++)
            if (command->options[i].help)
                fish_option(command, &command->options[i]);
    }
    printf("complete -c autohete -n '__fish_seen_subcommand_from data' -F\n"
           "complete -c autohete -n '__fish_seen_subcommand_from report' -a '(__fish_complete_directories)'\n"
           "complete -c autohete -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n");
}

static int run(const void *given)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const struct completion_args *args = given;
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(args->shell, shells[i].name) == 0) {
            shells[i].print();
            return 0;
        }
    return ah__out_fail(ah__out_fault("SHELL: found '%.40s', expected bash, zsh or fish", args->shell));
}

static struct completion_args args;
const struct ah_command ah__command_completion = {
    .name = "completion",
    .usage = "bash | zsh | fish",
    .summary = "Print a shell's completion of commands and options.",
    .args = &args,
    .word = offsetof(struct completion_args, shell),
    .word_meta = "SHELL",
    .run = run,
};
