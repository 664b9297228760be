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
static AH_TARGET void pack(float *to, const element *from, int64_t stride, int rows, int cols)
{
    int width = round16(cols);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c += LANES)
            v_store(to + r * width + c, e_load_most(from + r * stride + c, cols - c));
}

/* One 16 x 16 tile of what follows, cut to what exists. */
AH_INLINE void transpose_part(float *to, const element *from, int64_t stride, int rows, int cols, v16 scale)
{
    float block[LANES * LANES] = {0}, turned[LANES * LANES];
    for (int i = 0; i < rows && i < LANES; i++)
        v_store(block + i * LANES, e_load_most(from + i * stride, cols));
    v_transpose(turned, LANES, block, LANES, scale);
    for (int j = 0; j < cols && j < LANES; j++)
        v_store(to + j * TILE, v_load(turned + j * LANES));
}

/* to[cols, TILE] = transpose of from[rows, cols], times scale, with zeros up to round16(rows). */
static AH_TARGET void pack_transposed(float *to, const element *from, int64_t stride, int rows, int cols, float scale)
{
    for (int r = 0; r < rows; r += LANES)
        for (int c = 0; c < cols; c += LANES)
            transpose_part(to + c * TILE + r, from + r * stride + c, stride, rows - r, cols - c, v_set(scale));
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Scratch of a query tile. Scores are kept transposed, queries along the lanes, so that the softmax needs no sums over
 * lanes. */
struct attention_tile {
    float query[HEAD * TILE], key[TILE * HEAD], value[TILE * HEAD], out[TILE * HEAD], score[TILE * TILE];
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

static AH_TARGET void attend(const struct ah_attention *job, struct attention_tile *s, const element *key,
                             const element *value, int queries, int keys, bool first, bool diagonal)
{
    int head = job->head_size, width = round16(head);
    int64_t stride = job->kv_stride;
    struct mm scores = {.c = s->score, .ldc = TILE, .a = s->key, .a_row = width, .a_term = 1, .b = s->query,
                        .ldb = TILE, .m = keys, .n = round16(queries), .k = head,
                        .part = diagonal ? MM_COLS_FROM_ROW : MM_ALL};
    pack(s->key, key, stride, keys, head);
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
    const element *query = (const element *)job->q + (row + start) * job->q_stride + head * size;
    const element *key = (const element *)job->k + shared, *value = (const element *)job->v + shared;
    pack_transposed(s->query, query, job->q_stride, queries, size, job->scale);
    for (int q = 0; q < TILE; q++) {
        s->most[q] = -INFINITY;
        s->total[q] = 0.0F;
    }
    for (int64_t at = 0; at <= start; at += TILE)
        attend(job, s, key + at * job->kv_stride, value + at * job->kv_stride, queries, at == start ? queries : TILE,
               at == 0, at == start);
    for (int q = 0; q < queries; q++) {
        element *y = (element *)job->y + (row + start + q) * job->channels + head * size;
        v16 factor = v_set(1.0F / s->total[q]);
        for (int c = 0; c < size; c += LANES)
            e_store_most(y + c, v_mul(v_load(s->out + q * round16(size) + c), factor), size - c);
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
    const element *query = (const element *)job->q + row * job->q_stride + head * size;
    const element *dout = (const element *)job->dy + at, *out = (const element *)job->y + at;
    pack(s->query, query, job->q_stride, queries, size);
    pack(s->dout, dout, job->channels, queries, size);
    for (int q = 0; q < queries; q++) {
        const element *dy = dout + q * job->channels, *y = out + q * job->channels;
        v16 sum = v_set(0.0F);
        for (int c = 0; c < size; c += LANES)
            sum = v_fma(e_load_most(dy + c, size - c), e_load_most(y + c, size - c), sum);
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

static AH_TARGET void rows_put(element *to, int64_t stride, const float *from, int rows, int cols, bool accumulate)
{
    int width = round16(cols);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c += LANES) {
            v16 x = v_load(from + r * width + c);
            if (accumulate)
                x = v_add(e_load_most(to + r * stride + c, cols - c), x);
            e_store_most(to + r * stride + c, x, cols - c);
        }
}

/* Where the gradients of a pair of tiles are made: written there, or added. */
struct attention_sums {
    float *dquery, *dkey, *dvalue;
    bool add_query, add_key;
};

/* The five products of one pair of tiles. */
static AH_TARGET void pair(const struct ah_attention *job, struct attention_pair *s, const struct attention_sums *to,
                           int queries, int keys, bool diagonal)
{
    int size = job->head_size, width = round16(size), padded = round16(keys);
    enum mm_part cols = diagonal ? MM_COLS_UP_TO_ROW : MM_ALL, below = diagonal ? MM_TERMS_FROM_ROW : MM_ALL;
    struct mm product[] = {
        {.c = s->prob, .ldc = TILE, .a = s->query, .a_row = width, .a_term = 1, .b = s->key_t, .ldb = TILE,
         .m = queries, .n = padded, .k = size, .part = cols},
        {.c = s->dscore, .ldc = TILE, .a = s->dout, .a_row = width, .a_term = 1, .b = s->value_t, .ldb = TILE,
         .m = queries, .n = padded, .k = size, .part = cols},
        {.c = to->dvalue, .ldc = width, .a = s->prob, .a_row = 1, .a_term = TILE, .b = s->dout, .ldb = width,
         .m = keys, .n = width, .k = queries, .add = to->add_key, .part = below},
        {.c = to->dkey, .ldc = width, .a = s->dscore, .a_row = 1, .a_term = TILE, .b = s->query, .ldb = width,
         .m = keys, .n = width, .k = queries, .add = to->add_key, .part = below},
        {.c = to->dquery, .ldc = width, .a = s->dscore, .a_row = TILE, .a_term = 1, .b = s->key, .ldb = width,
         .m = queries, .n = width, .k = keys, .add = to->add_query, .part = diagonal ? MM_TERMS_UP_TO_ROW : MM_ALL},
    };
    mm(&product[0]);
    mm(&product[1]);
    softmax_bwd(job, s, queries, keys, diagonal);
    for (int i = 2; i < 5; i++)
        mm(&product[i]);
}

/* The tile of keys at `at` with all tiles of queries that see it. */
static AH_TARGET void queries_bwd(const struct ah_attention *job, struct attention_pair *s, int64_t batch, int head,
                                  int64_t at, int keys, struct attention_sums to)
{
    int64_t row = batch * job->seq, lse = (batch * job->heads + head) * job->seq;
    int size = job->head_size;
    bool add_key = to.add_key;
    float *dquery = to.dquery;
    for (int64_t from = at; from < job->seq; from += TILE) {
        int queries = job->seq - from < TILE ? (int)(job->seq - from) : TILE;
        bool diagonal = from == at;
        element *dq = (element *)job->dq + (row + from) * job->q_stride + head * size;
        to.dquery = ROUNDED ? dquery + from * round16(size) : dquery;
        to.add_key = add_key || !diagonal;
        queries_load(job, s, row + from, lse + from, head, queries);
        pair(job, s, &to, queries, keys, diagonal);
        if (!ROUNDED || diagonal)
            rows_put(dq, job->q_stride, to.dquery, queries, size, job->add_q || (!ROUNDED && at > 0));
    }
}

/* Gradients of queries are sums over tiles of keys, and those of keys and values sums over the heads that share them.
 * They are made in the gradients themselves, or in `sums` where a store there would round each time. */
static AH_TARGET void attention_bwd(const struct ah_attention *job, int64_t batch, int head, float *scratch,
                                    float *sums)
{
    struct attention_pair *s = (struct attention_pair *)(void *)scratch;
    int size = job->head_size, width = round16(size);
    int64_t row = batch * job->seq, stride = job->kv_stride;
    bool later = head % job->group > 0, apart = ROUNDED && job->group > 1, last = (head + 1) % job->group == 0;
    for (int64_t at = 0; at < job->seq; at += TILE) {
        int keys = job->seq - at < TILE ? (int)(job->seq - at) : TILE;
        int64_t shared = (row + at) * stride + head / job->group * size;
        const element *key = (const element *)job->k + shared, *value = (const element *)job->v + shared;
        struct attention_sums to = {.dquery = ROUNDED ? sums : s->dquery, .add_query = ROUNDED && at > 0,
                                    .dkey = apart ? sums + (job->seq + at) * width : s->dkey,
                                    .dvalue = apart ? sums + (2 * job->seq + at) * width : s->dvalue,
                                    .add_key = apart && later};
        pack(s->key, key, stride, keys, size);
        pack_transposed(s->key_t, key, stride, keys, size, 1.0F);
        pack_transposed(s->value_t, value, stride, keys, size, 1.0F);
        queries_bwd(job, s, batch, head, at, keys, to);
        if (apart && !last)
            continue;
        rows_put((element *)job->dk + shared, stride, to.dkey, keys, size, job->add_k || (!apart && later));
        rows_put((element *)job->dv + shared, stride, to.dvalue, keys, size, job->add_v || (!apart && later));
    }
}
