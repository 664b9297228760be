/* The cache of keys and values, kept from one token to the next while a model generates. A cache [B,S,2*K] has in each
 * row the keys of all heads at one position, K channels, then the values. */
#include "op/attention.h"
#include "op/rules.h"

/* Checks the operands that are written: k and v, or q, k and v side by side, with as many heads as there are heads of
 * keys. */
static int expect_keys(const struct ah_meta *in, const struct ah_attr *attr)
{
    const struct ah_meta *cache = &in[0], *k = &in[1], *v = &in[2];
    int64_t keys = ah__op_last(cache) / 2;
    if (v->shape.rank) {
        AH_TRY(ah__op_expect("k", k, cache->dtype, (struct ah_shape){3, {k->shape.dim[0], k->shape.dim[1], keys, 0}}));
        return ah__op_expect("v", v, k->dtype, k->shape);
    }
    if (attr->heads < 1 || keys % attr->heads != 0)
        return ah__op_wrong("cache", cache, "[B,S,2K] with K a multiple of %d heads", attr->heads);
    return ah__op_expect("qkv", k, cache->dtype, (struct ah_shape){3, {k->shape.dim[0], k->shape.dim[1], 3 * keys, 0}});
}

static int expect_cache(const struct ah_meta *cache, const struct ah_meta *x)
{
    AH_TRY(ah__op_expect_float("cache", cache, 3, 3));
    if (cache->shape.dim[0] != x->shape.dim[0] || cache->shape.dim[1] < x->shape.dim[1] || ah__op_last(cache) % 2 != 0)
        return ah__op_wrong("cache", cache, "[%lld,S,2K] with S >= %lld", (long long)x->shape.dim[0],
                            (long long)x->shape.dim[1]);
    return AH_OK;
}

static int cache_write_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("k", &in[1], 3, 3));
    AH_TRY(expect_cache(&in[0], &in[1]));
    AH_TRY(expect_keys(in, attr));
    AH_TRY(ah__op_expect_positions(&in[3], &in[1]));
    out[0] = in[0];
    return AH_OK;
}

/* Bytes of the new rows, read once and written once. */
static double cache_write_bytes(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    int64_t row_bytes = ah__op_last(&in[0]) * ah__dtype_bytes(in[0].dtype);
    return 2 * (double)ah__shape_rows(&in[1].shape) * (double)row_bytes;
}

/* (cache [B,S,2K], k and v [B,T,K], or qkv [B,T,3K], by_head or not, and no v) -> cache: token t's keys and values in
 * row positions[t], without positions in row t. */
const struct ah_op_row ah__op_cache_write = {
    .name = "cache_write",
    AH_OP_INPUTS({.name = "cache", .kind = AH_OPERAND_CACHE}, {.name = "k", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "v", .kind = AH_OPERAND_ACTIVATION, .optional = true},
                 {.name = "positions", .kind = AH_OPERAND_POSITIONS, .optional = true}),
    AH_OP_OUTPUTS({.name = "cache", .kind = AH_OPERAND_CACHE, .in_place = true}),
    .attrs = AH_ATTR_HEADS | AH_ATTR_BY_HEAD,
    .infer = cache_write_infer,
    .flops = ah__op_no_flops,
    .bytes = cache_write_bytes,
};

static int attention_cached_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    const struct ah_meta *cache = &in[0], *q = &in[1];
    AH_TRY(ah__op_expect_float("q", q, 3, 3));
    AH_TRY(expect_cache(cache, q));
    int64_t keys = ah__op_last(cache) / 2, channels = attr->kv_heads ? keys / attr->kv_heads * attr->heads : 0;
    if (attr->heads < 1 || attr->kv_heads < 1 || attr->heads % attr->kv_heads != 0 || keys % attr->kv_heads != 0)
        return ah__fail(AH_EINPUT,
                        "heads: found %d, of keys and values %d, expected a multiple of these, which divide "
                        "the cache's %lld channels of keys",
                        attr->heads, attr->kv_heads, (long long)keys);
    AH_TRY(ah__attention_expect(attr));
    if (ah__op_last(q) != channels && (attr->heads != attr->kv_heads || ah__op_last(q) != 3 * channels))
        return ah__op_wrong("q", q, "[B,T,%lld], or q, k and v side by side", (long long)channels);
    AH_TRY(ah__op_expect("positions", &in[2], AH_I32, ah_shape2(q->shape.dim[0], q->shape.dim[1])));
    AH_TRY(ah__attention_expect_sinks(&in[3], q, attr));
    out[0] = (struct ah_meta){q->dtype, {3, {q->shape.dim[0], q->shape.dim[1], channels, 0}}};
    return AH_OK;
}

/* Floating-point operations for a full cache. */
static double attention_cached_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    double rows = (double)in[0].shape.dim[1], window = attr->window;
    return 4 * (double)ah__shape_count(&out[0].shape) * (window > 0 && window < rows ? window : rows);
}

/* (cache [B,S,2K], q [B,T,C] or qkv [B,T,3C], by_head or not, positions [B,T], sinks [heads]?) -> y [B,T,C]: a query
 * at position p sees rows 0..p, with a window w those from p - w + 1 on; head h of it reads head
 * h / (heads / kv_heads) of the cache. */
const struct ah_op_row ah__op_attention_cached = {
    .name = "attention_cached",
    AH_OP_INPUTS({.name = "cache", .kind = AH_OPERAND_CACHE}, {.name = "q", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "positions", .kind = AH_OPERAND_POSITIONS},
                 {.name = "sinks", .kind = AH_OPERAND_PARAM, .optional = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .attrs = AH_ATTR_HEADS | AH_ATTR_KV_HEADS | AH_ATTR_BY_HEAD | AH_ATTR_WINDOW | AH_ATTR_SCALE | AH_ATTR_CAP,
    .infer = attention_cached_infer,
    .flops = attention_cached_flops,
};
