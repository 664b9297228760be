/* The text of --help: options in groups. */
#include <string.h>

#include "cli/args.h"

/* Writes an option and its value's name, like "--model FILE". Returns the length. */
static int option_print(char *text, size_t size, const struct ah_arg *option)
{
    return snprintf(text, size, "--%s%s%s", option->name, option->meta ? " " : "", option->meta ? option->meta : "");
}

static bool same_group(const struct ah_arg *a, const struct ah_arg *b)
{
    return a->group == b->group || (a->group && b->group && strcmp(a->group, b->group) == 0);
}

static bool is_first(const struct ah_command *command, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (same_group(&command->options[i], &command->options[index]))
            return false;
    return true;
}

/* Prints the heading and the options of the group of options[first]. */
static void group_print(const struct ah_command *command, size_t first, int width, FILE *to)
{
    const char *heading = command->options[first].group;
    char left[64];
    if (heading)
        fprintf(to, "\n%s:\n", heading);
    for (size_t i = first; i < command->count; i++) {
        const struct ah_arg *option = &command->options[i];
        if (!option->help || !same_group(option, &command->options[first]))
            continue;
        option_print(left, sizeof left, option);
        fprintf(to, "  %-*s  %s", width, left, option->help);
        if (option->initial)
            fprintf(to, " (default %s)", option->initial);
        fprintf(to, "%s\n", option->required ? " (required)" : "");
    }
}

void ah__args_help(const struct ah_command *command, FILE *to)
{
    char left[64];
    int width = 0;
    for (size_t i = 0; i < command->count; i++) {
        int length = option_print(left, sizeof left, &command->options[i]);
        width = command->options[i].help && length > width ? length : width;
    }
    fprintf(to, "usage: autohete %s %s\n\n%s\n\n", command->name, command->usage, command->summary);
    for (size_t i = 0; i < command->count; i++)
        if (is_first(command, i))
            group_print(command, i, width, to);
    fprintf(to, "  %-*s  %s\n  %-*s  %s\n", width, "--help", "print this text", width, "--version",
            "print the version");
}
