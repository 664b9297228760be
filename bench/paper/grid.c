#include "paper/grid.h"

#include <math.h>

#include "bench.h"
#include "paper/published.h"
#include "plan/evaluate.h"

const struct paper_system paper_systems[PAPER_POLICIES] = {
    [PAPER_ZERO] = {"zero-offload", "ZeRO-Offload", "ZeRO-Offload"},
    [PAPER_PATRICKSTAR] = {"patrickstar", "PatrickStar", "PatrickStar"},
    [PAPER_STRONGHOLD] = {"stronghold", "StrongHold", "StrongHold"},
    [PAPER_BEST] = {"stronghold-best", "StrongHold, best W", "StrongHold, best W"},
    [PAPER_FIFO] = {"autohete-fifo", "AutoHete w/o PS", "itself without priorities"},
    [PAPER_PLAIN] = {"autohete-paper", "AutoHete as published", "itself as published"},
    [PAPER_AUTOHETE] = {"autohete", "AutoHete", "itself"},
};
const enum paper_policy paper_published[PAPER_PUBLISHED] = {PAPER_ZERO, PAPER_PATRICKSTAR, PAPER_STRONGHOLD};
const struct paper_world paper_worlds[PAPER_WORLDS] = {
    {false, "autohete", "ours-own", "our memory, our rates"},
    {false, "deepspeed", "ours-deepspeed", "our memory, DeepSpeed's host Adam"},
    {false, "pytorch", "ours-pytorch", "our memory, PyTorch-like rates"},
    {true, "autohete", "published-own", "memory as published, our rates"},
    {true, "deepspeed", "published-deepspeed", "memory as published, DeepSpeed's host Adam"},
    {true, "pytorch", "published-pytorch", "memory as published, PyTorch-like rates"},
};
const int paper_billions[PAPER_MODELS] = {2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22};

struct paper_point paper_point(int billions, int ranks, int64_t batch, const struct paper_world *world)
{
    return (struct paper_point){
        .billions = billions, .world_size = ranks, .batch = batch, .world = world, .compute = 1, .link = 1, .host = 1};
}

/* The kinds whose time each rate divides. */
static void scale(struct ah_profile *profile, const struct paper_point *point)
{
    const struct {
        enum ah_item_kind kind;
        double rate;
    } scaled[] = {
        {AH_ITEM_FORWARD, point->compute}, {AH_ITEM_BACKWARD, point->compute}, {AH_ITEM_PREFETCH, point->link},
        {AH_ITEM_REFETCH, point->link},    {AH_ITEM_OFFLOAD, point->link},     {AH_ITEM_UPDATE_HOST, point->host},
    };
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        int64_t *recompute = &profile->costs.recompute_ns[class], *selective = &profile->costs.selective_ns[class];
        for (size_t i = 0; i < AH_LENGTH(scaled); i++) {
            int64_t *ns = &profile->costs.ns[scaled[i].kind][class];
            *ns = llround((double)*ns / scaled[i].rate);
        }
        *recompute = llround((double)*recompute / point->compute);
        *selective = llround((double)*selective / point->compute);
    }
}

static void describe(struct paper_cell *cell, const struct bench *bench)
{
    const struct ah_partition *partition = bench->partition;
    const struct ah_param *norm = &partition->params[partition->groups[partition->layers + 1].first_param];
    cell->layers = partition->layers;
    cell->hidden = norm->shape.dim[0];
    for (int g = 0; g < partition->group_count; g++)
        cell->params += partition->groups[g].elements;
}

/* Without priorities, the plan that was made for them. */
static double same_plan(const struct ah_evaluation *ours, const struct bench *bench)
{
    struct ah_predictor predictor;
    int64_t step_ns;
    if (!ours->fits)
        return NAN;
    BENCH(ah__predictor_init(&predictor, bench->partition, bench->profile, paper_systems[PAPER_FIFO].policy));
    BENCH(ah__plan_step_ns(&step_ns, &ours->plan, &predictor, 8));
    ah__predictor_fini(&predictor);
    return (double)step_ns / (double)ours->plan.step_ns;
}

static void evaluate_all(struct paper_cell *cell, const struct bench *bench, const struct ah_budget *budget)
{
    for (int p = 0; p < PAPER_POLICIES; p++) {
        struct ah_predictor predictor;
        BENCH(ah__predictor_init(&predictor, bench->partition, bench->profile, paper_systems[p].policy));
        predictor.count_bytes = cell->point.world->published ? published_bytes : NULL;
        BENCH(ah__plan_evaluate(&cell->of[p], &predictor, budget, NULL));
        ah__predictor_fini(&predictor);
    }
    cell->same_plan = same_plan(&cell->of[PAPER_AUTOHETE], bench);
}

void paper_evaluate(struct paper_cell *out, const struct paper_point *point)
{
    char model[64];
    struct bench bench = {0};
    struct ah_hardware *hardware;
    struct ah_hardware_info info;
    struct ah_estimate_options options = {point->world_size, point->world->optimizer, NULL};
    snprintf(model, sizeof model, "models/gpt-%db.json", point->billions);
    BENCH(ah_hardware_load(&hardware, point->world_size == 1 ? "hardware/a100-40g.json" : "hardware/a100-40g-x4.json"));
    ah_hardware_get(&info, hardware);
    BENCH(ah_model_load(&bench.model, model));
    BENCH(ah_model_record(
        &bench.graph, bench.model,
        &(struct ah_record_options){.batch = point->batch / point->world_size, .seq = PAPER_SEQ, .compute = AH_BF16}));
    BENCH(ah_partition_new(&bench.partition, bench.graph, NULL));
    BENCH(ah_profile_estimate(&bench.profile, bench.partition, hardware, &options));
    scale(bench.profile, point);
    struct ah_budget budget = {.device_bytes = info.device_bytes, .host_bytes = info.host_bytes / point->world_size};
    if (point->device_bytes && point->device_bytes < budget.device_bytes)
        budget.device_bytes = point->device_bytes;
    *out = (struct paper_cell){.point = *point};
    out->point.device_bytes = budget.device_bytes;
    out->host_bytes = budget.host_bytes;
    out->adam_params_per_s = point->world_size * (double)bench.profile->params[AH_CLASS_BLOCK] / point->world_size *
                             1e9 / (double)bench.profile->costs.ns[AH_ITEM_UPDATE_HOST][AH_CLASS_BLOCK];
    describe(out, &bench);
    evaluate_all(out, &bench, &budget);
    bench_close(&bench);
    ah_hardware_free(hardware);
}

double paper_ratio(const struct paper_cell *cell, enum paper_policy policy)
{
    const struct ah_evaluation *ours = &cell->of[PAPER_AUTOHETE], *theirs = &cell->of[policy];
    return ours->fits && theirs->fits ? ours->tokens_per_s / theirs->tokens_per_s : NAN;
}
