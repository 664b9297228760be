/* What exact clipping costs while nothing is clipped: step times without clipping, with updates that wait for the norm,
 * and with speculative updates (the planner's choice). Simulated on a machine's figures over the paper's models, then
 * for real on the CPU device with a throttled link, rounds interleaved, medians:
 *     clip [--hardware NAME] [--host-memory 800G] [--simulated] [--rounds N]
 * With more host memory than that machine has, there is room for every shadow states. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "plan/search.h"

enum { WAYS = 3, STEPS = 30, MOST_ROUNDS = 16 };
static const char *const way_names[WAYS] = {"none", "waits", "overlaps"};

/* ---- simulated --------------------------------------------------------------------------------------------------- */

/* One model's plan under one of the three ways; layers 0: nothing fits. */
static struct ah_plan simulated(const struct ah_graph *graph, const struct ah_hardware *hardware,
                                const char *host_memory, int way)
{
    struct ah_hardware_info info;
    struct ah_step_options step = {.clips = way > 0};
    struct ah_estimate_options options = {.world_size = 1};
    struct ah_partition *partition;
    struct ah_profile *profile;
    struct ah_predictor predictor;
    struct ah_search_report report;
    struct ah_plan plan = {.step_ns = 0};
    ah_hardware_get(&info, hardware);
    struct ah_budget budget = {.device_bytes = info.device_bytes,
                               .host_bytes = host_memory ? bench_bytes(host_memory) : info.host_bytes};
    BENCH(ah_partition_new(&partition, graph, &step));
    BENCH(ah_profile_estimate(&profile, partition, hardware, &options));
    BENCH(ah__predictor_init(&predictor, partition, profile, "autohete"));
    predictor.no_shadows = way == 1;
    int status = ah__plan_search(&plan, &report, &predictor, &budget);
    if (status != AH_EBUDGET)
        BENCH(status);
    ah__predictor_fini(&predictor);
    ah_profile_free(profile);
    ah_partition_free(partition);
    return plan;
}

static void simulated_row(const char *name, const struct ah_hardware *hardware, const char *host_memory)
{
    char path[64];
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_plan plan[WAYS];
    snprintf(path, sizeof path, "models/gpt-%s.json", name);
    BENCH(ah_model_load(&model, path));
    BENCH(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 8, .seq = 1024, .compute = AH_BF16}));
    for (int way = 0; way < WAYS; way++)
        plan[way] = simulated(graph, hardware, host_memory, way);
    double none = (double)plan[0].step_ns;
    printf("  %-4s %9.1f ms %9.1f ms %+6.1f%% %9.1f ms %+6.1f%%   %2d of %2d blocks, %6.1f -> %6.1f GiB host\n", name,
           none / 1e6, (double)plan[1].step_ns / 1e6, 100 * ((double)plan[1].step_ns / none - 1),
           (double)plan[2].step_ns / 1e6, 100 * ((double)plan[2].step_ns / none - 1), plan[2].switches.shadows,
           plan[2].switches.offload_optimizer, (double)plan[0].host_peak_bytes / (1 << 30),
           (double)plan[2].host_peak_bytes / (1 << 30));
    fflush(stdout);
    ah_graph_free(graph);
    ah_model_free(model);
}

static void simulated_table(const char *name, const char *host_memory)
{
    static const char *const models[] = {"2b", "4b", "6b", "8b", "10b", "12b", "14b", "16b", "18b", "20b", "22b"};
    struct ah_hardware *hardware;
    BENCH(ah_hardware_load(&hardware, name));
    printf("simulated on %s, bf16, batch 8 of 1024 tokens, best plan of each; host memory without and with "
           "shadow states%s%s\n",
           name, host_memory ? "; of at most " : "", host_memory ? host_memory : "");
    printf("  %-4s %12s %12s %7s %12s %7s   shadow states\n", "", "no clipping", way_names[1], "", way_names[2], "");
    for (size_t i = 0; i < AH_LENGTH(models); i++)
        simulated_row(models[i], hardware, host_memory);
    ah_hardware_free(hardware);
}

/* ---- for real ---------------------------------------------------------------------------------------------------- */

static void real_row(const struct bench *off, const struct bench *on, const char *spec, int rounds)
{
    char text[WAYS][96];
    struct ah_plan plan[WAYS];
    struct ah_budget budget = {0};
    int64_t ns[WAYS][MOST_ROUNDS];
    double waits[MOST_ROUNDS], overlaps[MOST_ROUNDS];
    snprintf(text[0], sizeof text[0], "%s", spec);
    snprintf(text[1], sizeof text[1], "%s,shadows=0", spec);
    snprintf(text[2], sizeof text[2], "%s", spec);
    for (int way = 0; way < WAYS; way++) {
        const struct bench *bench = way ? on : off;
        BENCH(ah_plan_parse(&plan[way], text[way], bench->partition, bench->profile, &budget, "autohete"));
    }
    for (int r = 0; r < rounds; r++) {
        for (int way = 0; way < WAYS; way++) {
            struct bench_steps steps;
            bench_run(&steps, way ? on : off, &plan[way], STEPS, false);
            ns[way][r] = steps.median_ns;
        }
        waits[r] = (double)ns[1][r] / (double)ns[0][r];
        overlaps[r] = (double)ns[2][r] / (double)ns[0][r];
    }
    double none = (double)bench_median(ns[0], (size_t)rounds) / 1e6;
    double waiting = (double)bench_median(ns[1], (size_t)rounds) / 1e6;
    double overlapping = (double)bench_median(ns[2], (size_t)rounds) / 1e6;
    printf("  %-16s %8.2f ms %8.2f ms %+6.1f%% (sim %+6.1f%%) %8.2f ms %+6.1f%% (sim %+6.1f%%)   %d shadow states\n",
           spec, none, waiting, 100 * (bench_quantile(waits, (size_t)rounds, 0.5) - 1),
           100 * ((double)plan[1].step_ns / (double)plan[0].step_ns - 1), overlapping,
           100 * (bench_quantile(overlaps, (size_t)rounds, 0.5) - 1),
           100 * ((double)plan[2].step_ns / (double)plan[0].step_ns - 1), plan[2].switches.shadows);
    fflush(stdout);
}

static void real_table(int rounds)
{
    static const char *const specs[] = {"c=0,p=0,o=12", "c=0,p=6,o=12", "c=12,p=12,o=12", "c=6,p=4,o=8"};
    struct bench off = {.layers = 12,
                        .width = 512,
                        .heads = 8,
                        .vocab = 256,
                        .batch = 2,
                        .seq = 64,
                        .dev = {.threads = 1, .host_threads = 1, .link_bytes_per_s = 4000000000}};
    struct bench on = off;
    on.clip = 1e30; /* never exceeded */
    bench_open(&off);
    bench_open(&on);
    printf("\nfor real: 12 blocks of width 512, 2 x 64 tokens, link 4 GB/s, %d rounds of %d steps, nothing clipped\n",
           rounds, STEPS);
    bench_machine(stdout);
    printf("  %-16s %11s %11s %22s %11s\n", "plan", "no clipping", way_names[1], "", way_names[2]);
    for (size_t i = 0; i < AH_LENGTH(specs); i++)
        real_row(&off, &on, specs[i], rounds);
    bench_close(&on);
    bench_close(&off);
}

int main(int argc, char **argv)
{
    const char *hardware = "a100-40g", *host_memory = NULL;
    int rounds = 5;
    bool only_simulated = false;
    const struct bench_option options[] = {
        {"hardware", BENCH_TEXT, &hardware, "the machine that is simulated"},
        {"host-memory", BENCH_TEXT, &host_memory, "instead of that machine's"},
        {"simulated", BENCH_FLAG, &only_simulated, "nothing is trained"},
        {"rounds", BENCH_COUNT, &rounds, "trainings of each kind, 16 at most"},
    };
    BENCH_OPTIONS(argc, argv, "What exact clipping costs while nothing is clipped.", options);
    simulated_table(hardware, host_memory);
    if (only_simulated)
        return 0;
    real_table(bench_least(rounds, MOST_ROUNDS));
    return 0;
}
