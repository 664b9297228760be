/* Softmax cross-entropy: the logits become their gradient, and the rows' losses are summed in one order. */
#include "dev/cpu/kernels.h"

struct loss {
    const struct ah_bound *bound;
    struct ah_cut cut;
    int64_t cols;
    const int32_t *targets;
    double *partial;
};

static void loss_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct loss *job = context;
    int64_t from = index * job->cut.size, to = from + ah__cut_length(&job->cut, index);
    float scale = 1.0F / (float)job->cut.total;
    double sum = 0;
    for (int64_t row = from; row < to; row++)
        sum += job->bound->kernels->cross_entropy((float *)job->bound->out[1] + row * job->cols,
                                                  (const float *)job->bound->in[0] + row * job->cols, job->cols,
                                                  job->targets[row], scale);
    job->partial[index] = sum;
}

int ah__cpu_cross_entropy(const struct ah_bound *bound)
{
    const struct ah_shape *logits = &bound->call->in[0].meta.shape;
    int64_t rows = ah__shape_rows(logits), cols = logits->dim[logits->rank - 1];
    struct loss job = {.bound = bound, .cols = cols, .targets = bound->in[1], .partial = ah__pool_partials(bound->pool)};
    for (int64_t i = 0; i < rows; i++)
        if (job.targets[i] < 0 || job.targets[i] >= cols)
            return ah__fail(AH_EDEVICE, "cpu: cross_entropy: target %lld has id %ld, expected 0 to %lld", (long long)i,
                            (long)job.targets[i], (long long)cols - 1);
    job.cut = ah__cut(rows, (rows + AH_POOL_PARTIALS - 1) / AH_POOL_PARTIALS);
    ah__pool_run(bound->pool, loss_piece, job.cut.count, &job);
    double sum = 0;
    for (int i = 0; i < job.cut.count; i++)
        sum += job.partial[i];
    *(float *)bound->out[0] = (float)(sum / (double)rows);
    return AH_OK;
}
