#include "dev/host/regions.h"

#include "dev/host/states.h"

void ah__regions_device(struct ah_regions *regions, char *base, int64_t bytes)
{
    regions->device = (struct ah_region){base, bytes};
    atomic_store(&regions->high_water, 0);
}

int ah__regions_host(struct ah_regions *regions, char *base, int64_t bytes)
{
    int count = atomic_load(&regions->host_count);
    if (count == AH_REGIONS_HOST)
        return ah__fail(AH_EINTERNAL, "host memory asked for more than %d times", AH_REGIONS_HOST);
    regions->host[count] = (struct ah_region){base, bytes};
    atomic_store_explicit(&regions->host_count, count + 1, memory_order_release);
    return AH_OK;
}

int64_t ah__regions_host_bytes(const struct ah_regions *regions)
{
    int64_t bytes = 0;
    for (int i = 0; i < atomic_load(&regions->host_count); i++)
        bytes += regions->host[i].bytes;
    return bytes;
}

void ah__regions_clear(struct ah_regions *regions)
{
    regions->device = (struct ah_region){0};
    atomic_store(&regions->host_count, 0);
}

/* ---- rights of lanes --------------------------------------------------------------------------------------------- */

/* The side on which a lane's operands must be. */
enum side { SIDE_NONE, SIDE_DEVICE, SIDE_HOST };

/* The sides that each lane may use: sources and destinations of copies, operands of arithmetic, of programs, buffers of
 * collectives, operands of optimizer updates, memory of reads and writes of a disk. */
static const struct lane_row {
    enum side from, to, compute, programs, collectives, updates, disk;
} lane_table[AH_LANE_COUNT] = {
    [AH_LANE_COMPUTE] = {.from = SIDE_DEVICE,
                         .to = SIDE_DEVICE,
                         .compute = SIDE_DEVICE,
                         .programs = SIDE_DEVICE,
                         .updates = SIDE_DEVICE},
    [AH_LANE_H2D] = {.from = SIDE_HOST, .to = SIDE_DEVICE},
    [AH_LANE_D2H] = {.from = SIDE_DEVICE, .to = SIDE_HOST, .updates = SIDE_DEVICE},
    [AH_LANE_HOST] = {.from = SIDE_HOST, .to = SIDE_HOST, .compute = SIDE_HOST, .updates = SIDE_HOST},
    [AH_LANE_COMM] = {.from = SIDE_DEVICE,
                      .to = SIDE_DEVICE,
                      .compute = SIDE_DEVICE,
                      .collectives = SIDE_DEVICE,
                      .updates = SIDE_DEVICE},
    [AH_LANE_DISK] = {.disk = SIDE_HOST},
};

static bool region_holds(const struct ah_region *region, const void *at, int64_t bytes)
{
    uintptr_t base = (uintptr_t)region->base, first = (uintptr_t)at;
    if (!region->base || first < base || first - base > (uintptr_t)region->bytes || bytes < 0)
        return false;
    return (uint64_t)bytes <= (uint64_t)region->bytes - (first - base);
}

static void high_water_raise(struct ah_regions *regions, int64_t end)
{
    int64_t seen = atomic_load_explicit(&regions->high_water, memory_order_relaxed);
    while (end > seen && !atomic_compare_exchange_weak_explicit(&regions->high_water, &seen, end, memory_order_relaxed,
                                                                memory_order_relaxed))
        ;
}

/* Fails with AH_EINTERNAL. `call`: number of a program's call, -1 for other tasks. */
static int span_refuse(const struct ah_regions *regions, enum side side, const void *at, int64_t bytes,
                       const char *operand, int call)
{
    char place[24] = "";
    if (call >= 0)
        snprintf(place, sizeof place, "call %d, ", call);
    if (side == SIDE_HOST)
        return ah__fail(AH_EINTERNAL, "%s%s: %lld bytes at %p are not in the device's host memory", place, operand,
                        (long long)bytes, at);
    long long offset = (long long)((intptr_t)at - (intptr_t)regions->device.base);
    return ah__fail(AH_EINTERNAL, "%s%s: %lld bytes at offset %lld are not in the device region of %lld bytes", place,
                    operand, (long long)bytes, offset, (long long)regions->device.bytes);
}

static int span_check(struct ah_regions *regions, enum side side, const void *at, int64_t bytes, const char *operand,
                      int call)
{
    if (side == SIDE_DEVICE && region_holds(&regions->device, at, bytes)) {
        high_water_raise(regions, (int64_t)((uintptr_t)at - (uintptr_t)regions->device.base) + bytes);
        return AH_OK;
    }
    if (side == SIDE_HOST) {
        int count = atomic_load_explicit(&regions->host_count, memory_order_acquire);
        for (int i = 0; i < count; i++)
            if (region_holds(&regions->host[i], at, bytes))
                return AH_OK;
    }
    return span_refuse(regions, side, at, bytes, operand, call);
}

static int operand_check(struct ah_regions *regions, char *const base[AH_SPACE_COUNT], const struct ah_operand *operand,
                         const char *direction, int index, int call)
{
    if (operand->space == AH_SPACE_NONE)
        return AH_OK;
    char name[32];
    snprintf(name, sizeof name, "%s %d", direction, index);
    if (!base[operand->space])
        return ah__fail(AH_EINTERNAL, "call %d, %s: its space %d has no address", call, name, (int)operand->space);
    int64_t bytes = ah__shape_count(&operand->meta.shape) * ah__dtype_bytes(operand->meta.dtype);
    const char *at = (const char *)((uintptr_t)base[operand->space] + (uintptr_t)operand->offset);
    if (region_holds(&regions->device, at, bytes)) {
        high_water_raise(regions, (int64_t)(at - regions->device.base) + bytes);
        return AH_OK;
    }
    return span_refuse(regions, SIDE_DEVICE, at, bytes, name, call);
}

/* Checks operand by operand, to name the wrong one. */
static int operands_check(struct ah_regions *regions, const struct ah_prepared *prepared,
                          char *const base[AH_SPACE_COUNT])
{
    const struct ah_program *program = prepared->program;
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        for (int j = 0; j < AH_OP_MAX_INPUTS; j++)
            AH_TRY(operand_check(regions, base, &call->in[j], "input", j, i));
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            AH_TRY(operand_check(regions, base, &call->out[j], "output", j, i));
    }
    int64_t floats = prepared->workspace_bytes / (int64_t)sizeof(float);
    struct ah_operand workspace = {AH_SPACE_WORKSPACE, 0, {AH_F32, ah_shape1(floats)}};
    return floats ? operand_check(regions, base, &workspace, "workspace", 0, 0) : AH_OK;
}

/* Checks the extents of all spaces. The device region has no holes, so a space's operands are inside it if their extent
 * is. */
static int bound_check(struct ah_regions *regions, const struct ah_prepared *prepared, char *const base[AH_SPACE_COUNT])
{
    for (int i = 0; i < AH_SPACE_COUNT; i++) {
        struct ah_extent extent = prepared->extent[i];
        if (extent.to <= 0)
            continue;
        const char *from = (const char *)((uintptr_t)base[i] + (uintptr_t)extent.from);
        if (!base[i] || !region_holds(&regions->device, from, extent.to - extent.from))
            return operands_check(regions, prepared, base);
        high_water_raise(regions, (int64_t)(base[i] - regions->device.base) + extent.to);
    }
    return AH_OK;
}

/* Checks a program and its repeats. Bases only move up, so all repeats are in the region if the first and the last
 * are. */
static int program_check(struct ah_regions *regions, const struct ah_task *task)
{
    char *last[AH_SPACE_COUNT];
    int64_t moved = task->as.program.repeats > 1 ? task->as.program.repeats - 1 : 0;
    for (int i = 0; i < AH_SPACE_COUNT; i++) {
        int64_t step = task->as.program.step[i];
        if (step < 0)
            return ah__fail(AH_EINTERNAL, "program: space %d: a step of %lld bytes", i, (long long)step);
        uintptr_t base = (uintptr_t)task->as.program.base[i];
        last[i] = base ? (char *)(base + (uintptr_t)(moved * step)) : NULL;
    }
    const struct ah_prepared *both[] = {task->as.program.prepared, task->as.program.then};
    for (size_t i = 0; i < AH_LENGTH(both) && both[i]; i++) {
        AH_TRY(bound_check(regions, both[i], task->as.program.base));
        if (moved)
            AH_TRY(bound_check(regions, both[i], last));
    }
    return AH_OK;
}

static int dtype_check(const char *operand, enum ah_dtype dtype)
{
    if (dtype != AH_F32 && dtype != AH_BF16)
        return ah__fail(AH_EDEVICE, "%s: dtype %d, expected F32 or BF16", operand, (int)dtype);
    return AH_OK;
}

static int copy_check(struct ah_regions *regions, const struct lane_row *row, const struct ah_task *task)
{
    AH_TRY(span_check(regions, row->from, task->as.copy.from, task->as.copy.bytes, "copy from", -1));
    return span_check(regions, row->to, task->as.copy.to, task->as.copy.bytes, "copy to", -1);
}

static int cast_check(struct ah_regions *regions, enum side side, const struct ah_task *task)
{
    AH_TRY(dtype_check("cast to", task->as.cast.to_dtype));
    AH_TRY(dtype_check("cast from", task->as.cast.from_dtype));
    int64_t to_bytes = task->as.cast.count * ah__dtype_bytes(task->as.cast.to_dtype);
    int64_t from_bytes = task->as.cast.count * ah__dtype_bytes(task->as.cast.from_dtype);
    uintptr_t to = (uintptr_t)task->as.cast.to, from = (uintptr_t)task->as.cast.from;
    AH_TRY(span_check(regions, side, task->as.cast.from, from_bytes, "cast from", -1));
    AH_TRY(span_check(regions, side, task->as.cast.to, to_bytes, "cast to", -1));
    for (int i = 0; i < task->as.cast.zero_count; i++) {
        struct ah_range zero = task->as.cast.zeros[i];
        bool within = zero.to <= task->as.cast.count || task->as.cast.count == 0;
        if (zero.from < 0 || zero.to < zero.from || !within)
            return ah__fail(AH_EINTERNAL, "cast: elements %lld to %lld of %lld become zero", (long long)zero.from,
                            (long long)zero.to, (long long)task->as.cast.count);
        AH_TRY(span_check(regions, side, task->as.cast.to, zero.to * ah__dtype_bytes(task->as.cast.to_dtype),
                          "cast zeros", -1));
    }
    if (to == from && to_bytes < from_bytes)
        return AH_OK;
    if (to < from + (uintptr_t)from_bytes && from < to + (uintptr_t)to_bytes)
        return ah__fail(AH_EINTERNAL, "cast: output and input overlap");
    return AH_OK;
}

static int expand_check(struct ah_regions *regions, enum side side, const struct ah_task *task)
{
    int64_t count = task->as.expand.count;
    enum ah_codes codes = task->as.expand.codes;
    AH_TRY(dtype_check("expand to", task->as.expand.to_dtype));
    if (count % AH_CODES_BLOCK || codes <= AH_CODES_NONE || codes >= AH_CODES_COUNT)
        return ah__fail(AH_EINTERNAL, "expand: %lld elements of format %d, expected blocks of %d", (long long)count,
                        (int)codes, AH_CODES_BLOCK);
    AH_TRY(span_check(regions, side, task->as.expand.from, ah__codes_bytes(codes, count), "expand from", -1));
    return span_check(regions, side, task->as.expand.to, count * ah__dtype_bytes(task->as.expand.to_dtype), "expand to",
                      -1);
}

static int adam_check(struct ah_regions *regions, enum side side, const struct ah_task *task)
{
    int64_t count = task->as.adam.count, rest_bytes = count * ah__dtype_bytes(AH_BF16);
    const struct ah_state_format *format = ah__state_format(task->as.adam.moment_dtype);
    if (task->as.adam.decayed < 0 || task->as.adam.decayed > count)
        return ah__fail(AH_EINTERNAL, "adam: %lld of %lld elements decayed", (long long)task->as.adam.decayed,
                        (long long)count);
    AH_TRY(dtype_check("adam p", task->as.adam.dtype));
    if (task->as.adam.rest && task->as.adam.dtype != AH_BF16)
        return ah__fail(AH_EINTERNAL, "adam: parameters in F32 have no rest");
    if (!format)
        return dtype_check("adam m", task->as.adam.moment_dtype);
    if (count % format->group || task->as.adam.decayed % format->group)
        return ah__fail(AH_EINTERNAL, "adam: %lld elements, %lld of them decayed, expected groups of %d",
                        (long long)count, (long long)task->as.adam.decayed, (int)format->group);
    int64_t param_bytes = count * ah__dtype_bytes(task->as.adam.dtype);
    int64_t moment_bytes = ah__state_bytes(task->as.adam.moment_dtype, count);
    AH_TRY(span_check(regions, side, task->as.adam.p, param_bytes, "adam p", -1));
    AH_TRY(span_check(regions, side, task->as.adam.m, moment_bytes, "adam m", -1));
    AH_TRY(span_check(regions, side, task->as.adam.v, moment_bytes, "adam v", -1));
    if (task->as.adam.to_p) {
        AH_TRY(span_check(regions, side, task->as.adam.to_p, param_bytes, "adam to p", -1));
        AH_TRY(span_check(regions, side, task->as.adam.to_m, moment_bytes, "adam to m", -1));
        AH_TRY(span_check(regions, side, task->as.adam.to_v, moment_bytes, "adam to v", -1));
    }
    AH_TRY(span_check(regions, side, task->as.adam.g, param_bytes, "adam g", -1));
    if (task->as.adam.scale)
        AH_TRY(span_check(regions, side, task->as.adam.scale, (int64_t)sizeof(float), "adam scale", -1));
    if (task->as.adam.rest)
        AH_TRY(span_check(regions, side, task->as.adam.rest, rest_bytes, "adam rest", -1));
    if (task->as.adam.rest && task->as.adam.to_p)
        AH_TRY(span_check(regions, side, task->as.adam.to_rest, rest_bytes, "adam to rest", -1));
    return AH_OK;
}

static int sqnorm_check(struct ah_regions *regions, enum side side, const struct ah_task *task)
{
    AH_TRY(dtype_check("sqnorm g", task->as.sqnorm.dtype));
    int64_t bytes = task->as.sqnorm.count * ah__dtype_bytes(task->as.sqnorm.dtype);
    AH_TRY(span_check(regions, side, task->as.sqnorm.g, bytes, "sqnorm g", -1));
    return span_check(regions, side, task->as.sqnorm.out, (int64_t)sizeof(double), "sqnorm out", -1);
}

static int collective_check(struct ah_regions *regions, enum side side, const struct ah_task *task)
{
    enum ah_collective kind = task->as.collective.kind;
    AH_TRY(dtype_check("collective", task->as.collective.dtype));
    int64_t element = ah__dtype_bytes(task->as.collective.dtype), parts = regions->world_size;
    if (kind == AH_SUM_FLOATS || kind == AH_SUM_DOUBLES)
        parts = 1;
    if (kind == AH_SUM_DOUBLES)
        element = (int64_t)sizeof(double);
    return span_check(regions, side, task->as.collective.buffer, parts * task->as.collective.part_count * element,
                      "collective buffer", -1);
}

static int lane_refuse(const char *what)
{
    return ah__fail(AH_EINTERNAL, "%s: this lane does none", what);
}

int ah__regions_check(struct ah_regions *regions, enum ah_lane lane, const struct ah_task *task)
{
    const struct lane_row *row = &lane_table[lane];
    switch (task->type) {
    case AH_TASK_PROGRAM:
        return row->programs ? program_check(regions, task) : lane_refuse("program");
    case AH_TASK_COPY:
        return row->from ? copy_check(regions, row, task) : lane_refuse("copy");
    case AH_TASK_CAST:
        return row->compute ? cast_check(regions, row->compute, task) : lane_refuse("cast");
    case AH_TASK_EXPAND:
        return row->compute ? expand_check(regions, row->compute, task) : lane_refuse("expand");
    case AH_TASK_ADAM:
        return row->updates ? adam_check(regions, row->updates, task) : lane_refuse("adam");
    case AH_TASK_SQNORM:
        return row->compute ? sqnorm_check(regions, row->compute, task) : lane_refuse("sqnorm");
    case AH_TASK_CLIP:
        AH_TRY(span_check(regions, row->compute, task->as.clip.squares, task->as.clip.count * (int64_t)sizeof(double),
                          "clip squares", -1));
        return span_check(regions, row->compute, task->as.clip.scale, (int64_t)sizeof(float), "clip scale", -1);
    case AH_TASK_COLLECTIVE:
        return row->collectives ? collective_check(regions, row->collectives, task) : lane_refuse("collective");
    case AH_TASK_DISK:
        return row->disk ? span_check(regions, row->disk, task->as.disk.memory, task->as.disk.bytes, "disk", -1)
                         : lane_refuse("disk");
    case AH_TASK_DELAY:
        break; /* only simulated devices run it */
    }
    return ah__fail(AH_EINTERNAL, "task: type %d is unknown", (int)task->type);
}
