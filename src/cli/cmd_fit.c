/* autohete fit: which models train on a machine, how fast and in how much memory. */
#include <string.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/fit.h"
#include "cli/machine.h"
#include "cli/out.h"

#define AT(field) offsetof(struct ah_fit_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"hardware", AH_ARG_TEXT, AT(inputs.hardware), "NAME", NULL,
     "machine: a100-40g, h200, ... or a file (default: this one, measured with one model)", 0, 0, false},
    {"ranks", AH_ARG_INT, AT(inputs.hardware_ranks), "N", NULL,
     "devices of that machine that share model and batch (default 1)", 1, 4096, false},
    {"model", AH_ARG_LIST, AT(models), "FILE", NULL,
     "a config.json, its folder or a name of the list; may be given again (default: all that come with autohete)", 0, 0,
     false},
    {"batch", AH_ARG_COUNT, AT(inputs.batch), "B", "8", "sequences in a step", 1, 1048576, false},
    {"seq", AH_ARG_COUNT, AT(inputs.seq), "T", NULL,
     "tokens in a sequence (default: each model's longest, at most 1024; plan and train: at most 256)", 1, 16777216,
     false},
    {"clip", AH_ARG_REAL, AT(inputs.clip), "X", "1", "limit of the norm of all gradients; 0: no limit", 0, 1e30, false},
    AH_ARGS_MICRO_BATCH(AT(inputs.micro_batch), AH_ARG_COUNT, ""),
    AH_ARG_PASSES(AT(inputs.passes)),
    AH_ARG_DTYPE(AT(inputs.dtype), "compute type: bf16 or fp32 (default bf16)"),
    AH_ARGS_STATES(AT(inputs.master), AT(inputs.moments)),
    AH_ARGS_TUNING(AT(inputs.tuning)),
    {"policy", AH_ARG_TEXT, AT(inputs.policy), "NAME", "autohete",
     "order of work: autohete, resident, zero-offload, ... (see the manual)", 0, 0, false},
    {"device-memory", AH_ARG_SIZE, AT(inputs.budget.device_bytes), "SIZE", NULL,
     "memory of one device that plans may use, like 64MiB (default: all)", 0, 0, false},
    {"host-memory", AH_ARG_SIZE, AT(inputs.budget.host_bytes), "SIZE", NULL,
     "memory of the host that plans may use, like 8GiB (default: all)", 0, 0, false},
    AH_ARGS_DEVICE(AT(inputs.device), AT(inputs.dev), "auto", ""),
    AH_ARG_EFFORT(AT(inputs.effort)),
    {"no-cache", AH_ARG_FLAG, AT(inputs.profile.renew), NULL, NULL, "measure even if a profile is cached", 0, 0, false},
    {"json", AH_ARG_FLAG, AT(json), NULL, NULL,
     "print the table as one JSON object in the last line; text goes to standard error", 0, 0, false},
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
