/* How far the planner's choice stays behind a random search over all switches together, which shares the simulator but
 * none of the search: half of its draws are uniform, half change some switches of its best. Positive: the planner's
 * plan is slower. Also how long planning took, by the clock and in processor time of all threads.
 * With --recorded the random search's steps are read from a file, lines of "devices,rates,model,random_ms".
 *     search [--hardware NAME] [--recorded FILE] [--effort N] [--ranks N] [--rates autohete,deepspeed] [--seconds S]
 *            [--model NAME]
 *            [--layers 96,500]: of models of so many blocks of width 2048 instead */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "plan/search.h"
#include "plan/space.h"
#include "random_plans.h"

enum { BATCH = 8 };

static void print_switches(const struct ah_plan *plan, const struct ah_predictor *predictor)
{
    printf("  ");
    for (int i = 0; i < ah__row_count(predictor); i++)
        printf("%s%s=%d", i ? "," : "", ah__switch_table[ah__rows[i].at].key,
               ah__switch_get(&plan->switches, ah__rows[i].at));
}

/* What is compared with, and how. */
struct rival {
    const char *recorded; /* a file; null: a random search of so many seconds */
    int seconds, effort;
};

/* The step of the recorded random search. */
static struct ah_plan recorded_plan(const char *path, int devices, const char *rates, const char *model)
{
    char line[128], key[64];
    struct ah_plan plan = {.step_ns = 0};
    FILE *file = fopen(path, "r");
    snprintf(key, sizeof key, "%d,%s,%s,", devices, rates, model);
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            plan.step_ns = (int64_t)(1e6 * strtod(line + strlen(key), NULL));
    if (file)
        fclose(file);
    BENCH(plan.step_ns ? AH_OK : ah__fail(AH_EINPUT, "%s: found no '%s'", path, key));
    return plan;
}

struct losses {
    double percent[512], planning_s;
    size_t count;
};

/* Takes the model. */
static void row(struct losses *losses, const char *name, struct ah_model *model, const struct ah_hardware *hardware,
                const struct ah_estimate_options *options, const struct rival *rival)
{
    struct ah_hardware_info info;
    struct ah_step_options step = {.clips = true};
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_profile *profile;
    struct ah_predictor predictor;
    struct ah_search_report report;
    struct ah_plan chosen;
    int64_t count = 0, chosen_ns;
    ah_hardware_get(&info, hardware);
    struct ah_budget budget = {.device_bytes = info.device_bytes, .host_bytes = info.host_bytes / options->world_size};
    BENCH(ah_model_record(&graph, model, &(struct ah_record_options){.batch = BATCH, .seq = 1024, .compute = AH_BF16}));
    BENCH(ah_partition_new(&partition, graph, &step));
    BENCH(ah_profile_estimate(&profile, partition, hardware, options));
    BENCH(ah__predictor_init(&predictor, partition, profile, "autohete"));
    predictor.effort = rival->effort;
    double start = random_plans_now_s(), begun = bench_seconds();
    BENCH(ah__plan_search(&chosen, &report, &predictor, &budget));
    double processor = random_plans_now_s() - start, planning = bench_seconds() - begun;
    BENCH(ah__plan_step_ns(&chosen_ns, &chosen, &predictor, AH_PREDICT_ITERATIONS));
    struct ah_plan best = rival->recorded
                              ? recorded_plan(rival->recorded, options->world_size, options->optimizer, name)
                              : random_plans_search(&predictor, &budget, NULL, rival->seconds, &count);
    double percent = 100 * ((double)chosen_ns / (double)best.step_ns - 1);
    losses->percent[losses->count++ % AH_LENGTH(losses->percent)] = percent;
    losses->planning_s = planning > losses->planning_s ? planning : losses->planning_s;
    printf("%-4s %9.1f ms %9.1f ms %+6.2f%%  %6.3f s %7.3f s %6lld  %6lld", name, (double)chosen_ns / 1e6,
           (double)best.step_ns / 1e6, percent, planning, processor, (long long)report.simulated, (long long)count);
    if (best.step_ns < chosen_ns || rival->recorded)
        print_switches(&chosen, &predictor);
    if (best.step_ns < chosen_ns && !rival->recorded) {
        printf("  <-");
        print_switches(&best, &predictor);
    }
    printf("\n");
    fflush(stdout);
    ah__predictor_fini(&predictor);
    ah_profile_free(profile);
    ah_partition_free(partition);
    ah_graph_free(graph);
    ah_model_free(model);
}

static struct ah_model *model_of(const char *name)
{
    char path[64];
    struct ah_model *model;
    snprintf(path, sizeof path, "models/gpt-%s.json", name);
    BENCH(ah_model_load(&model, path));
    return model;
}

static struct ah_model *model_of_layers(int layers)
{
    struct bench bench = {.layers = layers, .width = 2048, .heads = 16, .vocab = 50257, .seq = 1024};
    bench_model_open(&bench);
    return bench.model;
}

static void table(const char *name, const struct ah_hardware *hardware, const struct ah_estimate_options *options,
                  const char *only, const char *layers, const struct rival *rival)
{
    char depth[16];
    static const char *const models[] = {"2b", "4b", "6b", "8b", "10b", "12b", "14b", "16b", "18b", "20b", "22b"};
    struct losses losses = {.count = 0};
    printf("%s, %d of its devices, rates: %s, bf16, batch %d of 1024 tokens on each, clipping; %d s of random search "
           "each\n",
           name, options->world_size, options->optimizer, BATCH, rival->seconds);
    printf("%-4s %12s %12s %7s  %8s %9s %6s  %6s\n", "", "planner", "random", "", "planning", "processor", "plans",
           "drawn");
    for (size_t i = 0; !layers && i < AH_LENGTH(models); i++)
        if (!only || strcmp(only, models[i]) == 0)
            row(&losses, models[i], model_of(models[i]), hardware, options, rival);
    while (layers && bench_word(depth, sizeof depth, &layers))
        row(&losses, depth, model_of_layers(atoi(depth)), hardware, options, rival);
    if (losses.count)
        printf("of %zu: median %+.2f%%, worst %+.2f%%; planning took at most %.3f s\n\n", losses.count,
               bench_quantile(losses.percent, losses.count, 0.5), bench_quantile(losses.percent, losses.count, 1),
               losses.planning_s);
}

int main(int argc, char **argv)
{
    const char *name = "a100-40g", *only = NULL, *layers = NULL, *rates = "autohete,deepspeed,pytorch";
    int ranks = 1;
    struct rival rival = {.seconds = 10, .effort = 1};
    char rate[32];
    struct ah_hardware *hardware;
    const struct bench_option options[] = {
        {"hardware", BENCH_TEXT, &name, "the machine that is simulated"},
        {"ranks", BENCH_COUNT, &ranks, "of its devices"},
        {"rates", BENCH_TEXT, &rates, "whose, separated by commas"},
        {"seconds", BENCH_COUNT, &rival.seconds, "of random search for each model"},
        {"recorded", BENCH_TEXT, &rival.recorded, "a file of what random search found, instead of searching"},
        {"effort", BENCH_COUNT, &rival.effort, "of the planner"},
        {"model", BENCH_TEXT, &only, "only this one, like 4b"},
        {"layers", BENCH_TEXT, &layers, "models of so many blocks instead, separated by commas"},
    };
    BENCH_OPTIONS(argc, argv, "How far the planner's choice stays behind a random search over all switches.", options);
    BENCH(ah_hardware_load(&hardware, name));
    while (bench_word(rate, sizeof rate, &rates)) {
        struct ah_estimate_options estimate = {.world_size = ranks, .optimizer = rate};
        table(name, hardware, &estimate, only, layers, &rival);
    }
    ah_hardware_free(hardware);
    return 0;
}
