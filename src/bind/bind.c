#include "bind/internal.h"

/* Returns true for items of the embedding itself, whose input is the tokens. */
static bool embeds(const struct bind *bind)
{
    return bind->binding->class == AH_CLASS_EMBEDDING;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static const struct ah_prepared *prepared_of(const struct bind *bind, enum ah_program_kind kind)
{
    return bind->binding->programs->prepared[bind->binding->class][kind];
}

static void bases_fill(char *base[AH_SPACE_COUNT], const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    char *targets = at->tokens + at->tokens_bytes / 2;
    base[AH_SPACE_PARAM] = ah__is_widened(ah__bind_group(bind)) ? at->widened : at->param;
    base[AH_SPACE_GRAD] = at->sum;
    base[AH_SPACE_SHARED] = at->shared_param;
    base[AH_SPACE_SHARED_GRAD] = at->shared_sum;
    base[AH_SPACE_INPUT] = embeds(bind) ? at->tokens : at->input;
    base[AH_SPACE_OUTPUT] = at->output;
    base[AH_SPACE_SAVED] = at->saved;
    base[AH_SPACE_CHEAP] = at->cheap;
    base[AH_SPACE_WORK] = at->work;
    base[AH_SPACE_CACHE] = at->cache;
    base[AH_SPACE_WORKSPACE] = at->workspace;
    base[AH_SPACE_BOUNDARY] = at->boundary;
    base[AH_SPACE_TARGETS] = targets;
    if (bind->binding->partition->packed)
        base[AH_SPACE_POSITIONS] = at->tokens + ah__step_tokens(bind->binding->partition) * (int64_t)sizeof(int32_t);
    base[AH_SPACE_LOSS] = at->results + ah__results_losses(bind->binding->partition);
    base[AH_SPACE_SCALE] = targets + ah__step_tokens(bind->binding->partition) * (int64_t)sizeof(int32_t);
}

static void steps_fill(int64_t step[AH_SPACE_COUNT], const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    const struct ah_partition *partition = bind->binding->partition;
    int64_t tokens_step = partition->batch * partition->seq * (int64_t)sizeof(int32_t);
    step[AH_SPACE_INPUT] = embeds(bind) ? tokens_step : at->input_step;
    step[AH_SPACE_OUTPUT] = at->output_step;
    step[AH_SPACE_SAVED] = at->saved_step;
    step[AH_SPACE_CHEAP] = at->cheap_step;
    step[AH_SPACE_BOUNDARY] = at->boundary_step;
    step[AH_SPACE_TARGETS] = step[AH_SPACE_POSITIONS] = tokens_step;
    step[AH_SPACE_LOSS] = sizeof(float);
}

/* Returns true if a space exists for all micro-batches of a step, not only for those of a round. */
static bool is_of_step(const struct bind *bind, enum ah_space space)
{
    return space == AH_SPACE_TARGETS || space == AH_SPACE_POSITIONS || space == AH_SPACE_LOSS ||
           (embeds(bind) && space == AH_SPACE_INPUT);
}

/* Adds a program, and one that follows it or null, for micro-batches [first, first + count) of the item. */
static void program_add(const struct bind *bind, const struct ah_prepared *prepared, const struct ah_prepared *then,
                        int first, int count)
{
    struct ah_task *task = ah__bind_task(bind, AH_TASK_PROGRAM);
    task->as.program.prepared = prepared;
    task->as.program.then = then;
    task->as.program.repeats = count;
    bases_fill(task->as.program.base, bind);
    if (bind->binding->micro_batches <= 1)
        return;
    steps_fill(task->as.program.step, bind);
    for (int i = 0; i < AH_SPACE_COUNT; i++) {
        int64_t from = is_of_step(bind, (enum ah_space)i) ? bind->item->first_micro_batch + first : first;
        if (task->as.program.base[i])
            task->as.program.base[i] += from * task->as.program.step[i];
    }
}

/* Returns the number of micro-batches that the item runs. */
static int micro_batches_of(const struct bind *bind)
{
    int all = bind->binding->micro_batches > 1 ? bind->binding->micro_batches : 1;
    return bind->item->micro_batches > 0 ? bind->item->micro_batches : all;
}

/* Adds a program for every micro-batch, with the program `before` (or null) ahead of it. After the first micro-batch of
 * the step the program `adding` takes its place, if it exists. */
static void programs_add(const struct bind *bind, const struct ah_prepared *before, enum ah_program_kind kind,
                         enum ah_program_kind adding)
{
    const struct ah_prepared *writes = prepared_of(bind, kind), *adds = prepared_of(bind, adding);
    int count = micro_batches_of(bind), together = bind->item->adds ? 0 : 1;
    if (adds->program->count == 0 || (count == 1 && together == 1))
        together = count;
    if (together > 0)
        program_add(bind, before ? before : writes, before ? writes : NULL, 0, together);
    if (together < count)
        program_add(bind, before ? before : adds, before ? adds : NULL, together, count - together);
}

/* Adds a copy of the item's chunk of `count` elements in the compute dtype. In host memory there is only the chunk of a
 * block on disk. */
static void elements_copy_add(const struct bind *bind, char *to, const char *from, int64_t count)
{
    int64_t first, element = ah__bind_element_bytes(bind), elements = ah__bind_chunk_of(&first, bind, count);
    bool leaves = bind->item->kind == AH_ITEM_OFFLOAD;
    if (elements == 0)
        return;
    if (!bind->at->disk || !leaves)
        to += first * element;
    if (!bind->at->disk || leaves)
        from += first * element;
    ah__bind_copy(bind, to, from, elements * element);
}

/* Adds a copy of a chunk of this rank's part of the trained parameters or of their gradient. */
static void chunk_copy_add(const struct bind *bind, char *to, const char *from)
{
    int64_t part;
    elements_copy_add(bind, to, from, ah__bind_part(&part, bind));
}

/* Returns this rank's share of the frozen elements, [*first, *first + result), counted from the first frozen
 * element. */
static int64_t frozen_part(int64_t *first, const struct bind *bind)
{
    int64_t count = ah__frozen_count(ah__bind_group(bind));
    return ah__part_range(first, count, bind->binding->rank, ah__step_ranks(bind->binding->partition));
}

/* Returns the address of this rank's frozen elements in `whole`, which has the whole group in the compute dtype. */
static char *frozen_at(const struct bind *bind, char *whole)
{
    int64_t first;
    frozen_part(&first, bind);
    return whole + (ah__bind_group(bind)->trained + first) * ah__bind_element_bytes(bind);
}

/* Adds a copy of a chunk of this rank's part of the frozen parameters. */
static void frozen_copy_add(const struct bind *bind, char *to, const char *from)
{
    int64_t first;
    elements_copy_add(bind, to, from, frozen_part(&first, bind));
}

/* Adds a cast of all trained elements of a group from F32 to the compute dtype. */
static void narrow_add(const struct bind *bind, char *to, const char *from)
{
    if (ah__bind_group(bind)->trained == 0)
        return;
    struct ah_task *task = ah__bind_task(bind, AH_TASK_CAST);
    task->as.cast.to = to;
    task->as.cast.from = from;
    task->as.cast.to_dtype = bind->binding->partition->compute;
    task->as.cast.from_dtype = AH_F32;
    task->as.cast.count = ah__bind_group(bind)->trained;
    task->as.cast.zeros = ah__bind_group(bind)->gaps;
    task->as.cast.zero_count = ah__bind_group(bind)->trained_gaps;
}

/* Zeroes the padding between gradients. Embedding and head may use one gradient buffer in turn, with padding in
 * different positions. */
static void gaps_clear(const struct bind *bind)
{
    if (ah__bind_group(bind)->trained_gaps == 0 || bind->binding->partition->shared_group >= 0)
        return;
    struct ah_task *task = ah__bind_task(bind, AH_TASK_CAST);
    task->as.cast.to = bind->at->grad;
    task->as.cast.from = bind->at->grad;
    task->as.cast.to_dtype = task->as.cast.from_dtype = AH_F32;
    task->as.cast.zeros = ah__bind_group(bind)->gaps;
    task->as.cast.zero_count = ah__bind_group(bind)->trained_gaps;
}

/* Copies this rank's part into the buffer: from its states, or from the memory into which it was fetched. */
static void cast(const struct bind *bind)
{
    const struct ah_addresses *at = bind->at;
    int64_t first, count = ah__bind_part(&first, bind), frozen = frozen_part(&first, bind);
    if (count > 0)
        ah__bind_copy(bind, ah__bind_part_at(bind, at->param), at->shard ? at->shard : at->states[0],
                      count * ah__bind_element_bytes(bind));
    if (frozen > 0)
        ah__bind_copy(bind, frozen_at(bind, at->param), at->frozen, frozen * ah__bind_element_bytes(bind));
}

static void collective_add(const struct bind *bind, enum ah_collective kind, char *buffer, int64_t count,
                           enum ah_dtype dtype)
{
    struct ah_task *task = ah__bind_task(bind, AH_TASK_COLLECTIVE);
    task->as.collective.kind = kind;
    task->as.collective.buffer = buffer;
    task->as.collective.part_count = count;
    task->as.collective.dtype = dtype;
}

/* Adds a collective over `count` elements, divided into the ranks' parts. */
static void parts_add(const struct bind *bind, enum ah_collective kind, char *buffer, int64_t count)
{
    const struct ah_partition *partition = bind->binding->partition;
    if (count > 0)
        collective_add(bind, kind, buffer, ah__part_count(count, ah__step_ranks(partition)), partition->compute);
}

/* Sums losses, flags and norms of an iteration over all ranks. */
static void totals_add(const struct bind *bind)
{
    const struct ah_partition *partition = bind->binding->partition;
    const struct ah_addresses *at = bind->at;
    int losses = ah__micro_batches(partition);
    char *totals = at->results + ah__results_totals(partition);
    const char *flags = at->tokens + ah__tokens_flags(partition);
    ah__bind_copy(bind, totals, at->results + ah__results_losses(partition), losses * (int64_t)sizeof(float));
    ah__bind_copy(bind, totals + losses * (int64_t)sizeof(float), flags, AH_FLAGS * (int64_t)sizeof(float));
    collective_add(bind, AH_SUM_FLOATS, totals, losses + AH_FLAGS, AH_F32);
    collective_add(bind, AH_SUM_DOUBLES, at->results + AH_RESULTS_NORMS, partition->group_count, AH_F32);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static void input(const struct bind *bind)
{
    ah__bind_copy(bind, bind->at->tokens, bind->at->host_tokens, bind->at->tokens_bytes);
}

/* Decodes a block's codes for its programs, once for all micro-batches, and copies the group's other elements along. */
static void widen_add(const struct bind *bind)
{
    const struct ah_group *group = ah__bind_group(bind);
    const struct ah_partition *partition = bind->binding->partition;
    int64_t element = ah__bind_element_bytes(bind), rest = group->placed - group->trained - group->coded;
    const char *from = bind->at->param;
    char *to = bind->at->widened;
    if (!ah__is_widened(group))
        return;
    if (group->trained > 0)
        ah__bind_copy(bind, to, from, group->trained * element);
    struct ah_task *task = ah__bind_task(bind, AH_TASK_EXPAND);
    task->as.expand.to = to + group->trained * element;
    task->as.expand.from = from + group->trained * element;
    task->as.expand.to_dtype = partition->compute;
    task->as.expand.codes = partition->codes;
    task->as.expand.count = group->coded;
    if (rest > 0)
        ah__bind_copy(bind, to + (group->placed - rest) * element, from + (group->count - rest) * element,
                      rest * element);
}

static void forward(const struct bind *bind)
{
    widen_add(bind);
    bool drop = bind->item->recompute;
    if (bind->binding->infer && bind->binding->class == AH_CLASS_HEAD)
        program_add(bind, prepared_of(bind, AH_PROGRAM_INFER), NULL, 0, 1);
    else if (drop)
        program_add(bind, prepared_of(bind, AH_PROGRAM_FORWARD_DROP), NULL, 0, micro_batches_of(bind));
    else
        programs_add(bind, NULL, AH_PROGRAM_FORWARD, AH_PROGRAM_FORWARD_ADD);
}

static int64_t sum_bytes(const struct bind *bind)
{
    return ah__bind_group(bind)->trained * (int64_t)sizeof(float);
}

static void backward(const struct bind *bind)
{
    const struct ah_prepared *before = bind->item->recompute   ? prepared_of(bind, AH_PROGRAM_RECOMPUTE)
                                       : bind->item->selective ? prepared_of(bind, AH_PROGRAM_RECOMPUTE_SELECTIVE)
                                                               : NULL;
    widen_add(bind);
    programs_add(bind, before, AH_PROGRAM_BACKWARD, AH_PROGRAM_BACKWARD_ADD);
    if (bind->item->unfinished)
        return;
    if (bind->binding->partition->compute != AH_F32) /* the sum is complete and is rounded once */
        narrow_add(bind, bind->at->grad, bind->at->sum);
    else if (bind->at->sum != bind->at->grad)
        ah__bind_copy(bind, bind->at->grad, bind->at->sum, sum_bytes(bind));
    else if (!ah__class_is_block(bind->binding->class))
        gaps_clear(bind);
    if (ah__bind_sharded(bind)) /* the norm is taken after the reduction */
        return;
    ah__bind_norm(bind);
    if (bind->binding->class == AH_CLASS_EMBEDDING && bind->binding->clip > 0)
        ah__bind_clip(bind);
}

static void fetch(const struct bind *bind)
{
    char *shard = bind->at->shard;
    if (bind->item->stays)
        return;
    chunk_copy_add(bind, shard ? shard : ah__bind_part_at(bind, bind->at->param), bind->at->host_param);
    frozen_copy_add(bind, shard ? bind->at->frozen : frozen_at(bind, bind->at->param), bind->at->host_frozen);
}

static void offload(const struct bind *bind)
{
    chunk_copy_add(bind, bind->at->host_grad, ah__bind_part_at(bind, bind->at->grad));
}

static void sums_out(const struct bind *bind)
{
    ah__bind_copy(bind, bind->at->host_sum, bind->at->sum, sum_bytes(bind));
}

static void sums_in(const struct bind *bind)
{
    ah__bind_copy(bind, bind->at->sum, bind->at->host_sum, sum_bytes(bind));
}

/* Copies parameters back to where a fetch read them: the bytes are the same. */
static void evict(const struct bind *bind)
{
    chunk_copy_add(bind, bind->at->host_param, bind->at->param);
    frozen_copy_add(bind, bind->at->host_frozen, frozen_at(bind, bind->at->param));
}

/* Offloads a block's input and saved activations, which follow each other in the staging buffer. */
static void activations_out(const struct bind *bind)
{
    ah__bind_copy(bind, bind->at->host_activations, bind->at->input, bind->at->activation_bytes);
}

static void activations_in(const struct bind *bind)
{
    ah__bind_copy(bind, bind->at->input, bind->at->host_activations, bind->at->activation_bytes);
}

/* Copies the losses to the host after the head, and the norms after the embedding; with several ranks, the totals with
 * the norms. */
static void result(const struct bind *bind)
{
    const struct ah_partition *partition = bind->binding->partition;
    bool norms = bind->binding->class == AH_CLASS_EMBEDDING;
    int64_t offset = norms ? AH_RESULTS_NORMS : ah__results_losses(partition);
    int64_t bytes = norms ? (int64_t)sizeof(double) * partition->group_count
                          : (int64_t)sizeof(float) * ah__micro_batches(partition);
    if (norms && ah__bind_sharded(bind))
        bytes = ah__results_bytes(partition) - offset;
    ah__bind_copy(bind, bind->at->host_results + offset, bind->at->results + offset, bytes);
}

static void gather(const struct bind *bind)
{
    const struct ah_group *group = ah__bind_group(bind);
    parts_add(bind, AH_ALL_GATHER, bind->at->param, group->trained);
    if (!bind->item->stays) /* if it stays, each rank has loaded all of it there */
        parts_add(bind, AH_ALL_GATHER, bind->at->param + group->trained * ah__bind_element_bytes(bind),
                  ah__frozen_count(group));
}

static void reduce(const struct bind *bind)
{
    int64_t first, count = ah__bind_part(&first, bind);
    parts_add(bind, AH_REDUCE_SCATTER, bind->at->grad, ah__bind_group(bind)->trained);
    ah__bind_norm(bind);
    if (bind->at->reduced && count > 0)
        ah__bind_copy(bind, bind->at->reduced, ah__bind_part_at(bind, bind->at->grad),
                      count * ah__bind_element_bytes(bind));
    if (bind->binding->class != AH_CLASS_EMBEDDING) /* the embedding's gradient is the last */
        return;
    totals_add(bind);
    if (bind->binding->clip > 0)
        ah__bind_clip(bind);
}

int ah__bind_widening(struct ah_work *work, const struct ah_item *item, const struct ah_binding *binding,
                      const struct ah_addresses *at)
{
    const struct bind bind = {work, item, binding, at};
    work->tasks = 0;
    widen_add(&bind);
    return AH_OK;
}

int ah__bind(struct ah_work *work, const struct ah_item *item, const struct ah_binding *binding,
             const struct ah_addresses *at)
{
    static void (*const binders[AH_ITEM_COUNT])(const struct bind *bind) = {
        [AH_ITEM_INPUT] = input,
        [AH_ITEM_FORWARD] = forward,
        [AH_ITEM_BACKWARD] = backward,
        [AH_ITEM_CAST] = cast,
        [AH_ITEM_UPDATE_DEVICE] = ah__bind_update,
        [AH_ITEM_UPDATE_HOST] = ah__bind_update,
        [AH_ITEM_UPDATE_SPECULATIVE] = ah__bind_update,
        [AH_ITEM_PREFETCH] = fetch,
        [AH_ITEM_REFETCH] = fetch,
        [AH_ITEM_OFFLOAD] = offload,
        [AH_ITEM_EVICT] = evict,
        [AH_ITEM_STATES_IN] = ah__bind_states_in,
        [AH_ITEM_UPDATE_STAGED] = ah__bind_update_staged,
        [AH_ITEM_DISK_PARAMS] = ah__bind_disk_params,
        [AH_ITEM_DISK_GRADIENT] = ah__bind_disk_gradient,
        [AH_ITEM_DISK_READ] = ah__bind_disk_read,
        [AH_ITEM_DISK_WRITE] = ah__bind_disk_write,
        [AH_ITEM_ACTIVATIONS_OUT] = activations_out,
        [AH_ITEM_ACTIVATIONS_IN] = activations_in,
        [AH_ITEM_SUMS_OUT] = sums_out,
        [AH_ITEM_SUMS_IN] = sums_in,
        [AH_ITEM_RESULT] = result,
        [AH_ITEM_GATHER] = gather,
        [AH_ITEM_REDUCE] = reduce,
    };
    struct bind bind = {work, item, binding, at};
    work->tasks = 0;
    if ((unsigned)item->kind >= AH_ITEM_COUNT || !binders[item->kind])
        return ah__fail(AH_EINTERNAL, "bind: items of kind %d are made of nothing", (int)item->kind);
    binders[item->kind](&bind);
    return AH_OK;
}
