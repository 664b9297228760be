/* autohete simulate: the timeline of a plan, without running it. */
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/road.h"

struct simulate_args {
    struct ah_cli_road_args road;
    int iterations;
    const char *svg, *trace;
    bool json;
};
#define AT(field) offsetof(struct simulate_args, field)

static const struct ah_arg options[] = {
    AH_ARGS_MODEL(AT(road.model)),
    AH_ARGS_SHAPE(AT(road.batch), AT(road.seq)),
    AH_ARGS_BUDGET(AT(road.budget)),
    AH_ARGS_DEVICE(AT(road.device), AT(road.dev)),
    AH_ARGS_PLAN(AT(road.plan), AT(road.policy), AT(road.profile)),
    {"iterations", AH_ARG_INT, AT(iterations), "N", "6", "iterations to simulate", 1, 10000, false},
    {"svg", AH_ARG_TEXT, AT(svg), "FILE", NULL, "where to draw two iterations", 0, 0, false},
    {"trace", AH_ARG_TEXT, AT(trace), "FILE", NULL, "where to save all of them as a Chrome trace", 0, 0, false},
    {"json", AH_ARG_FLAG, AT(json), NULL, NULL,
     "the last line of output is the plan, with its prediction, as one JSON object", 0, 0, false},
};

static int show(const struct ah_cli_road *road, const struct ah_timeline *timeline, const struct simulate_args *args)
{
    FILE *text = args->json ? stderr : stdout;
    int status = ah_plan_print(&road->plan, &args->road.budget, text);
    if (status == AH_OK)
        status = ah_timeline_print(timeline, text);
    if (status == AH_OK && args->svg)
        status = ah_timeline_save_svg(timeline, NULL, args->road.budget.device_bytes, args->svg);
    if (status == AH_OK && args->trace)
        status = ah_timeline_save(timeline, args->trace);
    if (status == AH_OK && args->json) {
        status = ah__out_plan(stdout, &road->plan);
        putchar('\n');
    }
    return status;
}

static int run(const void *given)
{
    const struct simulate_args *args = given;
    struct ah_cli_road road = {0};
    struct ah_timeline *timeline = NULL;
    int status = ah__cli_road_plan(&road, &args->road);
    if (status == AH_OK)
        status = ah_plan_simulate(&timeline, &road.plan, road.partition, road.profile, args->iterations);
    if (status == AH_OK)
        status = show(&road, timeline, args);
    int exit_status = status == AH_OK ? 0 : ah__out_fail(status);
    ah_timeline_free(timeline);
    ah__cli_road_free(&road);
    return exit_status;
}

static struct simulate_args args;
const struct ah_command ah__command_simulate = {
    .name = "simulate",
    .usage = "--model FILE [--profile FILE] [option ...]",
    .summary = "Predict the timeline of a plan without running it.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
