/* Causal attention of one instruction set by tiles of 64 queries and 64 keys; part of kernels_isa.h.
 *
 * Tiles are copied out of the strided [B,T,3C] once each, so that they fill the caches without conflicts. The small
 * products are ours: at this size a library call reaches less of the peak. A is read by broadcast, so that no operand
 * needs transposing but the one that meets the other's head dimension. */

enum { TILE = AH_ATTENTION_TILE, HEAD = AH_ATTENTION_MAX_HEAD };
#if AH_SIMD == 512
enum { MM_ROWS = 8, MM_VECTORS = 2 };
#elif AH_SIMD == 256
enum { MM_ROWS = 4, MM_VECTORS = 1 };
#else
enum { MM_ROWS = 1, MM_VECTORS = 1 };
#endif

/* Which part of a product on the diagonal is needed; bounds are rounded to 16, so that all instruction sets agree. */
enum mm_part { MM_ALL, MM_COLS_UP_TO_ROW, MM_COLS_FROM_ROW, MM_TERMS_UP_TO_ROW, MM_TERMS_FROM_ROW };

/* C[m,n] = or += A B, with A[i,t] at a[i * a_row + t * a_term], B [k,n] and C row-major, n a multiple of 16 and of no
 * more than ldb and ldc. */
struct mm {
    float *c;
    const float *a, *b;
    int64_t ldc, a_row, a_term, ldb;
    int m, n, k;
    bool add;
    enum mm_part part;
};

AH_INLINE void mm_block(const struct mm *g, int row, int col, const int rows, const int vectors)
{
    int from = g->part == MM_TERMS_FROM_ROW ? row / LANES * LANES : 0;
    int to = g->part == MM_TERMS_UP_TO_ROW && row / LANES * LANES + LANES < g->k ? row / LANES * LANES + LANES : g->k;
    float *c = g->c + row * g->ldc + col;
    const float *a = g->a + row * g->a_row, *b = g->b + col;
    v16 sum[MM_ROWS][MM_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            sum[i][j] = g->add ? v_load(c + i * g->ldc + j * LANES) : v_set(0.0F);
    int64_t a_row = g->a_row, a_term = g->a_term, ldb = g->ldb;
    for (int t = from; t < to; t++) {
        v16 right[MM_VECTORS];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            right[j] = v_load(b + t * ldb + j * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            v16 left = v_set(a[i * a_row + t * a_term]);
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++)
                sum[i][j] = v_fma(left, right[j], sum[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            v_store(c + i * g->ldc + j * LANES, sum[i][j]);
}

AH_INLINE bool mm_wanted(const struct mm *g, int row, int col, int width)
{
    if (g->part == MM_COLS_UP_TO_ROW)
        return col <= row / LANES * LANES;
    return g->part != MM_COLS_FROM_ROW || col + width > row / LANES * LANES;
}

AH_INLINE void mm_columns(const struct mm *g, int col, const int vectors)
{
    int row = 0;
    for (; row + MM_ROWS <= g->m; row += MM_ROWS)
        if (mm_wanted(g, row, col, vectors * LANES))
            mm_block(g, row, col, MM_ROWS, vectors);
    for (; row < g->m; row++)
        if (mm_wanted(g, row, col, vectors * LANES))
            mm_block(g, row, col, 1, vectors);
}

static AH_TARGET void mm(const struct mm *g)
{
    int col = 0;
    for (; col + MM_VECTORS * LANES <= g->n; col += MM_VECTORS * LANES)
        mm_columns(g, col, MM_VECTORS);
    for (; col < g->n; col += LANES)
        mm_columns(g, col, 1);
}

static inline int round16(int n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* to[rows, round16(cols)] = from[rows, cols] with zeros behind. */
static AH_TARGET void pack(float *to, const float *from, int64_t stride, int rows, int cols)
{
    int width = round16(cols);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c += LANES)
            v_store(to + r * width + c, v_load_most(from + r * stride + c, cols - c));
}

/* to[cols, TILE] = transpose of from[rows, cols], times scale, with zeros up to round16(rows). */
static AH_TARGET void pack_transposed(float *to, const float *from, int64_t stride, int rows, int cols, float scale)
{
    for (int r = 0; r < rows; r += LANES)
        for (int c = 0; c < cols; c += LANES) {
            if (r + LANES <= rows && c + LANES <= cols) {
                v_transpose(to + c * TILE + r, TILE, from + r * stride + c, stride, v_set(scale));
                continue;
            }
            for (int i = r; i < r + LANES; i++)
                for (int j = c; j < c + LANES && j < cols; j++)
                    to[j * TILE + i] = i < rows ? from[i * stride + j] * scale : 0.0F;
        }
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Scratch of a query tile. Scores are kept transposed, queries along the lanes, so that the softmax needs no sums over
 * lanes. */
struct attention_tile {
    float query[HEAD * TILE], value[TILE * HEAD], out[TILE * HEAD], score[TILE * TILE];
    float most[TILE], total[TILE], shrink[TILE];
};
_Static_assert(sizeof(struct attention_tile) <= AH_POOL_SCRATCH * sizeof(float), "scratch of a worker");

/* One step of the online softmax: score[key][query] becomes e^(score - most), and what was summed before is to be
 * shrunk. */
static AH_TARGET void softmax_step(struct attention_tile *s, int keys, int query, bool diagonal)
{
    v16 old = v_load(s->most + query), most = old, none = v_set(-INFINITY);
    float *score = s->score + query;
    for (int key = 0; key < keys; key++) {
        v16 x = v_load(score + key * TILE);
        if (diagonal && key > query) {
            int masked = key - query < LANES ? key - query : LANES;
            x = v_first(masked, none, x);
            v_store(score + key * TILE, x);
        }
        most = v_max(most, x);
    }
    v16 sum[2] = {v_set(0.0F), v_set(0.0F)};
    for (int key = 0; key < keys; key++) {
        v16 e = v_exp(v_sub(v_load(score + key * TILE), most));
        v_store(score + key * TILE, e);
        sum[key & 1] = v_add(sum[key & 1], e);
    }
    v16 shrink = v_exp(v_sub(old, most));
    v_store(s->most + query, most);
    v_store(s->shrink + query, shrink);
    v_store(s->total + query, v_fma(v_load(s->total + query), shrink, v_add(sum[0], sum[1])));
}

static AH_TARGET void scale_rows(float *x, const float *factor, int rows, int width)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < width; c += LANES)
            v_store(x + r * width + c, v_mul(v_load(x + r * width + c), v_set(factor[r])));
}

static AH_TARGET void attend(const struct ah_attention *job, struct attention_tile *s, const float *key,
                             const float *value, int queries, int keys, bool first, bool diagonal)
{
    int head = job->head_size, width = round16(head);
    int64_t stride = job->kv_stride;
    struct mm scores = {.c = s->score, .ldc = TILE, .a = key, .a_row = stride, .a_term = 1, .b = s->query, .ldb = TILE,
                        .m = keys, .n = round16(queries), .k = head, .part = diagonal ? MM_COLS_FROM_ROW : MM_ALL};
    mm(&scores);
    for (int q = 0; q < queries; q += LANES)
        softmax_step(s, keys, q, diagonal);
    if (!first)
        scale_rows(s->out, s->shrink, queries, width);
    pack(s->value, value, stride, keys, head);
    struct mm values = {.c = s->out, .ldc = width, .a = s->score, .a_row = 1, .a_term = TILE, .b = s->value,
                        .ldb = width, .m = queries, .n = width, .k = keys, .add = !first,
                        .part = diagonal ? MM_TERMS_UP_TO_ROW : MM_ALL};
    mm(&values);
}

static AH_TARGET void attention(const struct ah_attention *job, int64_t batch, int head, int64_t tile, float *scratch)
{
    struct attention_tile *s = (struct attention_tile *)(void *)scratch;
    int64_t start = tile * TILE, row = batch * job->seq;
    int queries = job->seq - start < TILE ? (int)(job->seq - start) : TILE, size = job->head_size;
    int64_t shared = row * job->kv_stride + head / job->group * size;
    const float *query = job->q + (row + start) * job->q_stride + head * size;
    pack_transposed(s->query, query, job->q_stride, queries, size, job->scale);
    for (int q = 0; q < TILE; q++) {
        s->most[q] = -INFINITY;
        s->total[q] = 0.0F;
    }
    for (int64_t at = 0; at <= start; at += TILE)
        attend(job, s, job->k + shared + at * job->kv_stride, job->v + shared + at * job->kv_stride, queries,
               at == start ? queries : TILE, at == 0, at == start);
    for (int q = 0; q < queries; q++) {
        float *y = job->y + (row + start + q) * job->channels + head * size;
        v16 factor = v_set(1.0F / s->total[q]);
        for (int c = 0; c < size; c += LANES)
            v_store_most(y + c, v_mul(v_load(s->out + q * round16(size) + c), factor), size - c);
        job->lse[(batch * job->heads + head) * job->seq + start + q] =
            (float)((double)s->most[q] + log((double)s->total[q]));
    }
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* Scratch of one (batch, head): a tile of keys, and under it one tile of queries after the other. */
struct attention_pair {
    float key_t[HEAD * TILE], value_t[HEAD * TILE], key[TILE * HEAD], dkey[TILE * HEAD], dvalue[TILE * HEAD];
    float query[TILE * HEAD], dout[TILE * HEAD], dquery[TILE * HEAD], prob[TILE * TILE], dscore[TILE * TILE];
    float lse[TILE], dot[TILE];
};
_Static_assert(sizeof(struct attention_pair) <= AH_POOL_SCRATCH * sizeof(float), "scratch of a worker");

/* Loads the tile of queries at `row` of [B*T]; dot = sum of dy * y, which is what the softmax's gradient subtracts. */
static AH_TARGET void queries_load(const struct ah_attention *job, struct attention_pair *s, int64_t row,
                                   int64_t lse_at, int head, int queries)
{
    int size = job->head_size;
    int64_t at = row * job->channels + head * size;
    pack(s->query, job->q + row * job->q_stride + head * size, job->q_stride, queries, size);
    pack(s->dout, job->dy + at, job->channels, queries, size);
    for (int q = 0; q < queries; q++) {
        const float *dy = job->dy + at + q * job->channels, *y = job->y + at + q * job->channels;
        v16 sum = v_set(0.0F);
        for (int c = 0; c < size; c += LANES)
            sum = v_fma(v_load_most(dy + c, size - c), v_load_most(y + c, size - c), sum);
        s->dot[q] = v_sum(sum);
        s->lse[q] = job->lse[lse_at + q];
    }
}

/* prob = e^(scale * score - lse), dscore = prob * (dprob - dot) * scale; both are zero above the diagonal. */
static AH_TARGET void softmax_bwd(const struct ah_attention *job, struct attention_pair *s, int queries, int keys,
                                  bool diagonal)
{
    v16 scale = v_set(job->scale), zero = v_set(0.0F);
    for (int q = 0; q < queries; q++) {
        v16 minus_lse = v_set(-s->lse[q]), dot = v_set(s->dot[q]);
        for (int k = 0; k < keys; k += LANES) {
            float *prob = s->prob + q * TILE + k, *dscore = s->dscore + q * TILE + k;
            int lanes = !diagonal || q + 1 - k >= LANES ? LANES : q + 1 - k;
            if (lanes <= 0) {
                v_store(prob, zero);
                v_store(dscore, zero);
                continue;
            }
            v16 p = v_first(lanes, v_exp(v_fma(v_load(prob), scale, minus_lse)), zero);
            v16 d = v_mul(v_mul(p, v_sub(v_load(dscore), dot)), scale);
            v_store(prob, p);
            v_store(dscore, v_first(lanes, d, zero));
        }
    }
}

static AH_TARGET void rows_put(float *to, int64_t stride, const float *from, int rows, int cols, bool accumulate)
{
    int width = round16(cols);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c += LANES) {
            v16 x = v_load(from + r * width + c);
            if (accumulate)
                x = v_add(v_load_most(to + r * stride + c, cols - c), x);
            v_store_most(to + r * stride + c, x, cols - c);
        }
}

/* The five products of one pair of tiles. */
static AH_TARGET void pair(const struct ah_attention *job, struct attention_pair *s, int queries, int keys, bool first,
                           bool diagonal)
{
    int size = job->head_size, width = round16(size), padded = round16(keys);
    enum mm_part cols = diagonal ? MM_COLS_UP_TO_ROW : MM_ALL, below = diagonal ? MM_TERMS_FROM_ROW : MM_ALL;
    struct mm product[] = {
        {.c = s->prob, .ldc = TILE, .a = s->query, .a_row = width, .a_term = 1, .b = s->key_t, .ldb = TILE,
         .m = queries, .n = padded, .k = size, .part = cols},
        {.c = s->dscore, .ldc = TILE, .a = s->dout, .a_row = width, .a_term = 1, .b = s->value_t, .ldb = TILE,
         .m = queries, .n = padded, .k = size, .part = cols},
        {.c = s->dvalue, .ldc = width, .a = s->prob, .a_row = 1, .a_term = TILE, .b = s->dout, .ldb = width,
         .m = keys, .n = width, .k = queries, .add = !first, .part = below},
        {.c = s->dkey, .ldc = width, .a = s->dscore, .a_row = 1, .a_term = TILE, .b = s->query, .ldb = width,
         .m = keys, .n = width, .k = queries, .add = !first, .part = below},
        {.c = s->dquery, .ldc = width, .a = s->dscore, .a_row = TILE, .a_term = 1, .b = s->key, .ldb = width,
         .m = queries, .n = width, .k = keys, .part = diagonal ? MM_TERMS_UP_TO_ROW : MM_ALL},
    };
    mm(&product[0]);
    mm(&product[1]);
    softmax_bwd(job, s, queries, keys, diagonal);
    for (int i = 2; i < 5; i++)
        mm(&product[i]);
}

static AH_TARGET void attention_bwd(const struct ah_attention *job, int64_t batch, int head, float *scratch)
{
    struct attention_pair *s = (struct attention_pair *)(void *)scratch;
    int64_t row = batch * job->seq, stride = job->kv_stride, lse = (batch * job->heads + head) * job->seq;
    int size = job->head_size;
    bool later = head % job->group > 0;
    for (int64_t at = 0; at < job->seq; at += TILE) {
        int keys = job->seq - at < TILE ? (int)(job->seq - at) : TILE;
        int64_t shared = (row + at) * stride + head / job->group * size;
        pack(s->key, job->k + shared, stride, keys, size);
        pack_transposed(s->key_t, job->k + shared, stride, keys, size, 1.0F);
        pack_transposed(s->value_t, job->v + shared, stride, keys, size, 1.0F);
        for (int64_t from = at; from < job->seq; from += TILE) {
            int queries = job->seq - from < TILE ? (int)(job->seq - from) : TILE;
            queries_load(job, s, row + from, lse + from, head, queries);
            pair(job, s, queries, keys, from == at, from == at);
            rows_put(job->dq + (row + from) * job->q_stride + head * size, job->q_stride, s->dquery, queries, size,
                     at > 0 || job->add_q);
        }
        rows_put(job->dk + shared, stride, s->dkey, keys, size, later || job->add_k);
        rows_put(job->dv + shared, stride, s->dvalue, keys, size, later || job->add_v);
    }
}
