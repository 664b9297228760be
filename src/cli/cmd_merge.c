/* autohete merge: writes a model with its adapter added, as a folder of its own. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"

struct merge_args {
    const char *model, *adapter, *out, *dtype;
};
#define AT(field) offsetof(struct merge_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"model", AH_ARG_TEXT, AT(model), "DIR",
     .help = "folder of a training of adapters, or with --adapter the model's: a folder or a GGUF file",
     .required = true},
    AH_ARG_ADAPTER(AT(adapter)),
    {"out", AH_ARG_TEXT, AT(out), "DIR", .help = "folder to make", .required = true},
    {"dtype", AH_ARG_TEXT, AT(dtype), "TYPE", .words = "bf16 fp32",
     .help = "type of the weights: bf16 or fp32 (default: fp32 where bf16 would round the model or what was trained)"},
};

static int run(const void *given)
{
    const struct merge_args *args = given;
    char *note = NULL;
    int status = ah__out_tokenizer_note(args->model, args->adapter);
    if (status == AH_OK)
        status = ah_merge_noted(&note, args->out, args->model, args->adapter, args->dtype);
    if (note)
        puts(note);
    free(note);
    return status == AH_OK ? 0 : ah__out_fail(status);
}

static struct merge_args args;
const struct ah_command ah__command_merge = {
    .name = "merge",
    .usage = "--model DIR [--adapter DIR] --out DIR [--dtype TYPE]",
    .summary = "Add an adapter to the weights of its model.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
