#include "paper/statements.h"

#include <math.h>

#include "paper/claims.h"
#include "paper/findings.h"

static const char *const machines[PAPER_MACHINES] = {"one GPU", "four GPUs"};

/* Of its device memory at the point of a sweep that is `x`; 0: no such point. */
static double part_at(const struct paper_sweep *sweep, double x, enum paper_policy policy)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->x[i] == x)
            return (double)sweep->cells[i].of[policy].plan.device_peak_bytes /
                   (double)sweep->cells[i].point.device_bytes;
    return 0;
}

static void speeds(struct ah_buf *buf, const struct paper_results *results, int world)
{
    for (int machine = 0; machine < PAPER_MACHINES; machine++)
        for (enum paper_policy p = 0; p < PAPER_AUTOHETE; p++) {
            char name[80];
            double reported = paper_reported[machine][p].mean;
            struct paper_spread spread = paper_spread_of(results->models[world][machine][1], p);
            snprintf(name, sizeof name, "%s, %s", paper_systems[p].over, machines[machine]);
            if (reported > 0 && spread.count)
                paper_claim_ratio(buf, name, spread.mean, reported);
        }
}

static void limits(struct ah_buf *buf, const struct paper_results *results, int world)
{
    const struct paper_sweep *batch = results->batch[world], *memory = results->memory[world];
    const struct paper_cell *four = &results->models[world][1][1][PAPER_MODELS - 1];
    paper_claim_limit(buf, "ZeRO-Offload's largest model on one GPU",
                      paper_largest_model(results->models[world][0][1], PAPER_ZERO), 12, 0);
    paper_claim_limit(buf, "ZeRO-Offload's largest batch with 6B", paper_last_that_fits(&batch[0], PAPER_ZERO), 24,
                      part_at(&batch[0], 28, PAPER_ZERO));
    paper_claim_limit(buf, "ZeRO-Offload's largest batch with 10B", paper_last_that_fits(&batch[1], PAPER_ZERO), 12,
                      part_at(&batch[1], 16, PAPER_ZERO));
    paper_claim_limit(buf, "ZeRO-Offload's least memory with 4B, GiB", paper_first_that_fits(&memory[0], PAPER_ZERO),
                      16, part_at(&memory[0], 16, PAPER_ZERO));
    paper_claim_limit(buf, "ZeRO-Offload's least memory with 6B, GiB", paper_first_that_fits(&memory[1], PAPER_ZERO),
                      24, part_at(&memory[1], 24, PAPER_ZERO));
    paper_claim_runs_out(buf, "ZeRO-Offload with 22B on four GPUs",
                         (double)four->of[PAPER_ZERO].plan.host_peak_bytes / (double)four->host_bytes);
}

static void small_memory(struct ah_buf *buf, const struct paper_results *results, int world)
{
    for (int s = 0; s < PAPER_SWEPT; s++) {
        const struct paper_sweep *sweep = &results->memory[world][s];
        char what[96];
        snprintf(what, sizeof what, "With 12 GB faster than every published system with 40, %dB", sweep->billions);
        paper_claim_above_one(buf, what, paper_small_over_large(sweep, PAPER_AUTOHETE));
    }
}

/* AutoHete over itself as published: at least 1.3 at DeepSpeed's rate, 1.05 at ours. */
static void own_gain(struct ah_buf *buf, const struct paper_results *results, int world)
{
    const double aims[PAPER_RATES] = {1.05, 1.3, 1.05};
    for (int machine = 0; machine < PAPER_MACHINES; machine++) {
        char what[64];
        struct paper_spread spread = paper_spread_of(results->models[world][machine][1], PAPER_PLAIN);
        snprintf(what, sizeof what, "Over %s, %s,", paper_systems[PAPER_PLAIN].over, machines[machine]);
        if (spread.count)
            paper_claim_gain(buf, what, spread.mean, spread.most, aims[world % PAPER_RATES]);
    }
}

static void fastest(struct ah_buf *buf, const struct paper_results *results, int world)
{
    static const struct {
        int model;
        const char *where;
    } points[] = {{1, "at 4B, one GPU,"}, {4, "at 10B, one GPU,"}, {10, "at 22B, one GPU,"}};
    for (size_t i = 0; i < AH_LENGTH(points); i++) {
        const char *names[PAPER_PUBLISHED];
        double speed[PAPER_PUBLISHED];
        const struct paper_cell *cell = &results->models[world][0][1][points[i].model];
        for (int s = 0; s < PAPER_PUBLISHED; s++) {
            const struct ah_evaluation *of = &cell->of[paper_published[s]];
            names[s] = paper_systems[paper_published[s]].name;
            speed[s] = of->fits ? of->tokens_per_s : 0;
        }
        paper_claim_fastest(buf, points[i].where, names, speed, PAPER_PUBLISHED);
    }
}

static void windows(struct ah_buf *buf, const struct paper_results *results, int world)
{
    static const struct {
        int machine, model;
        const char *where;
    } points[] = {{0, 0, "at 2B"}, {0, 4, "at 10B"}, {0, 10, "at 22B"}, {1, 4, "at 10B on four GPUs"}};
    for (size_t i = 0; i < AH_LENGTH(points); i++) {
        const struct paper_cell *cell = &results->models[world][points[i].machine][1][points[i].model];
        const struct ah_evaluation *rule = &cell->of[PAPER_STRONGHOLD], *best = &cell->of[PAPER_BEST];
        const struct ah_switches *taken = &rule->plan.switches, *fastest = &best->plan.switches;
        if (rule->fits)
            paper_claim_window(buf, points[i].where, taken->layers - taken->offload_optimizer,
                               fastest->layers - fastest->offload_optimizer, best->tokens_per_s / rule->tokens_per_s);
    }
}

void paper_statements(struct ah_buf *buf, const struct paper_results *results)
{
    for (int world = 0; world < PAPER_WORLDS; world++) {
        ah__buf_printf(buf, "\n### With %s\n\n", paper_worlds[world].name);
        speeds(buf, results, world);
        own_gain(buf, results, world);
        limits(buf, results, world);
        small_memory(buf, results, world);
        windows(buf, results, world);
        fastest(buf, results, world);
    }
}
