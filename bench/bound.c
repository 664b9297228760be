/* How close simulated plans come to their bound over random machines and budgets, and how long planning takes.
 *     bound [--layers N] [--machines N] */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "plan/search.h"

enum { MOST = 1024 };

static uint64_t drawn;

static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(ah__random_bits(1, drawn++) % (uint64_t)(high - low + 1));
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A machine whose compute, link and host optimizer are in any proportion; times from the sizes of the partition. */
static void draw_machine(struct ah_profile *profile, const struct ah_partition *partition)
{
    double flop_ns = 1e-3 / (double)draw(1, 40), link_ns = 1.0 / (double)draw(2, 60),
           host_ns = 28.0 / (double)draw(5, 200);
    memset(profile, 0, sizeof *profile);
    profile->partition_signature = partition->signature;
    profile->costs.layers = partition->layers;
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        const struct ah_code *code = &partition->code[class];
        double count = (double)partition->groups[class == 2 ? partition->layers + 1 : class].count;
        int64_t(*ns)[AH_CLASS_COUNT] = profile->costs.ns;
        ns[AH_ITEM_FORWARD][class] = 1 + (int64_t)(code->program[AH_PROGRAM_FORWARD].flops * flop_ns);
        ns[AH_ITEM_BACKWARD][class] = 1 + (int64_t)(code->program[AH_PROGRAM_BACKWARD].flops * flop_ns);
        profile->costs.recompute_ns[class] = 1 + (int64_t)(code->program[AH_PROGRAM_RECOMPUTE].flops * flop_ns);
        profile->costs.selective_ns[class] = 1 + profile->costs.recompute_ns[class] / 20;
        ns[AH_ITEM_PREFETCH][class] = ns[AH_ITEM_REFETCH][class] = ns[AH_ITEM_OFFLOAD][class] =
            1 + (int64_t)(4 * count * link_ns);
        ns[AH_ITEM_UPDATE_HOST][class] = 1 + (int64_t)(count * host_ns);
        ns[AH_ITEM_UPDATE_DEVICE][class] = 1 + (int64_t)(count * 28 / 1500);
        ns[AH_ITEM_INPUT][class] = ns[AH_ITEM_RESULT][class] = 5000;
    }
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            profile->costs.lanes.slowdown[a][b] = 1;
}

int main(int argc, char **argv)
{
    int layers = 48, machines = 60;
    const struct bench_option options[] = {
        {"layers", BENCH_COUNT, &layers, "blocks of the model"},
        {"machines", BENCH_COUNT, &machines, "that are drawn, 1024 at most"},
    };
    BENCH_OPTIONS(argc, argv, "How close simulated plans come to their bound, and how long planning takes.", options);
    machines = bench_least(machines, MOST);
    struct bench bench = {.layers = layers, .width = 1024, .heads = 16, .vocab = 50257, .batch = 4, .seq = 1024};
    static double seconds[MOST], ratio[MOST];
    struct ah_profile profile;
    bench_open_unprofiled(&bench);
    bench_machine(stdout);
    for (int m = 0; m < machines; m++) {
        struct ah_plan least = {.switches = {.layers = layers,
                                             .checkpoint = layers,
                                             .offload_params = layers - 1,
                                             .offload_optimizer = layers,
                                             .embedding_on_host = true,
                                             .head_on_host = true,
                                             .buffers = 2}};
        struct ah_plan most = {.switches = {.layers = layers, .buffers = 1}}, best;
        struct ah_budget budget;
        struct ah_predictor predictor;
        struct ah_search_report report;
        int64_t low, high, host;
        draw_machine(&profile, bench.partition);
        ah__layout_bytes(&low, &host, bench.partition, &least.switches, 0);
        ah__layout_bytes(&high, &host, bench.partition, &most.switches, 0);
        budget = (struct ah_budget){.device_bytes = draw(low, high)};
        BENCH(ah__predictor_init(&predictor, bench.partition, &profile, "autohete"));
        double start = now_s();
        BENCH(ah__plan_search(&best, &report, &predictor, &budget));
        seconds[m] = now_s() - start;
        ratio[m] = (double)best.step_ns / (double)best.bound_ns;
        ah__predictor_fini(&predictor);
    }
    printf("%d machines, %d blocks: planning median %.3f s, worst %.3f s\n", machines, layers,
           bench_quantile(seconds, (size_t)machines, 0.5), bench_quantile(seconds, (size_t)machines, 1));
    printf("simulated step / bound of its plan: median %.4f, 90%% %.4f, worst %.4f\n",
           bench_quantile(ratio, (size_t)machines, 0.5), bench_quantile(ratio, (size_t)machines, 0.9),
           bench_quantile(ratio, (size_t)machines, 1));
    bench_close(&bench);
    return 0;
}
