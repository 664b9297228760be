/* Operators of the key/value cache: keys and values are written row by row, and one query at a time attends to them. A
 * query's scores are sums of 16 chains with every instruction set, so that all give the same bits. */
#include "dev/cpu/kernels.h"
#include "op/attention.h"
#include "op/bf16.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CHAINS = 16, CHUNK = 256 };

/* Finds the cache row of a token. A row beyond the cache is the caller's error. */
static int position_of(int64_t *position, const struct ah_bound *bound, int input, int64_t token)
{
    const int32_t *positions = bound->in[input];
    int64_t rows = bound->call->as.cache.rows;
    *position = positions ? positions[token] : token % bound->call->as.cache.seq;
    return *position >= 0 && *position < rows
               ? AH_OK
               : ah__fail(AH_EDEVICE, "cpu: cache: token %lld is at %lld, expected 0 to %lld", (long long)token,
                          (long long)*position, (long long)rows - 1);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int cache_write_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *cache = ah__call_in(call, 0), *k = ah__call_in(call, 1);
    bool packed = call->call->in[2].space == AH_SPACE_NONE, by_head = call->call->attr.by_head;
    int64_t keys = cache->dim[2] / 2;
    call->rows = k->dim[0] * k->dim[1];
    call->cols = k->dim[2];
    call->as.cache.seq = k->dim[1];
    call->as.cache.rows = cache->dim[1];
    call->as.cache.keys = keys;
    call->as.cache.heads = packed && by_head ? call->call->attr.heads : 1;
    call->as.cache.size = keys / call->as.cache.heads;
    call->as.cache.k_head = packed && by_head ? 3 * call->as.cache.size : 0;
    call->as.cache.k_first = packed ? call->as.cache.size : 0;
    call->as.cache.v_first = packed ? 2 * call->as.cache.size : 0;
    return AH_OK;
}

/* Copies a few rows: too little work for a pool. */
static int cache_write_run(const struct ah_bound *bound)
{
    const struct ah_cpu_call *call = bound->call;
    int64_t keys = call->as.cache.keys, size = call->as.cache.size, step = call->as.cache.k_head, row;
    size_t bytes = (size_t)(size * ah__dtype_bytes(call->dtype));
    int values = bound->in[2] ? 2 : 1;
    for (int64_t token = 0; token < call->rows; token++) {
        AH_TRY(position_of(&row, bound, 3, token));
        row = (token / call->as.cache.seq * call->as.cache.rows + row) * 2 * keys;
        for (int64_t head = 0; head < call->as.cache.heads; head++, row += size) {
            int64_t from = token * call->cols + head * step;
            memcpy(ah__out_at(bound, 0, row), ah__in_at(bound, 1, from + call->as.cache.k_first), bytes);
            memcpy(ah__out_at(bound, 0, row + keys), ah__in_at(bound, values, from + call->as.cache.v_first), bytes);
        }
    }
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_cache_write = {cache_write_prepare, cache_write_run};

/* ---- seeing ------------------------------------------------------------------------------------------------------ */

static int attention_cached_prepare(struct ah_cpu_call *call)
{
    const struct ah_attr *attr = &call->call->attr;
    const struct ah_shape *cache = ah__call_in(call, 0), *q = ah__call_in(call, 1), *y = ah__call_out(call, 0);
    int64_t size = y->dim[2] / attr->heads;
    if (size > AH_ATTENTION_MAX_HEAD)
        return ah__fail(AH_EDEVICE, "%lld channels in %d heads, expected heads of at most %d channels each",
                        (long long)y->dim[2], attr->heads, AH_ATTENTION_MAX_HEAD);
    call->rows = y->dim[0] * y->dim[1];
    call->cols = y->dim[2];
    call->as.cache.seq = y->dim[1];
    call->as.cache.rows = cache->dim[1];
    call->as.cache.keys = cache->dim[2] / 2;
    call->as.cache.heads = attr->heads;
    call->as.cache.group = attr->heads / attr->kv_heads;
    call->as.cache.size = size;
    call->as.cache.window = attr->window ? attr->window : cache->dim[1];
    call->as.cache.q_stride = q->dim[2];
    call->as.cache.q_head = attr->by_head ? 3 * size : size;
    return AH_OK;
}

/* Returns `count` elements as floats, in place or converted in `room`. */
static const float *floats(const struct ah_bound *bound, int input, int64_t at, int64_t count, float *room)
{
    const void *from = ah__in_at(bound, input, at);
    if (bound->call->dtype == AH_F32)
        return from;
    ah__bf16_widen(room, from, count);
    return room;
}

static float dot(const float *a, const float *b, int64_t count)
{
    float sum[CHAINS] = {0};
    int64_t i = 0;
    for (; i + CHAINS <= count; i += CHAINS)
        for (int lane = 0; lane < CHAINS; lane++)
            sum[lane] += a[i + lane] * b[i + lane];
    for (int lane = 0; i < count; i++, lane++)
        sum[lane] += a[i] * b[i];
    for (int width = CHAINS / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; lane++)
            sum[lane] += sum[lane + width];
    return sum[0];
}

/* The weighted sum of the values seen so far, with weights relative to that of the largest score. */
struct seen {
    float most, total, value[AH_ATTENTION_MAX_HEAD], score[CHUNK + 1], weight[CHUNK + 1];
};
/* It is in a worker's scratch, followed by room for elements as floats. */
_Static_assert(sizeof(struct seen) + 3 * AH_ATTENTION_MAX_HEAD * sizeof(float) <= AH_POOL_SCRATCH * sizeof(float),
               "scratch of a worker");

/* One head of one token. `at`: its keys in row 0 of the cache. */
struct looking {
    const struct ah_bound *bound;
    const float *q;
    float *room;
    int64_t at;
};

/* Adds rows [from, from + count) of the cache, at most CHUNK. Earlier sums are rescaled once for all of them. */
static void chunk_see(struct seen *seen, const struct looking *looking, int64_t from, int count)
{
    const struct ah_cpu_call *call = looking->bound->call;
    int64_t size = call->as.cache.size, keys = call->as.cache.keys;
    float scale = ah__attention_scale(&call->call->attr, size), most = seen->most;
    for (int i = 0; i < count; i++) {
        const float *k = floats(looking->bound, 0, looking->at + (from + i) * 2 * keys, size, looking->room);
        seen->score[i] = dot(looking->q, k, size) * scale;
    }
    if (call->call->attr.cap > 0)
        ah__kernels(AH_F32)->soft_cap(seen->score, seen->score, count, call->call->attr.cap);
    for (int i = 0; i < count; i++)
        most = seen->score[i] > most ? seen->score[i] : most;
    for (int i = 0; i < count; i++)
        seen->score[i] -= most;
    seen->score[count] = seen->most - most;
    call->kernels->exp(seen->weight, seen->score, count + 1);
    seen->most = most;
    seen->total *= seen->weight[count];
    for (int64_t c = 0; c < size; c++)
        seen->value[c] *= seen->weight[count];
    for (int i = 0; i < count; i++) {
        const float *v = floats(looking->bound, 0, looking->at + (from + i) * 2 * keys + keys, size, looking->room);
        seen->total += seen->weight[i];
        for (int64_t c = 0; c < size; c++)
            seen->value[c] += seen->weight[i] * v[c];
    }
}

static void attention_cached_piece(void *context, int index, int worker)
{
    const struct ah_bound *b = context;
    const struct ah_cpu_call *call = b->call;
    struct seen *seen = (struct seen *)(void *)ah__pool_scratch(b->pool, worker);
    float *room = (float *)(seen + 1);
    int64_t token = index / call->as.cache.heads, head = index % call->as.cache.heads, size = call->as.cache.size;
    int64_t position = ((const int32_t *)b->in[2])[token], window = call->as.cache.window;
    int64_t row = token / call->as.cache.seq * call->as.cache.rows;
    const struct looking looking = {
        .bound = b,
        .room = room + AH_ATTENTION_MAX_HEAD,
        .q = floats(b, 1, token * call->as.cache.q_stride + head * call->as.cache.q_head, size, room),
        .at = row * 2 * call->as.cache.keys + head / call->as.cache.group * size};
    seen->most = b->in[3] ? *floats(b, 3, head, 1, &seen->most) : -FLT_MAX;
    seen->total = b->in[3] ? 1 : 0;
    memset(seen->value, 0, (size_t)size * sizeof *seen->value);
    for (int64_t from = position < window ? 0 : position - window + 1; from <= position; from += CHUNK)
        chunk_see(seen, &looking, from, position - from < CHUNK ? (int)(position - from + 1) : CHUNK);
    for (int64_t c = 0; c < size; c++)
        seen->value[c] /= seen->total;
    void *y = ah__out_at(b, 0, token * call->cols + head * size);
    if (call->dtype == AH_F32)
        memcpy(y, seen->value, (size_t)size * sizeof(float));
    else
        ah__bf16_narrow(y, seen->value, size);
}

static int attention_cached_run(const struct ah_bound *bound)
{
    struct ah_bound own = *bound;
    int64_t position;
    for (int64_t token = 0; token < bound->call->rows; token++)
        AH_TRY(position_of(&position, bound, 2, token));
    ah__pool_run(bound->pool, attention_cached_piece, (int)(bound->call->rows * bound->call->as.cache.heads), &own);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_attention_cached = {attention_cached_prepare, attention_cached_run};
