#include "dev/cpu/device.h"

/* Where a lane's operands must lie. */
enum side { SIDE_NONE, SIDE_DEVICE, SIDE_HOST };

/* What each lane may do: where copies go from and to, where arithmetic reads and writes, whether it runs programs. */
static const struct lane_row {
    enum side from, to, compute;
    bool programs;
} lane_table[AH_LANE_COUNT] = {
    [AH_LANE_COMPUTE] = {SIDE_DEVICE, SIDE_DEVICE, SIDE_DEVICE, true},
    [AH_LANE_H2D] = {SIDE_HOST, SIDE_DEVICE, SIDE_NONE, false},
    [AH_LANE_D2H] = {SIDE_DEVICE, SIDE_HOST, SIDE_NONE, false},
    [AH_LANE_HOST] = {SIDE_HOST, SIDE_HOST, SIDE_HOST, false},
};

static bool region_holds(const struct ah_cpu_region *region, const void *at, int64_t bytes)
{
    uintptr_t base = (uintptr_t)region->base, first = (uintptr_t)at;
    if (!region->base || first < base || first - base > (uintptr_t)region->bytes || bytes < 0)
        return false;
    return (uint64_t)bytes <= (uint64_t)region->bytes - (first - base);
}

static void high_water_raise(struct ah_cpu *cpu, int64_t end)
{
    int64_t seen = atomic_load_explicit(&cpu->high_water, memory_order_relaxed);
    while (end > seen &&
           !atomic_compare_exchange_weak_explicit(&cpu->high_water, &seen, end, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* `call` is the number of a program's call, -1 for other tasks. */
static int span_refuse(const struct ah_cpu *cpu, enum side side, const void *at, int64_t bytes, const char *operand, int call)
{
    char place[24] = "";
    if (call >= 0)
        snprintf(place, sizeof place, "call %d, ", call);
    if (side == SIDE_HOST)
        return ah__fail(AH_EINTERNAL, "%s%s: %lld bytes at %p are not in the device's host memory", place, operand,
                        (long long)bytes, at);
    long long offset = (long long)((intptr_t)at - (intptr_t)cpu->device.base);
    return ah__fail(AH_EINTERNAL, "%s%s: %lld bytes at offset %lld are not in the device region of %lld bytes", place,
                    operand, (long long)bytes, offset, (long long)cpu->device.bytes);
}

static int span_check(struct ah_cpu *cpu, enum side side, const void *at, int64_t bytes, const char *operand, int call)
{
    if (side == SIDE_DEVICE && region_holds(&cpu->device, at, bytes)) {
        high_water_raise(cpu, (int64_t)((uintptr_t)at - (uintptr_t)cpu->device.base) + bytes);
        return AH_OK;
    }
    if (side == SIDE_HOST) {
        int count = atomic_load_explicit(&cpu->host_count, memory_order_acquire);
        for (int i = 0; i < count; i++)
            if (region_holds(&cpu->host[i], at, bytes))
                return AH_OK;
    }
    return span_refuse(cpu, side, at, bytes, operand, call);
}

static int operand_check(struct ah_cpu *cpu, char *const base[AH_SPACE_COUNT], const struct ah_operand *operand,
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
    if (region_holds(&cpu->device, at, bytes)) {
        high_water_raise(cpu, (int64_t)(at - cpu->device.base) + bytes);
        return AH_OK;
    }
    return span_refuse(cpu, SIDE_DEVICE, at, bytes, name, call);
}

static int program_check(struct ah_cpu *cpu, const struct ah_task *task)
{
    const struct ah_program *program = task->as.program.prepared->program;
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        for (int j = 0; j < AH_OP_MAX_INPUTS; j++)
            AH_TRY(operand_check(cpu, task->as.program.base, &call->in[j], "input", j, i));
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            AH_TRY(operand_check(cpu, task->as.program.base, &call->out[j], "output", j, i));
    }
    return AH_OK;
}

static int adam_check(struct ah_cpu *cpu, enum side side, const struct ah_task *task)
{
    int64_t count = task->as.adam.count, state_bytes = count * (int64_t)sizeof(float);
    if (task->as.adam.decayed < 0 || task->as.adam.decayed > count)
        return ah__fail(AH_EINTERNAL, "adam: %lld of %lld elements decayed", (long long)task->as.adam.decayed,
                        (long long)count);
    AH_TRY(span_check(cpu, side, task->as.adam.p, state_bytes, "adam p", -1));
    AH_TRY(span_check(cpu, side, task->as.adam.m, state_bytes, "adam m", -1));
    AH_TRY(span_check(cpu, side, task->as.adam.v, state_bytes, "adam v", -1));
    AH_TRY(span_check(cpu, side, task->as.adam.g, count * ah__dtype_bytes(task->as.adam.grad_dtype), "adam g", -1));
    if (!task->as.adam.half)
        return AH_OK;
    return span_check(cpu, side, task->as.adam.half, count * ah__dtype_bytes(AH_BF16), "adam half", -1);
}

int ah__cpu_check(struct ah_cpu *cpu, enum ah_lane lane, const struct ah_task *task)
{
    const struct lane_row *row = &lane_table[lane];
    switch (task->type) {
    case AH_TASK_PROGRAM:
        if (!row->programs)
            return ah__fail(AH_EINTERNAL, "program: this lane runs none");
        return program_check(cpu, task);
    case AH_TASK_COPY:
        AH_TRY(span_check(cpu, row->from, task->as.copy.from, task->as.copy.bytes, "copy from", -1));
        return span_check(cpu, row->to, task->as.copy.to, task->as.copy.bytes, "copy to", -1);
    case AH_TASK_ADAM:
        if (row->compute == SIDE_NONE)
            return ah__fail(AH_EINTERNAL, "adam: this lane only copies");
        return adam_check(cpu, row->compute, task);
    case AH_TASK_SQNORM:
        if (row->compute == SIDE_NONE)
            return ah__fail(AH_EINTERNAL, "sqnorm: this lane only copies");
        AH_TRY(span_check(cpu, row->compute, task->as.sqnorm.g,
                          task->as.sqnorm.count * ah__dtype_bytes(task->as.sqnorm.dtype), "sqnorm g", -1));
        return span_check(cpu, row->compute, task->as.sqnorm.out, (int64_t)sizeof(double), "sqnorm out", -1);
    case AH_TASK_CAST:
    case AH_TASK_COLLECTIVE:
    case AH_TASK_DELAY:
        break; /* for simulated devices */
    }
    return ah__fail(AH_EINTERNAL, "task: type %d is unknown", (int)task->type);
}
