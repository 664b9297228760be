#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "dev/host/codes.h"
#include "profile/workload.h"

enum { NORMALS = 4096 };
static const int64_t copies_most_bytes = (int64_t)512 << 20;

/* Divides a memory into aligned pieces. Its base may still be unknown: the first pass only counts. */
struct carve {
    char *base;
    int64_t used;
};

static char *carve(struct carve *from, int64_t bytes)
{
    char *piece = from->base ? from->base + from->used : NULL;
    from->used += (bytes + AH_LAYOUT_ALIGN - 1) / AH_LAYOUT_ALIGN * AH_LAYOUT_ALIGN;
    return piece;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- sizes */

static int64_t cache_bytes(void)
{
    const int64_t usual = (int64_t)32 << 20;
    int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? bytes : usual;
}

/* Returns the number of copies: enough that a copy has left the cache before it is used again; no more than the model
 * has blocks; two if memory allows. */
static int copies_of(const struct ah_partition *partition, int micro_batches)
{
    const struct ah_code *code = &partition->code[AH_CLASS_BLOCK];
    int64_t param_bytes = ah__block_group(partition)->count * (int64_t)sizeof(float);
    int64_t activations = micro_batches * (code->saved_bytes + code->input_bytes);
    int64_t visited = 2 * param_bytes + activations;
    int64_t whole = 4 * param_bytes + activations;
    int64_t copies = larger(2, 1 + cache_bytes() / larger(visited, 1));
    if (copies * whole > copies_most_bytes)
        copies = larger(1, copies_most_bytes / whole);
    int trained = partition->layers - partition->frozen_blocks;
    return (int)(copies < trained ? copies : trained);
}

/* ---- addresses */

/* Returns how many floats a place is filled through: all trained elements together, frozen parameters one by one. */
static int64_t filled_count(const struct ah_workload *workload, const struct ah_workload_place *place)
{
    const struct ah_partition *partition = workload->partition;
    const struct ah_group *g = &partition->groups[place->group];
    int64_t count = place->trained;
    for (int i = 0; i < g->param_count; i++) {
        const struct ah_param *param = &partition->params[g->first_param + i];
        if (param->frozen && !param->coded && param->offset < place->count)
            count = larger(count, ah__shape_count(&param->shape));
    }
    return count;
}

/* Divides memory for a place. With several ranks each of them has all parts of a group, which are filled as one. */
static void place_carve(struct ah_workload *workload, struct carve *device, struct carve *host, int index)
{
    struct ah_workload_place *place = &workload->place[index];
    const struct ah_sizes *sizes = &workload->sizes;
    int class = place->class, ranks = ah__step_ranks(workload->partition);
    bool block = class == AH_CLASS_BLOCK, apart = ranks > 1;
    int64_t read = sizes->buffer[class], grad = ranks * sizes->host_grad[class];
    int64_t fetched = block || place->trained > 0 ? read : 0; /* else it is fetched into `param` */
    for (int i = 0; i < AH_STATE_COUNT; i++) {
        /* Moments are large enough for the bytes that PREFETCH writes there and OFFLOAD reads, the first also for
         * floats. */
        int64_t bytes = ranks * sizes->state[class][i], moved = i == 1 ? fetched : i == 2 ? grad : 0;
        int64_t filled = i == 1 ? filled_count(workload, place) * (int64_t)sizeof(float) : 0;
        place->state[i] = carve(device, larger(i == 0 ? ranks * sizes->device_state[class] : bytes, moved));
        place->host_state[i] = carve(host, larger(bytes, filled));
    }
    place->param = apart ? carve(device, read) : place->state[0];
    place->fetched = fetched > 0 ? place->state[1] : place->param;
    place->grad = carve(device, block ? grad : sizes->summed[class]);
    place->exchange = block && apart ? carve(device, read) : NULL;
    place->host_grad = carve(host, grad);
    place->host_grad_buffer = carve(host, grad);
    place->host_frozen = carve(host, ranks * sizes->frozen[class]);
    place->frozen = apart ? carve(device, sizes->frozen[class]) : NULL;
    place->saved_step = block ? sizes->saved : class == AH_CLASS_EMBEDDING ? sizes->embedding_saved : sizes->head_saved;
    place->saved = carve(device, workload->micro_batches * place->saved_step);
    place->output = index + 1 < workload->places ? carve(device, workload->micro_batches * sizes->input) : NULL;
    place->input = index ? workload->place[index - 1].output : NULL;
}

static void workload_carve(struct ah_workload *workload, struct carve *device, struct carve *host)
{
    const struct ah_sizes *sizes = &workload->sizes;
    workload->tokens = carve(device, sizes->tokens);
    workload->host_tokens = carve(host, sizes->tokens);
    workload->results = carve(device, sizes->results);
    workload->host_results = carve(host, sizes->results);
    workload->boundary = carve(device, workload->micro_batches * sizes->boundary);
    workload->work = carve(device, sizes->program_work);
    workload->workspace = carve(device, sizes->workspace);
    for (int i = 0; i < AH_STATE_COUNT; i++)
        workload->host_spare[i] = carve(host, ah__step_ranks(workload->partition) * sizes->state[AH_CLASS_BLOCK][i]);
    workload->widened = carve(device, sizes->widened);
    if (workload->partition->compute != AH_F32)
        workload->accumulator = carve(device, sizes->sum);
    for (int i = 0; i < workload->places; i++)
        place_carve(workload, device, host, i);
}

/* ---- contents */

static void ids_fill(const struct ah_workload *workload)
{
    int32_t *ids = (int32_t *)(void *)workload->host_tokens;
    int64_t count = workload->sizes.tokens / (int64_t)sizeof *ids, tokens = ah__step_tokens(workload->partition);
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)(ah__random_bits(1, (uint64_t)i) % (uint64_t)workload->partition->vocab);
    for (int64_t i = 0; workload->partition->packed && i < tokens; i++)
        ids[tokens + i] = (int32_t)(i % workload->partition->seq); /* one document each: the most work */
    if (ah__step_scaled(workload->partition))
        *(float *)(void *)(ids + count / 2 + tokens) = 1.0F / (float)(ah__step_ranks(workload->partition) * tokens);
}

/* Fills a parameter by its own init rule, so that activations stay in the range of a real model. */
static void param_fill(float *to, const struct ah_param *param, const float *normals)
{
    int64_t count = ah__shape_count(&param->shape);
    for (int64_t j = 0; j < count; j++)
        to[j] = param->init == AH_INIT_NORMAL ? param->init_std * normals[j % NORMALS]
                : param->init == AH_INIT_ONES ? 1.0F
                                              : 0.0F;
}

/* Fills a parameter's codes by the same rule, each block with values of its own: ah__codes_bytes(codes, count)
 * bytes. */
static void codes_fill(char *to, const struct ah_param *param, enum ah_codes codes, const float *normals)
{
    float block[AH_CODES_BLOCK];
    int64_t blocks = (ah__shape_count(&param->shape) + AH_CODES_BLOCK - 1) / AH_CODES_BLOCK;
    for (int64_t b = 0; b < blocks; b++) {
        for (int i = 0; i < AH_CODES_BLOCK; i++)
            block[i] = param->init_std * normals[(b * AH_CODES_BLOCK + i) % NORMALS];
        ah__codes_narrow(to + b * ah__codes_block_bytes(codes), block, AH_CODES_BLOCK, codes);
    }
}

static int copy_in(const struct ah_workload *workload, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.label.what = "load", .lane = AH_LANE_H2D, .tasks = 1};
    if (bytes == 0)
        return AH_OK;
    work.task[0].type = AH_TASK_COPY;
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    return ah__dev_run(workload->dev, &work, NULL);
}

/* Casts on the device or on the host. */
static int cast(const struct ah_workload *workload, enum ah_lane lane, void *to, enum ah_dtype to_dtype,
                const void *from, enum ah_dtype from_dtype, int64_t count)
{
    struct ah_work work = {.label.what = "cast", .lane = lane, .tasks = 1};
    if (count == 0)
        return AH_OK;
    work.task[0].type = AH_TASK_CAST;
    work.task[0].as.cast.to = to;
    work.task[0].as.cast.from = from;
    work.task[0].as.cast.to_dtype = to_dtype;
    work.task[0].as.cast.from_dtype = from_dtype;
    work.task[0].as.cast.count = count;
    return ah__dev_run(workload->dev, &work, NULL);
}

/* Fills the host's gradients with small values, by way of the first moments, which begin at zero and are zeroed
 * again. */
static int grads_fill(const struct ah_workload *workload, const struct ah_workload_place *place, const float *normals)
{
    float *values = (float *)(void *)place->host_state[1];
    for (int64_t j = 0; j < place->trained; j++)
        values[j] = 1e-3F * normals[j % NORMALS];
    AH_TRY(
        cast(workload, AH_LANE_HOST, place->host_grad, workload->partition->compute, values, AH_F32, place->trained));
    memset(values, 0, (size_t)filled_count(workload, place) * sizeof *values);
    return AH_OK;
}

/* Fills the host's copy of a group's frozen elements. */
static int frozen_fill(const struct ah_workload *workload, const struct ah_workload_place *place, float *values,
                       const float *normals)
{
    const struct ah_partition *partition = workload->partition;
    const struct ah_group *g = &partition->groups[place->group];
    for (int i = 0; i < g->param_count; i++) {
        const struct ah_param *param = &partition->params[g->first_param + i];
        char *to = place->host_frozen + (param->offset - place->trained) * ah__dtype_bytes(partition->compute);
        if (param->coded)
            codes_fill(to, param, partition->codes, normals);
        if (!param->frozen || param->coded || param->offset >= place->count)
            continue;
        param_fill(values, param, normals);
        AH_TRY(cast(workload, AH_LANE_HOST, to, partition->compute, values, AH_F32, ah__shape_count(&param->shape)));
    }
    return AH_OK;
}

static void trained_fill(float *values, const struct ah_partition *partition, int group, const float *normals)
{
    const struct ah_group *g = &partition->groups[group];
    for (int i = 0; i < g->param_count; i++) {
        const struct ah_param *param = &partition->params[g->first_param + i];
        if (!param->frozen)
            param_fill(values + param->offset, param, normals);
    }
}

/* Fills a group's parameters on the device, and the host memory from which they are fetched; `values` is for floats in
 * between. */
static int place_fill(const struct ah_workload *workload, const struct ah_workload_place *place, float *values,
                      const float *normals)
{
    enum ah_dtype compute = workload->partition->compute;
    int64_t element = ah__dtype_bytes(compute), frozen = place->count - place->trained;
    trained_fill(values, workload->partition, place->group, normals);
    AH_TRY(cast(workload, AH_LANE_HOST, place->host_state[0], compute, values, AH_F32, place->trained));
    AH_TRY(copy_in(workload, place->state[0], place->host_state[0], place->trained * element));
    if (place->param != place->state[0])
        AH_TRY(cast(workload, AH_LANE_COMPUTE, place->param, compute, place->state[0], compute, place->trained));
    AH_TRY(frozen_fill(workload, place, values, normals));
    if (place->frozen) { /* this rank's part until its CAST */
        int64_t first, ranks = ah__step_ranks(workload->partition);
        int64_t count = ah__part_range(&first, frozen, workload->comm->rank, (int)ranks);
        AH_TRY(copy_in(workload, place->frozen, place->host_frozen + first * element, count * element));
    }
    return copy_in(workload, place->param + place->trained * element, place->host_frozen, frozen * element);
}

static int workload_fill(const struct ah_workload *workload)
{
    float normals[NORMALS];
    for (int i = 0; i < NORMALS; i++)
        normals[i] = (float)ah__random_normal(2, (uint64_t)i);
    ids_fill(workload);
    AH_TRY(copy_in(workload, workload->tokens, workload->host_tokens, workload->sizes.tokens));
    for (int i = 0; i < workload->places; i++) {
        const struct ah_workload_place *place = &workload->place[i];
        float *params = (float *)(void *)place->host_state[1];
        AH_TRY(place_fill(workload, place, params, normals));
        AH_TRY(grads_fill(workload, place, normals));
    }
    return AH_OK;
}

static void places_init(struct ah_workload *workload)
{
    const struct ah_partition *partition = workload->partition;
    for (int i = 0; i < workload->places; i++) {
        struct ah_workload_place *place = &workload->place[i];
        place->class = (int)ah__class_of(i, workload->copies);
        place->group = i == 0 ? 0 : i <= workload->copies ? partition->frozen_blocks + i : partition->layers + 1;
        place->count = partition->groups[place->group].count;
        place->trained = partition->groups[place->group].trained;
    }
}

int ah__workload_init(struct ah_workload *workload, const struct ah_partition *partition, struct ah_dev *dev)
{
    const struct ah_switches switches = {.layers = partition->layers,
                                         .frozen_blocks = partition->frozen_blocks,
                                         .world_size = ah__step_ranks(partition)};
    workload->dev = dev;
    workload->partition = partition;
    workload->comm = ah__step_ranks(partition) > 1 ? ah__comm() : ah__comm_self();
    if (workload->comm->world_size != ah__step_ranks(partition))
        return ah__fail(AH_ESTALE, "profile: found a model for %d ranks, expected %d", ah__step_ranks(partition),
                        workload->comm->world_size);
    workload->micro_batches = ah__micro_batches(partition);
    if (workload->micro_batches > AH_WORKLOAD_MICRO_BATCHES)
        workload->micro_batches = AH_WORKLOAD_MICRO_BATCHES;
    workload->copies = copies_of(partition, workload->micro_batches);
    workload->places = workload->copies + 2;
    AH_TRY(ah__bound_programs_init(&workload->programs, partition, dev));
    ah__sizes(&workload->sizes, partition, &switches, workload->programs.workspace_bytes);
    AH_TRY(ah__new(&workload->place, (size_t)workload->places, sizeof *workload->place));
    places_init(workload);
    struct carve device = {.used = 0}, host = device;
    workload_carve(workload, &device, &host);
    AH_TRY(dev->ops->device_memory(dev, device.used, &device.base));
    workload->owns_memory = true;
    AH_TRY(dev->ops->host_memory(dev, host.used, &host.base));
    device.used = host.used = 0;
    workload_carve(workload, &device, &host);
    return workload_fill(workload);
}

void ah__workload_fini(struct ah_workload *workload)
{
    ah__free(workload->place);
    workload->place = NULL;
    if (workload->programs.dev)
        ah__bound_programs_fini(&workload->programs);
    if (workload->owns_memory) /* cannot fail: nothing is in flight */
        (void)workload->dev->ops->memory_release(workload->dev);
    workload->owns_memory = false;
}

/* ---- ranks in step */

/* Waits for the items that are still in flight after a failure, collectives among them. */
static void drain(struct ah_dev *dev, int status)
{
    char message[512];
    struct ah_done done;
    snprintf(message, sizeof message, "%s", ah_error());
    while (dev->ops->wait_any(dev, &done) == AH_OK)
        ;
    ah__fail(status, "%s", message);
}

int ah__workload_agree(struct ah_workload *workload, int status)
{
    if (status != AH_OK)
        drain(workload->dev, status);
    return ah__comm_agree(workload->comm, status);
}

int ah__workload_elapsed(int64_t *out_ns, struct ah_workload *workload, int64_t start_ns)
{
    struct ah_comm *comm = workload->comm;
    *out_ns = workload->dev->ops->now_ns(workload->dev) - start_ns;
    return comm->ops->move(comm, out_ns, sizeof *out_ns, 0, AH_ALL_RANKS);
}

/* ---- items */

/* Returns the place with a group's parameters; null: there is none. */
static const struct ah_workload_place *place_of_group(const struct ah_workload *workload, int group)
{
    if (group < 0)
        return NULL;
    int head = workload->partition->layers + 1;
    return &workload->place[group == head ? workload->places - 1 : group <= workload->copies ? group : 1];
}

/* Computes an item's addresses. Copies and collectives of blocks use memory that programs neither read nor write. */
static void addresses(struct ah_addresses *at, const struct ah_workload *workload, const struct ah_item *item)
{
    const struct ah_workload_place *place = &workload->place[item->partition];
    const struct ah_workload_place *owner = place_of_group(workload, workload->partition->shared_group);
    bool streams = item->kind == AH_ITEM_STATES_IN || item->kind == AH_ITEM_UPDATE_STAGED;
    bool on_host = ah__item_lanes[item->kind] == AH_LANE_HOST || streams;
    bool apart = place->param != place->state[0];
    bool exchanges = ah__item_lanes[item->kind] == AH_LANE_COMM && place->exchange;
    *at = (struct ah_addresses){
        .param = exchanges                        ? place->exchange
                 : item->kind == AH_ITEM_PREFETCH ? place->fetched
                                                  : place->param,
        .grad = exchanges                       ? place->exchange
                : item->kind == AH_ITEM_OFFLOAD ? place->state[2]
                                                : place->grad,
        .sum = ah__class_is_block(place->class) && workload->accumulator ? workload->accumulator : place->grad,
        .shared_param = owner ? owner->param : NULL,
        .shared_sum = owner ? owner->grad : NULL,
        .input = place->input,
        .output = place->output,
        .saved = place->saved,
        .work = workload->work,
        .workspace = workload->workspace,
        .widened = workload->widened,
        .boundary = workload->boundary,
        .tokens = workload->tokens,
        .results = workload->results,
        .host_tokens = workload->host_tokens,
        .host_results = workload->host_results,
        .tokens_bytes = workload->sizes.tokens,
        .input_step = workload->sizes.input,
        .output_step = workload->sizes.input,
        .cheap = place->saved + workload->partition->code[place->class].kept_bytes,
        .saved_step = item->recompute ? 0 : place->saved_step,
        .cheap_step = item->recompute || item->selective ? 0 : place->saved_step,
        .boundary_step = workload->sizes.boundary,
        .update_grad = on_host ? place->host_grad : place->grad,
        .update_copy = apart && !ah__class_is_block(place->class) ? place->param : NULL, /* as in a run */
        .host_param = place->host_grad,
        .host_grad = place->host_grad_buffer,
        .host_frozen = place->host_frozen,
        .frozen = place->frozen,
        .stage_grad = place->grad,
    };
    for (int i = 0; i < AH_STATE_COUNT; i++) {
        at->states[i] = on_host ? place->host_state[i] : place->state[i];
        at->shadow_states[i] = workload->host_spare[i];
        at->stage[i] = place->state[i];
    }
}

typedef int binder(struct ah_work *work, const struct ah_item *item, const struct ah_binding *binding,
                   const struct ah_addresses *at);

static int work_of(struct ah_work *work, const struct ah_workload *workload, const struct ah_item *item, binder *bind)
{
    if (workload->stop && *workload->stop)
        return ah__fail(AH_ESTOP, "stopped while the device was profiled");
    const struct ah_workload_place *place = &workload->place[item->partition];
    struct ah_addresses at;
    struct ah_binding binding = {
        .partition = workload->partition,
        .programs = &workload->programs,
        .class = place->class,
        .group = place->group,
        .rank = workload->comm->rank,
        .micro_batches = workload->micro_batches,
        /* The step is so small that parameters stay the same for any number of rounds. */
        .adam = {.beta1 = 0.9F,
                 .one_minus_beta1 = 0.1F,
                 .beta2 = 0.95F,
                 .one_minus_beta2 = 0.05F,
                 .eps = 1e-8F,
                 .decay_factor = 1.0F,
                 .step_size = 1e-7F,
                 .inv_sqrt_bias2 = 1.0F},
    };
    addresses(&at, workload, item);
    work->label = ah__item_label(item);
    work->lane = ah__item_lanes[item->kind];
    work->waits = 0;
    return bind(work, item, &binding, &at);
}

int ah__workload_work(struct ah_work *work, const struct ah_workload *workload, const struct ah_item *item)
{
    return work_of(work, workload, item, ah__bind);
}

int ah__workload_widening(struct ah_work *work, const struct ah_workload *workload)
{
    const struct ah_item item = {.kind = AH_ITEM_FORWARD, .partition = 1, .param_buffer = -1, .grad_buffer = -1};
    return work_of(work, workload, &item, ah__bind_widening);
}
