#include "cli/outputs.h"

#include "cli/out.h"

/* An output, and the input or option that it is compared with. */
struct pair {
    const struct ah_arg *output;
    const char *path, *other; /* path of the output; name of the other: "--model", INPUT */
};

static int apart(const struct pair *pair, const char *input)
{
    if (!input || ah_output_check(pair->path, &input, 1) == AH_OK)
        return AH_OK;
    return ah__out_fault("--%s, %s: %.900s", pair->output->name, pair->other, ah_error());
}

static const char *text_of(const struct ah_command *command, const struct ah_arg *option)
{
    bool text = option->kind == AH_ARG_TEXT || option->kind == AH_ARG_WORDS || option->kind == AH_ARG_OUT;
    return text ? *(const char **)((char *)command->args + option->at) : NULL;
}

static int apart_of_option(struct pair *pair, const struct ah_command *command, const struct ah_arg *option)
{
    char name[64];
    int status = AH_OK;
    snprintf(name, sizeof name, "--%s", option->name);
    pair->other = name;
    if (option->kind == AH_ARG_FILE_OF_OPTIONS)
        return apart(pair, ah__args_config());
    if (option->kind != AH_ARG_LIST)
        return apart(pair, text_of(command, option));
    const struct ah_texts *list = (const struct ah_texts *)((char *)command->args + option->at);
    for (int i = 0; i < list->count && status == AH_OK; i++)
        status = apart(pair, list->text[i]);
    return status;
}

static int apart_of_words(struct pair *pair, const struct ah_command *command)
{
    const void *at = (char *)command->args + command->word;
    const struct ah_words *words = at;
    int status = AH_OK;
    pair->other = command->word_meta;
    if (!command->word_meta)
        return AH_OK;
    if (!command->many)
        return apart(pair, *(const char *const *)at);
    for (size_t i = 0; i < words->count && status == AH_OK; i++)
        status = apart(pair, words->word[i]);
    return status;
}

static int output_check(const struct ah_command *command, const struct ah_arg *output)
{
    struct pair pair = {output, text_of(command, output), NULL};
    if (!pair.path)
        return AH_OK;
    if (ah_output_check(pair.path, NULL, 0) != AH_OK)
        return ah__out_fault("--%s: %.900s", output->name, ah_error());
    int status = apart_of_words(&pair, command);
    for (size_t i = 0; i < command->count && status == AH_OK; i++)
        if (&command->options[i] != output)
            status = apart_of_option(&pair, command, &command->options[i]);
    return status;
}

int ah__outputs_check(const struct ah_command *command)
{
    int status = AH_OK;
    for (size_t i = 0; i < command->count && status == AH_OK; i++)
        if (command->options[i].kind == AH_ARG_OUT)
            status = output_check(command, &command->options[i]);
    return status;
}
