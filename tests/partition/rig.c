#include "rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *room(int64_t bytes)
{
    size_t size = ((size_t)bytes + 127) / 64 * 64;
    char *memory = aligned_alloc(64, size);
    assert_non_null(memory);
    memset(memory, 0xff, size); /* NaN */
    return memory;
}

const struct ah_code *rig_code(const struct rig *rig, int number)
{
    return ah__code_of(rig->partition, number);
}

static int64_t most_work(const struct ah_partition *partition)
{
    int64_t most = 0;
    for (int i = 0; i < AH_CLASS_COUNT; i++) {
        const struct ah_code *code = &partition->code[i];
        for (int j = 0; j < AH_PROGRAM_COUNT; j++) {
            int64_t bytes = code->program[j].work_bytes;
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

void rig_init(struct rig *rig, struct ah_partition *partition)
{
    *rig = (struct rig){.partition = partition, .count = partition->layers + 2};
    assert_true(rig->count <= RIG_MOST_PARTITIONS);
    assert_ok(ah__pool_new(&rig->pool, 1, -1));
    ah__pool_enter(rig->pool);
    for (int i = 0; i < rig->count; i++) {
        int64_t bytes = partition->groups[i].count * 4;
        rig->param[i] = room(bytes);
        rig->grad[i] = room(bytes);
        rig->m[i] = memset(room(bytes), 0, (size_t)bytes);
        rig->v[i] = memset(room(bytes), 0, (size_t)bytes);
        rig->input[i] = room(rig_code(rig, i)->input_bytes);
        rig->saved[i] = room(rig_code(rig, i)->saved_bytes);
    }
    rig->work = room(most_work(partition));
    rig->boundary = room(partition->code[AH_CLASS_BLOCK].boundary_bytes);
    rig->targets = (int32_t *)(void *)room(partition->batch * partition->seq * 4);
}

void rig_fini(struct rig *rig)
{
    for (int i = 0; i < rig->count; i++) {
        char *all[] = {rig->param[i], rig->grad[i], rig->m[i], rig->v[i], rig->input[i], rig->saved[i]};
        for (size_t j = 0; j < AH_LENGTH(all); j++)
            free(all[j]);
    }
    free(rig->work);
    free(rig->boundary);
    free(rig->targets);
    ah__pool_free(rig->pool);
    ah_partition_free(rig->partition);
}

void rig_run(struct rig *rig, int number, const struct ah_program *program)
{
    char *base[AH_SPACE_COUNT] = {
        [AH_SPACE_PARAM] = rig->param[number],
        [AH_SPACE_GRAD] = rig->grad[number],
        [AH_SPACE_INPUT] = rig->input[number],
        [AH_SPACE_OUTPUT] = rig->input[number + 1],
        [AH_SPACE_SAVED] = rig->saved[number],
        [AH_SPACE_CHEAP] = rig->saved[number] + rig_code(rig, number)->kept_bytes,
        [AH_SPACE_WORK] = rig->work,
        [AH_SPACE_BOUNDARY] = rig->boundary,
    };
    if (number == rig->count - 1) {
        base[AH_SPACE_TARGETS] = (char *)rig->targets;
        base[AH_SPACE_LOSS] = (char *)&rig->loss;
        if (rig->partition->shared_group >= 0) {
            base[AH_SPACE_SHARED] = rig->param[rig->partition->shared_group];
            base[AH_SPACE_SHARED_GRAD] = rig->grad[rig->partition->shared_group];
        }
    }
    struct ah_cpu_program *made;
    assert_ok(ah__cpu_program_new(&made, program, 1));
    base[AH_SPACE_WORKSPACE] = room(made->prepared.workspace_bytes);
    assert_ok(ah__cpu_program_run(made, rig->pool, base));
    free(base[AH_SPACE_WORKSPACE]);
    ah__cpu_program_free(made);
}

void rig_forward(struct rig *rig, bool drop)
{
    for (int i = 0; i < rig->count; i++)
        rig_run(rig, i, &rig_code(rig, i)->program[drop ? AH_PROGRAM_FORWARD_DROP : AH_PROGRAM_FORWARD]);
}

void rig_backward(struct rig *rig, enum rig_recompute recompute)
{
    for (int i = rig->count - 1; i >= 0; i--) {
        const struct ah_code *code = rig_code(rig, i);
        bool block = i > 0 && i < rig->count - 1;
        if (block && recompute == RIG_RECOMPUTE_ALL) {
            memset(rig->saved[i], 0xff, (size_t)code->saved_bytes);
            rig_run(rig, i, &code->program[AH_PROGRAM_RECOMPUTE]);
        }
        if (block && recompute == RIG_RECOMPUTE_SELECTIVE) {
            memset(rig->saved[i] + code->kept_bytes, 0xff, (size_t)(code->saved_bytes - code->kept_bytes));
            rig_run(rig, i, &code->program[AH_PROGRAM_RECOMPUTE_SELECTIVE]);
        }
        rig_run(rig, i, &rig_code(rig, i)->program[AH_PROGRAM_BACKWARD]);
    }
}

void rig_adam(struct rig *rig, int step, double lr, double weight_decay)
{
    const double beta1 = 0.9, beta2 = 0.95;
    struct ah_adam adam = {
        .beta1 = (float)beta1,
        .one_minus_beta1 = (float)(1 - beta1),
        .beta2 = (float)beta2,
        .one_minus_beta2 = (float)(1 - beta2),
        .eps = 1e-8f,
        .decay_factor = (float)(1 - lr * weight_decay),
        .step_size = (float)(lr / (1 - pow(beta1, step))),
        .inv_sqrt_bias2 = (float)(1 / sqrt(1 - pow(beta2, step))),
    };
    for (int i = 0; i < rig->count; i++) {
        struct ah_task task = {.type = AH_TASK_ADAM};
        task.as.adam.p = (float *)(void *)rig->param[i];
        task.as.adam.m = (float *)(void *)rig->m[i];
        task.as.adam.v = (float *)(void *)rig->v[i];
        task.as.adam.g = rig->grad[i];
        task.as.adam.dtype = AH_F32;
        task.as.adam.count = rig->partition->groups[i].count;
        task.as.adam.decayed = rig->partition->groups[i].decayed;
        task.as.adam.adam = adam;
        assert_ok(ah__host_adam(rig->pool, &task));
    }
}

const struct ah_param *rig_param(const struct rig *rig, const char *name)
{
    for (int i = 0; i < rig->partition->param_count; i++)
        if (strcmp(rig->partition->params[i].name, name) == 0)
            return &rig->partition->params[i];
    fail_msg("no parameter %s", name);
    return NULL;
}
