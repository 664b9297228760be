/* Handles submitted items: events, claims and releases of buffers, each lane's next step. */
#include "sched/internal.h"

/* Advances a list after its step was submitted. True at the end of its round. */
static bool step_advance(const struct ah_sched *sched, struct step_list *list)
{
    int64_t round = list->round;
    do {
        if (++list->at < ah__list_length(sched, list))
            continue;
        list->at = 0;
        list->round++;
    } while (sched->rounds > 1 && !ah__step_runs(sched, ah__step_next(list), list->round));
    return list->round > round;
}

static void event_set(struct ah_sched *sched, struct item_event *of, struct ah_event event, int64_t round)
{
    *of = (struct item_event){event, true, round, ++sched->arrivals};
}

static void claim(struct ah_sched *sched, int *held, int buffer)
{
    *held = buffer;
    sched->buffers[buffer].claimed = true;
    sched->free_buffers--;
}

/* Releases a buffer, which is free for others after `event`. */
static void release(struct ah_sched *sched, int *held, struct ah_event event)
{
    if (*held < 0)
        return;
    event_set(sched, &sched->buffers[*held].release, event, 0);
    sched->buffers[*held].claimed = false;
    sched->free_buffers++;
    *held = -1;
}

/* Releases a group's parameters. Buffers of casts are held only between two items of the compute lane and are not
 * counted. */
static void release_params(struct ah_sched *sched, struct group *group, struct ah_event event)
{
    if (group->param_buffer >= 0 && group->on_host && !group->casts)
        sched->param_buffers[ah__sched_ring(group->param_round)]--;
    release(sched, &group->param_buffer, event);
}

static void forward_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    event_set(sched, &group->forward, event, item->round);
    if (group->frozen)
        group->fetch = (struct item_event){0};
    if (item->partition == sched->partitions - 1 && ah__ends_iteration(sched, item->round)) {
        event_set(sched, &sched->head[ah__sched_ring(item->iteration)], event, item->round);
        sched->head_iteration++;
    }
    if (group->refetches && ah__sched_evicts(sched) && !sched->forward_only)
        ah__group_set_add(&sched->evicting, item->partition);
    else if (group->releases || group->casts || sched->forward_only)
        release_params(sched, group, event);
}

static void evict_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    event_set(sched, &group->evict, event, item->round);
    ah__group_set_remove(&sched->evicting, item->partition);
    release_params(sched, group, event);
}

/* Claims a gradient's buffer for the backward that writes it. A sum that is not a gradient yet counts as claimed. */
static void gradient_claimed(struct ah_sched *sched, const struct ah_item *item)
{
    struct group *group = &sched->groups[item->partition];
    if (item->grad_buffer >= 0)
        claim(sched, &group->grad_buffer, item->grad_buffer);
    sched->lowest_gradient = item->partition;
    int lowest = sched->config.switches.frozen_blocks + 1;
    if (item->partition > (item->unfinished && ah__embeds_late(sched) ? lowest : 0))
        return;
    sched->gradient_round++;
    sched->lowest_gradient = sched->partitions;
}

/* Frees a sum buffer for the next backward in turn after `event`. */
static void sum_place_left(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct sum_place *place = &sched->sum_places[item->sum];
    place->next += AH_SUM_PLACES;
    event_set(sched, &place->left, event, item->round);
}

/* Keeps a group's parameters for the next round, as if they were fetched for it. */
static void params_kept(struct ah_sched *sched, struct group *group)
{
    sched->param_buffers[ah__sched_ring(group->param_round)]--;
    group->fetch.round = ++group->param_round;
    sched->param_buffers[ah__sched_ring(group->param_round)]++;
}

static void backward_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    event_set(sched, &group->backward, event, item->round);
    bool kept = item->unfinished && group->kept;
    if (!kept && (!item->unfinished || !ah__stays(sched, group)))
        group->fetch = (struct item_event){0};
    group->refetch = group->reduce = group->update = (struct item_event){0};
    gradient_claimed(sched, item);
    if (kept)
        params_kept(sched, group);
    else
        release_params(sched, group, event);
    sched->lowest_backward = item->partition;
    if (item->unfinished)
        return;
    if (item->sum >= 0)
        sum_place_left(sched, item, event);
    if (item->partition == 0 && sched->config.switches.world_size <= 1)
        event_set(sched, &sched->last_gradient[ah__sched_ring(item->iteration)], event, item->round);
    if (group->on_host)
        ah__group_set_add(&sched->leaving, item->partition);
}

static void cast_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    if (group->pooled)
        claim(sched, &group->param_buffer, item->param_buffer);
    event_set(sched, &group->cast[item->phase], event, item->round);
}

static void update_device_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    event_set(sched, &group->update, event, item->round);
    release(sched, &group->grad_buffer, event);
}

static void round_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    event_set(sched, &sched->last_compute[ah__sched_ring(item->iteration)], event, item->round);
    sched->lowest_backward = sched->partitions;
    bool evaluated = sched->forward_only && ah__ends_iteration(sched, item->round);
    for (int g = 0; evaluated && g < sched->partitions; g++) {
        ah__events_clear(&sched->groups[g]);
        ah__group_ready(&sched->groups[g], item->iteration + 1);
    }
}

/* Returns true if the list is at a prefetch that was submitted, in its turn or out of order. */
static bool fetch_done(const struct ah_sched *sched)
{
    const struct step *step = ah__step_next(&sched->fetch);
    const struct item_event *fetch = &sched->groups[step->partition].fetch;
    return step->kind == AH_ITEM_PREFETCH && fetch->submitted && fetch->round == sched->fetch.round;
}

static void slot_claim(struct ah_sched *sched, const struct ah_item *item)
{
    sched->disk_slots[item->slot].claimed = true;
}

/* Frees a host buffer of a disk after `event`. */
static void slot_release(struct ah_sched *sched, int slot, struct ah_event event)
{
    sched->disk_slots[slot].claimed = false;
    event_set(sched, &sched->disk_slots[slot].release, event, 0);
}

static void params_taken(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    slot_release(sched, item->slot, event);
    sched->disk_params--;
}

static void fetch_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    bool claims = group->pooled && !group->casts && item->chunk == 0;
    if (claims && !(item->kind == AH_ITEM_PREFETCH && ah__holds_buffer(group, item->round))) {
        claim(sched, &group->param_buffer, item->param_buffer);
        group->param_round = item->round;
        sched->param_buffers[ah__sched_ring(item->round)]++;
        if (item->kind == AH_ITEM_PREFETCH)
            ah__group_set_add(&sched->filling, item->partition);
    }
    if (group->on_disk)
        params_taken(sched, item, event);
    if (item->chunks > 0 && ++group->fetched < item->chunks)
        return;
    group->fetched = group->read = 0;
    if (item->kind == AH_ITEM_PREFETCH && group->pooled && !group->casts)
        ah__group_set_remove(&sched->filling, item->partition);
    ah__group_set_remove(&sched->updated, item->partition);
    event_set(sched, item->kind == AH_ITEM_PREFETCH ? &group->fetch : &group->refetch, event, item->round);
    if (item->kind == AH_ITEM_REFETCH)
        step_advance(sched, &sched->fetch);
    while (fetch_done(sched))
        step_advance(sched, &sched->fetch);
}

/* A gradient of a block on disk goes on there; else it may be updated with. */
static void chunk_offloaded(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    if (!sched->groups[item->partition].on_disk) {
        ah__update_due(sched, item->partition);
        return;
    }
    struct disk_chunk *chunk = ah__disk_gradient(sched, sched->disk_offloaded++);
    slot_claim(sched, item);
    chunk->item = *item;
    event_set(sched, &chunk->arrived, event, item->round);
}

static void offload_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    event_set(sched, &group->offload[group->offloaded++], event, item->round);
    chunk_offloaded(sched, item, event);
    if (group->offloaded < sched->config.switches.chunks)
        return;
    ah__group_set_remove(&sched->leaving, item->partition);
    release(sched, &group->grad_buffer, event);
}

/* Handles a submitted chunk of an update. A speculative one takes the shadow states that became free last, also for its
 * later chunks. */
static void update_begun(struct ah_sched *sched, const struct ah_item *item)
{
    struct group *group = &sched->groups[item->partition];
    if (item->shadow_set >= 0 && group->shadow < 0) {
        group->shadow = item->shadow_set;
        sched->shadow_count -= !group->on_disk;
        ah__group_set_remove(&sched->held[group->updated_in], item->partition);
        ah__update_due(sched, item->partition);
    }
    if (++group->updating == sched->config.switches.chunks)
        ah__group_set_remove(&sched->updating[group->updated_in], item->partition);
}

/* An update of a block on disk has begun with the read of its states. */
static void update_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    if (!sched->groups[item->partition].on_disk)
        update_begun(sched, item);
    else
        event_set(sched, &ah__disk_chunk(sched, sched->disk_updated++)->updated, event, item->round);
}

static void disk_params_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    slot_claim(sched, item);
    sched->disk_params++;
    group->slot[item->chunk] = item->slot;
    event_set(sched, &group->arrived[item->chunk], event, item->round);
    group->read++;
    if (++sched->disk_at < item->chunks)
        return;
    sched->disk_at = 0;
    step_advance(sched, &sched->disk);
}

static void disk_gradient_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    slot_release(sched, item->slot, event);
    sched->disk_stored++;
    sched->groups[item->partition].stored++;
    ah__update_due(sched, item->partition);
}

static void disk_read_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct disk_chunk *chunk = ah__disk_chunk(sched, sched->disk_begun++);
    slot_claim(sched, item);
    update_begun(sched, item);
    chunk->item = *item;
    event_set(sched, &chunk->arrived, event, item->round);
}

static void disk_write_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    slot_release(sched, item->slot, event);
    sched->disk_ended++;
}

static void states_in_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct staged_chunk *chunk = &sched->staged_chunks[sched->staged_begun++ % AH_STAGING_BUFFERS];
    update_begun(sched, item);
    chunk->item = *item;
    chunk->item.kind = AH_ITEM_UPDATE_STAGED;
    event_set(sched, &chunk->arrived, event, item->round);
}

static void staged_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    event_set(sched, &sched->stage_left[item->stage], event, item->round);
    sched->staged_ended++;
}

static void result_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    if (item->partition != 0) {
        sched->loss_iteration++;
        return;
    }
    event_set(sched, &sched->norms[ah__sched_ring(item->iteration)], event, item->round);
    sched->norm_iteration++;
}

static void input_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    event_set(sched, &sched->input[ah__sched_ring(item->iteration)], event, item->round);
    sched->input_iteration++;
}

static void activations_out_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    event_set(sched, &sched->groups[item->partition].activations_out, event, item->round);
    step_advance(sched, &sched->out);
}

static void activations_in_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    event_set(sched, &sched->groups[item->partition].activations_in, event, item->round);
    step_advance(sched, &sched->in);
}

static void sums_out_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    event_set(sched, &sched->groups[item->partition].sums_out, event, item->round);
    sum_place_left(sched, item, event);
    step_advance(sched, &sched->sums_out);
}

static void sums_in_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    event_set(sched, &sched->groups[item->partition].sums_in, event, item->round);
    step_advance(sched, &sched->sums_in);
}

static void gather_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    event_set(sched, &sched->groups[item->partition].gather[item->phase], event, item->round);
    step_advance(sched, &sched->comm);
}

static void reduce_submitted(struct ah_sched *sched, const struct ah_item *item, struct ah_event event)
{
    struct group *group = &sched->groups[item->partition];
    event_set(sched, &group->reduce, event, item->round);
    if (sched->config.clips && !group->on_host) /* this rank's part waits for the norm in memory of its own */
        release(sched, &group->grad_buffer, event);
    if (item->partition == 0)
        event_set(sched, &sched->last_gradient[ah__sched_ring(item->iteration)], event, item->round);
    step_advance(sched, &sched->comm);
}

void ah__sched_submitted(struct ah_sched *sched, const struct ah_next *next, struct ah_event event)
{
    static void (*const submitted[AH_ITEM_COUNT])(struct ah_sched *, const struct ah_item *, struct ah_event) = {
#define AH_ITEM(id, lane, name, short_name, shade, time, profile, submitted, ...) submitted##_submitted,
#include "sched/items.def"
#undef AH_ITEM
    };
    const struct ah_item *item = &next->item;
    if (sched->in_flight[next->lane]++ == 0)
        sched->passed[next->lane] = event.sequence - 1; /* the device may have run other work before */
    submitted[item->kind](sched, item, event);
    if (next->lane == AH_LANE_COMPUTE && step_advance(sched, &sched->compute))
        round_submitted(sched, item, event);
}
