/* Attention and its gradients against the definition in double, in both dtypes and by every instruction set, for
 * lengths and heads that leave rests in every tiling: more than one group of queries, more keys than fit the scratch.
 */
#include "dev/cpu/cases.h"

#include <math.h>

struct attention_size {
    int64_t batch, seq;
    int heads, kv_heads, size, window; /* 0: none */
};

static const struct attention_size attention_sizes[] = {
    {2, 1, 2, 1, 8, 0},      {1, 63, 1, 1, 64, 0},    {2, 65, 4, 2, 80, 0},     {1, 257, 2, 2, 64, 0},
    {1, 300, 2, 1, 100, 0},  {1, 333, 3, 3, 17, 0},   {1, 270, 1, 1, 96, 0},    {1, 530, 1, 1, 129, 0},
    {1, 270, 2, 1, 256, 0},  {1, 1100, 1, 1, 5, 0},   {1, 333, 2, 1, 17, 2},    {1, 700, 2, 1, 64, 64},
    {1, 530, 1, 1, 129, 65}, {1, 1100, 2, 1, 5, 130}, {1, 600, 1, 1, 256, 511},
};

/* Rows of size doubles: of one head of queries, and of the keys and values it reads. */
struct head {
    int64_t seq, size, window;
    double *q, *dy, *y, *lse, *dq, *k, *v, *dk, *dv;
};

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, const double *from, double factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

static void query_define(const struct head *h, int64_t at, double *weight)
{
    double scale = 1 / sqrt((double)h->size), total = 0, *y = h->y + at * h->size;
    const double *q = h->q + at * h->size, *dy = h->dy + at * h->size;
    int64_t first = at >= h->window ? at - h->window + 1 : 0;
    for (int64_t t = first; t <= at; t++)
        total += weight[t] = exp(dot(q, h->k + t * h->size, h->size) * scale);
    h->lse[at] = log(total);
    for (int64_t t = first; t <= at; t++)
        add_scaled(y, h->v + t * h->size, weight[t] /= total, h->size);
    double of_y = dot(dy, y, h->size);
    for (int64_t t = first; t <= at; t++) {
        double slope = weight[t] * (dot(dy, h->v + t * h->size, h->size) - of_y) * scale;
        add_scaled(h->dv + t * h->size, dy, weight[t], h->size);
        add_scaled(h->dk + t * h->size, q, slope, h->size);
        add_scaled(h->dq + at * h->size, h->k + t * h->size, slope, h->size);
    }
}

/* Head `head` of an operand [B,T,heads * size] or, with size 1, [B,heads,T]; zeros without data. */
static double *head_take(const struct op_data *data, const struct ah_operand *from, int64_t rows, int64_t stride,
                         int64_t at, int64_t size)
{
    double *out = calloc((size_t)(rows * size), sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; data && i < rows * size; i++)
        out[i] = (double)operand_get(data, from, at + i / size * stride + i % size);
    return out;
}

/* What was summed is within rounding of the largest; bf16 was rounded too, and y was before its gradient was made. */
static void rows_check(const char *what, const struct attention_size *s, const double *got, const double *want,
                       int64_t count, enum ah_dtype dtype)
{
    double largest = dtype == AH_BF16 ? 0 : 1, slack = dtype == AH_BF16 ? 0.01 : 3e-6;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= slack * largest))
            fail_msg("%s %s of %lld, %d to %d heads of %d, element %lld: %.9g, expected %.9g", ah__dtype_name(dtype),
                     what, (long long)s->seq, s->heads, s->kv_heads, s->size, (long long)i, got[i], want[i]);
}

/* One head of keys and values with the heads of queries that share it. */
static void shared_check(const struct attention_size *s, const struct op_data *f, const struct op_data *b,
                         int64_t batch, int shared)
{
    int64_t rows = s->seq, size = s->size, row = batch * rows, wide = s->heads * size, narrow = s->kv_heads * size;
    int group = s->heads / s->kv_heads;
    int64_t at = row * narrow + shared * size;
    enum ah_dtype dtype = f->call.in[0].meta.dtype;
    double *weight = calloc((size_t)rows, sizeof *weight);
    assert_non_null(weight);
    struct head h = {.seq = rows,
                     .size = size,
                     .window = s->window ? s->window : rows,
                     .k = head_take(f, &f->call.in[1], rows, narrow, at, size),
                     .v = head_take(f, &f->call.in[2], rows, narrow, at, size),
                     .dk = head_take(NULL, NULL, rows, 0, 0, size),
                     .dv = head_take(NULL, NULL, rows, 0, 0, size)};
    for (int head = shared * group; head < (shared + 1) * group; head++) {
        int64_t query = row * wide + head * size, lse = (batch * s->heads + head) * rows;
        h.q = head_take(f, &f->call.in[0], rows, wide, query, size);
        h.dy = head_take(b, &b->call.in[0], rows, wide, query, size);
        h.y = head_take(NULL, NULL, rows, 0, 0, size);
        h.dq = head_take(NULL, NULL, rows, 0, 0, size);
        h.lse = head_take(NULL, NULL, rows, 0, 0, 1);
        for (int64_t t = 0; t < rows; t++)
            query_define(&h, t, weight);
        double *got[] = {head_take(f, &f->call.out[0], rows, wide, query, size),
                         head_take(b, &b->call.out[0], rows, wide, query, size),
                         head_take(f, &f->call.out[1], rows, 1, lse, 1)};
        rows_check("y", s, got[0], h.y, rows * size, dtype);
        rows_check("dq", s, got[1], h.dq, rows * size, dtype);
        rows_check("lse", s, got[2], h.lse, rows, AH_F32);
        double *all[] = {h.q, h.dy, h.y, h.dq, h.lse, got[0], got[1], got[2]};
        for (size_t i = 0; i < AH_LENGTH(all); i++)
            free(all[i]);
    }
    double *got[] = {head_take(b, &b->call.out[1], rows, narrow, at, size),
                     head_take(b, &b->call.out[2], rows, narrow, at, size)};
    rows_check("dk", s, got[0], h.dk, rows * size, dtype);
    rows_check("dv", s, got[1], h.dv, rows * size, dtype);
    double *all[] = {h.k, h.v, h.dk, h.dv, got[0], got[1], weight};
    for (size_t i = 0; i < AH_LENGTH(all); i++)
        free(all[i]);
}

static void attention_check(struct ah_pool *pool, const struct attention_size *s, enum ah_dtype dtype)
{
    struct ah_shape q = {3, {s->batch, s->seq, s->heads * s->size, 0}};
    struct ah_shape k = {3, {s->batch, s->seq, s->kv_heads * s->size, 0}}, lse = {3, {s->batch, s->heads, s->seq, 0}};
    struct ah_attr attr = {.heads = s->heads, .kv_heads = s->kv_heads, .window = s->window};
    struct op_case forward = {"attention_qkv", AH_OP_ATTENTION_QKV, attr, {q, k, k}, {0}, 0};
    struct op_case backward = {"attention_qkv_bwd", AH_OP_ATTENTION_QKV_BWD, attr, {q, q, k, k, q, lse}, {0}, 0};
    struct op_data f, b;
    op_data_init_in(&f, &forward, dtype, 6);
    op_data_init_in(&b, &backward, dtype, 7);
    assert_ok(call_run(pool, &f.call, f.base));
    const struct ah_operand *from[] = {&f.call.in[0], &f.call.in[1], &f.call.in[2], &f.call.out[0], &f.call.out[1]};
    for (size_t i = 0; i < AH_LENGTH(from); i++)
        memcpy(operand_at(&b, &b.call.in[i + 1]), operand_at(&f, from[i]), (size_t)operand_bytes(from[i]));
    assert_ok(call_run(pool, &b.call, b.base));
    for (int64_t i = 0; i < s->batch * s->kv_heads; i++)
        shared_check(s, &f, &b, i / s->kv_heads, (int)(i % s->kv_heads));
    op_data_fini(&f);
    op_data_fini(&b);
}

static void sizes_check(enum ah_dtype dtype)
{
    static const char *const isas[] = {"avx512", "avx2", "plain"};
    for (size_t isa = 0; isa < AH_LENGTH(isas); isa++) {
        struct test_pool p = pool_begin(2);
        ah__host_isa_force(isas[isa]);
        for (size_t i = 0; i < AH_LENGTH(attention_sizes); i++)
            if (!ah_test_samples() || (i < 3 ? isa == 2 : i % 2 == isa))
                attention_check(p.pool, &attention_sizes[i], dtype);
        ah__host_isa_force(NULL);
        pool_end(&p);
    }
}

static void attention_matches_definition(void **state)
{
    sizes_check(AH_F32);
}

static void bf16_attention_matches_definition(void **state)
{
    sizes_check(AH_BF16);
}

AH_TEST_CASES("dev/cpu/attention", attention_matches_definition, bf16_attention_matches_definition)
