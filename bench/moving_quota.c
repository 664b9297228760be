#include "moving_quota.h"

#include "base/alloc.h"
#include "plan/candidates.h"
#include "plan/evaluate.h"
#include "plan/layout.h"
#include "plan/published.h"
#include "plan/search.h"
#include "sched/internal.h"

enum { PASSING = 2 }; /* buffers beside those of blocks that stay: the one on demand, and a gradient that leaves */

int moving_quota_room_bytes(int64_t *bytes, const struct ah_plan *plan, const struct ah_predictor *predictor)
{
    struct ah_layout *layout;
    if (predictor->rule == AH_MEMORY_PUBLISHED) {
        *bytes = ah__published_activation_bytes(predictor->partition, &plan->switches);
        return AH_OK;
    }
    AH_TRY(ah__layout_new(&layout, predictor->partition, &plan->switches, plan->workspace_bytes));
    *bytes = layout->tokens_offset - layout->inputs_offset; /* what lies between them */
    ah__layout_free(layout);
    return AH_OK;
}

/* The policy but for what a struct moving_quota says; all else as it has it. */
struct relaxed {
    struct ah_policy policy; /* first: what a scheduler knows of it */
    int early, hidden;
};

static const struct relaxed *relaxed_of(const struct ah_sched *sched)
{
    return (const struct relaxed *)sched->config.policy;
}

static bool fetch_early(const struct ah_sched *sched, const struct ah_item *item)
{
    if (item->kind == AH_ITEM_PREFETCH && item->partition <= relaxed_of(sched)->early)
        return true;
    return ah__policy_patrickstar.may_fetch(sched, item);
}

static bool leave_early(const struct ah_sched *sched, int group)
{
    return sched->free_buffers <= relaxed_of(sched)->hidden || ah__policy_patrickstar.may_offload(sched, group);
}

/* A predictor by the relaxed policy, which must outlive it. */
static struct ah_predictor relax(struct relaxed *relaxed, const struct ah_predictor *predictor)
{
    struct ah_predictor moving = *predictor;
    relaxed->policy = *predictor->policy;
    relaxed->policy.may_fetch = fetch_early;
    relaxed->policy.may_offload = leave_early;
    moving.policy = &relaxed->policy;
    return moving;
}

static void keep(struct moving_quota *best, const struct moving_quota *tried)
{
    if (!best->plan.step_ns || tried->plan.step_ns < best->plan.step_ns)
        *best = *tried;
}

int64_t moving_quota_least_ns(const struct moving_quota *quota, const struct ah_predictor *predictor)
{
    const struct ah_switches *switches = &quota->plan.switches;
    const struct ah_costs *costs = &predictor->costs;
    int demanded = switches->offload_params - quota->early;
    int64_t ns = switches->checkpoint * costs->recompute_ns[AH_CLASS_BLOCK] +
                 switches->offload_params * costs->ns[AH_ITEM_REFETCH][AH_CLASS_BLOCK] +
                 (demanded > 0 ? demanded : 0) * costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK];
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        int all = class == AH_CLASS_BLOCK ? switches->layers : 1;
        int on_host = class == AH_CLASS_BLOCK ? switches->offload_optimizer : 1;
        ns += all * (costs->ns[AH_ITEM_FORWARD][class] + costs->ns[AH_ITEM_BACKWARD][class]) +
              on_host * costs->ns[AH_ITEM_UPDATE_HOST][class];
    }
    return ns;
}

/* With each number of evicted blocks that come back early and each that gradients make room for, unless no step of them
 * can be the shortest. */
static int try_all(struct moving_quota *best, struct moving_quota *tried, int most,
                   const struct ah_predictor *predictor)
{
    struct relaxed relaxed;
    struct ah_predictor moving = relax(&relaxed, predictor);
    int evicted = tried->plan.switches.offload_params, blocks = most < evicted ? most : evicted;
    for (tried->early = 0; tried->early <= blocks; tried->early++)
        for (tried->hidden = 0; tried->hidden <= most; tried->hidden++) {
            if (moving_quota_least_ns(tried, predictor) >= best->plan.step_ns)
                break;
            relaxed.early = tried->early;
            relaxed.hidden = tried->hidden;
            AH_TRY(ah__plan_step_ns(&tried->plan.step_ns, &tried->plan, &moving, AH_PREDICT_ITERATIONS));
            keep(best, tried);
        }
    return AH_OK;
}

/* No more blocks go without being evicted than there are buffers before. */
int moving_quota_find(struct moving_quota *best, const struct ah_plan *plan, const struct ah_predictor *predictor)
{
    struct moving_quota tried = {.plan = *plan};
    struct ah_switches *switches = &tried.plan.switches;
    int64_t room_bytes, buffer_bytes = ah__layout_buffer_bytes(predictor->partition, switches);
    int evicted = switches->offload_params, least = switches->offload_optimizer - switches->buffers;
    AH_TRY(moving_quota_room_bytes(&room_bytes, plan, predictor));
    int64_t room = room_bytes / buffer_bytes;
    int more = room < evicted + PASSING ? (int)room : evicted + PASSING;
    keep(best, &tried);
    if (more == 0)
        return AH_OK;
    switches->buffers += more;
    switches->out_of_order = switches->buffers;
    least = least < 0 ? 0 : least < evicted ? least : evicted;
    for (switches->offload_params = least; switches->offload_params <= evicted; switches->offload_params++)
        AH_TRY(try_all(best, &tried, more, predictor));
    return AH_OK;
}

/* From the policy's plans with and without recomputation: the slower one may gain more. Where no block of a plan is
 * evicted all its chunks are where they are needed, whatever the quota. */
static int find_any(struct moving_quota *best, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_candidates candidates = {0};
    int status = ah__candidates_list(&candidates, predictor, budget);
    for (size_t i = 0; i < candidates.count && status == AH_OK; i++) {
        struct ah_plan plan = candidates.list[i].plan;
        if (plan.switches.offload_params == 0)
            continue;
        status = ah__plan_choose_out_of_order(&plan.step_ns, &plan, predictor);
        if (status == AH_OK)
            status = moving_quota_find(best, &plan, predictor);
    }
    ah__free(candidates.list);
    return status;
}

static int measure(struct ah_evaluation *out, const struct moving_quota *found, const struct ah_predictor *predictor)
{
    struct relaxed relaxed = {.early = found->early, .hidden = found->hidden};
    struct ah_predictor moving = relax(&relaxed, predictor);
    out->plan = found->plan;
    ah__plan_bound(&out->plan, &moving);
    return ah__evaluation_measure(out, &moving);
}

int moving_quota_evaluate(struct ah_evaluation *out, const struct ah_evaluation *fixed,
                          const struct ah_partition *partition, const struct ah_profile *profile,
                          const struct ah_budget *budget)
{
    struct ah_predictor predictor;
    struct moving_quota found = {.plan = fixed->plan};
    *out = *fixed;
    snprintf(out->policy, sizeof out->policy, "%s", MOVING_QUOTA_NAME);
    if (!fixed->fits)
        return AH_OK;
    AH_TRY(ah__predictor_init(&predictor, partition, profile, fixed->policy));
    predictor.rule = budget->rule;
    int status = find_any(&found, &predictor, budget);
    if (status == AH_OK && found.plan.step_ns < fixed->plan.step_ns)
        status = measure(out, &found, &predictor);
    ah__predictor_fini(&predictor);
    return status;
}
