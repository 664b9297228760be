/* From work items to addresses. Everything a lane touches is named here, in one table of bases per item. */
#include <string.h>

#include "run/internal.h"

enum { TILE_ALIGN = 1024 }; /* elements: whole pages of floats, so that lanes share no cache line */
enum { NORMS_OFFSET = 64 }; /* of the squared norms behind the loss, see plan/layout.h */

int64_t ah__run_training_iteration(const struct ah_run *run, int64_t iteration)
{
    return run->trained + iteration - run->iteration;
}

static char *tokens(const struct ah_run *run, char *base, int64_t offset, int64_t iteration)
{
    return base + offset + iteration % 2 * run->layout->tokens_bytes;
}

static char *results(const struct ah_run *run, char *base, int64_t offset, int64_t iteration)
{
    return base + offset + iteration % 2 * run->layout->results_bytes;
}

static char *device_results(const struct ah_run *run, int64_t iteration)
{
    return results(run, run->device, run->layout->results_offset, iteration);
}

static char *host_results(const struct ah_run *run, int64_t iteration)
{
    return results(run, run->host, run->layout->host_results_offset, iteration);
}

const float *ah__run_loss(const struct ah_run *run, int64_t iteration)
{
    return (const float *)(const void *)host_results(run, iteration);
}

const double *ah__run_norms(const struct ah_run *run, int64_t iteration)
{
    return (const double *)(const void *)(host_results(run, iteration) + NORMS_OFFSET);
}

char *ah__run_states(const struct ah_run *run, int group)
{
    const struct ah_layout_group *g = &run->layout->groups[group];
    return (g->on_host ? run->host : run->device) + g->state_offset;
}

static char *slot(const struct ah_run *run, int index)
{
    return run->device + run->layout->slots_offset + index * run->layout->slot_bytes;
}

/* Parameters in the compute dtype, on the device: a slot, dedicated memory, or (F32) the master itself. */
static char *params(const struct ah_run *run, int group, int param_slot)
{
    const struct ah_layout_group *g = &run->layout->groups[group];
    if (!g->on_host)
        return run->device + g->state_offset;
    return param_slot >= 0 ? slot(run, param_slot) : run->device + g->param_offset;
}

static char *gradient(const struct ah_run *run, int group, int grad_slot)
{
    return grad_slot >= 0 ? slot(run, grad_slot) : run->device + run->layout->groups[group].grad_offset;
}

/* Inputs of blocks 1..layers and of the head. */
static char *input_of(const struct ah_run *run, int partition)
{
    return run->device + run->layout->inputs_offset + (partition - 1) * run->layout->input_bytes;
}

static char *saved_of(const struct ah_run *run, int partition)
{
    const struct ah_layout *layout = run->layout;
    if (partition == 0)
        return run->device + layout->embedding_saved_offset;
    if (partition > run->plan.layers)
        return run->device + layout->head_saved_offset;
    int set = partition > run->plan.checkpoint ? partition - run->plan.checkpoint - 1 : 0;
    return run->device + layout->saved_offset + set * layout->saved_bytes;
}

static const struct ah_code *code_of(const struct ah_run *run, int partition)
{
    return &run->partition->code[ah__class_of(partition, run->plan.layers)];
}

static struct ah_task *add_task(struct ah_work *work, enum ah_task_type type)
{
    struct ah_task *task = &work->task[work->tasks++];
    memset(task, 0, sizeof *task);
    task->type = type;
    return task;
}

static void add_program(struct ah_work *work, const struct ah_run *run, const struct ah_program *program)
{
    struct ah_task *task = add_task(work, AH_TASK_PROGRAM);
    const struct ah_item *item = &work->item;
    int i = item->partition;
    char **base = task->as.program.base;
    char *ids = tokens(run, run->device, run->layout->tokens_offset, item->iteration);
    task->as.program.program = program;
    base[AH_SPACE_PARAM] = params(run, i, item->param_slot);
    base[AH_SPACE_GRAD] = gradient(run, i, item->grad_slot);
    if (code_of(run, i)->uses_shared) {
        base[AH_SPACE_SHARED] = params(run, run->partition->shared_group, -1);
        base[AH_SPACE_SHARED_GRAD] = gradient(run, run->partition->shared_group, -1);
    }
    base[AH_SPACE_INPUT] = i == 0 ? ids : input_of(run, i);
    base[AH_SPACE_OUTPUT] = i <= run->plan.layers ? input_of(run, i + 1) : NULL;
    base[AH_SPACE_SAVED] = saved_of(run, i);
    base[AH_SPACE_WORK] = run->device + run->layout->work_offset;
    base[AH_SPACE_BOUNDARY] = run->device + run->layout->boundary_offset;
    base[AH_SPACE_TARGETS] = ids + run->layout->tokens_bytes / 2;
    base[AH_SPACE_LOSS] = device_results(run, item->iteration);
}

static void add_copy(struct ah_work *work, void *to, const void *from, int64_t bytes)
{
    struct ah_task *task = add_task(work, AH_TASK_COPY);
    task->as.copy.to = to;
    task->as.copy.from = from;
    task->as.copy.bytes = bytes;
}

/* The elements [*first, *first + result) of a group that an item's tile covers. */
static int64_t tile_range(int64_t *first, const struct ah_item *item, int64_t count)
{
    int64_t tiles = item->tiles > 1 ? item->tiles : 1;
    int64_t each = (count + tiles - 1) / tiles;
    each = (each + TILE_ALIGN - 1) / TILE_ALIGN * TILE_ALIGN;
    *first = item->tile * each < count ? item->tile * each : count;
    return count - *first < each ? count - *first : each;
}

/* A tile of a group's parameters or gradients, in the compute dtype. */
static void add_tile_copy(struct ah_work *work, const struct ah_run *run, char *to, const char *from)
{
    int64_t first, element = ah__dtype_bytes(run->partition->compute);
    int64_t count = tile_range(&first, &work->item, run->partition->groups[work->item.partition].count);
    add_copy(work, to + first * element, from + first * element, count * element);
}

static void bind_backward(struct ah_work *work, const struct ah_run *run)
{
    const struct ah_code *code = code_of(run, work->item.partition);
    int i = work->item.partition;
    if (work->item.recompute)
        add_program(work, run, &code->recompute);
    add_program(work, run, &code->backward);
    struct ah_task *norm = add_task(work, AH_TASK_SQNORM);
    norm->as.sqnorm.g = gradient(run, i, work->item.grad_slot);
    norm->as.sqnorm.dtype = run->partition->compute;
    norm->as.sqnorm.count = run->partition->groups[i].count;
    norm->as.sqnorm.out = (double *)(void *)(device_results(run, work->item.iteration) + NORMS_OFFSET) + i;
}

static void bind_adam(struct ah_work *work, const struct ah_run *run)
{
    int g = work->item.partition;
    const struct ah_group *group = &run->partition->groups[g];
    const struct ah_layout_group *place = &run->layout->groups[g];
    struct ah_task *task = add_task(work, AH_TASK_ADAM);
    int64_t first, count = tile_range(&first, &work->item, group->count), decayed = group->decayed - first;
    char *states = ah__run_states(run, g) + first * (int64_t)sizeof(float);
    char *grad = place->on_host ? run->host + place->host_grad_offset : gradient(run, g, work->item.grad_slot);
    task->as.adam.p = (float *)(void *)states;
    task->as.adam.m = (float *)(void *)(states + place->state_bytes);
    task->as.adam.v = (float *)(void *)(states + 2 * place->state_bytes);
    task->as.adam.g = grad + first * ah__dtype_bytes(run->partition->compute);
    task->as.adam.grad_dtype = run->partition->compute;
    task->as.adam.count = count;
    task->as.adam.decayed = decayed < 0 ? 0 : decayed < count ? decayed : count;
    run->hooks.adam(&task->as.adam.adam, ah__run_training_iteration(run, work->item.iteration), run->hooks.context);
}

static int bind_input(struct ah_work *work, struct ah_run *run)
{
    int64_t iteration = work->item.iteration, bytes = run->layout->tokens_bytes;
    char *host = tokens(run, run->host, run->layout->host_tokens_offset, iteration);
    int32_t *ids = (int32_t *)(void *)host, *targets = (int32_t *)(void *)(host + bytes / 2);
    size_t count = (size_t)(run->partition->batch * run->partition->seq);
    if (run->eval_ids) {
        memcpy(ids, run->eval_ids, count * sizeof *ids);
        memcpy(targets, run->eval_targets, count * sizeof *targets);
    } else {
        AH_TRY(run->hooks.batch(ids, targets, ah__run_training_iteration(run, iteration), run->hooks.context));
    }
    add_copy(work, tokens(run, run->device, run->layout->tokens_offset, iteration), host, bytes);
    return AH_OK;
}

static void bind_result(struct ah_work *work, const struct ah_run *run)
{
    char *from = device_results(run, work->item.iteration), *to = host_results(run, work->item.iteration);
    if (work->item.partition != 0)
        add_copy(work, to, from, (int64_t)sizeof(float));
    else
        add_copy(work, to + NORMS_OFFSET, from + NORMS_OFFSET, (int64_t)sizeof(double) * (run->plan.layers + 2));
}

int ah__run_bind(struct ah_work *work, void *context)
{
    struct ah_run *run = context;
    const struct ah_item *item = &work->item;
    const struct ah_code *code = code_of(run, item->partition);
    work->tasks = 0;
    switch (item->kind) {
    case AH_ITEM_INPUT:
        return bind_input(work, run);
    case AH_ITEM_FORWARD:
        add_program(work, run, item->recompute ? &code->forward_drop : &code->forward);
        return AH_OK;
    case AH_ITEM_BACKWARD:
        bind_backward(work, run);
        return AH_OK;
    case AH_ITEM_PREFETCH:
    case AH_ITEM_REFETCH:
        add_tile_copy(work, run, params(run, item->partition, item->param_slot), ah__run_states(run, item->partition));
        return AH_OK;
    case AH_ITEM_OFFLOAD:
        add_tile_copy(work, run, run->host + run->layout->groups[item->partition].host_grad_offset,
                      gradient(run, item->partition, item->grad_slot));
        return AH_OK;
    case AH_ITEM_UPDATE_DEVICE:
    case AH_ITEM_UPDATE_HOST:
        bind_adam(work, run);
        return AH_OK;
    case AH_ITEM_RESULT:
        bind_result(work, run);
        return AH_OK;
    default:
        return ah__fail(AH_EINTERNAL, "run: %s is no item of an fp32 plan", ah__item_names[item->kind]);
    }
}
