/* autohete plan: profiles, plans and explains the plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"

struct plan_args {
    struct ah_session_options inputs;
    const char *out;
    bool explain, json;
};
#define AT(field) offsetof(struct plan_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    AH_ARG_MODEL(AT(inputs.model_path)),
#define AH_OF(train, plan, profile, simulate, fit, inspect) plan
#define AH_AT(field) AT(inputs.field)
#include "cli/rows.h"
    {"hardware", AH_ARG_TEXT, AT(inputs.hardware), "NAME", .group = "device and memory",
     .help = "plan for this machine: a100-40g, h200, ... or a file; its memories are the budget (dtype: bf16)"},
    {"out", AH_ARG_OUT, AT(out), "FILE", .group = "output", .help = "JSON file to save the plan into"},
    {"explain", AH_ARG_FLAG, AT(explain), .group = "output",
     .help = "compare it with the integer program's plan and with plans that differ in one switch"},
    {"json", AH_ARG_FLAG, AT(json), .group = "output",
     .help = "print the plan as one JSON object in the last line; text goes to standard error"},
};

/* Returns the predicted tokens per second of all ranks; NaN: the plan has no times. */
static double speed_of(const struct ah_session_info *info, const struct ah_plan *plan)
{
    double tokens = (double)(info->rank_batch * info->world_size * info->seq);
    return plan->step_ns > 0 ? tokens / ((double)plan->step_ns / 1e9) : NAN;
}

static void speed_print(FILE *to, const struct ah_session_info *info, const struct ah_plan *plan)
{
    long long sequences = info->rank_batch * info->world_size;
    fprintf(to, "step: %lld sequence%s of %lld tokens", sequences, sequences == 1 ? "" : "s", (long long)info->seq);
    if (plan->step_ns > 0)
        fprintf(to, ", %.1f tokens/s predicted", speed_of(info, plan));
    putc('\n', to);
}

/* Prints the plan's own JSON object, which train --plan reads, with the speed added. */
static int json_print(const struct ah_session_info *info, const struct ah_plan *plan)
{
    char *json;
    int status = ah_plan_json(&json, plan);
    if (status != AH_OK)
        return status;
    printf("{\"tokens_per_s\": ");
    ah__out_number(stdout, speed_of(info, plan));
    printf(", ");
    ah__out_line(stdout, strchr(json, '{') + 1);
    putchar('\n');
    free(json);
    return AH_OK;
}

static int show(const struct ah_session *session, const struct plan_args *args)
{
    FILE *text = args->json ? stderr : stdout;
    const struct ah_session_info *info = ah_session_get(session);
    const struct ah_plan *plan = ah_session_plan(session);
    if (args->inputs.hardware)
        fprintf(text, "machine: %s, which is not this one\n", args->inputs.hardware);
    ah__micro_batch_print(text, info->micro_batch, info->micro_batches, info->micro_batch_chosen);
    speed_print(text, info, plan);
    int status = ah_plan_print(plan, &info->budget, text);
    if (status == AH_OK && args->explain)
        status = ah_plan_explain(plan, ah_session_partition(session), ah_session_profile(session), &info->budget, text);
    if (status == AH_OK && args->out && info->rank == 0)
        status = ah_plan_save(plan, args->out);
    return status == AH_OK && args->json ? json_print(info, plan) : status;
}

static int run(const void *given)
{
    const struct plan_args *args = given;
    struct ah_session *session = NULL;
    int status = ah__session_start(&session, &args->inputs, AH_SESSION_PLAN, args->json ? stderr : stdout);
    if (status == AH_OK)
        status = show(session, args);
    int exit_status = status == AH_OK ? 0 : ah__out_fail(status);
    ah_session_close(session);
    return exit_status;
}

static struct plan_args args;
const struct ah_command ah__command_plan = {
    .name = "plan",
    .usage = "--model FILE --device-memory SIZE [option ...]",
    .summary = "Choose what is recomputed and what is offloaded, and predict time and memory.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .together = true,
    .run = run,
};
