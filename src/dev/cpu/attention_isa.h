/* Causal attention of one instruction set by tiles of 64 queries and 64 keys; part of kernels_isa.h.
 *
 * Tiles are copied out of the strided tensors, so that they fill the caches without conflicts; several tiles of the
 * other side are kept beside one that is loaded, so that it is copied once for all of them. The small products are
 * ours: at this size a library call reaches less of the peak. A is read by broadcast, so that no operand needs
 * transposing but the one that meets the other's head dimension. Scores are in powers of two: the factor log2(e) costs
 * nothing beside the scale. */

enum { TILE = AH_ATTENTION_TILE, HEAD = AH_ATTENTION_MAX_HEAD, GROUP = AH_ATTENTION_GROUP };
/* Vectors of a block of sums at most. */
#if AH_SIMD == 512
enum { MM_VECTORS = 4 };
#else
enum { MM_VECTORS = 1 };
#endif

static const float log2_e = 1.44269504F;

/* 2^x for x up to 127, to about 1 ulp; 2^-125 below. NaN stays NaN. */
AH_INLINE v16 v_exp2(v16 x)
{
    const v16 shift = v_set(12582912.0F);
    v16 inside = v_max(v_set(-125.0F), x);
    v16 shifted = v_add(inside, shift); /* the integer sits in the low bits */
    v16 n = v_sub(shifted, shift);
    v16 r = v_sub(inside, n);
    v16 p = v_set(0.000153458124F);
    p = v_fma(p, r, v_set(0.00133999309F));
    p = v_fma(p, r, v_set(0.00961848907F));
    p = v_fma(p, r, v_set(0.0555032864F));
    p = v_fma(p, r, v_set(0.240226462F));
    p = v_fma(p, r, v_set(0.693147182F));
    p = v_fma(p, r, v_set(1.0F));
#if AH_SIMD == 512
    return _mm512_scalef_ps(p, n); /* the same product: it is normal */
#else
    return v_mul(p, v_exponent(shifted));
#endif
}

/* ---- products of tiles ------------------------------------------------------------------------------------------- */

/* Which part of a product on the diagonal is needed; bounds are rounded to 16, so that all instruction sets agree. */
enum mm_part { MM_ALL, MM_COLS_UP_TO_ROW, MM_COLS_FROM_ROW, MM_TERMS_UP_TO_ROW, MM_TERMS_FROM_ROW };

/* C[m,n] = or += A B, C first multiplied by factor[row] where there is one. B [k,n] and C are row-major, n is a
 * multiple of 16 and of no more than ldb and ldc. A[i,t] is a[i * lda + t], lda being TILE, 2 TILE or HEAD, or
 * a[t * TILE + i] where lda is 0. Rows of A and C up to a multiple of 16 behind m exist, with any content. */
struct mm {
    float *c;
    const float *a, *b, *factor;
    int64_t ldc, lda, ldb;
    int m, n, k;
    bool add;
    enum mm_part part;
};

/* A block of C at (row, col), and its terms. */
struct mm_at {
    int row, col, from, to;
};

AH_INLINE void mm_begin(v16 sum[8][MM_VECTORS], const struct mm *g, const float *c, int row, const int rows,
                        const int vectors)
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
            sum[i][j] = g->add ? v_load(c + i * g->ldc + j * LANES) : v_set(0.0F);
            if (g->factor)
                sum[i][j] = v_mul(sum[i][j], v_set(g->factor[row + i]));
        }
}

/* The strides of A are constants of the caller, so that its addresses need no arithmetic. */
AH_INLINE void mm_block(const struct mm *g, const struct mm_at *at, int row, const int rows, const int vectors,
                        const int64_t a_row, const int64_t a_term)
{
    row += at->row;
    float *c = g->c + row * g->ldc + at->col;
    const float *a = g->a + row * a_row + at->from * a_term, *b = g->b + at->from * g->ldb + at->col;
    int64_t ldb = g->ldb;
    v16 sum[8][MM_VECTORS];
    mm_begin(sum, g, c, row, rows, vectors);
    for (int t = at->from; t < at->to; t++, a += a_term, b += ldb) {
        v16 right[MM_VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            right[j] = v_load(b + j * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            v16 left = v_set(a[i * a_row]);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                sum[i][j] = v_fma(left, right[j], sum[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            v_store(c + i * g->ldc + j * LANES, sum[i][j]);
}

/* 16 rows, as many at a time as registers hold: the fewer loads there are beside each multiply-add, the closer it comes
 * to the peak. */
AH_INLINE void mm_rows(const struct mm *g, const struct mm_at *at, const int vectors, const int64_t a_row,
                       const int64_t a_term)
{
    if (AH_SIMD == 1) {
        for (int row = 0; row < LANES; row++)
            mm_block(g, at, row, 1, vectors, a_row, a_term);
    } else if (vectors == MM_VECTORS) {
        mm_block(g, at, 0, 6, vectors, a_row, a_term);
        mm_block(g, at, 6, 6, vectors, a_row, a_term);
        mm_block(g, at, 12, 4, vectors, a_row, a_term);
    } else {
        mm_block(g, at, 0, 8, vectors, a_row, a_term);
        mm_block(g, at, 8, 8, vectors, a_row, a_term);
    }
}

/* Of `left` vectors, what the next block takes: rather two blocks of three than four and two. */
static inline int mm_width(int left)
{
    if (MM_VECTORS == 1)
        return 1;
    return left <= 4 ? left : left <= 6 ? 3 : 4;
}

AH_INLINE void mm_all(const struct mm *g, const int64_t a_row, const int64_t a_term)
{
    for (int row = 0; row < g->m; row += LANES) {
        struct mm_at at = {.row = row, .to = g->k};
        int end = g->part == MM_COLS_UP_TO_ROW && row + LANES < g->n ? row + LANES : g->n, vectors;
        if (g->part == MM_TERMS_FROM_ROW)
            at.from = row;
        if (g->part == MM_TERMS_UP_TO_ROW && row + LANES < g->k)
            at.to = row + LANES;
        for (at.col = g->part == MM_COLS_FROM_ROW ? row : 0; at.col < end; at.col += vectors * LANES) {
            vectors = mm_width((end - at.col) / LANES);
            if (vectors == 1)
                mm_rows(g, &at, 1, a_row, a_term);
#if AH_SIMD == 512
            else if (vectors == 2)
                mm_rows(g, &at, 2, a_row, a_term);
            else if (vectors == 3)
                mm_rows(g, &at, 3, a_row, a_term);
            else
                mm_rows(g, &at, 4, a_row, a_term);
#endif
        }
    }
}

static AH_TARGET void mm(const struct mm *g)
{
    if (AH_SIMD == 1) /* slow anyway, and slow to compile */
        mm_all(g, g->lda ? g->lda : 1, g->lda ? 1 : TILE);
    else if (g->lda == 0)
        mm_all(g, 1, TILE);
    else if (g->lda == TILE)
        mm_all(g, TILE, 1);
    else if (g->lda == 2 * TILE)
        mm_all(g, 2 * TILE, 1);
    else
        mm_all(g, HEAD, 1);
}

/* The stride of packed rows of the head's channels. */
static inline int64_t packed_stride(int head)
{
    return head <= TILE ? TILE : head <= 2 * TILE ? 2 * TILE : HEAD;
}

static inline int round16(int n)
{
    return (n + LANES - 1) / LANES * LANES;
}

static inline int tile_length(int64_t seq, int64_t start)
{
    return seq - start < TILE ? (int)(seq - start) : TILE;
}

/* to[rows, round16(cols)] = from[rows, cols] with zeros behind; rows of `to` are packed_stride(cols) apart. */
static AH_TARGET void pack(float *to, const element *from, int64_t stride, int rows, int cols)
{
    int64_t to_stride = packed_stride(cols);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c += LANES)
            v_store(to + r * to_stride + c, e_load_most(from + r * stride + c, cols - c));
}

/* to[cols, TILE] = transpose of packed from[rows, cols], times scale, with zeros up to round16(rows). */
static AH_TARGET void transpose(float *to, const float *from, int rows, int cols, float scale)
{
    int64_t stride = packed_stride(cols);
    for (int r = 0; r < rows; r += LANES)
        for (int c = 0; c < cols; c += LANES) {
            if (r + LANES <= rows) {
                v_transpose(to + c * TILE + r, TILE, from + r * stride + c, stride, v_set(scale));
                continue;
            }
            for (int i = r; i < r + LANES; i++)
                for (int k = c; k < c + LANES && k < cols; k++)
                    to[k * TILE + i] = i < rows ? from[i * stride + k] * scale : 0.0F;
        }
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* A tile of queries and what is known of it so far. Scores are kept transposed, queries along the lanes, so that the
 * softmax needs no sums over lanes. */
struct attention_query {
    float query[HEAD * TILE], out[TILE * HEAD], most[TILE], total[TILE];
};

/* Scratch of a group of query tiles, under which the tiles of keys pass. */
struct attention_group {
    struct attention_query tile[GROUP];
    float key[TILE * HEAD], value[TILE * HEAD], score[TILE * TILE], shrink[TILE];
};
_Static_assert(sizeof(struct attention_group) <= AH_POOL_SCRATCH * sizeof(float), "scratch of a worker");

/* The largest of `most` and of scores [keys] of 16 queries; several chains, as one would wait for itself. */
AH_INLINE v16 score_most(const float *score, int keys, v16 most)
{
    v16 other[4] = {most, most, most, most};
    int key = 0;
    for (; key + 4 <= keys; key += 4)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            other[i] = v_max(other[i], v_load(score + (key + i) * TILE));
    for (; key < keys; key++)
        other[0] = v_max(other[0], v_load(score + key * TILE));
    return v_max(v_max(other[0], other[1]), v_max(other[2], other[3]));
}

/* On the diagonal: scores of keys behind the query are -inf, and become exactly 0 below. */
static AH_TARGET void score_mask(float *score, int keys, int query)
{
    v16 none = v_set(-INFINITY);
    for (int key = query + 1; key < keys; key++)
        v_store(score + key * TILE, v_first(key - query, none, v_load(score + key * TILE)));
}

/* score[key] of 16 queries becomes 2^(score - most); 0 for queries before the key. */
AH_INLINE v16 softmax_term(float *score, int key, int query, v16 most, bool diagonal)
{
    v16 e = v_exp2(v_sub(v_load(score + key * TILE), most));
    if (diagonal && key > query)
        e = v_first(key - query, v_set(0.0F), e);
    v_store(score + key * TILE, e);
    return e;
}

/* One step of the online softmax for 16 queries: score[key][query] becomes 2^(score - most), and what was summed before
 * is to be shrunk. */
static AH_TARGET void softmax_step(struct attention_group *s, struct attention_query *tile, int keys, int query,
                                   bool diagonal)
{
    float *score = s->score + query;
    if (diagonal) {
        keys = keys < query + LANES ? keys : query + LANES;
        score_mask(score, keys, query);
    }
    v16 old = v_load(tile->most + query), most = score_most(score, keys, old);
    v16 sum[2] = {v_set(0.0F), v_set(0.0F)};
    int key = 0;
    for (; key + 2 <= keys; key += 2)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++)
            sum[i] = v_add(sum[i], softmax_term(score, key + i, query, most, diagonal));
    if (key < keys)
        sum[0] = v_add(sum[0], softmax_term(score, key, query, most, diagonal));
    v16 shrink = v_exp2(v_sub(old, most));
    v_store(tile->most + query, most);
    v_store(s->shrink + query, shrink);
    v_store(tile->total + query, v_fma(v_load(tile->total + query), shrink, v_add(sum[0], sum[1])));
}

static AH_TARGET void attend(struct attention_group *s, struct attention_query *tile, int head, int queries, int keys,
                             bool first, bool diagonal)
{
    int64_t stride = packed_stride(head);
    struct mm scores = {.c = s->score,
                        .ldc = TILE,
                        .a = s->key,
                        .lda = stride,
                        .b = tile->query,
                        .ldb = TILE,
                        .m = keys,
                        .n = round16(queries),
                        .k = head,
                        .part = diagonal ? MM_COLS_FROM_ROW : MM_ALL};
    mm(&scores);
    for (int q = 0; q < queries; q += LANES)
        softmax_step(s, tile, keys, q, diagonal);
    struct mm values = {.c = tile->out, .ldc = stride, .a = s->score, .b = s->value, .ldb = stride, .m = queries,
                        .n = round16(head), .k = keys, .add = !first, .factor = first ? NULL : s->shrink,
                        .part = diagonal ? MM_TERMS_UP_TO_ROW : MM_ALL};
    mm(&values);
}

static AH_TARGET void query_begin(const struct ah_attention *job, struct attention_group *s,
                                  struct attention_query *tile, const element *query, int queries)
{
    pack(s->value, query, job->q_stride, queries, job->head_size);
    transpose(tile->query, s->value, queries, job->head_size, job->scale * log2_e);
    for (int q = 0; q < TILE; q++) {
        tile->most[q] = -INFINITY;
        tile->total[q] = 0.0F;
    }
}

static AH_TARGET void query_end(const struct ah_attention *job, const struct attention_query *tile, element *y,
                                float *lse, int queries)
{
    int size = job->head_size;
    int64_t stride = packed_stride(size);
    for (int q = 0; q < queries; q++, y += job->channels) {
        v16 factor = v_set(1.0F / tile->total[q]);
        for (int c = 0; c < size; c += LANES)
            e_store_most(y + c, v_mul(v_load(tile->out + q * stride + c), factor), size - c);
        lse[q] = (float)((double)tile->most[q] * 0.69314718055994530942 + log((double)tile->total[q]));
    }
}

static AH_TARGET void attention(const struct ah_attention *job, int64_t batch, int head, int64_t group, float *scratch)
{
    struct attention_group *s = (struct attention_group *)(void *)scratch;
    int64_t start = group * GROUP * TILE, row = batch * job->seq;
    int64_t end = job->seq - start < GROUP * TILE ? job->seq : start + GROUP * TILE;
    int size = job->head_size;
    int64_t shared = row * job->kv_stride + head / job->group * size;
    const element *query = (const element *)job->q + row * job->q_stride + head * size;
    const element *key = (const element *)job->k + shared, *value = (const element *)job->v + shared;
    element *y = (element *)job->y + row * job->channels + head * size;
    float *lse = job->lse + (batch * job->heads + head) * job->seq;
    for (int64_t at = start; at < end; at += TILE)
        query_begin(job, s, &s->tile[(at - start) / TILE], query + at * job->q_stride, tile_length(end, at));
    for (int64_t from = 0; from < end; from += TILE) {
        int keys = tile_length(job->seq, from);
        pack(s->key, key + from * job->kv_stride, job->kv_stride, keys, size);
        pack(s->value, value + from * job->kv_stride, job->kv_stride, keys, size);
        for (int64_t at = from > start ? from : start; at < end; at += TILE)
            attend(s, &s->tile[(at - start) / TILE], size, tile_length(end, at), keys, from == 0, at == from);
    }
    for (int64_t at = start; at < end; at += TILE)
        query_end(job, &s->tile[(at - start) / TILE], y + at * job->channels, lse + at, tile_length(end, at));
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* A tile of keys and values and the sums of their gradients. */
struct attention_key {
    float *key_t, *value_t, *key, *dkey, *dvalue;
};

/* Scratch of one (batch, head): some tiles of keys, and under them one tile of queries after the other. `room` is cut
 * by the stride of packed rows, so that small heads keep more tiles of keys. */
enum { KEY_TILES = 16, ROOM = AH_POOL_SCRATCH - 2 * TILE * TILE - 3 * TILE - 256 };
struct attention_pair {
    struct attention_key tile[KEY_TILES];
    float *query, *dout, *dquery;
    _Alignas(64) float prob[TILE * TILE], dscore[TILE * TILE], lse[TILE], dot[TILE], room[ROOM];
};
_Static_assert(sizeof(struct attention_pair) <= AH_POOL_SCRATCH * sizeof(float), "scratch of a worker");
_Static_assert(ROOM >= 8 * TILE * HEAD, "scratch of a worker");

/* Cuts the room; the number of key tiles in it. */
static int pair_cut(struct attention_pair *s, const struct ah_attention *job)
{
    int64_t size = TILE * packed_stride(job->head_size), count = (ROOM / size - 3) / 5;
    count = count < KEY_TILES ? count : KEY_TILES;
    s->query = s->room;
    s->dout = s->query + size;
    s->dquery = s->dout + size;
    float *at = s->dquery + size;
    for (int i = 0; i < count; i++, at += 5 * size)
        s->tile[i] = (struct attention_key){at, at + size, at + 2 * size, at + 3 * size, at + 4 * size};
    return (int)count;
}

/* One head of one batch: its rows of queries and their gradients, of its keys and values, and its sums. */
struct attention_place {
    const element *q, *k, *v, *dy, *y;
    element *dq, *dk, *dv;
    const float *lse;
    float *dquery_sum, *dkey_sum, *dvalue_sum; /* null where sums are made in the gradients themselves */
    bool later, last;                          /* of the heads that share keys and values: not the first, the last */
};

static struct attention_place attention_at(const struct ah_attention *job, int64_t batch, int head, float *sums)
{
    int64_t row = batch * job->seq, size = job->head_size;
    int64_t query = row * job->q_stride + head * size, out = row * job->channels + head * size;
    int64_t shared = row * job->kv_stride + head / job->group * size, sum = ah__attention_sum(job);
    bool apart = ROUNDED && job->group > 1;
    return (struct attention_place){
        .q = (const element *)job->q + query, .k = (const element *)job->k + shared,
        .v = (const element *)job->v + shared, .dy = (const element *)job->dy + out,
        .y = (const element *)job->y + out, .dq = (element *)job->dq + query, .dk = (element *)job->dk + shared,
        .dv = (element *)job->dv + shared, .lse = job->lse + (batch * job->heads + head) * job->seq,
        .dquery_sum = ROUNDED ? sums : NULL, .dkey_sum = apart ? sums + sum : NULL,
        .dvalue_sum = apart ? sums + 2 * sum : NULL, .later = head % job->group > 0,
        .last = (head + 1) % job->group == 0,
    };
}

/* Loads the tile of queries at `at`; dot = sum of dy * y, which is what the softmax's gradient subtracts. */
static AH_TARGET void queries_load(const struct ah_attention *job, struct attention_pair *s,
                                   const struct attention_place *h, int64_t at, int queries)
{
    int size = job->head_size;
    const element *out = h->y + at * job->channels;
    pack(s->query, h->q + at * job->q_stride, job->q_stride, queries, size);
    pack(s->dout, h->dy + at * job->channels, job->channels, queries, size);
    for (int q = 0; q < queries; q++, out += job->channels) {
        const float *dy = s->dout + q * packed_stride(size);
        v16 sum = v_set(0.0F);
        for (int c = 0; c < size; c += LANES)
            sum = v_fma(v_load(dy + c), e_load_most(out + c, size - c), sum);
        s->dot[q] = v_sum(sum);
        s->lse[q] = h->lse[at + q];
    }
}

/* Loads the keys at `at` and their values. */
static AH_TARGET void keys_load(const struct ah_attention *job, const struct attention_place *h,
                                struct attention_key *tile, int64_t at, int keys)
{
    int size = job->head_size;
    pack(tile->key, h->v + at * job->kv_stride, job->kv_stride, keys, size);
    transpose(tile->value_t, tile->key, keys, size, 1.0F);
    pack(tile->key, h->k + at * job->kv_stride, job->kv_stride, keys, size);
    transpose(tile->key_t, tile->key, keys, size, 1.0F);
    if (h->dkey_sum) {
        tile->dkey = h->dkey_sum + at * round16(size);
        tile->dvalue = h->dvalue_sum + at * round16(size);
    }
}

/* prob = e^(scale * score - lse), dscore = prob * (dprob - dot), its factor `scale` being left to its sums. On the
 * diagonal both are zero for keys behind the query, up to a multiple of 16. */
static AH_TARGET void softmax_bwd(const struct ah_attention *job, struct attention_pair *s, int queries, int keys,
                                  bool diagonal)
{
    v16 scale = v_set(job->scale * log2_e), zero = v_set(0.0F);
    for (int q = 0; q < queries; q++) {
        v16 minus_lse = v_set(-s->lse[q] * log2_e), dot = v_set(s->dot[q]);
        int end = diagonal && q < keys ? q + 1 : keys;
        for (int k = 0; k < end; k += LANES) {
            float *prob = s->prob + q * TILE + k, *dscore = s->dscore + q * TILE + k;
            v16 p = v_exp2(v_fma(v_load(prob), scale, minus_lse));
            v16 d = v_mul(p, v_sub(v_load(dscore), dot));
            if (diagonal && k + LANES > end) {
                p = v_first(end - k, p, zero);
                d = v_first(end - k, d, zero);
            }
            v_store(prob, p);
            v_store(dscore, d);
        }
    }
}

/* The rows of `to` (+)= from * factor. */
static AH_TARGET void rows_put(element *to, int64_t stride, const float *from, int rows, int cols, float factor,
                               bool accumulate)
{
    int width = round16(cols);
    for (int r = 0; r < rows; r++, to += stride, from += width)
        for (int c = 0; c < cols; c += LANES) {
            v16 before = accumulate ? e_load_most(to + c, cols - c) : v_set(0.0F);
            e_store_most(to + c, v_fma(v_load(from + c), v_set(factor), before), cols - c);
        }
}

/* A tile of queries and one of keys. */
struct attention_meeting {
    const struct attention_key *key;
    float *dquery;
    int queries, keys;
    bool diagonal;
    bool add_keys, add_queries; /* something was summed for these keys, for these queries, before */
};

static AH_TARGET void pair_scores(const struct ah_attention *job, struct attention_pair *s,
                                  const struct attention_meeting *p)
{
    int64_t stride = packed_stride(job->head_size);
    struct mm product = {.c = s->prob, .ldc = TILE, .a = s->query, .lda = stride, .b = p->key->key_t, .ldb = TILE,
                         .m = p->queries, .n = round16(p->keys), .k = job->head_size,
                         .part = p->diagonal ? MM_COLS_UP_TO_ROW : MM_ALL};
    mm(&product);
    product.c = s->dscore;
    product.a = s->dout;
    product.b = p->key->value_t;
    mm(&product);
    softmax_bwd(job, s, p->queries, p->keys, p->diagonal);
}

/* The five products of one pair of tiles. */
static AH_TARGET void pair(const struct ah_attention *job, struct attention_pair *s, const struct attention_meeting *p)
{
    int width = round16(job->head_size);
    int64_t stride = packed_stride(job->head_size);
    struct mm keys = {.c = p->key->dvalue, .ldc = width, .a = s->prob, .b = s->dout, .ldb = stride, .m = p->keys,
                      .n = width, .k = p->queries, .add = p->add_keys,
                      .part = p->diagonal ? MM_TERMS_FROM_ROW : MM_ALL};
    struct mm queries = {.c = p->dquery, .ldc = width, .a = s->dscore, .lda = TILE, .b = p->key->key, .ldb = stride,
                         .m = p->queries, .n = width, .k = p->keys, .add = p->add_queries,
                         .part = p->diagonal ? MM_TERMS_UP_TO_ROW : MM_ALL};
    pair_scores(job, s, p);
    mm(&keys);
    keys.c = p->key->dkey;
    keys.a = s->dscore;
    keys.b = s->query;
    mm(&keys);
    mm(&queries);
}

/* The tile of queries at `at` under key tiles [from, to). */
static AH_TARGET void query_bwd(const struct ah_attention *job, struct attention_pair *s,
                                const struct attention_place *h, int64_t at, int64_t from, int64_t to)
{
    int queries = tile_length(job->seq, at), size = job->head_size;
    bool sums = h->dquery_sum;
    struct attention_meeting p = {.dquery = sums ? h->dquery_sum + at * round16(size) : s->dquery, .queries = queries};
    queries_load(job, s, h, at, queries);
    for (int64_t k = from; k < to && k <= at; k += TILE) {
        p.key = &s->tile[(k - from) / TILE];
        p.keys = tile_length(to, k);
        p.diagonal = k == at;
        p.add_queries = k > (sums ? 0 : from);
        p.add_keys = !p.diagonal || (h->dkey_sum && h->later);
        pair(job, s, &p);
    }
    if (!sums || at < to)
        rows_put(h->dq + at * job->q_stride, job->q_stride, p.dquery, queries, size, job->scale,
                 job->add_q || (!sums && from > 0));
}

/* Key tiles [from, to) of a head, which fill the room. */
static AH_TARGET void keys_bwd(const struct ah_attention *job, struct attention_pair *s,
                               const struct attention_place *h, int64_t from, int64_t to)
{
    int64_t stride = job->kv_stride;
    bool before = !h->dkey_sum && h->later;
    for (int64_t at = from; at < to; at += TILE)
        keys_load(job, h, &s->tile[(at - from) / TILE], at, tile_length(to, at));
    for (int64_t at = from; at < job->seq; at += TILE)
        query_bwd(job, s, h, at, from, to);
    for (int64_t at = from; at < to && (!h->dkey_sum || h->last); at += TILE) {
        const struct attention_key *tile = &s->tile[(at - from) / TILE];
        int keys = tile_length(to, at), size = job->head_size;
        rows_put(h->dk + at * stride, stride, tile->dkey, keys, size, job->scale, job->add_k || before);
        rows_put(h->dv + at * stride, stride, tile->dvalue, keys, size, 1.0F, job->add_v || before);
    }
}

/* Gradients of queries are sums over tiles of keys, and those of keys and values sums over the heads that share them.
 * They are made in the gradients themselves, or in `sums` where a store there would round each time. */
static AH_TARGET void attention_bwd(const struct ah_attention *job, int64_t batch, int head, float *scratch,
                                    float *sums)
{
    struct attention_pair *s = (struct attention_pair *)(void *)scratch;
    struct attention_place place = attention_at(job, batch, head, sums);
    int64_t step = pair_cut(s, job) * TILE;
    for (int64_t from = 0; from < job->seq; from += step)
        keys_bwd(job, s, &place, from, job->seq - from < step ? job->seq : from + step);
}
