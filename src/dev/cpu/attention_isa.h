/* Causal attention for one instruction set, by tiles of 64 queries and 64 keys; part of kernels_isa.h.
 *
 * Tiles are copied from the strided tensors, so that they fill the caches without conflicts. Several tiles of one side
 * stay while a tile of the other is loaded, so that it is copied once for all of them. The small products are our own:
 * at this size a library call reaches less of the peak. A is read by broadcast, so that only the operand that meets the
 * other's head dimension needs transposing. Scores are in powers of two: the factor log2(e) is part of the scale. */

#include <float.h>

enum { TILE = AH_ATTENTION_TILE, HEAD = AH_ATTENTION_MAX_HEAD, GROUP = AH_ATTENTION_GROUP };
/* Most vectors in a row of a block of sums. */
#if AH_SIMD == 512
enum { MM_VECTORS = 4 };
#else
enum { MM_VECTORS = 1 };
#endif

static const float log2_e = 1.44269504F;

/* Returns 2^x for x up to 127, to about 1 ulp; 2^-125 below -125. NaN stays NaN. */
AH_INLINE v16 v_exp2(v16 x)
{
    const v16 shift = v_set(12582912.0F);
    v16 inside = v_max(v_set(-125.0F), x);
    v16 shifted = v_add(inside, shift); /* the integer is in the low bits */
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
    return _mm512_scalef_ps(p, n); /* the same product, since it is a normal number */
#else
    return v_mul(p, v_exponent(shifted));
#endif
}

/* ---- products of tiles ------------------------------------------------------------------------------------------- */

/* The part of a product on the diagonal that is needed; bounds are rounded to 16, so that all instruction sets
 * agree. */
enum mm_part { MM_ALL, MM_COLS_UP_TO_ROW, MM_COLS_FROM_ROW, MM_TERMS_UP_TO_ROW, MM_TERMS_FROM_ROW };

/* C[m,n] = A B, or C += A B; if `factor` is set, C is first multiplied by factor[row]. B [k,n] and C are row-major; n
 * is a multiple of 16, at most ldb and ldc. A[i,t] is a[i * lda + t], where lda is TILE, 2 TILE or HEAD, or a[t * TILE
 * + i] if lda is 0. Rows of A and C exist up to a multiple of 16 after m, with any content. */
struct mm {
    float *c;
    const float *a, *b, *factor;
    int64_t ldc, lda, ldb;
    int m, n, k;
    bool add;
    enum mm_part part;
};

/* A block of C at (row, col), and the range of its terms. */
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

/* Computes a block. The strides of A are constants of the caller, so that its addresses need no arithmetic. */
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

/* Computes 16 rows, as many at a time as registers hold: the fewer loads for each multiply-add, the closer to the
 * peak. */
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

/* Returns how many of `left` vectors the next block takes. Two blocks of three are faster than four and two. */
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
    if (AH_SIMD == 1) /* slow in any case, and slow to compile */
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

/* Returns the stride of packed rows of a head's channels. */
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

/* Computes to[rows, round16(cols)] = from[rows, cols] with zeros after it; rows of `to` are packed_stride(cols)
 * apart. */
static AH_TARGET void pack(float *to, const element *from, int64_t stride, int rows, int cols)
{
    int64_t to_stride = packed_stride(cols);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c += LANES)
            v_store(to + r * to_stride + c, e_load_most(from + r * stride + c, cols - c));
}

/* Computes to[cols, TILE] = transpose of packed from[rows, cols], times scale, with zeros up to round16(rows). */
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

/* A tile of queries and its sums so far. Scores are kept transposed, with queries along the lanes, so that the softmax
 * needs no sums over lanes. */
struct attention_query {
    float query[HEAD * TILE], out[TILE * HEAD], most[TILE], total[TILE];
};

/* Scratch of a group of query tiles, through which the tiles of keys pass. */
struct attention_group {
    struct attention_query tile[GROUP];
    float key[TILE * HEAD], value[TILE * HEAD], score[TILE * TILE], shrink[TILE];
};
_Static_assert(sizeof(struct attention_group) <= AH_POOL_SCRATCH * sizeof(float), "scratch of a worker");

/* Returns the largest of `most` and of the scores [keys] of 16 queries. Several chains run in parallel, since one would
 * wait for its own results. */
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

/* The keys of a tile that a tile of queries sees: on the diagonal, query q sees keys up to q; in general, keys from
 * from[q] on, which never falls from one query to the next. */
struct attention_sight {
    bool diagonal;
    int from[TILE];
};

/* Returns the first key that a query sees. `positions`: those of its batch. */
static inline int64_t first_seen(const struct ah_attention *job, const int32_t *positions, int64_t query)
{
    int64_t first = query < job->window ? 0 : query - job->window + 1, document = 0;
    if (positions)
        document = positions[query] < query ? query - positions[query] : 0;
    return first > document ? first : document;
}

static inline const int32_t *positions_of(const struct ah_attention *job, int64_t batch)
{
    return job->positions ? job->positions + batch * job->seq : NULL;
}

/* Fills the sight of the tiles that begin with these rows. */
static inline void sight_fill(struct attention_sight *sight, const struct ah_attention *job, const int32_t *positions,
                              int64_t query, int64_t key)
{
    int queries = tile_length(job->seq, query);
    sight->diagonal = query == key;
    for (int q = 0; q < round16(queries); q++) {
        int64_t from = first_seen(job, positions, query + (q < queries ? q : queries - 1)) - key;
        sight->from[q] = from > 0 ? (int)(from < TILE ? from : TILE) : 0;
    }
}

/* Returns the start of the first tile of keys of which a tile of queries sees any. */
static inline int64_t first_key(const struct ah_attention *job, const int32_t *positions, int64_t query)
{
    return first_seen(job, positions, query) / TILE * TILE;
}

/* Returns how many of the 16 queries from `query` on see the key; they are the first ones. */
static inline int seeing(const struct attention_sight *sight, int query, int key)
{
    int count = 0;
    while (count < LANES && sight->from[query + count] <= key)
        count++;
    return count;
}

/* Sets the scores of masked keys to -inf; they become exactly 0 below. */
static AH_TARGET void score_mask(float *score, int keys, int query, const struct attention_sight *sight)
{
    v16 none = v_set(-INFINITY);
    for (int key = query + 1; sight->diagonal && key < keys; key++)
        v_store(score + key * TILE, v_first(key - query, none, v_load(score + key * TILE)));
    for (int key = 0; key < keys && key < sight->from[query + LANES - 1]; key++)
        v_store(score + key * TILE, v_first(seeing(sight, query, key), v_load(score + key * TILE), none));
}

/* Replaces score[key] of 16 queries by 2^(score - most), or 0 if the key is masked, and returns it. */
AH_INLINE v16 softmax_term(float *score, int key, int query, v16 most, const struct attention_sight *sight)
{
    v16 e = v_exp2(v_sub(v_load(score + key * TILE), most));
    if (sight->diagonal && key > query)
        e = v_first(key - query, v_set(0.0F), e);
    if (key < sight->from[query + LANES - 1])
        e = v_first(seeing(sight, query, key), e, v_set(0.0F));
    v_store(score + key * TILE, e);
    return e;
}

static AH_TARGET void score_cap(float *score, int keys, float cap)
{
    for (int key = 0; key < keys; key++)
        v_store(score + key * TILE, v_soft_cap(v_load(score + key * TILE), cap));
}

/* Does one step of the online softmax for 16 queries: score[key][query] becomes 2^(score - most), and s->shrink the
 * factor for earlier sums. */
static AH_TARGET void softmax_step(struct attention_group *s, struct attention_query *tile, int keys, int query,
                                   const struct attention_sight *sight, float cap)
{
    float *score = s->score + query;
    if (sight->diagonal)
        keys = keys < query + LANES ? keys : query + LANES;
    if (cap > 0)
        score_cap(score, keys, cap);
    score_mask(score, keys, query, sight);
    v16 old = v_load(tile->most + query), most = score_most(score, keys, old);
    v16 sum[2] = {v_set(0.0F), v_set(0.0F)};
    int key = 0;
    for (; key + 2 <= keys; key += 2)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++)
            sum[i] = v_add(sum[i], softmax_term(score, key + i, query, most, sight));
    if (key < keys)
        sum[0] = v_add(sum[0], softmax_term(score, key, query, most, sight));
    v16 shrink = v_exp2(v_sub(old, most));
    v_store(tile->most + query, most);
    v_store(s->shrink + query, shrink);
    v_store(tile->total + query, v_fma(v_load(tile->total + query), shrink, v_add(sum[0], sum[1])));
}

static AH_TARGET void attend(const struct ah_attention *job, struct attention_group *s, struct attention_query *tile,
                             int queries, int keys, bool first, const struct attention_sight *sight)
{
    int head = job->head_size;
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
                        .part = sight->diagonal ? MM_COLS_FROM_ROW : MM_ALL};
    mm(&scores);
    for (int q = 0; q < queries; q += LANES)
        softmax_step(s, tile, keys, q, sight, job->cap * log2_e);
    struct mm values = {.c = tile->out,
                        .ldc = stride,
                        .a = s->score,
                        .b = s->value,
                        .ldb = stride,
                        .m = queries,
                        .n = round16(head),
                        .k = keys,
                        .add = !first,
                        .factor = first ? NULL : s->shrink,
                        .part = sight->diagonal ? MM_TERMS_UP_TO_ROW : MM_ALL};
    mm(&values);
}

static AH_TARGET void query_begin(const struct ah_attention *job, struct attention_group *s,
                                  struct attention_query *tile, const element *query, int queries)
{
    pack(s->value, query, job->q_stride, queries, job->head_size);
    transpose(tile->query, s->value, queries, job->head_size, job->scale * log2_e);
    for (int q = 0; q < TILE; q++) {
        tile->most[q] = job->most; /* finite, since a query may see nothing of the first tile */
        tile->total[q] = job->total;
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
    int64_t shared = row * job->kv_stride + head / job->group * job->kv_head;
    const element *query = (const element *)job->q + row * job->q_stride + head * job->q_head;
    const element *key = (const element *)job->k + shared, *value = (const element *)job->v + shared;
    element *y = (element *)job->y + row * job->channels + head * size;
    float *lse = job->lse + (batch * job->heads + head) * job->seq;
    const int32_t *positions = positions_of(job, batch);
    for (int64_t at = start; at < end; at += TILE)
        query_begin(job, s, &s->tile[(at - start) / TILE], query + at * job->q_stride, tile_length(end, at));
    for (int64_t from = first_key(job, positions, start); from < end; from += TILE) {
        int keys = tile_length(job->seq, from);
        pack(s->key, key + from * job->kv_stride, job->kv_stride, keys, size);
        pack(s->value, value + from * job->kv_stride, job->kv_stride, keys, size);
        for (int64_t at = from > start ? from : start; at < end && first_key(job, positions, at) <= from; at += TILE) {
            struct attention_sight sight;
            sight_fill(&sight, job, positions, at, from);
            attend(job, s, &s->tile[(at - start) / TILE], tile_length(end, at), keys,
                   from == first_key(job, positions, at), &sight);
        }
    }
    for (int64_t at = start; at < end; at += TILE)
        query_end(job, &s->tile[(at - start) / TILE], y + at * job->channels, lse + at, tile_length(end, at));
}
