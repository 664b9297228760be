/* Softmax cross-entropy: the logits become their gradient, and the rows' losses are summed in one order. */
#include "dev/cpu/kernels.h"

#include <string.h>

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
    float scale = b->in[2] ? *(const float *)b->in[2] : 1.0F / (float)b->call->rows;
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
    const float *given = bound->in[2];
    struct ah_bound own = *bound;
    for (int64_t i = 0; i < call->rows; i++)
        if (targets[i] < 0 || targets[i] >= call->as.vocabulary)
            return ah__fail(AH_EDEVICE, "cpu: cross_entropy: target %lld has id %ld, expected 0 to %lld", (long long)i,
                            (long)targets[i], (long long)call->as.vocabulary - 1);
    ah__pool_run(bound->pool, loss_piece, call->pieces.count, &own);
    double sum = 0;
    for (int i = 0; i < call->pieces.count; i++)
        sum += partial[i];
    *(float *)bound->out[0] = (float)(given ? sum * (double)*given : sum / (double)call->rows);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_cross_entropy = {cross_entropy_prepare, cross_entropy_run};

/* ---- with the product that makes the logits, by chunks of tokens ------------------------------------------------- */

static int linear_cross_entropy_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *x = ah__call_in(call, 0), *logits = ah__call_out(call, 1);
    int64_t chunk = logits->dim[0], vocab = logits->dim[1], channels = ah__shape_last(x);
    call->rows = ah__shape_rows(x);
    call->cols = channels;
    call->as.head.logits = (struct ah_gemm){
        .trans_b = true, .m = chunk, .n = vocab, .k = channels, .lda = channels, .ldb = channels, .ldc = vocab};
    call->as.head.dx =
        (struct ah_gemm){.m = chunk, .n = channels, .k = vocab, .lda = vocab, .ldb = channels, .ldc = channels};
    call->as.head.dweight = (struct ah_gemm){.trans_a = true,
                                             .m = vocab,
                                             .n = channels,
                                             .k = chunk,
                                             .lda = vocab,
                                             .ldb = channels,
                                             .ldc = channels,
                                             .accumulate = call->adds[3]};
    return AH_OK;
}

/* The current chunk: its first row and number of rows. */
struct chunk {
    const struct ah_bound *bound;
    struct ah_pieces pieces;
    int64_t from, rows;
    float scale;
};

/* Adds the loss of each row with a target, and replaces the row's logits by their gradient. */
static void chunk_loss_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct chunk *c = context;
    const struct ah_cpu_call *call = c->bound->call;
    const int32_t *targets = (const int32_t *)c->bound->in[2] + c->from;
    int64_t vocab = call->as.head.logits.n, from = index * c->pieces.size;
    int64_t to = from + ah__pieces_length(&c->pieces, index);
    float cap = call->call->attr.cap;
    double sum = 0;
    for (int64_t row = from; row < to; row++) {
        void *logits = ah__out_at(c->bound, 1, row * vocab);
        if (targets[row] == AH_TARGET_IGNORED)
            memset(logits, 0, (size_t)(vocab * ah__dtype_bytes(call->dtype)));
        else if (cap > 0)
            sum += call->kernels->cross_entropy_capped(logits, logits, vocab, targets[row], c->scale, cap);
        else
            sum += call->kernels->cross_entropy(logits, logits, vocab, targets[row], c->scale);
    }
    ah__pool_partials(c->bound->pool)[index] = sum;
}

static double chunk_loss(struct chunk *c)
{
    const double *partial = ah__pool_partials(c->bound->pool);
    double sum = 0;
    c->pieces = ah__pieces(c->rows, (c->rows + AH_POOL_PARTIALS - 1) / AH_POOL_PARTIALS);
    ah__pool_run(c->bound->pool, chunk_loss_piece, c->pieces.count, c);
    for (int i = 0; i < c->pieces.count; i++)
        sum += partial[i];
    return sum;
}

static int product(const struct ah_bound *bound, struct ah_gemm gemm, const void *a, const void *b, int output,
                   int64_t at)
{
    gemm.grid = ah__cpu_gemm_grid(gemm.m, gemm.n);
    return ah__cpu_product(bound, &gemm, &(struct ah_product){.a = a, .b = b, .output = output, .at = at});
}

static int chunk_run(struct chunk *c, double *sum)
{
    const struct ah_bound *bound = c->bound;
    int64_t at = c->from * bound->call->cols;
    const void *x = ah__in_at(bound, 0, at), *logits = bound->out[1];
    struct ah_gemm forward = bound->call->as.head.logits, dx = bound->call->as.head.dx;
    struct ah_gemm dweight = bound->call->as.head.dweight;
    forward.m = dx.m = dweight.k = c->rows;
    dweight.accumulate |= c->from > 0;
    AH_TRY(product(bound, forward, x, bound->in[1], 1, 0));
    *sum += chunk_loss(c);
    if (bound->out[2])
        AH_TRY(product(bound, dx, logits, bound->in[1], 2, at));
    if (bound->out[3])
        AH_TRY(product(bound, dweight, logits, x, 3, 0));
    return AH_OK;
}

/* Counts the tokens with a target. */
static int count_targets(int64_t *count, const int32_t *targets, int64_t rows, int64_t vocab)
{
    *count = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (targets[i] == AH_TARGET_IGNORED)
            continue;
        if (targets[i] < 0 || targets[i] >= vocab)
            return ah__fail(AH_EDEVICE, "cpu: linear_cross_entropy: target %lld has id %ld, expected 0 to %lld, or %d",
                            (long long)i, (long)targets[i], (long long)vocab - 1, (int)AH_TARGET_IGNORED);
        ++*count;
    }
    return AH_OK;
}

static int linear_cross_entropy_run(const struct ah_bound *bound)
{
    const struct ah_cpu_call *call = bound->call;
    int64_t count, chunk = call->as.head.logits.m;
    AH_TRY(count_targets(&count, bound->in[2], call->rows, call->as.head.logits.n));
    const float *given = bound->in[3];
    double sum = 0, divisor = (double)(count > 0 ? count : 1);
    struct chunk c = {.bound = bound, .scale = given ? *given : 1.0F / (float)divisor};
    for (; c.from < call->rows; c.from += chunk) {
        c.rows = call->rows - c.from < chunk ? call->rows - c.from : chunk;
        AH_TRY(chunk_run(&c, &sum));
    }
    *(float *)bound->out[0] = (float)(given ? sum * (double)*given : sum / divisor);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_linear_cross_entropy = {linear_cross_entropy_prepare, linear_cross_entropy_run};
