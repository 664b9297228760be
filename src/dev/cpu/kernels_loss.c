/* Softmax cross-entropy: the logits become their gradient, and the rows' losses are summed in one order. */
#include "dev/cpu/kernels.h"

static int cross_entropy_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *logits = ah__call_in(call, 0);
    call->rows = ah__shape_rows(logits);
    call->cols = ah__shape_last(logits);
    call->as.vocabulary = call->cols;
    call->pieces = ah__pieces(call->rows, (call->rows + AH_POOL_PARTIALS - 1) / AH_POOL_PARTIALS);
    return AH_OK;
}

static void loss_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const int32_t *targets = b->in[1];
    int64_t cols = b->call->cols, from = index * b->call->pieces.size;
    int64_t to = from + ah__pieces_length(&b->call->pieces, index);
    float scale = 1.0F / (float)b->call->rows;
    double sum = 0;
    for (int64_t row = from; row < to; row++)
        sum += b->call->kernels->cross_entropy(ah__out_at(b, 1, row * cols), ah__in_at(b, 0, row * cols), cols,
                                               targets[row], scale);
    ah__pool_partials(b->pool)[index] = sum;
}

static int cross_entropy_run(const struct ah_bound *bound)
{
    const struct ah_cpu_call *call = bound->call;
    const int32_t *targets = bound->in[1];
    const double *partial = ah__pool_partials(bound->pool);
    struct ah_bound own = *bound;
    for (int64_t i = 0; i < call->rows; i++)
        if (targets[i] < 0 || targets[i] >= call->as.vocabulary)
            return ah__fail(AH_EDEVICE, "cpu: cross_entropy: target %lld has id %ld, expected 0 to %lld", (long long)i,
                            (long)targets[i], (long long)call->as.vocabulary - 1);
    ah__pool_run(bound->pool, loss_piece, call->pieces.count, &own);
    double sum = 0;
    for (int i = 0; i < call->pieces.count; i++)
        sum += partial[i];
    *(float *)bound->out[0] = (float)(sum / (double)call->rows);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_cross_entropy = {cross_entropy_prepare, cross_entropy_run};
