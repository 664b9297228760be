/* Operators without products or row sums: activations, addition, embedding and position. */
#include "dev/cpu/kernels.h"

#include <string.h>

enum { ELEMENTS = 16384, STRIP_COLS = 64, ROW_ELEMENTS = 16384 };

/* ---- one element at a time --------------------------------------------------------------------------------------- */

static void elementwise_prepare(struct ah_cpu_call *call)
{
    call->pieces = ah__pieces(ah__shape_count(ah__call_in(call, 0)), ELEMENTS);
}

#define UNARY(name)                                                                                                    \
    static int name##_prepare(struct ah_cpu_call *call)                                                                \
    {                                                                                                                  \
        elementwise_prepare(call);                                                                                     \
        call->as.unary = call->kernels->name;                                                                          \
        return AH_OK;                                                                                                  \
    }                                                                                                                  \
    static int name##_bwd_prepare(struct ah_cpu_call *call)                                                            \
    {                                                                                                                  \
        elementwise_prepare(call);                                                                                     \
        call->as.unary_bwd = call->kernels->name##_bwd;                                                                \
        return AH_OK;                                                                                                  \
    }                                                                                                                  \
    const struct ah_cpu_operator ah__cpu_##name = {name##_prepare, unary_run};                                         \
    const struct ah_cpu_operator ah__cpu_##name##_bwd = {name##_bwd_prepare, unary_bwd_run};

#define GATED(name)                                                                                                    \
    static int name##_prepare(struct ah_cpu_call *call)                                                                \
    {                                                                                                                  \
        elementwise_prepare(call);                                                                                     \
        call->as.gated = call->kernels->name;                                                                          \
        return AH_OK;                                                                                                  \
    }                                                                                                                  \
    static int name##_bwd_prepare(struct ah_cpu_call *call)                                                            \
    {                                                                                                                  \
        elementwise_prepare(call);                                                                                     \
        call->as.gated_bwd = call->kernels->name##_bwd;                                                                \
        return AH_OK;                                                                                                  \
    }                                                                                                                  \
    const struct ah_cpu_operator ah__cpu_##name = {name##_prepare, gated_run};                                         \
    const struct ah_cpu_operator ah__cpu_##name##_bwd = {name##_bwd_prepare, gated_bwd_run};

static void unary_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t at = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    b->call->as.unary(ah__out_at(b, 0, at), ah__in_at(b, 0, at), n);
}

static void unary_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t at = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    b->call->as.unary_bwd(ah__out_at(b, 0, at), ah__in_at(b, 0, at), ah__in_at(b, 1, at), n, b->call->adds[0]);
}

static void add_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t at = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    b->call->kernels->add(ah__out_at(b, 0, at), ah__in_at(b, 0, at), ah__in_at(b, 1, at), n);
}

static void copy_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t at = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    memcpy(ah__out_at(b, 0, at), ah__in_at(b, 0, at), (size_t)(n * ah__dtype_bytes(b->call->dtype)));
}

static void gated_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t at = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    b->call->as.gated(ah__out_at(b, 0, at), ah__in_at(b, 0, at), ah__in_at(b, 1, at), n);
}

static void gated_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t at = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    b->call->as.gated_bwd(ah__out_at(b, 0, at), ah__out_at(b, 1, at), ah__in_at(b, 0, at), ah__in_at(b, 1, at),
                          ah__in_at(b, 2, at), n);
}

static void scale_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t at = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    b->call->kernels->scale(ah__out_at(b, 0, at), ah__in_at(b, 0, at), n, b->call->call->attr.scale);
}

static void soft_cap_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t at = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    b->call->kernels->soft_cap(ah__out_at(b, 0, at), ah__in_at(b, 0, at), n, b->call->call->attr.cap);
}

static int run_pieces(const struct ah_bound *bound, void (*piece)(void *context, int index, int worker))
{
    struct ah_bound own = *bound;
    ah__pool_run(bound->pool, piece, bound->call->pieces.count, &own);
    return AH_OK;
}

static int unary_run(const struct ah_bound *bound)
{
    return run_pieces(bound, unary_piece);
}

static int unary_bwd_run(const struct ah_bound *bound)
{
    return run_pieces(bound, unary_bwd_piece);
}

static int add_run(const struct ah_bound *bound)
{
    return run_pieces(bound, add_piece);
}

static int copy_run(const struct ah_bound *bound)
{
    return run_pieces(bound, copy_piece);
}

static int gated_run(const struct ah_bound *bound)
{
    return run_pieces(bound, gated_piece);
}

static int gated_bwd_run(const struct ah_bound *bound)
{
    return run_pieces(bound, gated_bwd_piece);
}

static int scale_run(const struct ah_bound *bound)
{
    return run_pieces(bound, scale_piece);
}

static int soft_cap_run(const struct ah_bound *bound)
{
    return run_pieces(bound, soft_cap_piece);
}

static int plain_prepare(struct ah_cpu_call *call)
{
    elementwise_prepare(call);
    return AH_OK;
}

UNARY(gelu)
UNARY(gelu_erf)
UNARY(relu)
GATED(silu_mul)
GATED(gelu_mul)
const struct ah_cpu_operator ah__cpu_scale = {plain_prepare, scale_run};
const struct ah_cpu_operator ah__cpu_soft_cap = {plain_prepare, soft_cap_run};
const struct ah_cpu_operator ah__cpu_add = {plain_prepare, add_run};
const struct ah_cpu_operator ah__cpu_copy = {plain_prepare, copy_run};

/* ---- halves of rows ---------------------------------------------------------------------------------------------- */

/* Prepares work on rows with halves of `cols` elements. */
static int halves_prepare(struct ah_cpu_call *call)
{
    const bool backward = call->call->in[1].space != AH_SPACE_NONE;
    const struct ah_shape *whole = ah__call_in(call, backward ? 1 : 0);
    call->rows = ah__shape_rows(whole);
    call->cols = ah__shape_last(whole) / 2;
    call->pieces = ah__pieces(call->rows, ROW_ELEMENTS / call->cols);
    return AH_OK;
}

static void halves_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const struct ah_attr *attr = &b->call->call->attr;
    const struct ah_kernels *kernels = b->call->kernels;
    int64_t cols = b->call->cols, from = index * b->call->pieces.size;
    int64_t to = from + ah__pieces_length(&b->call->pieces, index);
    for (int64_t row = from; row < to; row++) {
        const void *gate = ah__in_at(b, 0, 2 * row * cols), *up = ah__in_at(b, 0, (2 * row + 1) * cols);
        if (b->call->call->op == AH_OP_SILU_MUL_HALVES)
            kernels->silu_mul(ah__out_at(b, 0, row * cols), gate, up, cols);
        else
            kernels->swiglu_clamped(ah__out_at(b, 0, row * cols), gate, up, cols, attr->scale, attr->limit);
    }
}

static void halves_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const struct ah_attr *attr = &b->call->call->attr;
    const struct ah_kernels *kernels = b->call->kernels;
    int64_t cols = b->call->cols, from = index * b->call->pieces.size;
    int64_t to = from + ah__pieces_length(&b->call->pieces, index);
    for (int64_t row = from; row < to; row++) {
        int64_t at = 2 * row * cols, up_at = at + cols;
        const void *dy = ah__in_at(b, 0, row * cols), *gate = ah__in_at(b, 1, at), *up = ah__in_at(b, 1, up_at);
        void *dgate = ah__out_at(b, 0, at), *dup = ah__out_at(b, 0, up_at);
        if (b->call->call->op == AH_OP_SILU_MUL_HALVES_BWD)
            kernels->silu_mul_bwd(dgate, dup, dy, gate, up, cols);
        else
            kernels->swiglu_clamped_bwd(dgate, dup, dy, gate, up, cols, attr->scale, attr->limit);
    }
}

static int halves_run(const struct ah_bound *bound)
{
    return run_pieces(bound, halves_piece);
}

static int halves_bwd_run(const struct ah_bound *bound)
{
    return run_pieces(bound, halves_bwd_piece);
}

const struct ah_cpu_operator ah__cpu_silu_mul_halves = {halves_prepare, halves_run};
const struct ah_cpu_operator ah__cpu_silu_mul_halves_bwd = {halves_prepare, halves_bwd_run};
const struct ah_cpu_operator ah__cpu_swiglu_clamped = {halves_prepare, halves_run};
const struct ah_cpu_operator ah__cpu_swiglu_clamped_bwd = {halves_prepare, halves_bwd_run};

/* ---- embedding --------------------------------------------------------------------------------------------------- */

static int ids_check(const int32_t *ids, const struct ah_cpu_call *call)
{
    for (int64_t i = 0; i < call->rows; i++)
        if (ids[i] < 0 || ids[i] >= call->as.vocabulary)
            return ah__fail(AH_EDEVICE, "cpu: embedding: token %lld has id %ld, expected 0 to %lld", (long long)i,
                            (long)ids[i], (long long)call->as.vocabulary - 1);
    return AH_OK;
}

/* Prepares an embedding call, whose rows are tokens. */
static void table_prepare(struct ah_cpu_call *call, const struct ah_shape *table)
{
    call->rows = ah__shape_count(ah__call_in(call, 1));
    call->cols = table->dim[1];
    call->as.vocabulary = table->dim[0] - call->call->attr.first;
}

static int embedding_prepare(struct ah_cpu_call *call)
{
    table_prepare(call, ah__call_in(call, 0));
    call->pieces = ah__pieces(call->rows, ROW_ELEMENTS / call->cols);
    return AH_OK;
}

static void embedding_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const int32_t *ids = b->in[1];
    int64_t cols = b->call->cols, from = index * b->call->pieces.size, first = b->call->call->attr.first;
    int64_t to = from + ah__pieces_length(&b->call->pieces, index);
    for (int64_t i = from; i < to; i++)
        memcpy(ah__out_at(b, 0, i * cols), ah__in_at(b, 0, (first + ids[i]) * cols),
               (size_t)(cols * ah__dtype_bytes(b->call->dtype)));
}

static int embedding_run(const struct ah_bound *bound)
{
    AH_TRY(ids_check(bound->in[1], bound->call));
    return run_pieces(bound, embedding_piece);
}

const struct ah_cpu_operator ah__cpu_embedding = {embedding_prepare, embedding_run};

static int embedding_bwd_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *table = ah__call_out(call, 0);
    table_prepare(call, table);
    if (!call->adds[0])
        call->first = ah__pieces(ah__shape_count(table), 4 * ELEMENTS);
    call->pieces = ah__pieces(call->cols, STRIP_COLS);
    return AH_OK;
}

static void zero_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    memset((float *)b->out[0] + index * b->call->first.size, 0,
           (size_t)ah__pieces_length(&b->call->first, index) * sizeof(float));
}

/* Adds a strip of columns for all tokens in order, so that the sum for a repeated token has one order. */
static void embedding_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const int32_t *ids = b->in[1];
    int64_t cols = b->call->cols, col = index * b->call->pieces.size, n = ah__pieces_length(&b->call->pieces, index);
    float *table = (float *)b->out[0] + b->call->call->attr.first * cols + col;
    for (int64_t i = 0; i < b->call->rows; i++)
        b->call->kernels->add_to(table + ids[i] * cols, ah__in_at(b, 0, i * cols + col), n);
}

static int embedding_bwd_run(const struct ah_bound *bound)
{
    struct ah_bound own = *bound;
    AH_TRY(ids_check(bound->in[1], bound->call));
    ah__pool_run(bound->pool, zero_piece, bound->call->first.count, &own);
    return run_pieces(bound, embedding_bwd_piece);
}

const struct ah_cpu_operator ah__cpu_embedding_bwd = {embedding_bwd_prepare, embedding_bwd_run};

/* ---- position ---------------------------------------------------------------------------------------------------- */

static int add_position_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *x = ah__call_in(call, 0);
    call->cols = ah__shape_last(x);
    call->as.position.seq = x->dim[x->rank - 2];
    call->as.position.first = call->call->attr.first;
    call->pieces = ah__pieces(ah__shape_rows(x), ROW_ELEMENTS / call->cols);
    return AH_OK;
}

static void add_position_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t cols = b->call->cols, seq = b->call->as.position.seq, from = index * b->call->pieces.size;
    int64_t to = from + ah__pieces_length(&b->call->pieces, index), first = b->call->as.position.first;
    for (int64_t i = from; i < to; i++)
        b->call->kernels->add(ah__out_at(b, 0, i * cols), ah__in_at(b, 0, i * cols),
                              ah__in_at(b, 1, (first + i % seq) * cols), cols);
}

static int add_position_run(const struct ah_bound *bound)
{
    return run_pieces(bound, add_position_piece);
}

const struct ah_cpu_operator ah__cpu_add_position = {add_position_prepare, add_position_run};

static int position_bwd_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *dx = ah__call_in(call, 0);
    call->cols = ah__shape_last(dx);
    call->as.position.seq = dx->dim[dx->rank - 2];
    call->as.position.batch = ah__shape_rows(dx) / call->as.position.seq;
    call->as.position.first = call->call->attr.first;
    call->pieces = ah__pieces(ah__call_out(call, 0)->dim[0], ROW_ELEMENTS / call->cols);
    return AH_OK;
}

static void position_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    int64_t cols = b->call->cols, seq = b->call->as.position.seq, from = index * b->call->pieces.size;
    int64_t to = from + ah__pieces_length(&b->call->pieces, index);
    for (int64_t at = from; at < to; at++) {
        int64_t t = at - b->call->as.position.first;
        float *row = (float *)b->out[0] + at * cols;
        if (!b->call->adds[0])
            memset(row, 0, (size_t)cols * sizeof *row);
        for (int64_t i = 0; i < b->call->as.position.batch && t >= 0 && t < seq; i++)
            b->call->kernels->add_to(row, ah__in_at(b, 0, (i * seq + t) * cols), cols);
    }
}

static int position_bwd_run(const struct ah_bound *bound)
{
    return run_pieces(bound, position_bwd_piece);
}

const struct ah_cpu_operator ah__cpu_position_bwd = {position_bwd_prepare, position_bwd_run};
