/* Evaluates: losses, logits, and one token at a time. Nothing is in flight while any of these is called. */
#include <string.h>

#include "op/bf16.h"
#include "run/internal.h"

int ah__run_eval(struct ah_run *run, const struct ah_batch *batch, double *loss)
{
    AH_TRY(ah__run_drain(run));
    run->evaluates = true;
    ah__run_input(run, batch, 0);
    ah__run_post(run);
    int status = ah__run_drain(run);
    run->evaluates = false;
    AH_TRY(status);
    run->evaluated++;
    *loss = run->loss;
    return run->comm->world_size > 1 ? ah__comm_sum(run->comm, loss, 1) : AH_OK;
}

/* Makes a batch of ids; its targets are not read. Evaluation does not write its batch. */
static struct ah_batch only_ids(const int32_t *ids)
{
    int32_t *unchanged;
    memcpy(&unchanged, &ids, sizeof unchanged);
    return (struct ah_batch){unchanged, unchanged, NULL};
}

static int logits_check(const struct ah_partition *partition)
{
    const struct ah_operand *from = &partition->code[AH_CLASS_HEAD].logits;
    enum ah_dtype dtype = from->meta.dtype;
    if (from->space != AH_SPACE_WORK || (dtype != AH_F32 && dtype != AH_BF16))
        return ah__fail(AH_EINTERNAL, "run: the head leaves no logits in F32 or BF16");
    return AH_OK;
}

int ah__run_infer(struct ah_run *run, const int32_t *ids)
{
    const struct ah_batch batch = only_ids(ids);
    double no_loss;
    AH_TRY(logits_check(run->partition));
    if (!run->partition->step.logits)
        return ah__fail(AH_EINTERNAL, "run: the partition was made without room for logits");
    run->infers = true;
    int status = ah__run_eval(run, &batch, &no_loss);
    run->infers = false;
    return status;
}

static int decoder_check(const struct ah_run *run)
{
    if (!run->decoder)
        return ah__fail(AH_EINTERNAL, "run: it has no decoder");
    return logits_check(run->decoder);
}

int ah__run_prefill(struct ah_run *run, const int32_t *ids)
{
    const struct ah_batch batch = only_ids(ids);
    double no_loss;
    AH_TRY(decoder_check(run));
    run->prefills = true;
    int status = ah__run_eval(run, &batch, &no_loss);
    run->prefills = false;
    return status;
}

int ah__run_decode(struct ah_run *run, int32_t id, int32_t position)
{
    const struct ah_batch batch = {&id, &id, &position};
    double no_loss;
    AH_TRY(decoder_check(run));
    run->infers = run->decodes = true;
    int status = ah__run_eval(run, &batch, &no_loss);
    run->infers = run->decodes = false;
    return status;
}

int ah__run_logits(struct ah_run *run, int64_t row, float *logits)
{
    const struct ah_partition *last = run->decoder ? run->decoder : run->partition;
    const struct ah_operand *from = &last->code[AH_CLASS_HEAD].logits;
    enum ah_dtype dtype = from->meta.dtype;
    int64_t bytes = run->partition->vocab * ah__dtype_bytes(dtype);
    char *staging = run->memory.host + run->layout->host_staging_offset;
    AH_TRY(ah__run_copy(run, AH_LANE_D2H, staging,
                        run->memory.device + run->layout->work_offset + from->offset + row * bytes, bytes));
    if (dtype == AH_F32)
        memcpy(logits, staging, (size_t)bytes);
    else
        ah__bf16_widen(logits, (const uint16_t *)(const void *)staging, run->partition->vocab);
    return AH_OK;
}
