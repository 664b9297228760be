/* Explains a plan: prints it beside the integer program's answer and its neighbours, all under the same simulator. */
#include <string.h>

#include "base/format.h"
#include "plan/cost.h"
#include "plan/fit.h"
#include "plan/search.h"
#include "plan/space.h"
#include "sched/switches.h"

/* A table of plans, and the plan that it compares with. */
struct table {
    FILE *to;
    const struct ah_plan *chosen;
    const struct ah_predictor *predictor;
    const struct ah_budget *budget;
    bool has_passes; /* the table has a column of passes */
};
enum { WHAT_WIDTH = 28 };

static int width_of(const struct ah_row *row)
{
    int length = (int)strlen(ah__switch_table[row->at].key);
    return length > 4 ? length : 4;
}

static void print_head(const struct table *table)
{
    ah__fprintf(table->to, "\n  %-*s", WHAT_WIDTH, "plan");
    for (int i = 0; i < ah__row_count(table->predictor); i++)
        ah__fprintf(table->to, " %*s", width_of(&ah__rows[i]), ah__switch_table[ah__rows[i].at].key);
    ah__fprintf(table->to, "%s %12s\n", table->has_passes ? " passes" : "", "step");
}

/* Prints one line: the plan, and its time relative to the chosen plan's, or by how much it does not fit. */
static int print_plan(const struct table *table, const char *what, struct ah_plan plan)
{
    const struct ah_budget *budget = table->budget;
    AH_TRY(ah__plan_predict(&plan, table->predictor));
    ah__fprintf(table->to, "  %-*s", WHAT_WIDTH, what);
    for (int i = 0; i < ah__row_count(table->predictor); i++)
        ah__fprintf(table->to, " %*d", width_of(&ah__rows[i]), ah__switch_get(&plan.switches, ah__rows[i].at));
    if (table->has_passes)
        ah__fprintf(table->to, " %6d", ah__plan_rounds(&plan.switches, table->predictor));
    int64_t over_device = budget->device_bytes ? plan.device_peak_bytes - budget->device_bytes : 0;
    int64_t over_host = budget->host_bytes ? plan.host_peak_bytes - budget->host_bytes : 0;
    char over[32];
    if (over_device > 0 || over_host > 0) {
        ah_size_format(over, sizeof over, over_device > 0 ? over_device : over_host);
        ah__fprintf(table->to, "   does not fit: %s too much %s memory\n", over, over_device > 0 ? "device" : "host");
        return AH_OK;
    }
    int64_t step_ns = table->chosen->step_ns;
    ah__fprintf(table->to, " %9.2f ms  %+6.1f%%\n", (double)plan.step_ns / 1e6,
                100.0 * (double)(plan.step_ns - step_ns) / (double)step_ns);
    return AH_OK;
}

/* Prints the plan with one switch changed, if that is within the limits of its row; other switches may have to follow.
 * If a switch changed that places memory, the number of buffers is chosen again. */
static int print_neighbour(const struct table *table, const struct ah_row *row, int change)
{
    char what[48];
    struct ah_plan plan = *table->chosen;
    bool flag = row->role == AH_ROLE_FLAG, places = flag || row->role == AH_ROLE_PLACE;
    int value = ah__switch_get(&plan.switches, row->at) + change;
    ah__switch_set(&plan.switches, row->at, flag ? !ah__switch_get(&plan.switches, row->at) : value);
    ah__space_settle(&plan.switches, table->predictor);
    bool possible = ah__switches_valid(&plan.switches) && (flag || ah__switch_get(&plan.switches, row->at) == value);
    if (places && possible)
        ah__plan_fit(&plan, table->predictor, table->budget);
    possible = possible && plan.switches.buffers >= ah__plan_min_buffers(&plan.switches, table->predictor);
    ah__snprintf(what, sizeof what,
                 flag         ? "%s the other way"
                 : change > 0 ? "%s one more"
                              : "%s one fewer",
                 ah__switch_table[row->at].key);
    return possible ? print_plan(table, what, plan) : AH_OK;
}

static int print_neighbours(const struct table *table)
{
    for (int i = 0; i < ah__row_count(table->predictor); i++) {
        const struct ah_row *row = &ah__rows[i];
        AH_TRY(print_neighbour(table, row, 1));
        if (row->role != AH_ROLE_FLAG)
            AH_TRY(print_neighbour(table, row, -1));
    }
    return AH_OK;
}

/* Prints the fastest plan with another number of passes, or if none fits the one that lacks least memory. Passes change
 * the memory that is left, so every switch is chosen again. */
static int print_passes(const struct table *table, int passes)
{
    char what[48];
    struct ah_search_report report = {0};
    struct ah_plan plan;
    struct ah_predictor other = *table->predictor;
    struct table with = *table;
    ah__fix(&other.fixed, AH_SWITCH_passes, passes);
    with.predictor = &other;
    int status = ah__plan_search(&plan, &report, &other, table->budget);
    ah__snprintf(what, sizeof what, "%s with passes=%d", status == AH_EBUDGET ? "least" : "fastest", passes);
    if (status == AH_EBUDGET) {
        plan = report.least;
        ah__space_settle(&plan.switches, &other);
        status = AH_OK;
    }
    return status == AH_OK ? print_plan(&with, what, plan) : status;
}

/* Prints plans with half and twice as many passes, as a search compares them. */
static int print_other_passes(const struct table *table)
{
    int rounds = ah__plan_rounds(&table->chosen->switches, table->predictor);
    int most = ah__plan_most_passes(table->predictor);
    if (rounds > 1)
        AH_TRY(print_passes(table, rounds / 2));
    return rounds < most ? print_passes(table, 2 * rounds < most ? 2 * rounds : most) : AH_OK;
}

static int print_ilp(const struct table *table)
{
    struct ah_cost_model model;
    struct ah_cpo cpo;
    double seconds;
    ah__cost_model_init(&model, table->predictor->partition, table->predictor->profile, table->budget);
    int status = ah__cost_solve_milp(&cpo, &seconds, &model);
    if (status == AH_EBUDGET) {
        ah__fprintf(table->to, "  the paper's integer program finds no plan: by equation 1 nothing fits\n");
        return AH_OK;
    }
    AH_TRY(status);
    const struct ah_switches *chosen = &table->chosen->switches;
    struct ah_plan plan = {.switches = ah__switches_lowest(chosen->layers, chosen->frozen_blocks, chosen->world_size),
                           .workspace_bytes = table->chosen->workspace_bytes};
    plan.switches.checkpoint = cpo.c;
    plan.switches.offload_params = cpo.p;
    plan.switches.offload_optimizer = cpo.o;
    ah__switches_clamp(&plan.switches); /* the paper's model trains all blocks */
    plan.switches.chunks = chosen->chunks;
    plan.switches.out_of_order = chosen->out_of_order;
    ah__plan_fit(&plan, table->predictor, table->budget);
    plan.switches.unsharded = 0;
    if (plan.switches.buffers < ah__plan_min_buffers(&plan.switches, table->predictor))
        ah__plan_buffers_fit(&plan, table->predictor, table->budget);
    AH_TRY(print_plan(table, "the paper's ILP", plan));
    ah__fprintf(table->to, "  (equations 3 and 5 say %.2f ms for it, equation 1 says %.1f MiB)\n", seconds * 1e3,
                ah__cost_device_bytes(&model, cpo) / (1 << 20));
    return AH_OK;
}

static int explain(const struct table *table)
{
    struct ah_search_report report;
    struct ah_plan best;
    AH_TRY(ah__plan_search(&best, &report, table->predictor, table->budget));
    ah__fprintf(table->to,
                "search: %lld seeds completed by the cost model; %lld plans simulated, %lld passed over by their lower "
                "bound,\n        %lld seeds not looked at; %s\n",
                (long long)report.seeds, (long long)report.simulated, (long long)report.bounded,
                (long long)report.unseen,
                report.exhausted ? "of so few blocks every plan was considered" : "no exhaustive search");
    if (table->chosen->step_ns < best.step_ns)
        ah__fprintf(table->to, "        alone it finds %.2f ms: the chosen plan was given\n",
                    (double)best.step_ns / 1e6);
    print_head(table);
    AH_TRY(print_plan(table, "chosen", *table->chosen));
    AH_TRY(print_ilp(table));
    struct ah_predictor as_chosen = *table->predictor;
    struct table neighbours = *table;
    ah__fix(&as_chosen.fixed, AH_SWITCH_passes, ah__plan_rounds(&table->chosen->switches, table->predictor));
    neighbours.predictor = &as_chosen;
    AH_TRY(print_neighbours(&neighbours));
    return print_other_passes(table);
}

int ah_plan_explain(const struct ah_plan *plan, const struct ah_partition *partition, const struct ah_profile *profile,
                    const struct ah_budget *budget, FILE *to)
{
    struct ah_predictor predictor;
    AH_TRY(ah__predictor_init(&predictor, partition, profile, plan->policy));
    int status = explain(&(struct table){to, plan, &predictor, budget, ah__plan_most_passes(&predictor) > 1});
    ah__predictor_fini(&predictor);
    return status == AH_OK && ferror(to) ? ah__fail(AH_EIO, "writing the explanation failed") : status;
}
