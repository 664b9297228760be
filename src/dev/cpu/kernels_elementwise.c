/* Operators without products or row sums: activations, addition, embedding and position. */
#include "dev/cpu/kernels.h"

#include <string.h>

enum { ELEMENTS = 16384, STRIP_COLS = 64, ROW_ELEMENTS = 16384 };

struct ah_cut ah__cut(int64_t total, int64_t wanted)
{
    const int64_t most_parts = 1 << 20;
    int64_t least = (total + most_parts - 1) / most_parts;
    int64_t size = wanted > least ? wanted : least;
    if (size < 1)
        size = 1;
    return (struct ah_cut){.total = total, .size = size, .count = (int)((total + size - 1) / size)};
}

int64_t ah__cut_length(const struct ah_cut *cut, int index)
{
    int64_t rest = cut->total - index * cut->size;
    return rest < cut->size ? rest : cut->size;
}

static const struct ah_shape *shape_in(const struct ah_bound *bound, int input)
{
    return &bound->call->in[input].meta.shape;
}

static int64_t last_dim(const struct ah_shape *shape)
{
    return shape->dim[shape->rank - 1];
}

/* ---- one element at a time ----------------------------------------------------------------------------------------- */

struct elementwise {
    const struct ah_bound *bound;
    struct ah_cut cut;
    void (*unary)(float *y, const float *x, int64_t n);
    void (*unary_bwd)(float *dx, const float *dy, const float *x, int64_t n, bool accumulate);
};

static void elementwise_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct elementwise *job = context;
    const struct ah_bound *bound = job->bound;
    int64_t at = index * job->cut.size, n = ah__cut_length(&job->cut, index);
    float *y = (float *)bound->out[0] + at;
    const float *a = (const float *)bound->in[0] + at;
    if (job->unary)
        job->unary(y, a, n);
    else if (job->unary_bwd)
        job->unary_bwd(y, a, (const float *)bound->in[1] + at, n, ah__bound_adds(bound, 0));
    else
        bound->kernels->add(y, a, (const float *)bound->in[1] + at, n);
}

static int elementwise_run(struct elementwise job)
{
    job.cut = ah__cut(ah__shape_count(shape_in(job.bound, 0)), ELEMENTS);
    ah__pool_run(job.bound->pool, elementwise_piece, job.cut.count, &job);
    return AH_OK;
}

int ah__cpu_gelu(const struct ah_bound *bound)
{
    return elementwise_run((struct elementwise){.bound = bound, .unary = bound->kernels->gelu});
}

int ah__cpu_gelu_bwd(const struct ah_bound *bound)
{
    return elementwise_run((struct elementwise){.bound = bound, .unary_bwd = bound->kernels->gelu_bwd});
}

int ah__cpu_relu(const struct ah_bound *bound)
{
    return elementwise_run((struct elementwise){.bound = bound, .unary = bound->kernels->relu});
}

int ah__cpu_relu_bwd(const struct ah_bound *bound)
{
    return elementwise_run((struct elementwise){.bound = bound, .unary_bwd = bound->kernels->relu_bwd});
}

int ah__cpu_add(const struct ah_bound *bound)
{
    return elementwise_run((struct elementwise){.bound = bound});
}

static void copy_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct elementwise *job = context;
    int64_t at = index * job->cut.size, n = ah__cut_length(&job->cut, index);
    memcpy((float *)job->bound->out[0] + at, (const float *)job->bound->in[0] + at, (size_t)n * sizeof(float));
}

int ah__cpu_copy(const struct ah_bound *bound)
{
    struct elementwise job = {.bound = bound, .cut = ah__cut(ah__shape_count(shape_in(bound, 0)), ELEMENTS)};
    ah__pool_run(bound->pool, copy_piece, job.cut.count, &job);
    return AH_OK;
}

/* ---- embedding ----------------------------------------------------------------------------------------------------- */

struct embedding {
    const struct ah_bound *bound;
    struct ah_cut cut;
    const int32_t *ids;
    int64_t tokens, cols;
};

static int ids_check(const int32_t *ids, int64_t tokens, int64_t vocabulary)
{
    for (int64_t i = 0; i < tokens; i++)
        if (ids[i] < 0 || ids[i] >= vocabulary)
            return ah__fail(AH_EDEVICE, "cpu: embedding: token %lld has id %ld, expected 0 to %lld", (long long)i,
                            (long)ids[i], (long long)vocabulary - 1);
    return AH_OK;
}

static void embedding_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct embedding *job = context;
    const float *table = job->bound->in[0];
    float *x = job->bound->out[0];
    int64_t from = index * job->cut.size, to = from + ah__cut_length(&job->cut, index);
    for (int64_t i = from; i < to; i++)
        memcpy(x + i * job->cols, table + job->ids[i] * job->cols, (size_t)job->cols * sizeof *x);
}

int ah__cpu_embedding(const struct ah_bound *bound)
{
    const struct ah_shape *table = shape_in(bound, 0);
    struct embedding job = {.bound = bound, .ids = bound->in[1], .tokens = ah__shape_count(shape_in(bound, 1)),
                            .cols = table->dim[1]};
    AH_TRY(ids_check(job.ids, job.tokens, table->dim[0]));
    job.cut = ah__cut(job.tokens, ROW_ELEMENTS / job.cols);
    ah__pool_run(bound->pool, embedding_piece, job.cut.count, &job);
    return AH_OK;
}

static void zero_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct embedding *job = context;
    memset((float *)job->bound->out[0] + index * job->cut.size, 0,
           (size_t)ah__cut_length(&job->cut, index) * sizeof(float));
}

/* A strip of columns goes over all tokens in order, so that the sum of a repeated token has one order. */
static void embedding_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct embedding *job = context;
    int64_t col = index * job->cut.size, n = ah__cut_length(&job->cut, index);
    const float *dx = (const float *)job->bound->in[0] + col;
    float *table = (float *)job->bound->out[0] + col;
    for (int64_t i = 0; i < job->tokens; i++) {
        float *row = table + job->ids[i] * job->cols;
        job->bound->kernels->add(row, row, dx + i * job->cols, n);
    }
}

int ah__cpu_embedding_bwd(const struct ah_bound *bound)
{
    const struct ah_shape *table = &bound->call->out[0].meta.shape;
    struct embedding job = {.bound = bound, .ids = bound->in[1], .tokens = ah__shape_count(shape_in(bound, 1)),
                            .cols = table->dim[1]};
    AH_TRY(ids_check(job.ids, job.tokens, table->dim[0]));
    if (!ah__bound_adds(bound, 0)) {
        job.cut = ah__cut(ah__shape_count(table), 4 * ELEMENTS);
        ah__pool_run(bound->pool, zero_piece, job.cut.count, &job);
    }
    job.cut = ah__cut(job.cols, STRIP_COLS);
    ah__pool_run(bound->pool, embedding_bwd_piece, job.cut.count, &job);
    return AH_OK;
}

/* ---- position ------------------------------------------------------------------------------------------------------ */

struct position {
    const struct ah_bound *bound;
    struct ah_cut cut;
    int64_t seq, batch, cols;
};

static void add_position_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct position *job = context;
    int64_t from = index * job->cut.size, to = from + ah__cut_length(&job->cut, index);
    for (int64_t i = from; i < to; i++)
        job->bound->kernels->add((float *)job->bound->out[0] + i * job->cols,
                                 (const float *)job->bound->in[0] + i * job->cols,
                                 (const float *)job->bound->in[1] + i % job->seq * job->cols, job->cols);
}

int ah__cpu_add_position(const struct ah_bound *bound)
{
    const struct ah_shape *x = shape_in(bound, 0);
    struct position job = {.bound = bound, .seq = x->dim[x->rank - 2], .cols = last_dim(x)};
    job.cut = ah__cut(ah__shape_rows(x), ROW_ELEMENTS / job.cols);
    ah__pool_run(bound->pool, add_position_piece, job.cut.count, &job);
    return AH_OK;
}

static void position_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct position *job = context;
    size_t bytes = (size_t)job->cols * sizeof(float);
    int64_t from = index * job->cut.size, to = from + ah__cut_length(&job->cut, index);
    for (int64_t t = from; t < to; t++) {
        float *row = (float *)job->bound->out[0] + t * job->cols;
        if (!ah__bound_adds(job->bound, 0))
            memset(row, 0, bytes);
        for (int64_t b = 0; b < job->batch && t < job->seq; b++)
            job->bound->kernels->add(row, row, (const float *)job->bound->in[0] + (b * job->seq + t) * job->cols, job->cols);
    }
}

int ah__cpu_position_bwd(const struct ah_bound *bound)
{
    const struct ah_shape *dx = shape_in(bound, 0);
    struct position job = {.bound = bound, .seq = dx->dim[dx->rank - 2], .cols = last_dim(dx)};
    job.batch = ah__shape_rows(dx) / job.seq;
    job.cut = ah__cut(bound->call->out[0].meta.shape.dim[0], ROW_ELEMENTS / job.cols);
    ah__pool_run(bound->pool, position_bwd_piece, job.cut.count, &job);
    return AH_OK;
}
