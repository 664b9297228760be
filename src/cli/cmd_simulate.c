/* autohete simulate: predicts the timeline of a plan without running it, or compares policies, also on a machine that
 * is not at hand. */
#include <string.h>

#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/out.h"

struct simulate_args {
    struct ah_session_options inputs;
    struct ah_compare_args compare;
    int iterations;
    const char *svg, *trace;
    bool json;
};
#define AT(field) offsetof(struct simulate_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    AH_ARG_MODEL(AT(inputs.model_path)),
#define AH_OF(train, plan, profile, simulate, fit, inspect) simulate
#define AH_AT(field) AT(inputs.field)
#include "cli/rows.h"
    {"hardware", AH_ARG_TEXT, AT(inputs.hardware), "NAME", .group = "device and memory",
     .help = "predict for this machine: a100-40g, h200, ... or a file; its memories are the budget"},
    {"ranks", AH_ARG_INT, AT(inputs.hardware_ranks), "N", .min = 1, .max = 4096, .group = "device and memory",
     .help = "devices of that machine that share model and batch (default 1)"},
    {"optimizer", AH_ARG_TEXT, AT(inputs.optimizer), "WHOSE", .group = "device and memory",
     .words = "autohete deepspeed pytorch",
     .help = "rates of that machine: autohete, deepspeed (its host Adam) or pytorch (default autohete)"},
    {"sweep", AH_ARG_TEXT, AT(compare.sweep), "SWEEP", .group = "plan",
     .help = "compare at several values: device-memory=8GiB:40GiB:4GiB, host-memory=, batch=4:32:4 or seq="},
    {"iterations", AH_ARG_INT, AT(iterations), "N", .initial = "6", .min = 1, .max = 10000, .group = "output",
     .help = "iterations to simulate"},
    {"svg", AH_ARG_OUT, AT(svg), "FILE", .group = "output", .help = "SVG file to draw two iterations into"},
    {"trace", AH_ARG_OUT, AT(trace), "FILE", .group = "output",
     .help = "Chrome trace file to save all iterations into"},
    {"json", AH_ARG_FLAG, AT(json), .group = "output",
     .help = "print the result as one JSON object in the last line; text goes to standard error"},
};

static int show_timeline(const struct ah_session *session, const struct ah_plan *plan, const struct ah_budget *budget,
                         const struct simulate_args *args)
{
    FILE *text = args->json ? stderr : stdout;
    const struct ah_session_info *info = ah_session_get(session);
    struct ah_timeline *timeline = NULL;
    int status =
        ah_plan_simulate(&timeline, plan, ah_session_partition(session), ah_session_profile(session), args->iterations);
    if (status == AH_OK)
        ah__micro_batch_print(text, info->micro_batch, info->micro_batches, info->micro_batch_chosen);
    if (status == AH_OK)
        status = ah_plan_print(plan, budget, text);
    if (status == AH_OK)
        status = ah_timeline_print(timeline, text);
    if (status == AH_OK && args->svg)
        status = ah_timeline_save_svg(timeline, NULL, budget->device_bytes, args->svg);
    if (status == AH_OK && args->trace)
        status = ah_timeline_save(timeline, args->trace);
    ah_timeline_free(timeline);
    return status;
}

static int show(const struct ah_session *session, const struct ah_plan *plan, const struct ah_budget *budget,
                const struct simulate_args *args)
{
    int status = show_timeline(session, plan, budget, args);
    if (status == AH_OK && args->json) {
        status = ah__out_plan(stdout, plan);
        putchar('\n');
    }
    return status;
}

/* Simulates one policy on a device, or with a saved profile. */
static int simulate(const struct simulate_args *args)
{
    struct ah_session *session;
    int status = ah__session_start(&session, &args->inputs, AH_SESSION_PLAN, args->json ? stderr : stdout);
    if (status == AH_OK)
        status = show(session, ah_session_plan(session), &ah_session_get(session)->budget, args);
    ah_session_close(session);
    return status;
}

/* Refuses options that describe one plan if several policies or points are compared. */
static int check_single(const struct simulate_args *args, const struct ah_compare *compare)
{
    const struct {
        const char *name;
        bool given;
    } single[] = {{"svg", args->svg}, {"trace", args->trace}, {"plan", !ah_plan_is_open(args->inputs.plan)}};
    bool one = compare->policies[1] == NULL && compare->sweep.count == 1;
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
        if (single[i].given && !one)
            return ah__out_fault("--%s: found it with several policies or points, expected one", single[i].name);
    return AH_OK;
}

/* Shows a plan given by hand (--plan) for a described machine. */
static int compare_plan(struct ah_compare *compare, const struct simulate_args *args)
{
    int status = ah__compare_point(compare, 0);
    if (status == AH_OK)
        status = ah_plan_parse(&compare->plan, args->inputs.plan, ah_session_partition(compare->session),
                               ah_session_profile(compare->session), &compare->budget, compare->policies[0]);
    return status == AH_OK ? show(compare->session, &compare->plan, &compare->budget, args) : status;
}

/* Shows the timeline of the plan found. It comes before the table, which ends with the JSON line. */
static int compare_picture(struct ah_compare *compare, const struct simulate_args *args)
{
    int status = ah__compare_point(compare, 0);
    if (status == AH_OK)
        status = ah__compare_search(compare);
    return status == AH_OK ? show_timeline(compare->session, &compare->plan, &compare->budget, args) : status;
}

static int compare_policies(const struct simulate_args *args)
{
    struct ah_compare compare;
    int status = ah__compare_init(&compare, &args->inputs, &args->compare);
    if (status == AH_OK)
        status = check_single(args, &compare);
    bool by_hand = !ah_plan_is_open(args->inputs.plan);
    if (status == AH_OK && by_hand)
        status = compare_plan(&compare, args);
    if (status == AH_OK && !by_hand && (args->svg || args->trace))
        status = compare_picture(&compare, args);
    if (status == AH_OK && !by_hand)
        status = ah__compare_show(&compare, args->json ? stderr : stdout, args->json ? stdout : NULL);
    ah__compare_fini(&compare);
    return status;
}

static int run(const void *given)
{
    const struct simulate_args *args = given;
    bool compares = ah__compare_wanted(&args->inputs, &args->compare);
    int status = compares ? compare_policies(args) : simulate(args);
    return status == AH_OK ? 0 : ah__out_fail(status);
}

static struct simulate_args args;
const struct ah_command ah__command_simulate = {
    .name = "simulate",
    .usage = "--model FILE [--hardware NAME | --profile FILE] [option ...]",
    .summary = "Predict the timeline of a plan without running it, or compare policies.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
