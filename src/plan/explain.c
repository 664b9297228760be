/* Why this plan: the integer program's answer and the neighbours, all under the same simulator. */
#include "base/format.h"
#include "plan/config.h"
#include "plan/cost.h"
#include "plan/fit.h"
#include "plan/search.h"
#include "sched/switches.h"

struct row {
    const char *what;
    int c, p, o, buffers, shadows, ahead, selective, staged, a, unsharded;
    bool embedding, head, ends;
};

static void print_plan(FILE *to, const char *what, const struct ah_plan *plan)
{
    const struct ah_switches *switches = &plan->switches;
    fprintf(to, "  %-24s %3d %4d %3d %3d %4d %3d %5d %5d %5d  %-6s %-6s %-6s", what, switches->checkpoint,
            switches->selective, switches->offload_params, switches->offload_optimizer, switches->staged,
            switches->offload_activations, switches->unsharded, switches->buffers, switches->prefetch_distance,
            switches->embedding_on_host ? "host" : "device", switches->head_on_host ? "host" : "device",
            switches->share_embedding_head ? "shared" : "apart");
}

static bool possible(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct ah_sched_config config;
    ah__sched_config_of(&config, switches, predictor->partition, predictor->policy);
    bool shares = !switches->share_embedding_head || ah__plan_shares_ends(predictor);
    bool whole = switches->unsharded <= ah__plan_most_unsharded(switches, predictor);
    return ah__switches_valid(switches) && shares && whole && switches->prefetch_distance >= 1 &&
           switches->buffers >= ah__sched_min_buffers(&config);
}

/* One line: the plan, and its time beside the chosen one's or by how much it does not fit. */
static int print_row(FILE *to, const char *what, struct ah_plan plan, const struct ah_plan *chosen,
                     const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    AH_TRY(ah__plan_predict(&plan, predictor));
    print_plan(to, what, &plan);
    int64_t over_device = budget->device_bytes ? plan.device_peak_bytes - budget->device_bytes : 0;
    int64_t over_host = budget->host_bytes ? plan.host_peak_bytes - budget->host_bytes : 0;
    char over[32];
    if (over_device > 0 || over_host > 0) {
        ah_size_format(over, sizeof over, over_device > 0 ? over_device : over_host);
        fprintf(to, "   does not fit: %s too much %s memory\n", over, over_device > 0 ? "device" : "host");
        return AH_OK;
    }
    ah__fprintf(to, " %9.2f ms  %+6.1f%%\n", (double)plan.step_ns / 1e6,
                100.0 * (double)(plan.step_ns - chosen->step_ns) / (double)chosen->step_ns);
    return AH_OK;
}

/* The neighbours: one switch moved, everything else as chosen; buffers are given again where a block moved. */
static int print_neighbours(FILE *to, const struct ah_plan *chosen, const struct ah_predictor *predictor,
                            const struct ah_budget *budget)
{
    static const struct row moves[] = {
        {.what = "one more checkpointed", .c = 1},        {.what = "one fewer checkpointed", .c = -1},
        {.what = "one more selective", .selective = 1},   {.what = "one fewer selective", .selective = -1},
        {.what = "one more params offl.", .p = 1},        {.what = "one fewer params offl.", .p = -1},
        {.what = "one more on the host", .o = 1},         {.what = "one fewer on the host", .o = -1},
        {.what = "o and p one more", .p = 1, .o = 1},     {.what = "o and p one fewer", .p = -1, .o = -1},
        {.what = "one more staged", .staged = 1},         {.what = "one fewer staged", .staged = -1},
        {.what = "one more waits there", .a = 1},         {.what = "one fewer waits there", .a = -1},
        {.what = "one more unsharded", .unsharded = 1},   {.what = "one fewer unsharded", .unsharded = -1},
        {.what = "one more buffer", .buffers = 1},        {.what = "one buffer fewer", .buffers = -1},
        {.what = "one more shadow states", .shadows = 1}, {.what = "one shadow states fewer", .shadows = -1},
        {.what = "refetch one earlier", .ahead = 1},      {.what = "refetch one later", .ahead = -1},
        {.what = "embedding moved", .embedding = true},   {.what = "head moved", .head = true},
        {.what = "ends the other way", .ends = true},
    };
    for (size_t i = 0; i < AH_LENGTH(moves); i++) {
        const struct row *move = &moves[i];
        struct ah_plan plan = *chosen;
        plan.switches.checkpoint += move->c;
        plan.switches.selective += move->selective;
        if (move->c > 0 && ah__keeping_blocks(&plan.switches) < 0)
            plan.switches.selective--;
        plan.switches.offload_params += move->p;
        plan.switches.offload_optimizer += move->o;
        plan.switches.staged += move->staged;
        plan.switches.offload_activations += move->a;
        plan.switches.unsharded += move->unsharded;
        plan.switches.buffers += move->buffers;
        plan.switches.shadows += move->shadows;
        plan.switches.prefetch_distance += move->ahead;
        plan.switches.embedding_on_host ^= move->embedding;
        plan.switches.head_on_host ^= move->head;
        plan.switches.share_embedding_head ^= move->ends;
        if (move->o > 0 && plan.switches.unsharded > plan.switches.layers - plan.switches.offload_optimizer)
            plan.switches.unsharded--;
        if ((move->p || move->o) && possible(&plan.switches, predictor))
            ah__plan_fit(&plan, predictor, budget);
        if (possible(&plan.switches, predictor))
            AH_TRY(print_row(to, move->what, plan, chosen, predictor, budget));
    }
    return AH_OK;
}

static int print_ilp(FILE *to, const struct ah_plan *chosen, const struct ah_predictor *predictor,
                     const struct ah_budget *budget)
{
    struct ah_cost_model model;
    struct ah_cpo cpo;
    double seconds;
    ah__cost_model_init(&model, predictor->partition, predictor->profile, budget);
    int status = ah__cost_solve_milp(&cpo, &seconds, &model);
    if (status == AH_EBUDGET) {
        fprintf(to, "  the paper's integer program finds no plan: by equation 1 nothing fits\n");
        return AH_OK;
    }
    AH_TRY(status);
    struct ah_plan plan = *chosen;
    plan.switches.checkpoint = cpo.c;
    plan.switches.offload_params = cpo.p;
    plan.switches.offload_optimizer = cpo.o;
    plan.switches.selective = plan.switches.staged = plan.switches.offload_activations = 0;
    plan.switches.embedding_on_host = plan.switches.head_on_host = plan.switches.share_embedding_head = false;
    plan.switches.prefetch_distance = 1;
    ah__plan_fit(&plan, predictor, budget);
    plan.switches.unsharded = 0;
    AH_TRY(print_row(to, "the paper's ILP", plan, chosen, predictor, budget));
    ah__fprintf(to, "  (equations 3 and 5 say %.2f ms for it, equation 1 says %.1f MiB)\n", seconds * 1e3,
                ah__cost_device_bytes(&model, cpo) / (1 << 20));
    return AH_OK;
}

static int explain(const struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget,
                   FILE *to)
{
    struct ah_search_report report;
    struct ah_plan best;
    AH_TRY(ah__plan_search(&best, &report, predictor, budget));
    fprintf(to,
            "search: %lld candidates; the fastest of %lld simulated plans: candidates, and plans on the way downhill\n"
            "        from the best of several kinds, each as far as it could still win\n",
            (long long)report.candidates, (long long)report.simulated);
    if (report.open_bound_ns && report.open_bound_ns < best.step_ns)
        ah__fprintf(to, "        stopped at its limit: the best candidate left out might reach %.2f ms\n",
                    (double)report.open_bound_ns / 1e6);
    else
        fprintf(to, "        no other candidate can be faster, by its lower bound\n");
    if (plan->step_ns < best.step_ns)
        ah__fprintf(to, "        alone it finds %.2f ms: the chosen plan was given or known from before\n",
                    (double)best.step_ns / 1e6);
    fprintf(to, "\n  %-24s %3s %4s %3s %3s %4s %3s %5s %5s %5s  %-6s %-6s %-6s %12s\n", "plan", "c", "sel.", "p", "o",
            "str.", "a", "unsharded", "buffers", "ahead", "embed.", "head", "ends", "step");
    AH_TRY(print_row(to, "chosen", *plan, plan, predictor, budget));
    AH_TRY(print_ilp(to, plan, predictor, budget));
    return print_neighbours(to, plan, predictor, budget);
}

int ah_plan_explain(const struct ah_plan *plan, const struct ah_partition *partition, const struct ah_profile *profile,
                    const struct ah_budget *budget, FILE *to)
{
    struct ah_predictor predictor;
    AH_TRY(ah__predictor_init(&predictor, partition, profile, plan->policy));
    int status = explain(plan, &predictor, budget, to);
    ah__predictor_fini(&predictor);
    return status == AH_OK && ferror(to) ? ah__fail(AH_EIO, "writing the explanation failed") : status;
}
