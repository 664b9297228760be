/* autohete profile: times one block, embedding, head, optimizer and copies on a device. */
#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/machine.h"
#include "cli/out.h"

struct profile_args {
    struct ah_session_options inputs;
    const char *out, *as_hardware;
    bool json;
};
#define AT(field) offsetof(struct profile_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    AH_ARG_MODEL(AT(inputs.model_path)),
#define AH_OF(train, plan, profile, simulate, fit, inspect) profile
#define AH_AT(field) AT(inputs.field)
#include "cli/rows.h"
    {"out", AH_ARG_OUT, AT(out), "FILE", .group = "output", .help = "JSON file to save the profile into"},
    {"as-hardware", AH_ARG_OUT, AT(as_hardware), "FILE", .group = "output",
     .help = "JSON file to save it into as a machine for --hardware"},
    {"json", AH_ARG_FLAG, AT(json), .group = "output",
     .help = "print the profile as one JSON object in the last line; text goes to standard error"},
};

static int save(const void *profile, const char *path)
{
    return ah_profile_save(profile, path);
}

static int show(const struct ah_session *session, const struct profile_args *args)
{
    const struct ah_profile *profile = ah_session_profile(session);
    int status = ah_profile_print(profile, args->json ? stderr : stdout);
    if (status == AH_OK && args->out && ah_session_get(session)->rank == 0)
        status = ah_profile_save(profile, args->out);
    if (status == AH_OK && args->as_hardware)
        status = ah__machine_save(session, args->as_hardware);
    if (status == AH_OK && args->json) {
        status = ah__out_saved(stdout, save, profile);
        putchar('\n');
    }
    return status;
}

static int run(const void *given)
{
    const struct profile_args *args = given;
    struct ah_session *session = NULL;
    struct ah_session_options inputs = args->inputs;
    inputs.profile.renew = true; /* measuring is the purpose of the command; a cached profile is replaced */
    int status = AH_OK;
    if (args->as_hardware && (inputs.tuning.freeze || inputs.tuning.lora_rank))
        status = ah__out_fault("--as-hardware: found it beside frozen parameters, whose updates are too small to tell "
                               "rates, expected a profile of a training of everything");
    if (status == AH_OK)
        status = ah__session_start(&session, &inputs, AH_SESSION_PROFILE, args->json ? stderr : stdout);
    if (status == AH_OK)
        status = show(session, args);
    int exit_status = status == AH_OK ? 0 : ah__out_fail(status);
    ah_session_close(session);
    return exit_status;
}

static struct profile_args args;
const struct ah_command ah__command_profile = {
    .name = "profile",
    .usage = "--model FILE [option ...]",
    .summary = "Time one block, embedding, head, optimizers and copies on the device.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .together = true,
    .run = run,
};
