/* What a quota for chunks that changes with the moment could give PatrickStar at most (moving_quota.h). The policy is
 * given what is no model data as memory more, in three ways:
 * - `buffers`: more buffers, but at the peak no more chunks than today's. A quota that moves gives no more than this.
 * - `chunks`: a larger budget for parameters, as if the peak did not matter: fewer blocks are evicted.
 * - `all`: a larger budget for states too, which the published system, too, places by the peak.
 *     quota [--hardware NAME] [--ranks N] [--batch N] [--memory 12G] [--rates autohete,deepspeed,pytorch]
 *           [--models 2b,...]
 *
 * What does not fit as it is does not fit with a quota that moves either. Simulated: the same on every machine. */
#include "bench.h"

#include <stdlib.h>

#include "moving_quota.h"
#include "plan/candidates.h"
#include "plan/fit.h"
#include "plan/search.h"

enum { MOST_MODELS = 32, SEQ = 1024 };

/* What the memory goes to. */
enum way { SLOTS, CHUNKS, ALL, WAYS };
static const char *const way_names[WAYS] = {"buffers", "chunks", "all"};

/* One table; its models are fewer than MOST_MODELS. */
struct table {
    const struct ah_hardware *hardware;
    struct ah_estimate_options estimate;
    enum ah_memory_rule rule;
    int batch;                         /* of all ranks */
    int64_t device_bytes;              /* at most the machine's; 0: the machine's */
    double shorter[WAYS][MOST_MODELS]; /* at most, in % of today's step */
    size_t count;
};

static int64_t not_model_bytes(const struct ah_plan *plan, const struct ah_predictor *predictor)
{
    int64_t bytes;
    BENCH(moving_quota_room_bytes(&bytes, plan, predictor));
    return bytes;
}

/* The policy's first placement that fits, as the search has it (candidates.c), with or without recomputation; `more`:
 * as if activations and scratch took nothing; `on_host`: of those with so many blocks' states there, -1: any. */
static bool place(struct ah_plan *out, const struct ah_predictor *predictor, const struct ah_budget *budget,
                  bool recomputes, bool more, int on_host)
{
    struct ah_plan plan;
    struct ah_switches *switches = &plan.switches;
    for (int i = 0; ah__candidate_placed(&plan, predictor, i); i++) {
        struct ah_budget larger = *budget;
        if ((switches->checkpoint > 0) != recomputes || (on_host >= 0 && switches->offload_optimizer != on_host))
            continue;
        larger.device_bytes += more ? not_model_bytes(&plan, predictor) : 0;
        if (!ah__plan_within(&plan, &larger))
            continue;
        switches->out_of_order = switches->offload_optimizer ? switches->buffers : 0;
        BENCH(ah__plan_predict(&plan, predictor));
        *out = plan;
        return true;
    }
    return false;
}

/* Takes the plan for *best where that is none or slower. */
static void keep(struct ah_plan *best, const struct ah_plan *plan)
{
    if (!best->step_ns || plan->step_ns < best->step_ns)
        *best = *plan;
}

/* What is measured here must be what the search chooses. */
static void check(const struct ah_plan *today, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_plan chosen;
    struct ah_search_report report;
    int status = ah__plan_search(&chosen, &report, predictor, budget);
    if (today->step_ns ? status == AH_OK && chosen.step_ns == today->step_ns : status == AH_EBUDGET)
        return;
    fprintf(stderr, "bench_quota: the search has another plan: %.3f ms, expected %.3f ms\n",
            status == AH_OK ? (double)chosen.step_ns / 1e6 : 0.0, (double)today->step_ns / 1e6);
    exit(1);
}

static void print_plan(const struct ah_plan *plan)
{
    const struct ah_switches *s = &plan->switches;
    printf("  %9.1f ms %2d,%2d,%2d %3d", (double)plan->step_ns / 1e6, s->checkpoint, s->offload_params,
           s->offload_optimizer, s->buffers);
}

static void ways_find(struct ah_plan *ways, struct ah_plan *today, const struct ah_predictor *predictor,
                      const struct ah_budget *budget)
{
    struct moving_quota buffers = {.plan = {.step_ns = 0}};
    for (int recomputes = 0; recomputes < 2; recomputes++) {
        struct ah_plan plan, larger;
        if (!place(&plan, predictor, budget, recomputes, false, -1))
            continue;
        keep(today, &plan);
        if (place(&larger, predictor, budget, recomputes, true, plan.switches.offload_optimizer))
            keep(&ways[CHUNKS], &larger);
        if (place(&larger, predictor, budget, recomputes, true, -1))
            keep(&ways[ALL], &larger);
        BENCH(moving_quota_find(&buffers, &plan, predictor));
    }
    ways[SLOTS] = buffers.plan;
}

static void compare(struct table *table, const char *name, const struct ah_predictor *predictor,
                    const struct ah_budget *budget)
{
    struct ah_plan today = {.step_ns = 0}, ways[WAYS] = {{.step_ns = 0}};
    ways_find(ways, &today, predictor, budget);
    check(&today, predictor, budget);
    printf("%-4s", name);
    if (!today.step_ns) {
        printf("  does not fit\n");
        return;
    }
    print_plan(&today);
    printf("  %5.1f GiB", (double)not_model_bytes(&today, predictor) / (1 << 30));
    for (int way = 0; way < WAYS; way++) {
        double percent = 100 * (1 - (double)ways[way].step_ns / (double)today.step_ns);
        table->shorter[way][table->count] = percent;
        print_plan(&ways[way]);
        printf(" %+6.2f%%", percent);
    }
    printf("\n");
    table->count++;
}

static void row(struct table *table, const char *name)
{
    char path[64];
    struct bench bench = {0};
    struct ah_hardware_info info;
    struct ah_predictor predictor;
    int ranks = table->estimate.world_size;
    snprintf(path, sizeof path, "models/gpt-%s.json", name);
    ah_hardware_get(&info, table->hardware);
    BENCH(ah_model_load(&bench.model, path));
    BENCH(ah_model_record(&bench.graph, bench.model, table->batch / ranks, SEQ, AH_BF16));
    BENCH(ah_partition_new(&bench.partition, bench.graph, NULL));
    BENCH(ah_profile_estimate(&bench.profile, bench.partition, table->hardware, &table->estimate));
    BENCH(ah__predictor_init(&predictor, bench.partition, bench.profile, "patrickstar"));
    predictor.rule = table->rule;
    struct ah_budget budget = {
        .device_bytes = info.device_bytes, .host_bytes = info.host_bytes / ranks, .rule = table->rule};
    if (table->device_bytes && table->device_bytes < budget.device_bytes)
        budget.device_bytes = table->device_bytes;
    compare(table, name, &predictor, &budget);
    ah__predictor_fini(&predictor);
    bench_close(&bench);
}

static void table_print(struct table *table, const char *hardware, const char *models)
{
    char name[32];
    printf("\n%s, %d of its devices, memory %s, rates: %s, bf16, %d x %d tokens\n%-4s  %-25s  %9s", hardware,
           table->estimate.world_size, table->rule == AH_MEMORY_PUBLISHED ? "as published" : "of the layout",
           table->estimate.optimizer, table->batch, SEQ, "", "today        c, p, o   S", "no model");
    for (int way = 0; way < WAYS; way++)
        printf("  %33s", way_names[way]);
    printf("\n");
    while (table->count < MOST_MODELS && bench_word(name, sizeof name, &models))
        row(table, name);
    printf(table->count ? "of %zu, shorter at most by" : "%zu fit", table->count);
    for (int way = 0; way < WAYS && table->count; way++)
        printf("%s %s: median %.2f%%, most %.2f%%", way ? ";" : "", way_names[way],
               bench_quantile(table->shorter[way], table->count, 0.5),
               bench_quantile(table->shorter[way], table->count, 1));
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *name = "a100-40g", *memory = NULL, *rates = "autohete,deepspeed,pytorch",
               *models = "2b,4b,6b,8b,10b,12b,14b,16b,18b,20b,22b";
    int ranks = 1, batch = 8;
    struct ah_hardware *hardware;
    const struct bench_option options[] = {
        {"hardware", BENCH_TEXT, &name, "the machine that is simulated"},
        {"ranks", BENCH_COUNT, &ranks, "of its devices"},
        {"batch", BENCH_COUNT, &batch, "sequences of all ranks together"},
        {"memory", BENCH_TEXT, &memory, "of each device, like 12G, instead of what it has"},
        {"rates", BENCH_TEXT, &rates, "whose, separated by commas"},
        {"models", BENCH_TEXT, &models, "of models/gpt-NAME.json, separated by commas"},
    };
    BENCH_OPTIONS(argc, argv, "What a quota that changes with the moment could give PatrickStar at most.", options);
    BENCH(ah_hardware_load(&hardware, name));
    for (int rule = 0; rule < 2; rule++) {
        char rate[32];
        const char *left = rates;
        while (bench_word(rate, sizeof rate, &left)) {
            struct table table = {.hardware = hardware,
                                  .estimate = {.world_size = ranks, .optimizer = rate},
                                  .rule = rule ? AH_MEMORY_PUBLISHED : AH_MEMORY_LAYOUT,
                                  .batch = batch,
                                  .device_bytes = memory ? bench_bytes(memory) : 0};
            table_print(&table, name, models);
        }
    }
    ah_hardware_free(hardware);
    return 0;
}
