/* autohete export: writes a model or an adapter in another program's format. */
#include <stdio.h>
#include <sys/stat.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"

struct export_args {
    const char *model, *adapter, *gguf, *type;
};
#define AT(field) offsetof(struct export_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"model", AH_ARG_TEXT, AT(model), "DIR",
     .help =
         "folder of a training, one with config.json and weights, or a GGUF file; of an adapter the adapter is written",
     .required = true},
    AH_ARG_ADAPTER(AT(adapter)),
    {"gguf", AH_ARG_OUT, AT(gguf), "FILE", .help = "GGUF file to write, for llama.cpp and its like", .required = true},
    {"type", AH_ARG_TEXT, AT(type), "TYPE",
     .help = "how matrices are stored: f16 (default), bf16, f32 (default of adapters) or q8_0"},
};

/* Prints name and size of a regular file. Prints nothing for a pipe or device, where only the file's bytes may go. */
static void say_written(const char *path)
{
    struct stat info;
    char size[32];
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode))
        printf("%s: wrote %s\n", path, ah_size_format(size, sizeof size, (int64_t)info.st_size));
}

static int run(const void *given)
{
    const struct export_args *args = given;
    char *note = NULL;
    int status = args->adapter ? ah_export_adapter(&note, args->gguf, args->model, args->adapter, args->type)
                               : ah_export_gguf_noted(&note, args->gguf, args->model, args->type);
    if (status != AH_OK)
        return ah__out_fail(status);
    ah__out_note(note);
    say_written(args->gguf);
    return 0;
}

static struct export_args args;
const struct ah_command ah__command_export = {
    .name = "export",
    .usage = "--model DIR [--adapter DIR] --gguf FILE [--type TYPE]",
    .summary = "Write a model or an adapter as a file of another program.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
