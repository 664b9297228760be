#include "random_plans.h"

#include <time.h>

#include "base/hash.h"
#include "bench.h"
#include "plan/config.h"
#include "plan/fit.h"
#include "sched/switches.h"

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

/* Draws each switch anew with a chance of one in `rarely`. */
static void draw_switches(struct ah_switches *switches, int rarely)
{
    int layers = switches->layers;
    if (draw(1, rarely) == 1)
        switches->checkpoint = draw(0, layers);
    if (draw(1, rarely) == 1 || switches->checkpoint + switches->selective > layers)
        switches->selective = draw(0, 1) ? layers - switches->checkpoint : draw(0, layers - switches->checkpoint);
    if (draw(1, rarely) == 1)
        switches->offload_optimizer = draw(0, layers);
    if (draw(1, rarely) == 1 || switches->offload_params > switches->offload_optimizer)
        switches->offload_params = draw(0, switches->offload_optimizer);
    if (draw(1, rarely) == 1 || switches->staged > switches->offload_optimizer)
        switches->staged = draw(0, 1) ? 0 : draw(0, switches->offload_optimizer);
    if (draw(1, rarely) == 1 && layers > AH_ACTIVATION_BUFFERS)
        switches->offload_activations = draw(0, 1) ? 0 : draw(0, layers - AH_ACTIVATION_BUFFERS);
    if (draw(1, rarely) == 1)
        switches->unsharded = draw(0, 2) ? layers : draw(0, layers); /* as far as there is room */
    if (draw(1, rarely) == 1)
        switches->embedding_on_host = draw(0, 1);
    if (draw(1, rarely) == 1)
        switches->head_on_host = draw(0, 1);
    if (draw(1, rarely) == 1)
        switches->share_embedding_head = draw(0, 1);
    if (draw(1, rarely) == 1)
        switches->chunks = 1 << draw(0, 3);
    if (draw(1, rarely) == 1)
        switches->buffers = 1 << draw(0, 7);
    if (draw(1, rarely) == 1)
        switches->buffers += draw(-2, 8);
    if (draw(1, rarely) == 1)
        switches->out_of_order = draw(0, 1) ? switches->buffers : draw(0, switches->buffers);
    if (draw(1, rarely) == 1)
        switches->finishing = draw(0, switches->buffers);
    if (draw(1, rarely) == 1)
        switches->order = draw(0, 1) * draw(1, AH_ORDERS - 1) + (draw(0, 2) ? 0 : AH_ORDERS * draw(1, AH_ORDERS - 1));
    if (draw(1, rarely) == 1)
        switches->prefetch_distance = draw(1, switches->offload_optimizer + 1);
    if (draw(1, rarely) == 1 || switches->shadows > switches->offload_optimizer)
        switches->shadows = draw(0, 1) ? switches->offload_optimizer : draw(0, switches->offload_optimizer);
}

/* Whether the plan can run and is within the budget; brings switches that depend on others within their range. */
static bool possible(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_switches *switches = &plan->switches;
    struct ah_sched_config config;
    switches->share_embedding_head =
        switches->share_embedding_head && ah__plan_shares_ends(predictor) && ah__may_share_ends(switches);
    ah__sched_config_of(&config, switches, predictor->partition, predictor->policy);
    int least = ah__sched_min_buffers(&config);
    switches->buffers = switches->buffers < least ? least : switches->buffers;
    switches->out_of_order = switches->out_of_order > switches->buffers ? switches->buffers : switches->out_of_order;
    switches->finishing = switches->finishing > switches->buffers ? switches->buffers : switches->finishing;
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
        draw_switches(&plan.switches, best.step_ns && draw(0, 1) ? 5 : 1);
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
