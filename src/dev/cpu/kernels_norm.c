/* Normalisation of rows, and sums over rows cut into strips of columns. */
#include "dev/cpu/kernels.h"

enum { ROW_ELEMENTS = 16384, STRIP_WIDE = 64, STRIP_NARROW = 16, STRIPS_WANTED = 8 };

/* Prepares rows as long as the weight, which is input `weight`. */
static void rows_prepare(struct ah_cpu_call *call, int weight)
{
    call->cols = ah__shape_last(ah__call_in(call, weight));
    call->rows = ah__shape_count(ah__call_in(call, 0)) / call->cols;
    call->pieces = ah__pieces(call->rows, ROW_ELEMENTS / call->cols);
}

static int norm_prepare(struct ah_cpu_call *call)
{
    rows_prepare(call, 1);
    return AH_OK;
}

static void layernorm_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const struct ah_cpu_call *call = b->call;
    int64_t row = index * call->pieces.size, at = row * call->cols;
    call->kernels->layernorm(ah__out_at(b, 0, at), (float *)b->out[1] + row, (float *)b->out[2] + row,
                             ah__in_at(b, 0, at), b->in[1], b->in[2], ah__pieces_length(&call->pieces, index),
                             call->cols, call->call->attr.eps);
}

static int layernorm_run(const struct ah_bound *bound)
{
    struct ah_bound own = *bound;
    ah__pool_run(bound->pool, layernorm_piece, bound->call->pieces.count, &own);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_layernorm = {norm_prepare, layernorm_run};

/* ---- column sums ------------------------------------------------------------------------------------------------- */

struct strips {
    const struct ah_bound *bound;
    const struct ah_strip *whole;
    const struct ah_pieces *pieces;
};

static void strip_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct strips *job = context;
    struct ah_strip strip = *job->whole;
    int64_t col = index * job->pieces->size, bytes = col * ah__dtype_bytes(job->bound->call->dtype);
    strip.dy = (const char *)strip.dy + bytes;
    strip.dbias = strip.dbias ? strip.dbias + col : NULL;
    if (strip.x) {
        strip.x = (const char *)strip.x + bytes;
        strip.dweight += col;
    }
    strip.cols = ah__pieces_length(job->pieces, index);
    job->bound->call->kernels->strip(&strip);
}

struct ah_pieces ah__strip_pieces(int64_t cols)
{
    return ah__pieces(cols, cols >= STRIPS_WANTED * STRIP_WIDE ? STRIP_WIDE : STRIP_NARROW);
}

void ah__strip_run(const struct ah_bound *bound, const struct ah_strip *whole, const struct ah_pieces *pieces)
{
    struct strips job = {.bound = bound, .whole = whole, .pieces = pieces};
    ah__pool_run(bound->pool, strip_piece, pieces->count, &job);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

static int layernorm_bwd_prepare(struct ah_cpu_call *call)
{
    rows_prepare(call, 2);
    call->as.strip = (struct ah_strip){.rows = call->rows,
                                       .stride = call->cols,
                                       .cols = call->cols,
                                       .add_weight = call->adds[1],
                                       .add_bias = call->adds[2]};
    call->first = ah__strip_pieces(call->cols);
    return AH_OK;
}

static void layernorm_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const struct ah_cpu_call *call = b->call;
    int64_t row = index * call->pieces.size, at = row * call->cols;
    call->kernels->layernorm_bwd(ah__out_at(b, 0, at), ah__in_at(b, 0, at), ah__in_at(b, 1, at), b->in[2],
                                 (const float *)b->in[3] + row, (const float *)b->in[4] + row,
                                 ah__pieces_length(&call->pieces, index), call->cols, call->adds[0]);
}

static int layernorm_bwd_run(const struct ah_bound *bound)
{
    const struct ah_cpu_call *call = bound->call;
    struct ah_bound own = *bound;
    struct ah_strip strip = call->as.strip;
    strip.dy = bound->in[0], strip.x = bound->out[1] ? bound->in[1] : NULL;
    strip.mean = bound->in[3], strip.rstd = bound->in[4];
    strip.dweight = bound->out[1], strip.dbias = bound->out[2];
    /* Computes the sums first, so that dx may overwrite dy. */
    if (strip.dweight || strip.dbias)
        ah__strip_run(bound, &strip, &call->first);
    ah__pool_run(bound->pool, layernorm_bwd_piece, call->pieces.count, &own);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_layernorm_bwd = {layernorm_bwd_prepare, layernorm_bwd_run};

/* ---- without mean ------------------------------------------------------------------------------------------------ */

static void rmsnorm_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const struct ah_cpu_call *call = b->call;
    int64_t row = index * call->pieces.size, at = row * call->cols;
    call->kernels->rmsnorm(ah__out_at(b, 0, at), (float *)b->out[1] + row, ah__in_at(b, 0, at), b->in[1],
                           ah__pieces_length(&call->pieces, index), call->cols, call->call->attr.eps,
                           call->call->attr.offset);
}

static int rmsnorm_run(const struct ah_bound *bound)
{
    struct ah_bound own = *bound;
    ah__pool_run(bound->pool, rmsnorm_piece, bound->call->pieces.count, &own);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_rmsnorm = {norm_prepare, rmsnorm_run};

static int rmsnorm_bwd_prepare(struct ah_cpu_call *call)
{
    rows_prepare(call, 2);
    call->as.strip =
        (struct ah_strip){.rows = call->rows, .stride = call->cols, .cols = call->cols, .add_weight = call->adds[1]};
    call->first = ah__strip_pieces(call->cols);
    return AH_OK;
}

static void rmsnorm_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const struct ah_cpu_call *call = b->call;
    int64_t row = index * call->pieces.size, at = row * call->cols;
    call->kernels->rmsnorm_bwd(ah__out_at(b, 0, at), ah__in_at(b, 0, at), ah__in_at(b, 1, at), b->in[2],
                               (const float *)b->in[3] + row, ah__pieces_length(&call->pieces, index), call->cols,
                               call->call->attr.offset, call->adds[0]);
}

static int rmsnorm_bwd_run(const struct ah_bound *bound)
{
    const struct ah_cpu_call *call = bound->call;
    struct ah_bound own = *bound;
    struct ah_strip strip = call->as.strip;
    strip.dy = bound->in[0], strip.x = bound->in[1], strip.rstd = bound->in[3], strip.dweight = bound->out[1];
    if (strip.dweight)
        ah__strip_run(bound, &strip, &call->first); /* first, as in layernorm */
    ah__pool_run(bound->pool, rmsnorm_bwd_piece, call->pieces.count, &own);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_rmsnorm_bwd = {rmsnorm_bwd_prepare, rmsnorm_bwd_run};
