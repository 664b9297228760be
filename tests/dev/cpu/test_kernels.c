/* Every operator against its definition in double, and every gradient against central differences of that definition.
 */
#include "dev/cpu/cases.h"
#include "dev/cpu/forward_cases.h"
#include "dev/cpu/reference.h"

#include <stdio.h>

static double *doubles(const struct op_data *data, const struct ah_operand *operand)
{
    int64_t count = ah__shape_count(&operand->meta.shape);
    double *out = malloc((size_t)(count ? count : 1) * sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < count; i++)
        out[i] = operand->meta.dtype == AH_I32 ? (double)((int32_t *)operand_at(data, operand))[i]
                                               : (double)((float *)operand_at(data, operand))[i];
    return out;
}

static struct reference reference_new(const struct op_data *data)
{
    struct reference r = {.call = &data->call};
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        r.in[i] = data->call.in[i].space ? doubles(data, &data->call.in[i]) : NULL;
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        r.out[i] = data->call.out[i].space ? doubles(data, &data->call.out[i]) : NULL;
    return r;
}

static void reference_free(struct reference *r)
{
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        free(r->in[i]);
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        free(r->out[i]);
}

/* Within `tolerance` of the largest wanted value, which is taken as at least `floor`. */
static void assert_close(const char *what, int which, const float *got, const double *want, int64_t count,
                         double tolerance, double floor)
{
    double largest = floor;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= tolerance * largest))
            fail_msg("%s, output %d, element %lld: %.9g, expected %.9g", what, which, (long long)i, (double)got[i],
                     want[i]);
}

/* Places of rows must be the very same. */
static void assert_places(const char *what, int which, const int32_t *got, const double *want, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (got[i] != (int32_t)want[i])
            fail_msg("%s, output %d, element %lld: %d, expected %g", what, which, (long long)i, (int)got[i], want[i]);
}

static void forward_check(struct ah_pool *pool, const struct op_case *c)
{
    struct op_data data;
    op_data_init(&data, c, 1);
    struct reference r = reference_new(&data);
    reference_table[c->op](&r);
    assert_ok(call_run(pool, &data.call, data.base));
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++) {
        const struct ah_operand *out = &data.call.out[i];
        int64_t count = ah__shape_count(&out->meta.shape);
        if (out->meta.dtype == AH_I32)
            assert_places(c->name, i, operand_at(&data, out), r.out[i], count);
        else
            assert_close(c->name, i, operand_at(&data, out), r.out[i], count, 1e-6, 1e-3);
    }
    reference_free(&r);
    op_data_fini(&data);
}

static void forward_matches_definition(void **state)
{
    struct test_pool p = pool_begin(2);
    for (size_t i = 0; i < AH_LENGTH(forward_cases); i++)
        forward_check(p.pool, &forward_cases[i]);
    pool_end(&p);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* Where a backward operator's inputs come from: the gradient of output 0, a forward input, a forward output. */
enum source { NOTHING, DY, X0, X1, X2, X3, X4, Y0, Y1, Y2, Y3 };

struct gradient_case {
    struct op_case forward;
    enum ah_op backward;
    enum source in[AH_OP_MAX_INPUTS];
    int of[AH_OP_MAX_OUTPUTS]; /* output i is the gradient of this forward input; -1: of none there is */
};

/* A row: forward, backward, its inputs, whose gradients come out. */
#define GRADIENT(of, kind, inputs, ...)                                                                                \
    {                                                                                                                  \
        of, AH_OP_##kind, inputs,                                                                                      \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

static const struct gradient_case gradient_cases[] = {
    GRADIENT(OP_IDS("embedding_bwd", EMBEDDING, 11, IN(S2(11, 20), S2(2, 7)), 0), EMBEDDING_BWD, IN(DY, X1), 0),
    GRADIENT(OP_IDS("embedding_bwd from 2", EMBEDDING, 9, IN(S2(11, 20), S2(2, 7)), .first = 2), EMBEDDING_BWD,
             IN(DY, X1), 0),
    GRADIENT(OP("position_bwd", ADD_POSITION, IN(S3(2, 7, 20), S2(9, 20)), 0), POSITION_BWD, IN(DY), 1),
    GRADIENT(OP("position_bwd from 2", ADD_POSITION, IN(S3(2, 7, 20), S2(11, 20)), .first = 2), POSITION_BWD, IN(DY),
             1),
    GRADIENT(OP("layernorm_bwd", LAYERNORM, IN(S3(2, 7, 20), S1(20), S1(20)), .eps = 1e-5F), LAYERNORM_BWD,
             IN(DY, X0, X1, Y1, Y2), 0, 1, 2),
    GRADIENT(OP("layernorm_bwd of 83", LAYERNORM, IN(S2(37, 83), S1(83), S1(83)), .eps = 1e-5F), LAYERNORM_BWD,
             IN(DY, X0, X1, Y1, Y2), 0, 1, 2),
    GRADIENT(OP("layernorm_bwd without bias", LAYERNORM, IN(S2(9, 35), S1(35)), .eps = 1e-5F), LAYERNORM_BWD,
             IN(DY, X0, X1, Y1, Y2), 0, 1, -1),
    GRADIENT(OP("rmsnorm_bwd", RMSNORM, IN(S3(2, 7, 20), S1(20)), .eps = 1e-5F), RMSNORM_BWD, IN(DY, X0, X1, Y1), 0, 1),
    GRADIENT(OP("rmsnorm_bwd of heads", RMSNORM, IN(S3(2, 7, 60), S1(12)), .eps = 1e-5F), RMSNORM_BWD,
             IN(DY, X0, X1, Y1), 0, 1),
    GRADIENT(OP("rmsnorm_bwd of 83", RMSNORM, IN(S2(37, 83), S1(83)), .eps = 1e-2F), RMSNORM_BWD, IN(DY, X0, X1, Y1), 0,
             1),
    GRADIENT(OP("rotary_bwd", ROTARY, IN(S3(2, 7, 3 * 20)), .heads = 3, .theta = 1e4F), ROTARY_BWD, IN(DY), 0),
    GRADIENT(OP("rotary_bwd of some", ROTARY, IN(S3(2, 31, 2 * 7)), .heads = 2, .theta = 1e4F, .dims = 4), ROTARY_BWD,
             IN(DY), 0),
    GRADIENT(OP("rotary_bwd, some stretched", ROTARY, IN(S3(1, 31, 3 * 8)), .heads = 3, .theta = 500, STRETCHED),
             ROTARY_BWD, IN(DY), 0),
    GRADIENT(OP("rotary_bwd, ramped", ROTARY, IN(S3(1, 31, 3 * 8)), .heads = 3, .theta = 500, RAMPED), ROTARY_BWD,
             IN(DY), 0),
    GRADIENT(
        OP("rotary_bwd by head", ROTARY, IN(S3(2, 11, 6 * 3)), .heads = 2, .theta = 100, .dims = 2, .by_head = true),
        ROTARY_BWD, IN(DY), 0),
    GRADIENT(OP("linear_bwd_x", LINEAR, IN(S3(2, 7, 20), S2(20, 13), S1(13)), 0), LINEAR_BWD_X, IN(DY, X1), 0),
    GRADIENT(OP("linear_bwd_w", LINEAR, IN(S3(2, 7, 20), S2(20, 13), S1(13)), 0), LINEAR_BWD_W, IN(DY, X0), 1),
    GRADIENT(OP("linear_bwd_b", LINEAR, IN(S3(2, 7, 20), S2(20, 13), S1(13)), 0), LINEAR_BWD_B, IN(DY), 2),
    GRADIENT(OP("linear_bwd_b of 80", LINEAR, IN(S2(67, 5), S2(5, 80), S1(80)), 0), LINEAR_BWD_B, IN(DY), 2),
    GRADIENT(OP("linear_bwd_x out_in", LINEAR, IN(S2(9, 20), S2(13, 20), S1(13)), .out_in = true), LINEAR_BWD_X,
             IN(DY, X1), 0),
    GRADIENT(OP("linear_bwd_w out_in", LINEAR, IN(S2(9, 20), S2(13, 20), S1(13)), .out_in = true), LINEAR_BWD_W,
             IN(DY, X0), 1),
    GRADIENT(OP("attention_bwd of 7", ATTENTION, IN(S3(2, 7, 21 * 3)), .heads = 3), ATTENTION_BWD, IN(DY, X0, Y0, Y1),
             0),
    GRADIENT(OP("attention_bwd of 70", ATTENTION, IN(S3(1, 70, 6 * 3)), .heads = 2), ATTENTION_BWD, IN(DY, X0, Y0, Y1),
             0),
    GRADIENT(OP("attention_bwd of 150", ATTENTION, IN(S3(1, 150, 2 * 3)), .heads = 1), ATTENTION_BWD,
             IN(DY, X0, Y0, Y1), 0),
    GRADIENT(OP("attention_qkv_bwd of 7", ATTENTION_QKV, IN(S3(2, 7, 21), S3(2, 7, 21), S3(2, 7, 21)), .heads = 3,
                .kv_heads = 3),
             ATTENTION_QKV_BWD, IN(DY, X0, X1, X2, Y0, Y1), 0, 1, 2),
    GRADIENT(OP("attention_qkv_bwd of 70, 4 to 2", ATTENTION_QKV, IN(S3(1, 70, 12), S3(1, 70, 6), S3(1, 70, 6)),
                .heads = 4, .kv_heads = 2),
             ATTENTION_QKV_BWD, IN(DY, X0, X1, X2, Y0, Y1), 0, 1, 2),
    GRADIENT(OP("attention_bwd of 150 by head", ATTENTION, IN(S3(1, 150, 4 * 3)), .heads = 2, .by_head = true),
             ATTENTION_BWD, IN(DY, X0, Y0, Y1), 0),
    GRADIENT(OP("attention_bwd of documents", ATTENTION, IN(S3(1, 150, 4 * 3), S2(1, 150)), .heads = 2), ATTENTION_BWD,
             IN(DY, X0, Y0, Y1, X1), 0),
    GRADIENT(OP("attention_qkv_bwd of documents, window 30", ATTENTION_QKV,
                IN(S3(1, 150, 4), S3(1, 150, 2), S3(1, 150, 2), S2(1, 150)), .heads = 2, .kv_heads = 1, .window = 30),
             ATTENTION_QKV_BWD, IN(DY, X0, X1, X2, Y0, Y1, X3), 0, 1, 2),
    GRADIENT(OP("attention_bwd of 150, window 20", ATTENTION, IN(S3(1, 150, 2 * 3)), .heads = 1, .window = 20),
             ATTENTION_BWD, IN(DY, X0, Y0, Y1), 0),
    GRADIENT(OP("attention_qkv_bwd of 150, 2 to 1, window 90", ATTENTION_QKV,
                IN(S3(1, 150, 4), S3(1, 150, 2), S3(1, 150, 2)), .heads = 2, .kv_heads = 1, .window = 90),
             ATTENTION_QKV_BWD, IN(DY, X0, X1, X2, Y0, Y1), 0, 1, 2),
    GRADIENT(OP("attention_bwd of 70, capped", ATTENTION, IN(S3(1, 70, 4 * 3)), .heads = 2, .cap = 0.5F), ATTENTION_BWD,
             IN(DY, X0, Y0, Y1), 0),
    GRADIENT(OP("attention_qkv_bwd of 150, 2 to 1, window 90, capped", ATTENTION_QKV,
                IN(S3(1, 150, 4), S3(1, 150, 2), S3(1, 150, 2)), .heads = 2, .kv_heads = 1, .window = 90, .cap = 0.3F),
             ATTENTION_QKV_BWD, IN(DY, X0, X1, X2, Y0, Y1), 0, 1, 2),
    GRADIENT(OP("attention_qkv_bwd with sinks", ATTENTION_QKV,
                IN(S3(1, 70, 12), S3(1, 70, 6), S3(1, 70, 6), {0}, S1(4)), .heads = 4, .kv_heads = 2, .window = 30),
             ATTENTION_QKV_BWD, IN(DY, X0, X1, X2, Y0, Y1), 0, 1, 2),
    GRADIENT(OP("sinks_bwd", ATTENTION_QKV, IN(S3(2, 70, 12), S3(2, 70, 6), S3(2, 70, 6), {0}, S1(4)), .heads = 4,
                .kv_heads = 2, .window = 30),
             SINKS_BWD, IN(DY, Y0, Y1, X4), 4),
    GRADIENT(OP("silu_mul_bwd", SILU_MUL, IN(S3(2, 7, 20), S3(2, 7, 20)), 0), SILU_MUL_BWD, IN(DY, X0, X1), 0, 1),
    GRADIENT(OP("gelu_mul_bwd", GELU_MUL, IN(S3(2, 7, 20), S3(2, 7, 20)), 0), GELU_MUL_BWD, IN(DY, X0, X1), 0, 1),
    GRADIENT(OP("rmsnorm_bwd, offset", RMSNORM, IN(S3(2, 7, 20), S1(20)), .eps = 1e-5F, .offset = 1), RMSNORM_BWD,
             IN(DY, X0, X1, Y1), 0, 1),
    GRADIENT(OP("route_bwd", ROUTE, IN(S3(2, 7, 9)), .picks = 3), ROUTE_BWD, IN(X0, DY, Y0, Y1, Y3), 0),
    GRADIENT(OP("route_bwd, normalised", ROUTE, IN(S2(11, 8)), .picks = 2, .normalised = true), ROUTE_BWD,
             IN(X0, DY, Y0, Y1, Y3), 0),
    GRADIENT(OP("route_bwd of all, normalised", ROUTE, IN(S2(5, 4)), .picks = 4, .normalised = true), ROUTE_BWD,
             IN(X0, DY, Y0, Y1, Y3), 0),
    GRADIENT(OP("dispatch's, combine", DISPATCH, IN(S3(2, 7, 20), S3(2, 7, 3), S1(42)), 0), COMBINE, IN(DY, X1, X2), 0),
    GRADIENT(OP("combine's, dispatch", COMBINE, IN(S2(42, 20), S3(2, 7, 3), S1(42)), 0), DISPATCH, IN(DY, X1, X2), 0),
    GRADIENT(OP("scale_rows_bwd", SCALE_ROWS, IN(S2(42, 21), S3(2, 7, 3), S1(42)), 0), SCALE_ROWS_BWD,
             IN(DY, X0, X1, X2), 0, 1),
    GRADIENT(OP("gate_rows_bwd", GATE_ROWS, IN(S3(2, 7, 21), S3(2, 7, 1)), 0), GATE_ROWS_BWD, IN(DY, X0, X1), 0, 1),
    GRADIENT(OP("silu_mul_halves_bwd", SILU_MUL_HALVES, IN(S3(2, 7, 20)), 0), SILU_MUL_HALVES_BWD, IN(DY, X0), 0),
    GRADIENT(OP("swiglu_clamped_bwd", SWIGLU_CLAMPED, IN(S3(2, 7, 20)), .scale = 1.702F, .limit = 2),
             SWIGLU_CLAMPED_BWD, IN(DY, X0), 0),
    GRADIENT(OP("shares_bwd", SHARES, IN(S3(2, 7, 9), S3(2, 7, 3), S3(2, 7, 3), S1(9)), 0), SHARES_BWD, IN(DY, X2, X3),
             1),
    GRADIENT(OP("grouped_linear_bwd_b", GROUPED_LINEAR, IN(S2(30, 9), S3(5, 7, 9), S1(5), S2(5, 7)), 0),
             GROUPED_LINEAR_BWD_B, IN(DY, X2), 3),
    GRADIENT(OP("grouped_linear_bwd_x", GROUPED_LINEAR, IN(S2(30, 9), S3(5, 7, 9), S1(5)), 0), GROUPED_LINEAR_BWD_X,
             IN(DY, X1, X2), 0),
    GRADIENT(OP("grouped_linear_bwd_w", GROUPED_LINEAR, IN(S2(30, 9), S3(5, 7, 9), S1(5)), 0), GROUPED_LINEAR_BWD_W,
             IN(DY, X0, X2), 1),
    GRADIENT(OP("gelu_bwd", GELU, IN(S3(2, 7, 20)), 0), GELU_BWD, IN(DY, X0), 0),
    GRADIENT(OP("gelu_erf_bwd", GELU_ERF, IN(S3(2, 7, 20)), 0), GELU_ERF_BWD, IN(DY, X0), 0),
    GRADIENT(OP("relu_bwd", RELU, IN(S3(2, 7, 20)), 0), RELU_BWD, IN(DY, X0), 0),
};

static double weighted(const struct reference *r, const double *dy)
{
    double sum = 0;
    reference_table[r->call->op](r);
    for (int64_t i = 0; i < ah__shape_count(&r->call->out[0].meta.shape); i++)
        sum += dy[i] * r->out[0][i];
    return sum;
}

/* d(sum of dy * output 0) / d(input), by central differences in double. */
static double *differences(const struct reference *r, const double *dy, int input)
{
    const double step = 1e-5;
    int64_t count = ah__shape_count(&r->call->in[input].meta.shape);
    double *slope = malloc((size_t)count * sizeof *slope);
    assert_non_null(slope);
    for (int64_t i = 0; i < count; i++) {
        double at = r->in[input][i];
        r->in[input][i] = at + step;
        double above = weighted(r, dy);
        r->in[input][i] = at - step;
        slope[i] = (above - weighted(r, dy)) / (2 * step);
        r->in[input][i] = at;
    }
    return slope;
}

static const struct ah_operand *source_operand(const struct ah_call *forward, enum source from)
{
    return from >= Y0 ? &forward->out[from - Y0] : &forward->in[from - X0];
}

/* The backward call of a forward call that has run; `dy` fills what comes from DY. */
static void backward_init(struct op_data *data, const struct gradient_case *g, const struct op_data *forward,
                          const double *dy, unsigned acc)
{
    struct op_case c = {.name = g->forward.name, .op = g->backward, .attr = g->forward.attr, .vocabulary = 1};
    c.attr.acc = acc;
    c.out0 = forward->call.in[g->of[0]].meta.shape;
    for (int i = 0; i < AH_OP_MAX_INPUTS && g->in[i]; i++)
        c.in[i] =
            g->in[i] == DY ? forward->call.out[0].meta.shape : source_operand(&forward->call, g->in[i])->meta.shape;
    op_data_init(data, &c, 2);
    for (int i = 0; i < AH_OP_MAX_INPUTS && g->in[i]; i++) {
        struct ah_operand *to = &data->call.in[i];
        if (g->in[i] != DY)
            memcpy(operand_at(data, to), operand_at(forward, source_operand(&forward->call, g->in[i])),
                   (size_t)operand_bytes(to));
        for (int64_t j = 0; g->in[i] == DY && j < ah__shape_count(&to->meta.shape); j++)
            ((float *)operand_at(data, to))[j] = (float)dy[j];
    }
}

static float before(int output, int64_t i)
{
    return (float)ah__random_normal(77 + (uint64_t)output, (uint64_t)i);
}

/* Runs the backward call and compares; with acc every output but one in place already holds something to add to. */
static void backward_check(struct ah_pool *pool, const struct gradient_case *g, const struct op_data *forward,
                           const double *dy, double *const want[AH_OP_MAX_OUTPUTS], unsigned acc)
{
    struct op_data data;
    const struct ah_op_row *row = ah__op_table[g->backward];
    backward_init(&data, g, forward, dy, acc);
    for (int i = 0; i < row->outputs; i++)
        for (int64_t j = 0; acc >> i & 1U && j < ah__shape_count(&data.call.out[i].meta.shape); j++)
            ((float *)operand_at(&data, &data.call.out[i]))[j] = before(i, j);
    assert_ok(call_run(pool, &data.call, data.base));
    for (int i = 0; i < row->outputs && want[i]; i++) {
        int64_t count = ah__shape_count(&data.call.out[i].meta.shape);
        double *sum = malloc((size_t)count * sizeof *sum);
        assert_non_null(sum);
        for (int64_t j = 0; j < count; j++)
            sum[j] = want[i][j] + (acc >> i & 1U ? (double)before(i, j) : 0);
        assert_close(g->forward.name, i, operand_at(&data, &data.call.out[i]), sum, count, 3e-6, 1.0);
        free(sum);
    }
    op_data_fini(&data);
}

static void gradient_check(struct ah_pool *pool, const struct gradient_case *g)
{
    struct op_data forward;
    const struct ah_op_row *row = ah__op_table[g->backward];
    op_data_init(&forward, &g->forward, 3);
    struct reference r = reference_new(&forward);
    int64_t count = ah__shape_count(&forward.call.out[0].meta.shape);
    double *dy = malloc((size_t)count * sizeof *dy), *want[AH_OP_MAX_OUTPUTS];
    assert_non_null(dy);
    for (int64_t i = 0; i < count; i++)
        dy[i] = (double)(float)ah__random_normal(9, (uint64_t)i);
    for (int i = 0; i < row->outputs; i++)
        want[i] = g->of[i] < 0 ? NULL : differences(&r, dy, g->of[i]);
    assert_ok(call_run(pool, &forward.call, forward.base));
    backward_check(pool, g, &forward, dy, want, 0);
    if (op_adds(g->backward))
        backward_check(pool, g, &forward, dy, want, op_adds(g->backward));
    for (int i = 0; i < row->outputs; i++)
        free(want[i]);
    free(dy);
    reference_free(&r);
    op_data_fini(&forward);
}

static void gradients_match_differences(void **state)
{
    struct test_pool p = pool_begin(2);
    for (size_t i = 0; i < AH_LENGTH(gradient_cases); i += AH_TEST_SAMPLED ? 5 : 1)
        gradient_check(p.pool, &gradient_cases[i]);
    pool_end(&p);
}

static void cross_entropy_gives_its_gradient(void **state)
{
    struct test_pool p = pool_begin(2);
    struct op_case c = OP_IDS("cross_entropy", CROSS_ENTROPY, 11, IN(S3(2, 7, 11), S2(2, 7)), 0);
    struct op_data data;
    op_data_init(&data, &c, 4);
    struct reference r = reference_new(&data);
    double one = 1, *want = differences(&r, &one, 0);
    assert_ok(call_run(p.pool, &data.call, data.base));
    assert_close(c.name, 1, operand_at(&data, &data.call.out[1]), want, 2 * 7 * 11, 1e-6, 0.01);
    free(want);
    reference_free(&r);
    op_data_fini(&data);
    pool_end(&p);
}

/* ---- the fused loss ---------------------------------------------------------------------------------------------- */

enum { IGNORE_NONE, IGNORE_SOME, IGNORE_ALL };

struct loss_case {
    struct op_case of;
    int ignore;
    bool alone; /* no gradients */
};

#define FUSED(batch, seq, channels, vocab, acc_)                                                                       \
    {                                                                                                                  \
        "linear_cross_entropy", AH_OP_LINEAR_CROSS_ENTROPY, {.acc = (acc_)},                                           \
            {S3(batch, seq, channels), S2(vocab, channels), S2(batch, seq)}, {0}, vocab                                \
    }
#define SCALED(batch, seq, channels, vocab)                                                                            \
    {                                                                                                                  \
        "linear_cross_entropy", AH_OP_LINEAR_CROSS_ENTROPY, {0},                                                       \
            {S3(batch, seq, channels), S2(vocab, channels), S2(batch, seq), S1(1)}, {0}, vocab                         \
    }

#define CAPPED(batch, seq, channels, vocab, acc_)                                                                      \
    {                                                                                                                  \
        "linear_cross_entropy", AH_OP_LINEAR_CROSS_ENTROPY, {.acc = (acc_), .cap = 0.75F},                             \
            {S3(batch, seq, channels), S2(vocab, channels), S2(batch, seq)}, {0}, vocab                                \
    }

static const struct loss_case loss_cases[] = {
    {FUSED(2, 7, 20, 11, 0), IGNORE_NONE, false},     {FUSED(2, 7, 20, 11, 0), IGNORE_SOME, false},
    {FUSED(2, 7, 20, 11, 0), IGNORE_SOME, true},      {FUSED(2, 7, 20, 11, 0), IGNORE_ALL, false},
    {FUSED(2, 7, 20, 11, 8), IGNORE_ALL, false},      {FUSED(2, 7, 20, 11, 8), IGNORE_SOME, false},
    {SCALED(2, 7, 20, 11), IGNORE_SOME, false},       {SCALED(2, 7, 20, 11), IGNORE_NONE, true},
    {FUSED(1, 1, 1, 1, 0), IGNORE_NONE, false},       {FUSED(3, 43, 33, 517, 0), IGNORE_SOME, false},
    {FUSED(3, 50, 3, 104001, 0), IGNORE_SOME, false}, /* three chunks, the last shorter */
    {FUSED(3, 50, 3, 104001, 8), IGNORE_NONE, false}, {FUSED(1, 128, 2, 104001, 0), IGNORE_SOME, true},
    {CAPPED(2, 7, 20, 11, 0), IGNORE_SOME, false},    {CAPPED(2, 7, 20, 11, 8), IGNORE_NONE, false},
    {CAPPED(3, 43, 33, 517, 0), IGNORE_SOME, false},  {CAPPED(3, 43, 33, 517, 0), IGNORE_SOME, true},
};

static void loss_case_init(struct op_data *data, const struct loss_case *c)
{
    op_data_init(data, &c->of, 6);
    int32_t *targets = operand_at(data, &data->call.in[2]);
    for (int64_t i = 0; i < ah__shape_count(&c->of.in[2]); i++)
        if (c->ignore == IGNORE_ALL || (c->ignore == IGNORE_SOME && i % 5 < 2))
            targets[i] = AH_TARGET_IGNORED;
    if (c->alone)
        data->call.out[2] = data->call.out[3] = (struct ah_operand){0};
}

/* The roundings of a product's sums wander by the square root of their number; which come in one register and which in
 * the next is the library's, and another one on processors without AVX-512. */
static double sum_tolerance(int64_t terms)
{
    return 2e-6 + 1e-8 * sqrt((double)terms);
}

static void loss_case_check(struct ah_pool *pool, const struct loss_case *c)
{
    struct op_data data;
    loss_case_init(&data, c);
    struct reference r = reference_new(&data);
    reference_table[AH_OP_LINEAR_CROSS_ENTROPY](&r);
    int64_t weights = ah__shape_count(&c->of.in[1]);
    for (int64_t i = 0; c->of.attr.acc && i < weights; i++) {
        ((float *)operand_at(&data, &data.call.out[3]))[i] = before(3, i);
        r.out[3][i] += (double)before(3, i);
    }
    assert_ok(call_run(pool, &data.call, data.base));
    assert_close(c->of.name, 0, operand_at(&data, &data.call.out[0]), r.out[0], 1, 1e-6, 1e-3);
    if (!c->alone) {
        int64_t count = ah__shape_count(&c->of.in[0]);
        assert_close(c->of.name, 2, operand_at(&data, &data.call.out[2]), r.out[2], count,
                     sum_tolerance(c->of.in[1].dim[0]), 1e-3);
        assert_close(c->of.name, 3, operand_at(&data, &data.call.out[3]), r.out[3], weights, 2e-6, 1e-3);
    }
    const float *loss = operand_at(&data, &data.call.out[0]);
    assert_true(c->ignore != IGNORE_ALL || !(*loss < 0 || *loss > 0));
    reference_free(&r);
    op_data_fini(&data);
}

static void fused_loss_matches_definition(void **state)
{
    struct test_pool p = pool_begin(2);
    for (size_t i = 0; i < AH_LENGTH(loss_cases); i++)
        loss_case_check(p.pool, &loss_cases[i]);
    pool_end(&p);
}

static void fused_loss_gives_its_gradients(void **state)
{
    struct test_pool p = pool_begin(2);
    struct op_data data;
    loss_case_init(&data, &loss_cases[1]);
    struct reference r = reference_new(&data);
    double one = 1, *dx = differences(&r, &one, 0), *dweight = differences(&r, &one, 1);
    assert_ok(call_run(p.pool, &data.call, data.base));
    assert_close("linear_cross_entropy", 2, operand_at(&data, &data.call.out[2]), dx, 2 * 7 * 20, 1e-6, 0.1);
    assert_close("linear_cross_entropy", 3, operand_at(&data, &data.call.out[3]), dweight, 11 * 20, 1e-6, 0.1);
    free(dx), free(dweight);
    reference_free(&r);
    op_data_fini(&data);
    pool_end(&p);
}

/* The loss alone has the bits of the loss with gradients; all targets there: both are those of the operators apart. */
static void fused_loss_is_the_loss_apart(void **state)
{
    struct test_pool p = pool_begin(2);
    struct op_case apart[] = {OP("linear", LINEAR, IN(S3(2, 7, 20), S2(11, 20)), .out_in = true),
                              OP_IDS("cross_entropy", CROSS_ENTROPY, 11, IN(S3(2, 7, 11), S2(2, 7)), 0)};
    struct op_data fused, alone, linear, loss;
    struct loss_case c = loss_cases[0];
    loss_case_init(&fused, &c);
    c.alone = true;
    loss_case_init(&alone, &c);
    op_data_init(&linear, &apart[0], 6);
    op_data_init(&loss, &apart[1], 6);
    assert_ok(call_run(p.pool, &fused.call, fused.base));
    assert_ok(call_run(p.pool, &alone.call, alone.base));
    assert_memory_equal(operand_at(&fused, &fused.call.out[0]), operand_at(&alone, &alone.call.out[0]), sizeof(float));
    assert_ok(call_run(p.pool, &linear.call, linear.base));
    memcpy(operand_at(&loss, &loss.call.in[0]), operand_at(&linear, &linear.call.out[0]), 2 * 7 * 11 * sizeof(float));
    memcpy(operand_at(&loss, &loss.call.in[1]), operand_at(&fused, &fused.call.in[2]), sizeof(int32_t) * 2 * 7);
    assert_ok(call_run(p.pool, &loss.call, loss.base));
    assert_memory_equal(operand_at(&fused, &fused.call.out[0]), operand_at(&loss, &loss.call.out[0]), sizeof(float));
    op_data_fini(&fused), op_data_fini(&alone), op_data_fini(&linear), op_data_fini(&loss);
    pool_end(&p);
}

static void ids_out_of_range_are_refused(void **state)
{
    struct test_pool p = pool_begin(1);
    struct op_case cases[] = {OP_IDS("embedding", EMBEDDING, 11, IN(S2(11, 20), S2(2, 7)), 0),
                              OP_IDS("cross_entropy", CROSS_ENTROPY, 11, IN(S3(2, 7, 11), S2(2, 7)), 0),
                              FUSED(2, 7, 20, 11, 0)};
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        for (int32_t id = -1; id <= 11; id += 12) {
            struct op_data data;
            op_data_init(&data, &cases[i], 5);
            int ids = data.call.in[1].meta.dtype == AH_I32 ? 1 : 2;
            ((int32_t *)operand_at(&data, &data.call.in[ids]))[3] = id;
            assert_fails(call_run(p.pool, &data.call, data.base), AH_EDEVICE,
                         id < 0 ? "has id -1, expected 0 to 10" : "has id 11, expected 0 to 10");
            op_data_fini(&data);
        }
    pool_end(&p);
}

static void program_runs_calls_in_order(void **state)
{
    struct test_pool p = pool_begin(2);
    float x[3] = {1, 2, 3}, y[3], z[3];
    struct ah_meta three = {AH_F32, ah_shape1(3)};
    struct ah_operand in = {AH_SPACE_INPUT, 0, three}, work = {AH_SPACE_WORK, 0, three},
                      out = {AH_SPACE_OUTPUT, 0, three};
    struct ah_call calls[] = {{.op = AH_OP_COPY, .in = {in}, .out = {work}},
                              {.op = AH_OP_ADD, .in = {work, in}, .out = {work}},
                              {.op = AH_OP_COPY, .in = {work}, .out = {out}}};
    struct ah_program program = {.count = 3, .calls = calls};
    char *base[AH_SPACE_COUNT] = {
        [AH_SPACE_INPUT] = (char *)x, [AH_SPACE_WORK] = (char *)y, [AH_SPACE_OUTPUT] = (char *)z};
    assert_ok(program_run(p.pool, &program, base));
    for (int i = 0; i < 3; i++)
        assert_true(z[i] == 2 * x[i]);
    base[AH_SPACE_OUTPUT] = NULL;
    assert_fails(program_run(p.pool, &program, base), AH_EINTERNAL, "not bound");
    pool_end(&p);
}

/* The caller's mistake, told before a row is touched that is not there. */
static void rows_outside_a_cache_are_refused(void **state)
{
    static const struct op_case cases[] = {
        OP("cache_write", CACHE_WRITE, IN(S3(1, 9, 8), S3(1, 2, 4), S3(1, 2, 4), S2(1, 2)), 0),
        OP("attention_cached", ATTENTION_CACHED, IN(S3(1, 9, 8), S3(1, 2, 8), S2(1, 2)), .heads = 2, .kv_heads = 1)};
    static const int32_t wrong[] = {-1, 9, INT32_MAX, INT32_MIN};
    struct test_pool p = pool_begin(2);
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        for (size_t w = 0; w < AH_LENGTH(wrong); w++) {
            struct op_data data;
            op_data_init(&data, &cases[i], 3);
            int32_t *positions = operand_at(&data, &data.call.in[i == 0 ? 3 : 2]);
            assert_ok(call_run(p.pool, &data.call, data.base));
            positions[1] = wrong[w];
            assert_fails(call_run(p.pool, &data.call, data.base), AH_EDEVICE, "cpu: cache: token 1 is at ");
            op_data_fini(&data);
        }
    pool_end(&p);
}

/* Runs route of `rows` tokens and 6 experts, 2 for each, on logits that are all `logit`. */
static void route_alike(struct op_data *data, struct ah_pool *pool, float logit, int64_t rows)
{
    struct op_case c = OP("route", ROUTE, IN(S2(rows, 6)), .picks = 2, .normalised = true);
    op_data_init(data, &c, 3);
    for (int64_t i = 0; i < 6 * rows; i++)
        operand_set(data, &data->call.in[0], i, logit);
    assert_ok(call_run(pool, &data->call, data->base));
}

/* Equal logits, as of a router that is all zero, use all experts alike. Beside NaN the places are still places. */
static void tokens_without_a_preference_spread(void **state)
{
    static const float logits[] = {0, -3, INFINITY, NAN};
    struct test_pool p = pool_begin(2);
    for (size_t i = 0; i < AH_LENGTH(logits); i++) {
        struct op_data data;
        route_alike(&data, p.pool, logits[i], 900);
        const int32_t *source = operand_at(&data, &data.call.out[2]), *ends = operand_at(&data, &data.call.out[3]);
        for (int e = 0; e < 6; e++)
            assert_int_equal(ends[e], 300 * (e + 1));
        bool found[1800] = {false};
        for (int row = 0; row < 1800; row++)
            found[source[row]] = true;
        for (int row = 0; row < 1800; row++)
            assert_true(found[row]);
        if (i < 2)
            assert_true(((const float *)operand_at(&data, &data.call.out[0]))[7] == 0.5F);
        op_data_fini(&data);
    }
    pool_end(&p);
}

AH_TEST_CASES("dev/cpu/kernels", tokens_without_a_preference_spread, forward_matches_definition,
              gradients_match_differences, cross_entropy_gives_its_gradient, fused_loss_matches_definition,
              fused_loss_gives_its_gradients, fused_loss_is_the_loss_apart, ids_out_of_range_are_refused,
              program_runs_calls_in_order, rows_outside_a_cache_are_refused)
