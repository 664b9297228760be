#include "sched/internal.h"

#include <string.h>

/* Returns the fewest buffers with several ranks if nothing is cast: for the parameters of a re-fetched block, and,
 * unless gradients have memory of their own, for its gradient and one being offloaded. */
static int rank_least(const struct ah_sched_config *config)
{
    if (!config->own_gradients)
        return 1 + AH_BUFFERS_OF_GRADIENTS;
    return config->switches.offload_params > 0 || ah__frozen_on_host(&config->switches) > 0 ? 1 : 0;
}

int ah__sched_min_buffers(const struct ah_sched_config *given)
{
    struct ah_sched_config fewest = *given, *config = &fewest;
    fewest.switches.buffers = 0;
    int on_host = ah__trained_on_host(&config->switches), passes = ah__frozen_on_host(&config->switches) > 0;
    int held = on_host - config->switches.offload_params; /* parameters that stay from forward to backward */
    int device = ah__sched_device_buffers(config, true);
    if (config->switches.world_size > 1) /* nothing stays: every block is gathered again */
        return device ? device : rank_least(config);
    int least = on_host == 0 ? 0 : held + 1 > 2 ? held + 1 : 2;
    bool comes = config->switches.offload_params > 0 || (config->rounds > 1 && passes); /* while others stay */
    if (ah__sched_own_gradients(config))
        least = held + (comes ? 1 : 0);
    least = least > passes ? least : passes; /* a block that has served when others come */
    int at_once = config->switches.offload_optimizer + ah__sched_device_buffers(config, false);
    if (config->policy->all_at_once && at_once > least)
        least = at_once;
    if (on_host && device)
        device = device > 2 ? device : 2;
    int none =
        ah__sched_own_gradients(config) ? 0 : 1; /* blocks on the device need no buffer besides frozen parameters */
    return least > device ? least : device > 0 ? device : none;
}

static void groups_init(struct ah_sched *sched)
{
    const struct ah_sched_config *config = &sched->config;
    const struct ah_switches *switches = &config->switches;
    for (int g = 0; g < sched->partitions; g++) {
        struct group *group = &sched->groups[g];
        group->pooled = ah__is_block(switches, g);
        group->on_host = ah__on_host(switches, g);
        group->on_disk = ah__on_disk(switches, g);
        group->updated_in = group->on_disk            ? UPDATED_FROM_DISK
                            : ah__staged(switches, g) ? UPDATED_STAGED
                                                      : UPDATED_ON_HOST;
        group->frozen = ah__is_frozen(switches, g);
        group->refetches = ah__refetches(switches, g);
        group->releases = ah__releases(switches, g);
        group->kept = group->pooled && group->on_host && !group->releases && sched->rounds > 1 &&
                      !config->policy->leaves_each_round;
        group->sum_stays = ah__sum_stays(switches, sched->rounds, g);
        group->unsharded = ah__unsharded(switches, g);
        group->casts = switches->world_size > 1 && group->pooled && !group->unsharded && !group->releases;
        group->casts_once = !group->pooled && switches->share_embedding_head && !group->on_host;
        group->keeping = group->pooled ? ah__keeping(switches, g) : AH_KEEPS_ALL;
        group->leaves = ah__leaves(switches, g);
        group->passing = ah__passes(switches, g) ? ah__passing_below(switches, g) : -1;
        group->param_buffer = group->grad_buffer = group->shadow = -1;
        bool in_set = group->pooled && group->on_host && !group->frozen && !group->on_disk;
        group->set = in_set ? g - ah__first_trained_on_host(switches) : 0; /* on disk: the first place */
    }
    sched->shadow_count = switches->shadows;
    for (int i = 0; i < switches->shadows; i++)
        sched->shadow_sets[i] = ah__host_sets(switches) - 1 - i;
}

static struct step *step_add(struct step_list *list, enum ah_item_kind kind, int partition, enum ah_phase phase)
{
    list->steps[list->count] = (struct step){.kind = kind, .partition = partition, .phase = phase};
    return &list->steps[list->count++];
}

static void add_cast(struct ah_sched *sched, int partition, enum ah_phase phase)
{
    if (partition < 0 || partition >= sched->partitions)
        return;
    const struct group *group = &sched->groups[partition];
    if (group->frozen && phase == AH_PHASE_BACKWARD)
        return;
    if (group->casts || (group->casts_once && phase == AH_PHASE_FORWARD))
        step_add(&sched->compute, AH_ITEM_CAST, partition, phase);
}

static void add_update(struct ah_sched *sched, int partition)
{
    if (partition < sched->partitions && !sched->groups[partition].on_host && !sched->groups[partition].frozen)
        step_add(&sched->compute, AH_ITEM_UPDATE_DEVICE, partition, AH_PHASE_BACKWARD)->rounds = ROUNDS_LAST;
}

/* Makes the compute lane's steps. With several ranks a cast may be one block ahead, so that the gather runs during the
 * block before, and an update is one block late, so that the reduction does. */
static void compute_init(struct ah_sched *sched)
{
    int last = sched->partitions - 1,
        ahead = ah__gathers_ahead(&sched->config.switches, sched->config.own_gradients) ? 1 : 0;
    int late = sched->config.switches.world_size > 1 ? 1 : 0;
    for (int i = -ahead; i <= last; i++) {
        add_cast(sched, i + ahead, AH_PHASE_FORWARD);
        if (i >= 0)
            step_add(&sched->compute, AH_ITEM_FORWARD, i, AH_PHASE_FORWARD);
    }
    sched->compute.forward_count = sched->compute.count;
    for (int i = last + ahead; i >= 0; i--) {
        add_cast(sched, i - ahead, AH_PHASE_BACKWARD);
        if (i <= last && !sched->groups[i].frozen)
            step_add(&sched->compute, AH_ITEM_BACKWARD, i, AH_PHASE_BACKWARD)->rounds =
                i == 0 && ah__embeds_late(sched) ? ROUNDS_LAST : ROUNDS_ALL;
        if (i <= last && !sched->config.clips)
            add_update(sched, i + late);
    }
    for (int i = 0; sched->config.clips && i <= last; i++)
        add_update(sched, i);
    if (late && !sched->config.clips)
        add_update(sched, 0);
}

/* Adds the read of a block on disk for the fetch that was added last. */
static void add_read(struct ah_sched *sched, const struct step *fetch)
{
    if (!sched->groups[fetch->partition].on_disk)
        return;
    struct step *read = step_add(&sched->disk, AH_ITEM_DISK_PARAMS, fetch->partition, fetch->phase);
    read->rounds = fetch->rounds;
    read->chunks = sched->config.switches.chunks;
}

static void transfers_init(struct ah_sched *sched)
{
    int last = sched->partitions - 1;
    for (int i = 0; i <= last; i++) {
        if (!sched->groups[i].on_host)
            continue;
        struct step *step = step_add(&sched->fetch, AH_ITEM_PREFETCH, i, AH_PHASE_FORWARD);
        step->rounds = ah__stays(sched, &sched->groups[i]) ? ROUNDS_FIRST
                       : sched->groups[i].kept             ? ROUNDS_KEPT
                                                           : ROUNDS_ALL;
        step->chunks = sched->config.switches.chunks;
        add_read(sched, step);
    }
    sched->fetch.forward_count = sched->fetch.count;
    sched->disk.forward_count = sched->disk.count;
    for (int i = last; i >= 0; i--) {
        if (!sched->groups[i].refetches)
            continue;
        struct step *step = step_add(&sched->fetch, AH_ITEM_REFETCH, i, AH_PHASE_BACKWARD);
        step->chunks = sched->groups[i].on_disk ? sched->config.switches.chunks : 0;
        add_read(sched, step);
    }
}

static void activations_init(struct ah_sched *sched)
{
    const struct ah_switches *switches = &sched->config.switches;
    for (int i = 0; i < switches->offload_activations; i++)
        step_add(&sched->out, AH_ITEM_ACTIVATIONS_OUT, ah__passing_block(switches, i), AH_PHASE_FORWARD);
    for (int i = switches->offload_activations - 1; i >= 0; i--)
        step_add(&sched->in, AH_ITEM_ACTIVATIONS_IN, ah__passing_block(switches, i), AH_PHASE_BACKWARD);
}

static void sums_init(struct ah_sched *sched)
{
    const struct ah_switches *switches = &sched->config.switches;
    int lowest = switches->frozen_blocks + ah__staying_sums(switches, sched->rounds) + 1;
    for (int i = switches->layers; i >= lowest && sched->rounds > 1 && sched->config.sums_blocks; i--) {
        step_add(&sched->sums_out, AH_ITEM_SUMS_OUT, i, AH_PHASE_BACKWARD)->rounds = ROUNDS_BUT_LAST;
        step_add(&sched->sums_in, AH_ITEM_SUMS_IN, i, AH_PHASE_BACKWARD)->rounds = ROUNDS_BUT_FIRST;
    }
}

/* Makes the steps of collectives. In backward the parameters of the block below are gathered before this block's
 * gradient is reduced, since the compute lane waits for them. */
static void collectives_init(struct ah_sched *sched)
{
    int last = sched->partitions - 1;
    if (sched->config.switches.world_size <= 1)
        return;
    for (int i = 0; i <= last; i++)
        if (!sched->groups[i].frozen || !sched->groups[i].unsharded) /* else all ranks have loaded all of it */
            step_add(&sched->comm, AH_ITEM_GATHER, i, AH_PHASE_FORWARD);
    sched->comm.forward_count = sched->comm.count;
    for (int i = last; i >= 0; i--) {
        const struct group *before = i > 0 ? &sched->groups[i - 1] : NULL;
        if (before && !before->frozen && (before->refetches || before->casts))
            step_add(&sched->comm, AH_ITEM_GATHER, i - 1, AH_PHASE_BACKWARD);
        if (!sched->groups[i].frozen)
            step_add(&sched->comm, AH_ITEM_REDUCE, i, AH_PHASE_BACKWARD);
    }
}

static int updates_new(struct ah_sched *sched)
{
    size_t partitions = (size_t)sched->partitions;
    for (int in = 0; in < UPDATED_IN_COUNT; in++) {
        AH_TRY(ah__new(&sched->updating[in].groups, partitions, sizeof(int)));
        AH_TRY(ah__new(&sched->held[in].groups, partitions, sizeof(int)));
    }
    return AH_OK;
}

int ah__sched_new(struct ah_sched **out, const struct ah_sched_config *config)
{
    if (config->switches.buffers < ah__sched_min_buffers(config))
        return ah__fail(AH_EINPUT, "plan: buffers: found %d, expected at least %d", config->switches.buffers,
                        ah__sched_min_buffers(config));
    if (config->switches.share_embedding_head && (!ah__may_share_ends(&config->switches) || config->shared_embedding ||
                                                  !ah__policy_uses(config->policy, AH_SWITCH_share_embedding_head)))
        return ah__fail(AH_EINTERNAL, "plan: embedding and head cannot share a place");
    if (config->switches.unsharded > 0 && config->switches.world_size == 1)
        return ah__fail(AH_EINTERNAL, "plan: one rank uses what it updates, no block has other parameters");
    if (config->rounds > 1 && (config->switches.world_size > 1 || config->rounds > config->micro_batches ||
                               !ah__policy_uses(config->policy, AH_SWITCH_passes)))
        return ah__fail(AH_EINTERNAL, "plan: found %d rounds of %d micro-batches, expected fewer", config->rounds,
                        config->micro_batches);
    if (config->switches.chunks < 1 || config->switches.chunks > AH_SCHED_MOST_CHUNKS)
        return ah__fail(AH_EINPUT, "plan: chunks: found %d, expected 1 to %d", config->switches.chunks,
                        AH_SCHED_MOST_CHUNKS);
    struct ah_sched *sched;
    AH_TRY(ah__new(&sched, 1, sizeof *sched));
    sched->config = *config;
    sched->partitions = config->switches.layers + 2;
    sched->rounds = config->rounds > 1 ? config->rounds : 1;
    size_t partitions = (size_t)sched->partitions;
    if (ah__new(&sched->groups, partitions, sizeof *sched->groups) ||
        ah__new(&sched->buffers, (size_t)config->switches.buffers, sizeof *sched->buffers) ||
        ah__new(&sched->compute.steps, 5 * partitions, sizeof *sched->compute.steps) ||
        ah__new(&sched->fetch.steps, 2 * partitions, sizeof *sched->fetch.steps) ||
        ah__new(&sched->disk.steps, 2 * partitions, sizeof *sched->disk.steps) ||
        ah__new(&sched->out.steps, partitions, sizeof *sched->out.steps) ||
        ah__new(&sched->in.steps, partitions, sizeof *sched->in.steps) ||
        ah__new(&sched->sums_out.steps, partitions, sizeof *sched->sums_out.steps) ||
        ah__new(&sched->sums_in.steps, partitions, sizeof *sched->sums_in.steps) ||
        ah__new(&sched->comm.steps, 3 * partitions, sizeof *sched->comm.steps) ||
        ah__new(&sched->leaving.groups, partitions, sizeof(int)) ||
        ah__new(&sched->evicting.groups, partitions, sizeof(int)) || updates_new(sched) ||
        ah__new(&sched->updated.groups, partitions, sizeof(int)) ||
        ah__new(&sched->filling.groups, partitions, sizeof(int)) ||
        ah__new(&sched->shadow_sets, (size_t)config->switches.shadows, sizeof(int))) {
        ah__sched_free(sched);
        return AH_ENOMEM;
    }
    groups_init(sched);
    compute_init(sched);
    transfers_init(sched);
    activations_init(sched);
    sums_init(sched);
    collectives_init(sched);
    sched->free_buffers = config->switches.buffers;
    *out = sched;
    return AH_OK;
}

void ah__sched_free(struct ah_sched *sched)
{
    if (!sched)
        return;
    ah__free(sched->groups);
    ah__free(sched->buffers);
    ah__free(sched->compute.steps);
    ah__free(sched->fetch.steps);
    ah__free(sched->disk.steps);
    ah__free(sched->out.steps);
    ah__free(sched->in.steps);
    ah__free(sched->sums_out.steps);
    ah__free(sched->sums_in.steps);
    ah__free(sched->comm.steps);
    ah__free(sched->leaving.groups);
    ah__free(sched->evicting.groups);
    for (int in = 0; in < UPDATED_IN_COUNT; in++) {
        ah__free(sched->updating[in].groups);
        ah__free(sched->held[in].groups);
    }
    ah__free(sched->updated.groups);
    ah__free(sched->filling.groups);
    ah__free(sched->shadow_sets);
    ah__free(sched);
}

static void list_restart(const struct ah_sched *sched, struct step_list *list, int64_t round)
{
    list->at = 0;
    list->round = round;
    while (list->count > 0 && !ah__step_runs(sched, ah__step_next(list), list->round))
        list->round++;
}

static void sum_places_restart(struct ah_sched *sched, int64_t round)
{
    int64_t first = ah__sum_use(sched, sched->config.switches.layers, round);
    for (int i = 0; i < AH_SUM_PLACES; i++)
        sched->sum_places[(first + i) % AH_SUM_PLACES] = (struct sum_place){.next = first + i};
}

/* Everything is complete, so the next iteration starts from the same state, whatever ran before. */
void ah__sched_limit(struct ah_sched *sched, int64_t limit, bool forward_only)
{
    struct step_list *lists[] = {&sched->compute, &sched->fetch,    &sched->out,     &sched->in,
                                 &sched->comm,    &sched->sums_out, &sched->sums_in, &sched->disk};
    int64_t first = sched->iterations_complete, round = ah__first_round(sched, first);
    sched->first = first;
    sched->limit = limit;
    sched->forward_only = forward_only;
    for (size_t i = 0; i < AH_LENGTH(lists); i++)
        list_restart(sched, lists[i], round);
    sum_places_restart(sched, round);
    sched->items = ah__sched_count_items(sched);
    sched->input_iteration = sched->head_iteration = sched->loss_iteration = sched->norm_iteration = first;
    sched->norms_known = first;
    sched->gradient_round = round;
    sched->leaving.count = sched->evicting.count = sched->updated.count = sched->filling.count = 0;
    for (int in = 0; in < UPDATED_IN_COUNT; in++)
        sched->updating[in].count = sched->held[in].count = 0;
    sched->disk_at = 0;
    sched->lowest_backward = sched->lowest_gradient = sched->partitions;
    for (int g = 0; g < sched->partitions; g++) {
        ah__group_ready(&sched->groups[g], first);
        ah__events_clear(&sched->groups[g]);
    }
    memset(sched->items_done, 0, sizeof sched->items_done);
    for (int r = 0; r < ITERATION_RING; r++)
        sched->input[r] = sched->last_compute[r] = sched->head[r] = sched->norms[r] = sched->last_gradient[r] =
            (struct item_event){0};
}

void ah__sched_extend(struct ah_sched *sched, int64_t limit)
{
    sched->limit = limit > sched->limit ? limit : sched->limit;
}

bool ah__sched_drained(const struct ah_sched *sched)
{
    return sched->iterations_complete >= sched->limit;
}

int64_t ah__sched_iterations(const struct ah_sched *sched)
{
    return sched->iterations_complete;
}

int ah__sched_buffers_used(const struct ah_sched *sched)
{
    int used = 0;
    for (int s = 0; s < sched->config.switches.buffers; s++)
        used += sched->buffers[s].claimed || !ah__sched_passed(sched, &sched->buffers[s].release);
    return used;
}

int64_t ah__sched_updates_redone(const struct ah_sched *sched)
{
    return sched->updates_redone;
}

int ah__sched_set(const struct ah_sched *sched, int group)
{
    return sched->groups[group].set;
}
