/* autohete fit: tells which models train on a machine, how fast and in how much memory. */
#include <string.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/fit.h"
#include "cli/machine.h"
#include "cli/out.h"

#define AT(field) offsetof(struct ah_fit_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"model", AH_ARG_LIST, AT(models), "FILE", .group = "model",
     .help = "a config.json, its folder or a name of the list; may be given again (default: all that come with "
             "autohete)"},
    {"seq", AH_ARG_COUNT, AT(inputs.seq), "T", .min = 1, .max = 16777216, .group = "step",
     .help = "tokens in a sequence (default: each model's longest, at most 1024; plan and train: at most 256)"},
#define AH_OF(train, plan, profile, simulate, fit, inspect) fit
#define AH_AT(field) AT(inputs.field)
#include "cli/rows.h"
    {"hardware", AH_ARG_TEXT, AT(inputs.hardware), "NAME", .group = "device and memory",
     .help = "machine: a100-40g, h200, ... or a file (default: this one, measured with one model)"},
    {"ranks", AH_ARG_INT, AT(inputs.hardware_ranks), "N", .min = 1, .max = 4096, .group = "device and memory",
     .help = "devices of that machine that share model and batch (default 1)"},
    {"device-memory", AH_ARG_SIZE, AT(inputs.budget.device_bytes), "SIZE", .group = "device and memory",
     .help = "memory of one device that plans may use, like 64MiB (default: all)"},
    {"host-memory", AH_ARG_SIZE, AT(inputs.budget.host_bytes), "SIZE", .group = "device and memory",
     .help = "memory of the host that plans may use, like 8GiB (default: all)"},
    {"json", AH_ARG_FLAG, AT(json), .group = "output",
     .help = "print the table as one JSON object in the last line; text goes to standard error"},
};

static int run(const void *given)
{
    const struct ah_fit_args *args = given;
    struct ah_fit fit;
    int status = ah__machine_check(&args->inputs);
    if (status == AH_OK)
        status = ah__fit_init(&fit, args);
    else
        return ah__out_fail(status);
    if (status == AH_OK)
        status = ah__fit_machine(&fit);
    if (status == AH_OK)
        status = ah__fit_rows(&fit, args->json ? stderr : stdout);
    if (status == AH_OK && args->json)
        ah__fit_json(&fit, stdout);
    int exit_status = status == AH_OK ? 0 : ah__out_fail(status);
    ah__fit_fini(&fit);
    return exit_status;
}

static struct ah_fit_args args;
const struct ah_command ah__command_fit = {
    .name = "fit",
    .usage = "[--hardware NAME] [--model FILE ...] [option ...]",
    .summary = "Tell which models train on a machine, how fast, and in how much memory.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
