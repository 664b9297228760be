/* Updates: the optimizer's step on the host, on the device and staged through the device; norms and the clipping
 * factor. */
#include "base/hash.h"
#include "bind/internal.h"

/* Adds an update of the item's chunk, which begins at *first; the caller sets the operands. */
static struct ah_task *adam_task(int64_t *first, const struct bind *bind)
{
    int64_t part, count = ah__bind_chunk(first, bind);
    ah__bind_part(&part, bind);
    int64_t decayed = ah__bind_group(bind)->decayed - part - *first;
    struct ah_task *task = ah__bind_task(bind, AH_TASK_ADAM);
    task->as.adam.dtype = bind->binding->partition->compute;
    task->as.adam.count = count;
    task->as.adam.decayed = decayed < 0 ? 0 : decayed < count ? decayed : count;
    task->as.adam.adam = bind->binding->adam;
    task->as.adam.adam.draw = (uint32_t)ah__hash_int((uint64_t)bind->binding->group, bind->binding->adam.draw);
    task->as.adam.moment_dtype = bind->binding->partition->step.moments;
    task->as.adam.first = part + *first;
    return task;
}

/* Computes the address of each state from element `first` on; null for a state that the partition does not have. */
static void states_at(char *at[AH_STATE_COUNT], const struct bind *bind, char *const states[AH_STATE_COUNT],
                      int64_t first)
{
    const struct ah_partition *partition = bind->binding->partition;
    for (int i = 0; i < AH_STATE_COUNT; i++)
        at[i] = ah__state_size(partition, i, 1) ? states[i] + ah__state_size(partition, i, first) : NULL;
}

static void adam_states(struct ah_task *task, char *const at[AH_STATE_COUNT])
{
    task->as.adam.p = at[0];
    task->as.adam.m = at[1];
    task->as.adam.v = at[2];
    task->as.adam.rest = at[AH_STATE_REST];
}

void ah__bind_update(const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    if (ah__bind_group(bind)->trained == 0)
        return;
    bool on_host = bind->item->kind != AH_ITEM_UPDATE_DEVICE, ahead = bind->item->kind == AH_ITEM_UPDATE_SPECULATIVE;
    const char *reduced = at->reduced ? at->reduced : ah__bind_part_at(bind, at->grad);
    const char *grad = on_host ? at->update_grad : reduced;
    char *states[AH_STATE_COUNT], *to[AH_STATE_COUNT];
    int64_t first;
    struct ah_task *task = adam_task(&first, bind);
    states_at(states, bind, at->states, at->disk ? 0 : first);
    adam_states(task, states);
    if (ahead && !at->disk) {
        states_at(to, bind, at->shadow_states, first);
        task->as.adam.to_p = to[0];
        task->as.adam.to_m = to[1];
        task->as.adam.to_v = to[2];
        task->as.adam.to_rest = to[AH_STATE_REST];
    }
    task->as.adam.g = grad + (at->disk ? 0 : first) * ah__bind_element_bytes(bind);
    if (bind->binding->clip > 0 && !ahead)
        task->as.adam.scale =
            (const float *)(const void *)((on_host ? at->host_results : at->results) + AH_RESULTS_SCALE);
    if (!on_host && at->update_copy)
        ah__bind_copy(bind, ah__bind_part_at(bind, at->update_copy) + first * ah__bind_element_bytes(bind), states[0],
                      task->as.adam.count * ah__bind_element_bytes(bind));
}

/* Adds an update of the chunk's states in the staging buffer. */
static void adam_streamed_add(const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    char *stage[AH_STATE_COUNT];
    int64_t first;
    struct ah_task *task = adam_task(&first, bind);
    states_at(stage, bind, at->stage, 0);
    adam_states(task, stage);
    task->as.adam.g = at->stage_grad;
    if (bind->binding->clip > 0 && bind->item->shadow_set < 0)
        task->as.adam.scale = (const float *)(const void *)(at->results + AH_RESULTS_SCALE);
}

void ah__bind_norm(const struct bind *bind)
{
    if (ah__bind_group(bind)->trained == 0)
        return;
    struct ah_task *task = ah__bind_task(bind, AH_TASK_SQNORM);
    int64_t first;
    task->as.sqnorm.g = ah__bind_part_at(bind, bind->at->grad);
    task->as.sqnorm.dtype = bind->binding->partition->compute;
    task->as.sqnorm.count = ah__bind_part(&first, bind);
    task->as.sqnorm.out = (double *)(void *)(bind->at->results + AH_RESULTS_NORMS) + bind->binding->group;
}

void ah__bind_clip(const struct bind *bind)
{
    struct ah_task *task = ah__bind_task(bind, AH_TASK_CLIP);
    task->as.clip.squares = (const double *)(const void *)(bind->at->results + AH_RESULTS_NORMS);
    task->as.clip.count = bind->binding->partition->group_count;
    task->as.clip.limit = bind->binding->clip;
    task->as.clip.scale = (float *)(void *)(bind->at->results + AH_RESULTS_SCALE);
}

void ah__bind_states_in(const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    char *states[AH_STATE_COUNT];
    int64_t first, count = ah__bind_chunk(&first, bind);
    states_at(states, bind, at->states, first);
    for (int i = 0; i < AH_STATE_COUNT; i++)
        if (states[i])
            ah__bind_copy(bind, at->stage[i], states[i], ah__state_size(bind->binding->partition, i, count));
    ah__bind_copy(bind, at->stage_grad, at->update_grad + first * ah__bind_element_bytes(bind),
                  count * ah__bind_element_bytes(bind));
}

/* Adds a read to, or a write of, host memory. */
static void disk_add(const struct bind *bind, char *memory, int64_t offset, int64_t bytes, bool writes)
{
    if (bytes == 0)
        return;
    struct ah_task *task = ah__bind_task(bind, AH_TASK_DISK);
    task->as.disk.disk = bind->at->disk;
    task->as.disk.memory = memory;
    task->as.disk.offset = offset;
    task->as.disk.bytes = bytes;
    task->as.disk.writes = writes;
}

void ah__bind_disk_params(const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    disk_add(bind, at->host_param, at->disk_states, at->disk_param_bytes, false);
    disk_add(bind, at->host_frozen, at->disk_frozen, at->disk_frozen_bytes, false);
}

void ah__bind_disk_gradient(const struct bind *bind)
{
    disk_add(bind, bind->at->host_grad, bind->at->disk_gradient, bind->at->disk_gradient_bytes, true);
}

void ah__bind_disk_read(const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    disk_add(bind, at->states[0], at->disk_states, at->disk_states_bytes, false);
    disk_add(bind, at->host_grad, at->disk_gradient, at->disk_gradient_bytes, false);
}

void ah__bind_disk_write(const struct bind *bind)
{
    disk_add(bind, bind->at->states[0], bind->at->disk_shadow, bind->at->disk_states_bytes, true);
}

void ah__bind_update_staged(const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    char *states[AH_STATE_COUNT];
    int64_t first, count = ah__bind_chunk(&first, bind);
    states_at(states, bind, bind->item->shadow_set >= 0 ? at->shadow_states : at->states, first);
    adam_streamed_add(bind);
    for (int i = 0; i < AH_STATE_COUNT; i++)
        if (states[i])
            ah__bind_copy(bind, states[i], at->stage[i], ah__state_size(bind->binding->partition, i, count));
}
