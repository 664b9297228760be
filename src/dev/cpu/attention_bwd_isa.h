/* The gradients of attention for one instruction set; part of kernels_isa.h, after attention_isa.h. */

/* A tile of keys and values, and the sums of their gradients. */
struct attention_key {
    float *key_t, *value_t, *key, *dkey, *dvalue;
};

/* Scratch of one (batch, head): several tiles of keys, and one tile of queries at a time. `room` is cut by the stride
 * of packed rows, so that small heads keep more tiles of keys. */
enum { KEY_TILES = 16, ROOM = AH_POOL_SCRATCH - 2 * TILE * TILE - 3 * TILE - 256 };
struct attention_pair {
    struct attention_key tile[KEY_TILES];
    float *query, *dout, *dquery;
    _Alignas(64) float prob[TILE * TILE], dscore[TILE * TILE], lse[TILE], dot[TILE], room[ROOM];
};
_Static_assert(sizeof(struct attention_pair) <= AH_POOL_SCRATCH * sizeof(float), "scratch of a worker");
_Static_assert(ROOM >= 8 * TILE * HEAD, "scratch of a worker");

/* Cuts the room and returns the number of key tiles in it. */
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

/* One head of one batch: its queries, keys, values, their gradients, and its sums. */
struct attention_place {
    const element *q, *k, *v, *dy, *y;
    element *dq, *dk, *dv;
    const float *lse;
    const int32_t *positions;                  /* positions of the batch, or null */
    float *dquery_sum, *dkey_sum, *dvalue_sum; /* null: the gradients themselves hold the sums */
    bool later, last;                          /* this head is not the first, is the last of the heads that share keys
                                                * and values */
};

static struct attention_place attention_at(const struct ah_attention *job, int64_t batch, int head, float *sums)
{
    int64_t row = batch * job->seq, size = job->head_size;
    int64_t query = row * job->q_stride + head * job->q_head, out = row * job->channels + head * size;
    int64_t shared = row * job->kv_stride + head / job->group * job->kv_head, sum = ah__attention_sum(job);
    bool apart = ROUNDED && job->group > 1;
    return (struct attention_place){
        .q = (const element *)job->q + query,
        .k = (const element *)job->k + shared,
        .v = (const element *)job->v + shared,
        .dy = (const element *)job->dy + out,
        .y = (const element *)job->y + out,
        .dq = (element *)job->dq + query,
        .dk = (element *)job->dk + shared,
        .dv = (element *)job->dv + shared,
        .lse = job->lse + (batch * job->heads + head) * job->seq,
        .positions = positions_of(job, batch),
        .dquery_sum = ROUNDED ? sums : NULL,
        .dkey_sum = apart ? sums + sum : NULL,
        .dvalue_sum = apart ? sums + 2 * sum : NULL,
        .later = head % job->group > 0,
        .last = (head + 1) % job->group == 0,
    };
}

/* Loads the tile of queries at `at`. Computes dot = sum of dy * y, which the softmax's gradient subtracts. */
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

/* Returns the capped scores. `score`: times `scale`, in powers of two. *slope: the factor of the scores' gradient. */
AH_INLINE v16 score_capped(v16 score, float cap, v16 *slope)
{
    v16 t = v_tanh(v_mul(score, v_set(1.0F / cap)));
    *slope = v_sub(v_set(1.0F), v_mul(t, t));
    return v_mul(v_set(cap), t);
}

/* Computes prob = e^(scale * score - lse) and dscore = prob * (dprob - dot); the factor `scale` is applied to its sums.
 * Both are zero for masked keys, on the diagonal up to a multiple of 16. A cap is applied in between, with its
 * slope. */
static AH_TARGET void softmax_bwd(const struct ah_attention *job, struct attention_pair *s, int queries, int keys,
                                  const struct attention_sight *sight)
{
    v16 scale = v_set(job->scale * log2_e), zero = v_set(0.0F);
    float cap = job->cap * log2_e;
    for (int q = 0; q < queries; q++) {
        v16 minus_lse = v_set(-s->lse[q] * log2_e), dot = v_set(s->dot[q]);
        int end = sight->diagonal && q < keys ? q + 1 : keys, hidden = sight->from[q];
        for (int k = 0; k < end; k += LANES) {
            float *prob = s->prob + q * TILE + k, *dscore = s->dscore + q * TILE + k;
            v16 p = v_fma(v_load(prob), scale, minus_lse), d = v_sub(v_load(dscore), dot), slope;
            if (cap > 0) {
                p = v_add(score_capped(v_mul(v_load(prob), scale), cap, &slope), minus_lse);
                d = v_mul(d, slope);
            }
            p = v_exp2(p);
            d = v_mul(p, d);
            if (sight->diagonal && k + LANES > end) {
                p = v_first(end - k, p, zero);
                d = v_first(end - k, d, zero);
            }
            if (k < hidden) {
                p = v_first(hidden - k < LANES ? hidden - k : LANES, zero, p);
                d = v_first(hidden - k < LANES ? hidden - k : LANES, zero, d);
            }
            v_store(prob, p);
            v_store(dscore, d);
        }
    }
}

/* Computes to (+)= from * factor, row by row. */
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

/* A tile of queries with a tile of keys. */
struct attention_meeting {
    const struct attention_key *key;
    float *dquery;
    int queries, keys;
    struct attention_sight sight;
    bool add_keys, add_queries; /* the gradients of these keys, of these queries, have sums from other tiles */
};

static AH_TARGET void pair_scores(const struct ah_attention *job, struct attention_pair *s,
                                  const struct attention_meeting *p)
{
    int64_t stride = packed_stride(job->head_size);
    struct mm product = {.c = s->prob,
                         .ldc = TILE,
                         .a = s->query,
                         .lda = stride,
                         .b = p->key->key_t,
                         .ldb = TILE,
                         .m = p->queries,
                         .n = round16(p->keys),
                         .k = job->head_size,
                         .part = p->sight.diagonal ? MM_COLS_UP_TO_ROW : MM_ALL};
    mm(&product);
    product.c = s->dscore;
    product.a = s->dout;
    product.b = p->key->value_t;
    mm(&product);
    softmax_bwd(job, s, p->queries, p->keys, &p->sight);
}

/* Computes the five products of a pair of tiles. */
static AH_TARGET void pair(const struct ah_attention *job, struct attention_pair *s, const struct attention_meeting *p)
{
    int width = round16(job->head_size);
    int64_t stride = packed_stride(job->head_size);
    struct mm keys = {.c = p->key->dvalue,
                      .ldc = width,
                      .a = s->prob,
                      .b = s->dout,
                      .ldb = stride,
                      .m = p->keys,
                      .n = width,
                      .k = p->queries,
                      .add = p->add_keys,
                      .part = p->sight.diagonal ? MM_TERMS_FROM_ROW : MM_ALL};
    struct mm queries = {.c = p->dquery,
                         .ldc = width,
                         .a = s->dscore,
                         .lda = TILE,
                         .b = p->key->key,
                         .ldb = stride,
                         .m = p->queries,
                         .n = width,
                         .k = p->keys,
                         .add = p->add_queries,
                         .part = p->sight.diagonal ? MM_TERMS_UP_TO_ROW : MM_ALL};
    pair_scores(job, s, p);
    mm(&keys);
    keys.c = p->key->dkey;
    keys.a = s->dscore;
    keys.b = s->query;
    mm(&keys);
    mm(&queries);
}

/* Processes the tile of queries at `at` with those of the key tiles [from, to) that it sees, at least one. */
static AH_TARGET void query_bwd(const struct ah_attention *job, struct attention_pair *s,
                                const struct attention_place *h, int64_t at, int64_t from, int64_t to)
{
    int queries = tile_length(job->seq, at), size = job->head_size;
    bool sums = h->dquery_sum;
    int64_t first = first_key(job, h->positions, at), begin = first > from ? first : from;
    struct attention_meeting p = {.dquery = sums ? h->dquery_sum + at * round16(size) : s->dquery, .queries = queries};
    queries_load(job, s, h, at, queries);
    for (int64_t k = begin; k < to && k <= at; k += TILE) {
        p.key = &s->tile[(k - from) / TILE];
        p.keys = tile_length(to, k);
        sight_fill(&p.sight, job, h->positions, at, k);
        p.add_queries = k > (sums ? first : begin);
        p.add_keys = !p.sight.diagonal || (h->dkey_sum && h->later);
        pair(job, s, &p);
    }
    if (!sums || at < to)
        rows_put(h->dq + at * job->q_stride, job->q_stride, p.dquery, queries, size, job->scale,
                 job->add_q || (!sums && from > first));
}

/* Processes the key tiles [from, to) of a head, which fill the room. */
static AH_TARGET void keys_bwd(const struct ah_attention *job, struct attention_pair *s,
                               const struct attention_place *h, int64_t from, int64_t to)
{
    int64_t stride = job->kv_stride;
    bool before = !h->dkey_sum && h->later;
    for (int64_t at = from; at < to; at += TILE)
        keys_load(job, h, &s->tile[(at - from) / TILE], at, tile_length(to, at));
    for (int64_t at = from; at < job->seq && first_key(job, h->positions, at) < to; at += TILE)
        query_bwd(job, s, h, at, from, to);
    for (int64_t at = from; at < to && (!h->dkey_sum || h->last); at += TILE) {
        const struct attention_key *tile = &s->tile[(at - from) / TILE];
        int keys = tile_length(to, at), size = job->head_size;
        rows_put(h->dk + at * stride, stride, tile->dkey, keys, size, job->scale, job->add_k || before);
        rows_put(h->dv + at * stride, stride, tile->dvalue, keys, size, 1.0F, job->add_v || before);
    }
}

/* Computes the gradients of a head. Gradients of queries are sums over tiles of keys; gradients of keys and values are
 * sums over the heads that share them. The gradients themselves hold the sums, or `sums` does if a store would round
 * each time. */
static AH_TARGET void attention_bwd(const struct ah_attention *job, int64_t batch, int head, float *scratch,
                                    float *sums)
{
    struct attention_pair *s = (struct attention_pair *)(void *)scratch;
    struct attention_place place = attention_at(job, batch, head, sums);
    int64_t step = pair_cut(s, job) * TILE;
    for (int64_t from = 0; from < job->seq; from += step)
        keys_bwd(job, s, &place, from, job->seq - from < step ? job->seq : from + step);
}
