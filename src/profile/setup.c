#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "profile/bench.h"

enum { NORMALS = 4096, RESULTS_BYTES = 512, RESULT_NORM_OFFSET = 64 };
static const int64_t copies_most_bytes = (int64_t)512 << 20;

/* Hands out aligned pieces of a memory whose base may still be unknown: the first pass only counts. */
struct carve {
    char *base;
    int64_t used, align;
};

static char *carve(struct carve *from, int64_t bytes)
{
    char *piece = from->base ? from->base + from->used : NULL;
    from->used += (bytes + from->align - 1) / from->align * from->align;
    return piece;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- how much */

static int64_t cache_bytes(void)
{
    const int64_t usual = (int64_t)32 << 20;
    int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? bytes : usual;
}

/* Enough copies to leave the cache between two visits of one; no more than the model has; two where memory allows. */
static int copies_of(const struct ah_partition *partition)
{
    const struct ah_code *code = &partition->code[AH_CLASS_BLOCK];
    int64_t param_bytes = partition->groups[1].count * (int64_t)sizeof(float);
    int64_t visited = 2 * param_bytes + code->saved_bytes + code->input_bytes;
    int64_t whole = 4 * param_bytes + code->saved_bytes + code->input_bytes;
    int64_t copies = larger(2, 1 + cache_bytes() / larger(visited, 1));
    if (copies * whole > copies_most_bytes)
        copies = larger(1, copies_most_bytes / whole);
    return (int)(copies < partition->layers ? copies : partition->layers);
}

static int64_t work_bytes(const struct ah_partition *partition)
{
    int64_t bytes = 0;
    for (int i = 0; i < AH_CLASS_COUNT; i++) {
        const struct ah_code *code = &partition->code[i];
        bytes = larger(bytes, larger(code->forward.work_bytes, code->backward.work_bytes));
        bytes = larger(bytes, code->recompute.work_bytes);
    }
    return bytes;
}

static int64_t boundary_bytes(const struct ah_partition *partition)
{
    int64_t bytes = 0;
    for (int i = 0; i < AH_CLASS_COUNT; i++)
        bytes = larger(bytes, larger(partition->code[i].boundary_bytes, partition->code[i].output_bytes));
    return bytes;
}

/* ---- where */

static void place_carve(struct ah_bench *bench, struct carve *device, struct carve *host, int index)
{
    struct ah_bench_place *place = &bench->place[index];
    const struct ah_code *code = &bench->partition->code[place->class];
    int64_t state_bytes = place->count * (int64_t)sizeof(float);
    int64_t grad_bytes = place->count * ah__dtype_bytes(bench->partition->compute);
    for (int i = 0; i < 3; i++) {
        place->state[i] = carve(device, state_bytes);
        place->host_state[i] = carve(host, state_bytes);
    }
    place->grad = carve(device, grad_bytes);
    place->host_grad = carve(host, grad_bytes);
    place->host_landing = carve(host, grad_bytes);
    place->saved = carve(device, code->saved_bytes);
    int64_t next_bytes = index + 1 < bench->places ? bench->partition->code[bench->place[index + 1].class].input_bytes : 0;
    place->output = carve(device, larger(code->output_bytes, next_bytes));
    place->input = index ? bench->place[index - 1].output : bench->ids;
}

static void bench_carve(struct ah_bench *bench, struct carve *device, struct carve *host)
{
    bench->ids = carve(device, bench->ids_bytes);
    bench->targets = carve(device, bench->ids_bytes);
    bench->host_ids = carve(host, bench->ids_bytes);
    bench->results = carve(device, bench->results_bytes);
    bench->host_results = carve(host, bench->results_bytes);
    bench->boundary = carve(device, boundary_bytes(bench->partition));
    bench->work = carve(device, work_bytes(bench->partition));
    for (int i = 0; i < bench->places; i++)
        place_carve(bench, device, host, i);
}

/* ---- what is in it */

static void ids_fill(const struct ah_bench *bench)
{
    int32_t *ids = (int32_t *)(void *)bench->host_ids;
    int64_t count = bench->ids_bytes / (int64_t)sizeof *ids;
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)(ah__random_bits(1, (uint64_t)i) % (uint64_t)bench->partition->vocab);
}

/* Parameters by their own rules, so that activations stay in the range of a real model. */
static void params_fill(float *values, const struct ah_partition *partition, int group, const float *normals)
{
    const struct ah_group *g = &partition->groups[group];
    for (int i = 0; i < g->param_count; i++) {
        const struct ah_param *param = &partition->params[g->first_param + i];
        int64_t count = ah__shape_count(&param->shape);
        float *to = values + param->offset;
        for (int64_t j = 0; j < count; j++)
            to[j] = param->init == AH_INIT_NORMAL ? param->init_std * normals[j % NORMALS]
                                                  : param->init == AH_INIT_ONES ? 1.0F : 0.0F;
    }
}

static int copy_in(const struct ah_bench *bench, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = AH_LANE_H2D, .tasks = 1, .item.kind = AH_ITEM_PREFETCH};
    work.task[0].type = AH_TASK_COPY;
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    return ah__dev_run(bench->dev, &work, NULL);
}

static int bench_fill(const struct ah_bench *bench)
{
    float normals[NORMALS];
    for (int i = 0; i < NORMALS; i++)
        normals[i] = (float)ah__random_normal(2, (uint64_t)i);
    ids_fill(bench);
    AH_TRY(copy_in(bench, bench->ids, bench->host_ids, bench->ids_bytes));
    AH_TRY(copy_in(bench, bench->targets, bench->host_ids, bench->ids_bytes));
    for (int i = 0; i < bench->places; i++) {
        const struct ah_bench_place *place = &bench->place[i];
        float *params = (float *)(void *)place->host_state[0], *grads = (float *)(void *)place->host_grad;
        params_fill(params, bench->partition, place->group, normals);
        for (int64_t j = 0; j < place->count; j++)
            grads[j] = 1e-3F * normals[j % NORMALS];
        AH_TRY(copy_in(bench, place->state[0], params, place->count * (int64_t)sizeof(float)));
    }
    return AH_OK;
}

static void places_init(struct ah_bench *bench)
{
    const struct ah_partition *partition = bench->partition;
    for (int i = 0; i < bench->places; i++) {
        struct ah_bench_place *place = &bench->place[i];
        place->class = ah__class_of(i, bench->copies);
        place->group = i <= bench->copies ? i : partition->layers + 1;
        place->count = partition->groups[place->group].count;
        place->decayed = partition->groups[place->group].decayed;
    }
}

int ah__bench_init(struct ah_bench *bench, const struct ah_partition *partition, struct ah_dev *dev)
{
    struct ah_dev_info info;
    dev->ops->info(dev, &info);
    bench->dev = dev;
    bench->partition = partition;
    bench->copies = copies_of(partition);
    bench->places = bench->copies + 2;
    bench->ids_bytes = partition->batch * partition->seq * (int64_t)sizeof(int32_t);
    bench->results_bytes = RESULTS_BYTES;
    AH_TRY(ah__new(&bench->place, (size_t)bench->places, sizeof *bench->place));
    places_init(bench);
    struct carve device = {.align = info.align_bytes}, host = device;
    bench_carve(bench, &device, &host);
    AH_TRY(dev->ops->device_memory(dev, device.used, &device.base));
    bench->owns_memory = true;
    AH_TRY(dev->ops->host_memory(dev, host.used, &host.base));
    device.used = host.used = 0;
    bench_carve(bench, &device, &host);
    return bench_fill(bench);
}

void ah__bench_fini(struct ah_bench *bench)
{
    ah__free(bench->place);
    bench->place = NULL;
    if (bench->owns_memory) /* cannot fail: nothing is in flight */
        (void)bench->dev->ops->memory_release(bench->dev);
    bench->owns_memory = false;
}

/* ---- items */

/* The place that holds a group's parameters; null: none. */
static const struct ah_bench_place *place_of_group(const struct ah_bench *bench, int group)
{
    if (group < 0)
        return NULL;
    int head = bench->partition->layers + 1;
    return &bench->place[group == head ? bench->places - 1 : group <= bench->copies ? group : 1];
}

static struct ah_task *task_add(struct ah_work *work, enum ah_task_type type)
{
    struct ah_task *task = &work->task[work->tasks++];
    task->type = type;
    return task;
}

static void program_add(struct ah_work *work, const struct ah_bench *bench, const struct ah_bench_place *place,
                        const struct ah_program *program)
{
    struct ah_task *task = task_add(work, AH_TASK_PROGRAM);
    const struct ah_bench_place *owner = place_of_group(bench, bench->partition->shared_group);
    char **base = task->as.program.base;
    task->as.program.program = program;
    base[AH_SPACE_PARAM] = place->state[0];
    base[AH_SPACE_GRAD] = place->grad;
    base[AH_SPACE_SHARED] = owner ? owner->state[0] : NULL;
    base[AH_SPACE_SHARED_GRAD] = owner ? owner->grad : NULL;
    base[AH_SPACE_INPUT] = place->input;
    base[AH_SPACE_OUTPUT] = place->output;
    base[AH_SPACE_SAVED] = place->saved;
    base[AH_SPACE_WORK] = bench->work;
    base[AH_SPACE_BOUNDARY] = bench->boundary;
    base[AH_SPACE_TARGETS] = bench->targets;
    base[AH_SPACE_LOSS] = bench->results;
}

static void copy_add(struct ah_work *work, void *to, const void *from, int64_t bytes)
{
    struct ah_task *task = task_add(work, AH_TASK_COPY);
    task->as.copy.to = to;
    task->as.copy.from = from;
    task->as.copy.bytes = bytes;
}

static void adam_add(struct ah_work *work, const struct ah_bench *bench, const struct ah_bench_place *place, char *const *state,
                     const char *grad)
{
    struct ah_task *task = task_add(work, AH_TASK_ADAM);
    task->as.adam.p = (float *)(void *)state[0];
    task->as.adam.m = (float *)(void *)state[1];
    task->as.adam.v = (float *)(void *)state[2];
    task->as.adam.g = grad;
    task->as.adam.grad_dtype = bench->partition->compute;
    task->as.adam.count = place->count;
    task->as.adam.decayed = place->decayed;
    /* So small a step that parameters stay what they are, however many rounds there are. */
    task->as.adam.adam = (struct ah_adam){.beta1 = 0.9F, .one_minus_beta1 = 0.1F, .beta2 = 0.95F, .one_minus_beta2 = 0.05F,
                                          .eps = 1e-8F, .decay_factor = 1.0F, .step_size = 1e-7F, .inv_sqrt_bias2 = 1.0F};
}

static void backward_add(struct ah_work *work, const struct ah_bench *bench, const struct ah_bench_place *place, bool recompute)
{
    const struct ah_code *code = &bench->partition->code[place->class];
    if (recompute)
        program_add(work, bench, place, &code->recompute);
    program_add(work, bench, place, &code->backward);
    struct ah_task *task = task_add(work, AH_TASK_SQNORM);
    task->as.sqnorm.g = place->grad;
    task->as.sqnorm.dtype = bench->partition->compute;
    task->as.sqnorm.count = place->count;
    task->as.sqnorm.out = (double *)(void *)(bench->results + RESULT_NORM_OFFSET);
}

void ah__bench_work(struct ah_work *work, const struct ah_bench *bench, enum ah_item_kind kind, int place_index, bool recompute)
{
    static const enum ah_lane lane_table[AH_ITEM_COUNT] = {
#define AH_ITEM_LANE(id, lane, name) [AH_ITEM_##id] = lane,
        AH_ITEM_TABLE(AH_ITEM_LANE)
#undef AH_ITEM_LANE
    };
    const struct ah_bench_place *place = &bench->place[place_index];
    int64_t group_bytes = place->count * ah__dtype_bytes(bench->partition->compute);
    memset(work, 0, sizeof *work);
    work->item = (struct ah_item){.kind = kind, .partition = place_index, .recompute = recompute, .param_slot = -1,
                                  .grad_slot = -1};
    work->lane = lane_table[kind];
    if (kind == AH_ITEM_FORWARD)
        program_add(work, bench, place, &bench->partition->code[place->class].forward);
    else if (kind == AH_ITEM_BACKWARD)
        backward_add(work, bench, place, recompute);
    else if (kind == AH_ITEM_UPDATE_DEVICE)
        adam_add(work, bench, place, place->state, place->grad);
    else if (kind == AH_ITEM_UPDATE_HOST)
        adam_add(work, bench, place, place->host_state, place->host_grad);
    else if (kind == AH_ITEM_PREFETCH) /* into memory that programs neither read nor write */
        copy_add(work, place->state[1], place->host_grad, group_bytes);
    else if (kind == AH_ITEM_OFFLOAD)
        copy_add(work, place->host_landing, place->state[2], group_bytes);
    else if (kind == AH_ITEM_INPUT)
        for (int i = 0; i < 2; i++)
            copy_add(work, i ? bench->targets : bench->ids, bench->host_ids, bench->ids_bytes);
    else if (kind == AH_ITEM_RESULT)
        copy_add(work, bench->host_results, bench->results, bench->results_bytes);
}
