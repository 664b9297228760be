/* Handles completed items: iterations, updates, and which speculative updates count. */
#include "sched/internal.h"

static void iteration_items_done(struct ah_sched *sched, int64_t iteration, int count)
{
    sched->items_done[ah__sched_ring(iteration)] += count;
    while (sched->items_done[ah__sched_ring(sched->iterations_complete)] == sched->items) {
        sched->items_done[ah__sched_ring(sched->iterations_complete)] = 0;
        sched->iterations_complete++;
    }
}

/* Handles the end of a group's update, of which all chunks are done and count. */
static void group_updated(struct group *group)
{
    group->offloaded = group->stored = group->updating = group->updated = 0;
    group->ready_for++;
}

/* Frees a set of shadow states; a block on disk has its second place for itself. */
static void shadow_release(struct ah_sched *sched, struct group *group)
{
    if (!group->on_disk)
        sched->shadow_sets[sched->shadow_count++] = group->shadow;
    group->shadow = -1;
}

/* Makes the shadow states the group's set: all its speculative updates are done, and its iteration's factor is one. */
static void shadow_confirm(struct ah_sched *sched, struct group *group)
{
    int before = group->set;
    group->set = group->shadow;
    group->shadow = before;
    shadow_release(sched, group);
    iteration_items_done(sched, group->ready_for, sched->config.switches.chunks);
    group_updated(group);
}

static void updated_add(struct ah_sched *sched, int index)
{
    if (sched->config.policy->overtakes && sched->config.switches.out_of_order)
        ah__group_set_add(&sched->updated, index);
}

static void chunk_updated(struct ah_sched *sched, int index)
{
    struct group *group = &sched->groups[index];
    updated_add(sched, index);
    if (++group->updated == sched->config.switches.chunks)
        group_updated(group);
}

/* Handles a completed speculative chunk. It may be fetched at once, but is not used before the factor is known. */
static void chunk_updated_ahead(struct ah_sched *sched, int index)
{
    struct group *group = &sched->groups[index];
    if (group->void_chunks) {
        if (--group->void_chunks == 0)
            shadow_release(sched, group);
        return;
    }
    group->updated++;
    updated_add(sched, index);
    if (!ah__sched_norm_known(sched, group->ready_for))
        return;
    if (group->updated == sched->config.switches.chunks)
        shadow_confirm(sched, group);
}

/* Handles the arrival of norms on the host. The factor is one unless ah__sched_clipped follows: then speculative
 * updates count. */
static void norms_arrived(struct ah_sched *sched, int64_t iteration)
{
    sched->norms_known = iteration + 1;
    sched->clipped[ah__sched_ring(iteration)] = false;
    sched->unsettled = true;
}

void ah__sched_clipped(struct ah_sched *sched, int64_t iteration)
{
    sched->clipped[ah__sched_ring(iteration)] = true;
}

/* Sets the list of fetches back to a group's prefetch, unless it has not come there yet. */
static void fetch_list_back(struct step_list *list, int index, int64_t round)
{
    int at = 0;
    while (list->steps[at].partition != index)
        at++;
    if (list->round < round || (list->round == round && list->at <= at))
        return;
    list->round = round;
    list->at = at;
}

/* Discards the parameters of a group that were fetched for the next iteration: all of them are fetched again, into the
 * same buffer. Nothing has read them. */
static void fetch_again(struct ah_sched *sched, int index)
{
    struct group *group = &sched->groups[index];
    int64_t iteration = group->ready_for + 1, round = ah__first_round(sched, iteration);
    bool whole = group->fetch.submitted && group->fetch.round == round;
    int chunks = whole ? sched->config.switches.chunks : group->fetched;
    if (chunks == 0)
        return;
    iteration_items_done(sched, iteration, -chunks);
    group->fetched = 0;
    group->fetch = (struct item_event){0};
    if (ah__holds_buffer(group, round) && !group->casts)
        ah__group_set_add(&sched->filling, index);
    fetch_list_back(&sched->fetch, index, round);
}

/* Runs a group's update again from the old states: all its chunks, with the right factor. */
static void update_again(struct ah_sched *sched, int index)
{
    struct group *group = &sched->groups[index];
    fetch_again(sched, index);
    sched->updates_redone++;
    group->void_chunks = group->updating - group->updated;
    group->updating = group->updated = 0;
    if (!group->void_chunks)
        shadow_release(sched, group);
    ah__update_due(sched, index);
}

/* Releases updates that waited for the norm. */
static void held_release(struct ah_sched *sched)
{
    for (int in = 0; in < UPDATED_IN_COUNT; in++) {
        struct group_set *held = &sched->held[in];
        int count = held->count;
        held->count = 0;
        for (int i = 0; i < count; i++)
            ah__update_due(sched, held->groups[i]);
    }
}

void ah__sched_settle(struct ah_sched *sched)
{
    int64_t iteration = sched->norms_known - 1;
    bool clipped = sched->clipped[ah__sched_ring(iteration)];
    sched->unsettled = false;
    held_release(sched);
    for (int g = 0; g < sched->partitions; g++) {
        struct group *group = &sched->groups[g];
        if (group->shadow < 0 || group->ready_for != iteration)
            continue;
        if (clipped) {
            update_again(sched, g);
            continue;
        }
        if (group->updated == sched->config.switches.chunks)
            shadow_confirm(sched, group);
    }
}

/* ---- by kind: true if the item counts for its iteration ---- */

static bool counted_completed(struct ah_sched *sched, const struct ah_item *item)
{
    (void)sched;
    (void)item;
    return true;
}

/* The update that it is part of counts. */
static bool part_completed(struct ah_sched *sched, const struct ah_item *item)
{
    (void)sched;
    (void)item;
    return false;
}

/* An update of a block on disk counts when it is written. */
static bool update_completed(struct ah_sched *sched, const struct ah_item *item)
{
    if (sched->groups[item->partition].on_disk && item->kind != AH_ITEM_DISK_WRITE)
        return false;
    bool speculative = item->shadow_set >= 0;
    (speculative ? chunk_updated_ahead : chunk_updated)(sched, item->partition);
    return !speculative;
}

static bool result_completed(struct ah_sched *sched, const struct ah_item *item)
{
    if (item->partition == 0 && sched->config.clips && !sched->forward_only)
        norms_arrived(sched, item->iteration);
    return true;
}

void ah__sched_complete(struct ah_sched *sched, enum ah_lane lane, const struct ah_item *item)
{
    static bool (*const completed[AH_ITEM_COUNT])(struct ah_sched *, const struct ah_item *) = {
#define AH_ITEM(id, lane, name, short_name, shade, time, profile, submitted, completed) completed##_completed,
#include "sched/items.def"
#undef AH_ITEM
    };
    sched->in_flight[lane]--;
    sched->passed[lane]++;
    if (completed[item->kind](sched, item))
        iteration_items_done(sched, item->iteration, 1);
}
