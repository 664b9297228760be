#include "sched/internal.h"

#include <string.h>

int ah__sched_ring(int64_t iteration)
{
    return (int)(iteration % ITERATION_RING);
}

int ah__sched_min_slots(const struct ah_sched_config *config)
{
    int held = config->offload_optimizer - config->offload_params; /* parameters that stay from forward to backward */
    if (config->offload_optimizer == 0)
        return 1; /* the gradient between a backward and its update */
    return held + 1 > 2 ? held + 1 : 2;
}

static void groups_init(struct ah_sched *sched)
{
    const struct ah_sched_config *config = &sched->config;
    int layers = config->layers, first_on_host = layers - config->offload_optimizer + 1;
    for (int g = 0; g < sched->partitions; g++) {
        struct group *group = &sched->groups[g];
        group->pooled = g >= 1 && g <= layers;
        group->on_host = g == 0 ? config->embedding_on_host : g > layers ? config->head_on_host : g >= first_on_host;
        group->refetches = group->pooled && group->on_host && g < first_on_host + config->offload_params;
        group->param_slot = group->grad_slot = -1;
    }
}

static void orders_init(struct ah_sched *sched)
{
    int n = 0;
    for (int i = 0; i < sched->partitions; i++)
        sched->compute[n++] = (struct step){AH_ITEM_FORWARD, i};
    sched->forward_count = n;
    for (int i = sched->partitions - 1; i >= 0; i--) {
        sched->compute[n++] = (struct step){AH_ITEM_BACKWARD, i};
        if (!sched->groups[i].on_host)
            sched->compute[n++] = (struct step){AH_ITEM_UPDATE_DEVICE, i};
    }
    sched->compute_count = n;
    n = 0;
    for (int i = 0; i < sched->partitions; i++)
        if (sched->groups[i].on_host)
            sched->fetch[n++] = (struct step){AH_ITEM_PREFETCH, i};
    sched->prefetch_count = n;
    for (int i = sched->partitions - 1; i >= 0; i--)
        if (sched->groups[i].refetches)
            sched->fetch[n++] = (struct step){AH_ITEM_REFETCH, i};
    sched->fetch_count = n;
}

int ah__sched_new(struct ah_sched **out, const struct ah_sched_config *config)
{
    if (config->slots < ah__sched_min_slots(config))
        return ah__fail(AH_EINPUT, "plan: slots: found %d, expected at least %d", config->slots,
                        ah__sched_min_slots(config));
    struct ah_sched *sched;
    AH_TRY(ah__new(&sched, 1, sizeof *sched));
    sched->config = *config;
    sched->partitions = config->layers + 2;
    size_t partitions = (size_t)sched->partitions;
    if (ah__new(&sched->groups, partitions, sizeof *sched->groups) ||
        ah__new(&sched->slots, (size_t)config->slots, sizeof *sched->slots) ||
        ah__new(&sched->compute, 3 * partitions, sizeof *sched->compute) ||
        ah__new(&sched->fetch, 2 * partitions, sizeof *sched->fetch)) {
        ah__sched_free(sched);
        return AH_ENOMEM;
    }
    groups_init(sched);
    orders_init(sched);
    sched->free_slots = config->slots;
    sched->begun = -1;
    *out = sched;
    return AH_OK;
}

void ah__sched_free(struct ah_sched *sched)
{
    if (!sched)
        return;
    ah__free(sched->groups);
    ah__free(sched->slots);
    ah__free(sched->compute);
    ah__free(sched->fetch);
    ah__free(sched);
}

int ah__sched_items(const struct ah_sched *sched)
{
    if (sched->forward_only)
        return 2 + sched->forward_count + sched->prefetch_count; /* input, loss */
    return 3 + sched->compute_count + sched->fetch_count + 2 * sched->prefetch_count; /* norms, offloads, updates */
}

/* Everything is complete, so the next iteration starts from the same state whatever ran before. */
void ah__sched_limit(struct ah_sched *sched, int64_t limit, bool forward_only)
{
    int64_t first = sched->iterations_complete;
    sched->first = first;
    sched->limit = limit;
    sched->forward_only = forward_only;
    sched->begun = first - 1;
    sched->compute_at = sched->fetch_at = 0;
    sched->compute_iteration = sched->fetch_iteration = sched->input_iteration = first;
    sched->head_iteration = sched->loss_iteration = sched->norm_iteration = first;
    sched->lowest_backward = sched->partitions;
    for (int g = 0; g < sched->partitions; g++) {
        struct group *group = &sched->groups[g];
        group->ready_for = first;
        group->fetch = group->refetch = group->forward = group->backward = group->offload = group->update =
            (struct mark){0};
    }
    memset(sched->items_done, 0, sizeof sched->items_done);
    for (int r = 0; r < ITERATION_RING; r++)
        sched->input[r] = sched->last_compute[r] = sched->head[r] = sched->norms[r] = (struct mark){0};
}

void ah__sched_stop(struct ah_sched *sched)
{
    if (sched->limit > sched->begun + 1)
        sched->limit = sched->begun + 1;
}

bool ah__sched_drained(const struct ah_sched *sched)
{
    return sched->iterations_complete >= sched->limit;
}

int64_t ah__sched_iterations(const struct ah_sched *sched)
{
    return sched->iterations_complete;
}

int ah__sched_slots_used(const struct ah_sched *sched)
{
    int used = 0;
    for (int s = 0; s < sched->config.slots; s++)
        used += sched->slots[s].claimed || !ah__sched_passed(sched, &sched->slots[s].release);
    return used;
}

/* ---- what was submitted ------------------------------------------------------------------------------------------- */

static void mark_set(struct ah_sched *sched, struct mark *mark, struct ah_event event)
{
    *mark = (struct mark){event, true, ++sched->arrivals};
}

static void claim(struct ah_sched *sched, int *held, int slot)
{
    *held = slot;
    sched->slots[slot].claimed = true;
    sched->free_slots--;
}

/* The slot is free for others once `event` has passed. */
static void release(struct ah_sched *sched, int *held, struct ah_event event)
{
    if (*held < 0)
        return;
    mark_set(sched, &sched->slots[*held].release, event);
    sched->slots[*held].claimed = false;
    sched->free_slots++;
    *held = -1;
}

static void forward_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    mark_set(sched, &group->forward, event);
    if (item->partition == sched->partitions - 1) {
        mark_set(sched, &sched->head[ah__sched_ring(item->iteration)], event);
        sched->head_iteration++;
    }
    if (group->refetches || sched->forward_only)
        release(sched, &group->param_slot, event);
}

static void backward_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    mark_set(sched, &group->backward, event);
    group->fetch = group->refetch = group->offload = group->update = (struct mark){0};
    if (group->pooled)
        claim(sched, &group->grad_slot, item->grad_slot);
    release(sched, &group->param_slot, event);
    sched->lowest_backward = item->partition;
}

static void iteration_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    mark_set(sched, &sched->last_compute[ah__sched_ring(item->iteration)], event);
    sched->compute_at = 0;
    sched->compute_iteration++;
    sched->lowest_backward = sched->partitions;
    for (int g = 0; sched->forward_only && g < sched->partitions; g++) {
        sched->groups[g].fetch = (struct mark){0};
        sched->groups[g].ready_for = item->iteration + 1;
    }
}

static void compute_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    if (item->kind == AH_ITEM_FORWARD)
        forward_submitted(sched, item, event);
    else if (item->kind == AH_ITEM_BACKWARD)
        backward_submitted(sched, item, event);
    else
        release(sched, &sched->groups[item->partition].grad_slot, event);
    int count = sched->forward_only ? sched->forward_count : sched->compute_count;
    if (++sched->compute_at == count)
        iteration_submitted(sched, item, event);
}

static void fetch_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    if (group->pooled)
        claim(sched, &group->param_slot, item->param_slot);
    mark_set(sched, item->kind == AH_ITEM_PREFETCH ? &group->fetch : &group->refetch, event);
    if (item->kind == AH_ITEM_PREFETCH)
        group->forward = group->backward = group->refetch = (struct mark){0};
    int count = sched->forward_only ? sched->prefetch_count : sched->fetch_count;
    if (++sched->fetch_at < count)
        return;
    sched->fetch_at = 0;
    sched->fetch_iteration++;
}

static void result_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    if (item->partition != 0) {
        sched->loss_iteration++;
        return;
    }
    mark_set(sched, &sched->norms[ah__sched_ring(item->iteration)], event);
    sched->norm_iteration++;
}

void ah__sched_submitted(struct ah_sched *sched, const struct ah_work *work, struct ah_event event)
{
    const struct ah_item *item = &work->item;
    struct group *group = &sched->groups[item->partition];
    if (sched->in_flight[work->lane]++ == 0)
        sched->passed[work->lane] = event.sequence - 1; /* the device may have worked for others before */
    if (item->iteration > sched->begun)
        sched->begun = item->iteration;
    switch (item->kind) {
    case AH_ITEM_INPUT:
        mark_set(sched, &sched->input[ah__sched_ring(item->iteration)], event);
        sched->input_iteration++;
        break;
    case AH_ITEM_PREFETCH:
    case AH_ITEM_REFETCH:
        fetch_submitted(sched, item, event);
        break;
    case AH_ITEM_OFFLOAD:
        mark_set(sched, &group->offload, event);
        release(sched, &group->grad_slot, event);
        break;
    case AH_ITEM_UPDATE_HOST:
        mark_set(sched, &group->update, event);
        break;
    case AH_ITEM_RESULT:
        result_submitted(sched, item, event);
        break;
    default:
        compute_submitted(sched, item, event);
        break;
    }
}

/* ---- what has completed ------------------------------------------------------------------------------------------- */

static void iteration_item_done(struct ah_sched *sched, int64_t iteration)
{
    int need = ah__sched_items(sched);
    sched->items_done[ah__sched_ring(iteration)]++;
    while (sched->items_done[ah__sched_ring(sched->iterations_complete)] == need) {
        sched->items_done[ah__sched_ring(sched->iterations_complete)] = 0;
        sched->iterations_complete++;
    }
}

void ah__sched_complete(struct ah_sched *sched, const struct ah_done *done)
{
    sched->in_flight[done->lane]--;
    sched->passed[done->lane]++;
    if (done->item.kind == AH_ITEM_UPDATE_HOST)
        sched->groups[done->item.partition].ready_for = done->item.iteration + 1;
    iteration_item_done(sched, done->item.iteration);
}
