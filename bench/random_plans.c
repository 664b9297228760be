#include "random_plans.h"

#include <time.h>

#include "base/hash.h"
#include "bench.h"
#include "plan/config.h"
#include "plan/fit.h"

static uint64_t drawn;

static int draw(int low, int high)
{
    return high <= low ? low : low + (int)(ah__random_bits(7, drawn++) % (uint64_t)(high - low + 1));
}

double random_plans_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int draw_with(void *context, int low, int high)
{
    (void)context;
    return draw(low, high);
}

/* Switches that mean nothing for the policy, the model or the machine. */
static uint32_t useless(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    uint32_t without = ah__policy_unused(predictor->policy);
    if (!ah__plan_shares_ends(predictor))
        without |= 1U << AH_SWITCH_share_embedding_head;
    if (!ah__predictor_stages(predictor))
        without |= 1U << AH_SWITCH_staged;
    if (!ah__predictor_spills(predictor))
        without |= 1U << AH_SWITCH_disk_blocks | 1U << AH_SWITCH_disk_ahead;
    struct ah_switches on_device = {.layers = switches->layers, .world_size = switches->world_size};
    if (ah__plan_most_unsharded(&on_device, predictor) == 0)
        without |= 1U << AH_SWITCH_unsharded;
    return without;
}

/* Whether the plan can run and is within the budget; brings switches that depend on others within their range. */
static bool possible(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_switches *switches = &plan->switches;
    struct ah_sched_config config;
    ah__sched_config_of(&config, switches, predictor->partition, predictor->policy);
    int least = ah__sched_min_buffers(&config);
    switches->buffers = switches->buffers < least ? least : switches->buffers;
    if (!switches->offload_params)
        switches->prefetch_distance = 1;
    int whole = switches->unsharded, most = ah__plan_most_unsharded(switches, predictor);
    switches->unsharded = 0;
    ah__plan_measure(plan, predictor);
    int64_t room =
        (budget->device_bytes - plan->device_peak_bytes) / ah__layout_buffer_bytes(predictor->partition, switches);
    switches->unsharded = room < whole ? (int)room : whole;
    switches->unsharded = switches->unsharded > most ? most : switches->unsharded < 0 ? 0 : switches->unsharded;
    ah__plan_measure(plan, predictor);
    return plan->device_peak_bytes <= budget->device_bytes && plan->host_peak_bytes <= budget->host_bytes;
}

struct ah_plan random_plans_search(const struct ah_predictor *predictor, const struct ah_budget *budget,
                                   const struct ah_plan *from, double seconds, int64_t *count)
{
    struct ah_plan best = {.switches = {.layers = predictor->partition->layers,
                                        .frozen_blocks = predictor->partition->frozen_blocks,
                                        .chunks = 1,
                                        .buffers = 2,
                                        .world_size = ah__predictor_world_size(predictor),
                                        .prefetch_distance = 1},
                           .workspace_bytes = predictor->profile->workspace_bytes};
    double end = random_plans_now_s() + seconds;
    if (from) {
        best = *from;
        BENCH(ah__plan_step_ns(&best.step_ns, &best, predictor, AH_PREDICT_ITERATIONS));
    }
    for (*count = 0; random_plans_now_s() < end;) {
        struct ah_plan plan = best;
        int64_t step_ns;
        struct ah_switches_draw how = {.draw = draw_with,
                                       .without = useless(&plan.switches, predictor),
                                       .rarely = best.step_ns && draw(0, 1) ? 5 : 1};
        ah__switches_draw(&plan.switches, &how);
        if (!possible(&plan, predictor, budget))
            continue;
        BENCH(ah__plan_step_ns(&step_ns, &plan, predictor, AH_PREDICT_ITERATIONS));
        ++*count;
        if (best.step_ns && step_ns >= best.step_ns)
            continue;
        best = plan;
        best.step_ns = step_ns;
    }
    return best;
}
