/* Prepared programs; sizes and offsets of a step's tokens and results. Runs and profiles share them. */
#include "bind/bind.h"

/* ---- prepared programs ------------------------------------------------------------------------------------------- */

static int program_prepare(struct ah_bound_programs *out, struct ah_prepared **prepared,
                           const struct ah_program *program)
{
    AH_TRY(out->dev->ops->prepare(out->dev, program, prepared));
    if ((*prepared)->workspace_bytes > out->workspace_bytes)
        out->workspace_bytes = (*prepared)->workspace_bytes;
    return AH_OK;
}

static int code_prepare(struct ah_bound_programs *out, struct ah_prepared **prepared, const struct ah_code *code)
{
    for (int kind = 0; kind < AH_PROGRAM_COUNT; kind++)
        AH_TRY(program_prepare(out, &prepared[kind], &code->program[kind]));
    return AH_OK;
}

int ah__bound_programs_init(struct ah_bound_programs *out, const struct ah_partition *partition, struct ah_dev *dev)
{
    *out = (struct ah_bound_programs){.dev = dev};
    for (int class = 0; class < partition->class_count; class ++)
        AH_TRY(code_prepare(out, out->prepared[class], &partition->code[class]));
    return AH_OK;
}

static void prepared_free(const struct ah_bound_programs *programs, struct ah_prepared *const *prepared, int count)
{
    for (int kind = 0; kind < count; kind++)
        if (prepared[kind])
            programs->dev->ops->prepared_free(programs->dev, prepared[kind]);
}

void ah__bound_programs_fini(struct ah_bound_programs *programs)
{
    for (int class = 0; class < AH_CLASSES_MOST; class ++)
        prepared_free(programs, programs->prepared[class], AH_PROGRAM_COUNT);
    *programs = (struct ah_bound_programs){0};
}

int ah__workspace_bytes(int64_t *bytes, const struct ah_partition *partition, struct ah_dev *dev)
{
    struct ah_bound_programs programs;
    int status = ah__bound_programs_init(&programs, partition, dev);
    *bytes = programs.workspace_bytes;
    ah__bound_programs_fini(&programs);
    return status;
}

/* ---- tokens and results ------------------------------------------------------------------------------------------ */

int64_t ah__tokens_bytes(const struct ah_partition *partition)
{
    int64_t each = ah__step_tokens(partition) * (int64_t)sizeof(int32_t), behind = ah__step_scaled(partition);
    if (ah__step_ranks(partition) > 1)
        behind = AH_FLAGS;
    return 2 * (each + (partition->packed ? each : 0) + behind * (int64_t)sizeof(float));
}

int64_t ah__tokens_flags(const struct ah_partition *partition)
{
    return ah__step_tokens(partition) * (partition->packed ? 2 : 1) * (int64_t)sizeof(int32_t);
}

int64_t ah__results_losses(const struct ah_partition *partition)
{
    return !ah__step_scaled(partition) ? 0 : AH_RESULTS_NORMS + (int64_t)sizeof(double) * partition->group_count;
}

int64_t ah__results_totals(const struct ah_partition *partition)
{
    return ah__results_losses(partition) + (int64_t)sizeof(float) * ah__micro_batches(partition);
}

int64_t ah__results_bytes(const struct ah_partition *partition)
{
    int64_t losses = ah__results_losses(partition);
    if (ah__step_ranks(partition) > 1)
        return ah__results_totals(partition) + (int64_t)sizeof(float) * (ah__micro_batches(partition) + AH_FLAGS);
    if (losses)
        return losses + (int64_t)sizeof(float) * ah__micro_batches(partition);
    return AH_RESULTS_NORMS + (int64_t)sizeof(double) * partition->group_count;
}
