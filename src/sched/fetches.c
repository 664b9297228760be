#include "sched/fetches.h"

#include "sched/disk.h"

/* Buffers left free for backward, beyond those that it must have, by fetches of speculatively updated parameters, which
 * hold their buffers until the norm is known: for another gradient and another fetch in flight. */
enum { LEFT_TO_BACKWARD = 2 };

/* Returns true if the buffer shared by embedding and head is free for a fetch: for the head's parameters after the
 * embedding's forward, for the embedding's, in later rounds of an iteration, after the last use of the head's. */
static bool place_left(const struct ah_sched *sched, struct ah_next *next)
{
    const struct item_event *forward = &sched->groups[0].forward;
    const struct group *head = &sched->groups[sched->partitions - 1];
    const struct item_event *served = sched->forward_only ? &head->forward : &head->backward;
    if (!sched->config.switches.share_embedding_head || sched->groups[next->item.partition].pooled)
        return true;
    if (next->item.partition > 0) {
        wait_for(sched, next, forward);
        return forward->submitted && forward->round == next->item.round;
    }
    if (ah__begins_iteration(sched, next->item.round))
        return true;
    wait_for(sched, next, served);
    return served->submitted && served->round == next->item.round - 1;
}

/* Returns how many more buffers the blocks optimized on the device need at the same time in the backward whose
 * gradients are being claimed: gradients that wait for the norm already have theirs. */
static int device_buffers_left(const struct ah_sched *sched)
{
    int all = ah__sched_device_buffers(&sched->config, true);
    int on_device = ah__trained_on_device(&sched->config.switches),
        in_buffers = ah__sched_device_gradients(&sched->config);
    int claimed = on_device - (sched->lowest_gradient - 1 - sched->config.switches.frozen_blocks);
    claimed = claimed < in_buffers ? claimed : in_buffers;
    bool wait = sched->config.clips && sched->config.switches.world_size == 1;
    return !wait || claimed <= 0 ? all : all - claimed;
}

/* Returns how many buffers must stay free for claims that come before this fetch in the order of need. */
static int buffers_kept(const struct ah_sched *sched, const struct step *step)
{
    int64_t round = sched->fetch.round;
    if (step->kind == AH_ITEM_REFETCH) {
        bool gradients_left = sched->gradient_round < round || sched->lowest_gradient > step->partition + 1;
        int casts = sched->config.switches.world_size > 1 ? ah__sched_device_buffers(&sched->config, true) : 0;
        return !gradients_left ? 0 : casts > 1 ? casts : 1;
    }
    bool last_backward_left = !sched->forward_only && sched->gradient_round < round &&
                              sched->lowest_gradient > sched->config.switches.frozen_blocks + 1;
    if (last_backward_left) {
        int left = device_buffers_left(sched);
        bool early = sched->groups[step->partition].frozen; /* gradients of blocks on the host are left, too */
        return early && left == 0 && !ah__sched_own_gradients(&sched->config) ? 1 : left;
    }
    bool casts_left = sched->compute.round < round ||
                      ah__step_next(&sched->compute)->partition < ah__first_on_host(&sched->config.switches);
    return casts_left ? ah__sched_device_buffers(&sched->config, false) : 0;
}

/* Returns true if the next chunk of a group's parameters is up to date on the host: all chunks are, or this one's
 * update has just completed. Chunks of a speculative update are fetched as if it counted; if it does not, they are
 * fetched again. */
static bool prefetch_due(const struct ah_sched *sched, struct ah_next *next, const struct group *group)
{
    int64_t iteration = next->item.iteration, round = next->item.round;
    next->item.chunk = group->fetched;
    next->item.chunks = sched->config.switches.chunks;
    if (!ah__disk_arrived(sched, next))
        return false;
    if (group->pooled && group->param_buffer >= 0 && group->fetched == 0 && !ah__holds_buffer(group, round))
        return false; /* one round early: its buffer is still in use */
    if (group->ready_for == iteration || group->frozen)
        return true;
    return group->ready_for == iteration - 1 && group->updated > group->fetched && !group->void_chunks &&
           (group->shadow >= 0 || ah__sched_norm_known(sched, iteration - 1));
}

static bool refetch_due(const struct ah_sched *sched, struct ah_next *next, int partition)
{
    const struct group *group = &sched->groups[partition];
    if (group->on_disk) {
        next->item.chunk = group->fetched;
        next->item.chunks = sched->config.switches.chunks;
    }
    return ah__disk_arrived(sched, next) && group->forward.submitted && group->forward.round == sched->fetch.round &&
           sched->fetch.round == sched->compute.round &&
           (!ah__sched_evicts(sched) ||
            (ah__sched_completed(sched, &group->evict) && group->evict.round == sched->fetch.round)) &&
           sched->lowest_backward - partition <= sched->config.switches.prefetch_distance;
}

/* Makes one fetch, if its data are there and the policy allows it; `kept`: buffers that must stay free besides its
 * own. */
static bool fetch_ready(const struct ah_sched *sched, struct ah_next *next, const struct step *step, int64_t round,
                        int kept)
{
    const struct group *group = &sched->groups[step->partition];
    next_init(sched, next, step->kind, AH_LANE_H2D, step->partition, round);
    next->item.stays =
        step->partition == 0 && ah__embedding_stays(&sched->config.switches, sched->config.frozen_embedding);
    if (!place_left(sched, next))
        return false;
    if (step->kind == AH_ITEM_PREFETCH ? !prefetch_due(sched, next, group) : !refetch_due(sched, next, step->partition))
        return false;
    if (sched->config.policy->may_fetch && !sched->config.policy->may_fetch(sched, &next->item))
        return false;
    next->item.set = group->shadow >= 0 && !group->void_chunks ? group->shadow : group->set;
    if (!group->pooled || group->casts)
        return true;
    if (next->item.chunk > 0 || ah__holds_buffer(group, round)) {
        next->item.param_buffer = group->param_buffer;
        return true;
    }
    int others = next->waits;
    if (sched->free_buffers - 1 < kept || !buffer_take(sched, next, &next->item.param_buffer))
        return false;
    /* If no buffer is free, the fetch is tried again after the next completion, instead of waiting on the lane for a
     * buffer although another may become free first. */
    return next->waits == others || !sched->config.policy->waits_off_lane;
}

/* Returns how many buffers the rest of the backward before `round` needs at the same time besides the parameters it
 * holds: for a gradient, and for parameters that must be fetched or cast again. */
static int backward_needs(const struct ah_sched *sched, int64_t round)
{
    const struct ah_sched_config *config = &sched->config;
    int lowest = sched->gradient_round < round ? sched->lowest_gradient : 1;
    if (lowest <= sched->config.switches.frozen_blocks + 1)
        return 0;
    int device = ah__sched_device_buffers(config, true); /* gradients that wait for the norm included */
    int again = config->switches.offload_params && sched->fetch.round < round ? 2 : 1;
    return device > again ? device : again;
}

/* Returns true if a block's parameters for a round have a buffer, or have had one. */
static bool param_claimed(const struct group *group, int64_t round)
{
    return ah__holds_buffer(group, round) || (group->fetch.submitted && group->fetch.round == round);
}

/* Returns true if `*kept` buffers are enough for the blocks that are needed before `partition` and have no buffer yet:
 * one for each block that keeps its buffer until backward, one in common for all that are re-fetched. Continues from
 * `*from`, with `*passing`, where the last call ended. */
static bool enough_for_earlier(const struct ah_sched *sched, int *from, int partition, int64_t round, int *kept,
                               int *passing)
{
    for (; *from < partition && *kept >= *passing; ++*from) {
        const struct group *group = &sched->groups[*from];
        if (group->casts || param_claimed(group, round))
            continue;
        *kept -= !group->releases;
        *passing |= group->releases;
    }
    return *kept >= *passing;
}

/* Makes the fetch of the next chunk of a block that already has a buffer, which then is filled sooner. */
static bool filling_next(const struct ah_sched *sched, struct ah_next *next, int64_t round)
{
    for (int i = 0; i < sched->filling.count; i++) {
        struct step step = {.kind = AH_ITEM_PREFETCH, .partition = sched->filling.groups[i]};
        if (ah__holds_buffer(&sched->groups[step.partition], round) && fetch_ready(sched, next, &step, round, 0))
            return true;
    }
    return false;
}

/* Makes an out-of-order prefetch, when the next one in order is not possible: of parameters for the same round that are
 * up to date, preferably into a buffer that is being filled. It may claim a buffer if the buffers left, once this
 * round's backward has released its own, are enough for those needed earlier. */
static bool out_of_order_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct step_list *list = &sched->fetch;
    int64_t round = list->round + (list->at >= list->forward_count ? 1 : 0);
    if (sched->forward_only || sched->updated.count == 0 || barred(sched, round))
        return false;
    if (filling_next(sched, next, round))
        return true;
    int held = sched->param_buffers[ah__sched_ring(round)], kept = sched->config.switches.buffers - held - 1;
    int backward = 0, passing = 0, from = ah__first_on_host(&sched->config.switches);
    if (list->at < list->forward_count && from < ah__step_next(list)->partition)
        from = ah__step_next(list)->partition; /* all groups before have been fetched */
    if (sched->compute.round < round)
        backward = sched->param_buffers[ah__sched_ring(round - 1)] + backward_needs(sched, round);
    if (!ah__sched_params_final(sched, round))
        backward += LEFT_TO_BACKWARD;
    bool fits = sched->free_buffers > 0 && held < sched->config.switches.out_of_order && kept >= backward &&
                (!sched->config.policy->waits_off_lane || buffer_is_left(sched));
    kept -= ah__sched_device_buffers(&sched->config, false);
    for (int i = 0; i < sched->updated.count; i++) {
        struct step step = {.kind = AH_ITEM_PREFETCH, .partition = sched->updated.groups[i]};
        const struct group *group = &sched->groups[step.partition];
        bool takes_buffer = group->pooled && !group->casts;
        if (takes_buffer && ah__holds_buffer(group, round))
            continue; /* it is being filled */
        fits = fits && (!takes_buffer || enough_for_earlier(sched, &from, step.partition, round, &kept, &passing));
        if (takes_buffer && !fits) {
            if (sched->config.switches.world_size == 1 && i < sched->updated.count - 2)
                i = sched->updated.count - 2; /* of all that follow only the head could be fetched */
            continue;
        }
        if (fetch_ready(sched, next, &step, round, 0))
            return true;
    }
    return false;
}

bool ah__fetch_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct step_list *list = &sched->fetch;
    if (list->count == 0)
        return false;
    const struct step *step = ah__step_next(list);
    bool overtakes = sched->config.policy->overtakes && sched->config.switches.out_of_order;
    if (!barred(sched, list->round) && fetch_ready(sched, next, step, list->round, buffers_kept(sched, step)))
        return true;
    return overtakes && out_of_order_next(sched, next);
}
