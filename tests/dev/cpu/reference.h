/* Naive forward operators in double, straight from their definitions. */
#ifndef AH_TESTS_DEV_CPU_REFERENCE_H
#define AH_TESTS_DEV_CPU_REFERENCE_H

#include "op/op.h"

#include <math.h>

/* Every operand as doubles (ids too). Outputs that are in place have memory of their own here. */
struct reference {
    const struct ah_call *call;
    double *in[AH_OP_MAX_INPUTS], *out[AH_OP_MAX_OUTPUTS];
};

static inline int64_t reference_last(const struct ah_operand *operand)
{
    return operand->meta.shape.dim[operand->meta.shape.rank - 1];
}

static inline void reference_embedding(const struct reference *r)
{
    int64_t cols = r->call->in[0].meta.shape.dim[1], tokens = ah__shape_count(&r->call->in[1].meta.shape);
    for (int64_t i = 0; i < tokens * cols; i++)
        r->out[0][i] = r->in[0][(r->call->attr.first + (int64_t)r->in[1][i / cols]) * cols + i % cols];
}

static inline void reference_add_position(const struct reference *r)
{
    const struct ah_shape *x = &r->call->in[0].meta.shape;
    for (int64_t i = 0; i < ah__shape_count(x); i++)
        r->out[0][i] =
            r->in[0][i] + r->in[1][(r->call->attr.first + i / x->dim[2] % x->dim[1]) * x->dim[2] + i % x->dim[2]];
}

static inline void reference_layernorm(const struct reference *r)
{
    int64_t rows = ah__shape_rows(&r->call->in[0].meta.shape), cols = reference_last(&r->call->in[0]);
    for (int64_t row = 0; row < rows; row++) {
        const double *x = r->in[0] + row * cols;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < cols; i++)
            mean += x[i] / (double)cols;
        for (int64_t i = 0; i < cols; i++)
            variance += (x[i] - mean) * (x[i] - mean) / (double)cols;
        double rstd = 1 / sqrt(variance + (double)r->call->attr.eps);
        for (int64_t i = 0; i < cols; i++)
            r->out[0][row * cols + i] = (x[i] - mean) * rstd * r->in[1][i] + (r->in[2] ? r->in[2][i] : 0);
        r->out[1][row] = mean;
        r->out[2][row] = rstd;
    }
}

static inline void reference_rmsnorm(const struct reference *r)
{
    int64_t cols = reference_last(&r->call->in[1]), rows = ah__shape_count(&r->call->in[0].meta.shape) / cols;
    for (int64_t row = 0; row < rows; row++) {
        const double *x = r->in[0] + row * cols;
        double square = 0;
        for (int64_t i = 0; i < cols; i++)
            square += x[i] * x[i] / (double)cols;
        r->out[1][row] = 1 / sqrt(square + (double)r->call->attr.eps);
        for (int64_t i = 0; i < cols; i++)
            r->out[0][row * cols + i] = x[i] * r->out[1][row] * (r->in[1][i] + (double)r->call->attr.offset);
    }
}

/* What a pair turns from one position to the next, as transformers has it for llama3, yarn and longrope. */
static inline double reference_angle(const struct ah_attr *attr, int64_t pair, int64_t dims)
{
    double frequency = pow((double)attr->theta, -2.0 * (double)pair / (double)dims), factor = (double)attr->factor;
    if (attr->stretch.of[0] > 0)
        return frequency / (double)attr->stretch.of[pair];
    if (!(factor > 0))
        return frequency;
    if (!(attr->high > 0))
        return frequency / factor;
    if (attr->ramp) {
        double part = ((double)pair - (double)attr->low) / ((double)attr->high - (double)attr->low);
        part = part < 0 ? 0 : part > 1 ? 1 : part;
        return part * frequency / factor + (1 - part) * frequency;
    }
    double wavelength = 2 * acos(-1) / frequency;
    double low_wavelength = attr->original / (double)attr->low, high_wavelength = attr->original / (double)attr->high;
    if (wavelength < high_wavelength)
        return frequency;
    if (wavelength > low_wavelength)
        return frequency / factor;
    double smooth = (attr->original / wavelength - (double)attr->low) / ((double)attr->high - (double)attr->low);
    return (1 - smooth) * frequency / factor + smooth * frequency;
}

static inline void reference_rotary(const struct reference *r)
{
    const struct ah_shape *x = &r->call->in[0].meta.shape;
    const struct ah_attr *attr = &r->call->attr;
    int64_t size = x->dim[2] / attr->heads / (attr->by_head ? 3 : 1), dims = attr->dims ? attr->dims : size;
    for (int64_t i = 0; i < ah__shape_count(x); i++) {
        int64_t t = i / x->dim[2] % x->dim[1], c = i % size, pair = dims > 0 ? c % (dims / 2) : 0;
        double position = r->in[1] ? r->in[1][i / x->dim[2]] : (double)t;
        double angle = position * reference_angle(attr, pair, dims);
        double magnitude = attr->magnitude > 0 ? (double)attr->magnitude : 1;
        double cosine = magnitude * cos(angle), sine = magnitude * sin(angle);
        if (c >= dims || (attr->by_head && i / size % 3 == 2))
            r->out[0][i] = r->in[0][i];
        else if (c < dims / 2)
            r->out[0][i] = r->in[0][i] * cosine - r->in[0][i + dims / 2] * sine;
        else
            r->out[0][i] = r->in[0][i] * cosine + r->in[0][i - dims / 2] * sine;
    }
}

static inline void reference_linear(const struct reference *r)
{
    int64_t rows = ah__shape_rows(&r->call->in[0].meta.shape), in = reference_last(&r->call->in[0]);
    int64_t out = reference_last(&r->call->out[0]);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t o = 0; o < out; o++) {
            double sum = r->in[2] ? r->in[2][o] : 0;
            for (int64_t i = 0; i < in; i++)
                sum += r->in[0][row * in + i] * r->in[1][r->call->attr.out_in ? o * in + i : i * out + o];
            r->out[0][row * out + o] = sum;
        }
}

static inline double reference_scale_of(const struct ah_attr *attr, int64_t size)
{
    return attr->scale > 0 ? (double)attr->scale : 1 / sqrt((double)size);
}

static inline double reference_capped(double x, const struct ah_attr *attr)
{
    double cap = (double)attr->cap;
    return cap > 0 ? cap * tanh(x / cap) : x;
}

/* One query of one head: q, the keys and values of positions from..at, and a sink or null. */
static inline double reference_attend(double *y, const double *q, const double *key, const double *value,
                                      int64_t stride, int64_t from, int64_t at, int64_t size,
                                      const struct ah_attr *attr, const double *sink)
{
    double scale = reference_scale_of(attr, size);
    double most = sink ? *sink : -INFINITY, total = 0;
    for (int pass = 0; pass < 2; pass++) {
        total = pass && sink ? exp(*sink - most) : 0;
        for (int64_t t = from; t <= at; t++) {
            double score = 0;
            for (int64_t c = 0; c < size; c++)
                score += q[c] * key[t * stride + c] * scale;
            score = reference_capped(score, attr);
            if (pass == 0) {
                most = fmax(most, score);
                continue;
            }
            double weight = exp(score - most);
            for (int64_t c = 0; c < size; c++)
                y[c] = (t > from ? y[c] : 0) + weight * value[t * stride + c];
            total += weight;
        }
    }
    for (int64_t c = 0; c < size; c++)
        y[c] /= total;
    return most + log(total);
}

/* The first place that the one at `at` sees. `positions`: of the batch, or null. */
static inline int64_t reference_first(const struct ah_attr *attr, const double *positions, int64_t at)
{
    int64_t first = attr->window && at >= attr->window ? at - attr->window + 1 : 0;
    int64_t document = positions ? at - (int64_t)positions[at] : 0;
    return first > document ? first : document;
}

static inline void reference_attention(const struct reference *r)
{
    const struct ah_shape *qkv = &r->call->in[0].meta.shape;
    int64_t seq = qkv->dim[1], stride = qkv->dim[2], channels = stride / 3, heads = r->call->attr.heads;
    int64_t size = channels / heads;
    for (int64_t i = 0; i < qkv->dim[0] * heads * seq; i++) {
        int64_t batch = i / seq / heads, head = i / seq % heads, t = i % seq;
        bool by_head = r->call->attr.by_head;
        int64_t part = by_head ? size : channels;
        const double *start = r->in[0] + batch * seq * stride + head * size * (by_head ? 3 : 1);
        r->out[1][i] = reference_attend(r->out[0] + (batch * seq + t) * channels + head * size, start + t * stride,
                                        start + part, start + 2 * part, stride,
                                        reference_first(&r->call->attr, r->in[1] ? r->in[1] + batch * seq : NULL, t), t,
                                        size, &r->call->attr, NULL);
    }
}

static inline void reference_attention_qkv(const struct reference *r)
{
    const struct ah_shape *q = &r->call->in[0].meta.shape;
    int64_t seq = q->dim[1], channels = q->dim[2], stride = reference_last(&r->call->in[1]);
    int64_t heads = r->call->attr.heads, group = heads / r->call->attr.kv_heads, size = channels / heads;
    for (int64_t i = 0; i < q->dim[0] * heads * seq; i++) {
        int64_t batch = i / seq / heads, head = i / seq % heads, t = i % seq;
        int64_t at = (batch * seq + t) * channels + head * size, shared = batch * seq * stride + head / group * size;
        r->out[1][i] = reference_attend(r->out[0] + at, r->in[0] + at, r->in[1] + shared, r->in[2] + shared, stride,
                                        reference_first(&r->call->attr, r->in[3] ? r->in[3] + batch * seq : NULL, t), t,
                                        size, &r->call->attr, r->in[4] ? r->in[4] + head : NULL);
    }
}

/* Where k, or v, of head `head` begins in a token. */
static inline int64_t reference_written(const struct reference *r, int64_t head, int64_t size, bool value)
{
    int64_t heads = r->call->attr.heads, part = value ? 2 : 1;
    if (r->in[2])
        return head * size;
    return r->call->attr.by_head ? (3 * head + part) * size : (part * heads + head) * size;
}

static inline void reference_cache_write(const struct reference *r)
{
    const struct ah_shape *cache = &r->call->in[0].meta.shape, *k = &r->call->in[1].meta.shape;
    int64_t keys = cache->dim[2] / 2, heads = r->in[2] ? 1 : r->call->attr.heads, size = keys / heads;
    for (int64_t i = 0; i < ah__shape_count(cache); i++)
        r->out[0][i] = r->in[0][i];
    for (int64_t token = 0; token < k->dim[0] * k->dim[1]; token++) {
        int64_t row = r->in[3] ? (int64_t)r->in[3][token] : token % k->dim[1];
        double *to = r->out[0] + (token / k->dim[1] * cache->dim[1] + row) * 2 * keys;
        for (int64_t c = 0; c < keys; c++) {
            to[c] = r->in[1][token * k->dim[2] + reference_written(r, c / size, size, false) + c % size];
            to[keys + c] =
                r->in[r->in[2] ? 2 : 1][token * k->dim[2] + reference_written(r, c / size, size, true) + c % size];
        }
    }
}

static inline void reference_attention_cached(const struct reference *r)
{
    const struct ah_shape *cache = &r->call->in[0].meta.shape, *y = &r->call->out[0].meta.shape;
    int64_t keys = cache->dim[2] / 2, heads = r->call->attr.heads, size = y->dim[2] / heads;
    int64_t group = heads / r->call->attr.kv_heads, stride = reference_last(&r->call->in[1]);
    for (int64_t i = 0; i < y->dim[0] * y->dim[1] * heads; i++) {
        int64_t token = i / heads, head = i % heads, position = (int64_t)r->in[2][token];
        const double *kept = r->in[0] + token / y->dim[1] * cache->dim[1] * 2 * keys + head / group * size;
        const double *q = r->in[1] + token * stride + head * size * (r->call->attr.by_head ? 3 : 1);
        reference_attend(r->out[0] + i * size, q, kept, kept + keys, 2 * keys,
                         reference_first(&r->call->attr, NULL, position), position, size, &r->call->attr,
                         r->in[3] ? r->in[3] + head : NULL);
    }
}

static inline void reference_gelu(const struct reference *r)
{
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++) {
        double x = r->in[0][i], root = 0.79788456080286535588;
        r->out[0][i] = 0.5 * x * (1 + tanh(root * (x + 0.044715 * x * x * x)));
    }
}

static inline void reference_gelu_erf(const struct reference *r)
{
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++)
        r->out[0][i] = 0.5 * r->in[0][i] * erfc(-r->in[0][i] / sqrt(2));
}

static inline void reference_relu(const struct reference *r)
{
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++)
        r->out[0][i] = r->in[0][i] > 0 ? r->in[0][i] : 0;
}

static inline void reference_silu_mul(const struct reference *r)
{
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++)
        r->out[0][i] = r->in[0][i] / (1 + exp(-r->in[0][i])) * r->in[1][i];
}

static inline void reference_silu_mul_halves(const struct reference *r)
{
    int64_t cols = reference_last(&r->call->out[0]);
    for (int64_t i = 0; i < ah__shape_count(&r->call->out[0].meta.shape); i++) {
        double gate = r->in[0][i + i / cols * cols], up = r->in[0][i + (i / cols + 1) * cols];
        r->out[0][i] = gate / (1 + exp(-gate)) * up;
    }
}

static inline void reference_swiglu_clamped(const struct reference *r)
{
    int64_t cols = reference_last(&r->call->out[0]);
    double limit = (double)r->call->attr.limit, factor = (double)r->call->attr.scale;
    for (int64_t i = 0; i < ah__shape_count(&r->call->out[0].meta.shape); i++) {
        double gate = fmin(r->in[0][i + i / cols * cols], limit);
        double up = fmax(-limit, fmin(r->in[0][i + (i / cols + 1) * cols], limit));
        r->out[0][i] = gate / (1 + exp(-factor * gate)) * (up + 1);
    }
}

static inline void reference_gelu_mul(const struct reference *r)
{
    reference_gelu(r);
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++)
        r->out[0][i] *= r->in[1][i];
}

static inline void reference_scale(const struct reference *r)
{
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++)
        r->out[0][i] = r->in[0][i] * (double)r->call->attr.scale;
}

static inline void reference_soft_cap(const struct reference *r)
{
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++)
        r->out[0][i] = reference_capped(r->in[0][i], &r->call->attr);
}

static inline void reference_add(const struct reference *r)
{
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++)
        r->out[0][i] = r->in[0][i] + r->in[1][i];
}

static inline void reference_copy(const struct reference *r)
{
    for (int64_t i = 0; i < ah__shape_count(&r->call->in[0].meta.shape); i++)
        r->out[0][i] = r->in[0][i];
}

static inline void reference_cross_entropy(const struct reference *r)
{
    int64_t rows = ah__shape_rows(&r->call->in[0].meta.shape), cols = reference_last(&r->call->in[0]);
    r->out[0][0] = 0;
    for (int64_t row = 0; row < rows; row++) {
        const double *x = r->in[0] + row * cols;
        double most = x[0], total = 0;
        for (int64_t i = 0; i < cols; i++)
            most = fmax(most, x[i]);
        for (int64_t i = 0; i < cols; i++)
            total += exp(x[i] - most);
        int64_t target = (int64_t)r->in[1][row];
        r->out[0][0] += (log(total) + most - x[target]) / (double)rows;
        for (int64_t i = 0; i < cols; i++)
            r->out[1][row * cols + i] = (exp(x[i] - most) / total - (i == target ? 1 : 0)) / (double)rows;
    }
}

/* Output 1, the scratch, stays what it is. */
static inline void reference_linear_cross_entropy(const struct reference *r)
{
    int64_t rows = ah__shape_rows(&r->call->in[0].meta.shape), cols = reference_last(&r->call->in[0]);
    int64_t vocab = r->call->in[1].meta.shape.dim[0], count = 0;
    for (int64_t row = 0; row < rows; row++)
        count += (int64_t)r->in[2][row] != AH_TARGET_IGNORED;
    double scale = r->in[3] ? r->in[3][0] : count ? 1 / (double)count : 0;
    r->out[0][0] = 0;
    for (int64_t i = 0; r->out[3] && i < vocab * cols; i++)
        r->out[3][i] = 0;
    for (int64_t row = 0; row < rows; row++) {
        const double *x = r->in[0] + row * cols;
        int64_t target = (int64_t)r->in[2][row];
        double total = 0, at_target = 0;
        for (int64_t i = 0; r->out[2] && i < cols; i++)
            r->out[2][row * cols + i] = 0;
        if (target == AH_TARGET_IGNORED)
            continue;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t v = 0; v < vocab; v++) {
                const double *weight = r->in[1] + v * cols;
                double logit = 0;
                for (int64_t i = 0; i < cols; i++)
                    logit += x[i] * weight[i];
                logit = reference_capped(logit, &r->call->attr);
                if (pass == 0) {
                    total += exp(logit);
                    at_target = v == target ? logit : at_target;
                    continue;
                }
                double slope = (exp(logit) / total - (v == target ? 1 : 0)) * scale;
                if (r->call->attr.cap > 0)
                    slope *= 1 - pow(logit / (double)r->call->attr.cap, 2);
                for (int64_t i = 0; r->out[2] && i < cols; i++)
                    r->out[2][row * cols + i] += slope * weight[i];
                for (int64_t i = 0; r->out[3] && i < cols; i++)
                    r->out[3][v * cols + i] += slope * x[i];
            }
        r->out[0][0] += (log(total) - at_target) * scale;
    }
}

/* The experts of a token, the likeliest first: of equal ones the first, counted round from expert row * picks on. */
static inline void reference_picks(int64_t *pick, const struct reference *r, int64_t row)
{
    int64_t experts = reference_last(&r->call->in[0]), picks = r->call->attr.picks;
    const double *logit = r->in[0] + row * experts;
    for (int64_t k = 0; k < picks; k++) {
        pick[k] = -1;
        for (int64_t i = 0; i < experts; i++) {
            int64_t e = (row * picks + i) % experts;
            bool is_taken = false;
            for (int64_t j = 0; j < k; j++)
                is_taken = is_taken || pick[j] == e;
            if (!is_taken && (pick[k] < 0 || logit[e] > logit[pick[k]]))
                pick[k] = e;
        }
    }
}

static inline void reference_route(const struct reference *r)
{
    int64_t experts = reference_last(&r->call->in[0]), rows = ah__shape_rows(&r->call->in[0].meta.shape);
    int64_t picks = r->call->attr.picks, pick[AH_MOST_PICKS], next = 0;
    for (int64_t row = 0; row < rows; row++) {
        const double *logit = r->in[0] + row * experts;
        double all = 0, chosen = 0;
        reference_picks(pick, r, row);
        for (int64_t e = 0; e < experts; e++)
            all += exp(logit[e]);
        for (int64_t k = 0; k < picks; k++)
            chosen += exp(logit[pick[k]]);
        for (int64_t k = 0; k < picks; k++)
            r->out[0][row * picks + k] = exp(logit[pick[k]]) / (r->call->attr.normalised ? chosen : all);
    }
    for (int64_t e = 0; e < experts; e++) {
        for (int64_t row = 0; row < rows; row++) {
            reference_picks(pick, r, row);
            for (int64_t k = 0; k < picks; k++)
                if (pick[k] == e) {
                    r->out[1][row * picks + k] = (double)next;
                    r->out[2][next++] = (double)(row * picks + k);
                }
        }
        r->out[3][e] = (double)next;
    }
}

static inline void reference_dispatch(const struct reference *r)
{
    int64_t cols = reference_last(&r->call->in[0]), picks = reference_last(&r->call->in[1]);
    for (int64_t i = 0; i < ah__shape_count(&r->call->out[0].meta.shape); i++)
        r->out[0][i] = r->in[0][(int64_t)r->in[2][i / cols] / picks * cols + i % cols];
}

static inline void reference_combine(const struct reference *r)
{
    int64_t cols = reference_last(&r->call->in[0]), picks = reference_last(&r->call->in[1]);
    for (int64_t i = 0; i < ah__shape_count(&r->call->out[0].meta.shape); i++) {
        r->out[0][i] = 0;
        for (int64_t k = 0; k < picks; k++)
            r->out[0][i] += r->in[0][(int64_t)r->in[1][i / cols * picks + k] * cols + i % cols];
    }
}

static inline void reference_scale_rows(const struct reference *r)
{
    int64_t cols = reference_last(&r->call->in[0]);
    for (int64_t i = 0; i < ah__shape_count(&r->call->out[0].meta.shape); i++)
        r->out[0][i] = r->in[0][i] * r->in[1][(int64_t)r->in[2][i / cols]];
}

static inline void reference_gate_rows(const struct reference *r)
{
    int64_t cols = reference_last(&r->call->in[0]);
    for (int64_t i = 0; i < ah__shape_count(&r->call->out[0].meta.shape); i++)
        r->out[0][i] = r->in[0][i] / (1 + exp(-r->in[1][i / cols]));
}

static inline void reference_shares(const struct reference *r)
{
    int64_t experts = reference_last(&r->call->in[0]), picks = reference_last(&r->call->in[1]);
    for (int64_t i = 0; i < ah__shape_count(&r->call->out[0].meta.shape); i++) {
        int64_t expert = i % experts;
        double begin = expert ? r->in[3][expert - 1] : 0;
        r->out[0][i] = 0;
        for (int64_t k = i / experts * picks; k < (i / experts + 1) * picks; k++)
            if (r->in[2][k] >= begin && r->in[2][k] < r->in[3][expert])
                r->out[0][i] = r->in[1][k];
    }
}

static inline void reference_grouped_linear(const struct reference *r)
{
    const struct ah_shape *weight = &r->call->in[1].meta.shape;
    int64_t outer = weight->dim[1], inner = weight->dim[2];
    for (int64_t row = 0, e = 0; row < r->call->in[0].meta.shape.dim[0]; row++) {
        while ((double)row >= r->in[2][e])
            e++;
        for (int64_t o = 0; o < outer; o++) {
            double sum = r->in[3] ? r->in[3][e * outer + o] : 0;
            for (int64_t i = 0; i < inner; i++)
                sum += r->in[0][row * inner + i] * r->in[1][(e * outer + o) * inner + i];
            r->out[0][row * outer + o] = sum;
        }
    }
}

static void (*const reference_table[AH_OP_COUNT])(const struct reference *r) = {
    [AH_OP_EMBEDDING] = reference_embedding,
    [AH_OP_ADD_POSITION] = reference_add_position,
    [AH_OP_LAYERNORM] = reference_layernorm,
    [AH_OP_LINEAR] = reference_linear,
    [AH_OP_ATTENTION] = reference_attention,
    [AH_OP_GELU] = reference_gelu,
    [AH_OP_RELU] = reference_relu,
    [AH_OP_ADD] = reference_add,
    [AH_OP_COPY] = reference_copy,
    [AH_OP_CROSS_ENTROPY] = reference_cross_entropy,
    [AH_OP_RMSNORM] = reference_rmsnorm,
    [AH_OP_ROTARY] = reference_rotary,
    [AH_OP_SILU_MUL] = reference_silu_mul,
    [AH_OP_GELU_MUL] = reference_gelu_mul,
    [AH_OP_SCALE] = reference_scale,
    [AH_OP_SOFT_CAP] = reference_soft_cap,
    [AH_OP_ATTENTION_QKV] = reference_attention_qkv,
    [AH_OP_CACHE_WRITE] = reference_cache_write,
    [AH_OP_ATTENTION_CACHED] = reference_attention_cached,
    [AH_OP_LINEAR_CROSS_ENTROPY] = reference_linear_cross_entropy,
    [AH_OP_GELU_ERF] = reference_gelu_erf,
    [AH_OP_ROUTE] = reference_route,
    [AH_OP_DISPATCH] = reference_dispatch,
    [AH_OP_COMBINE] = reference_combine,
    [AH_OP_SCALE_ROWS] = reference_scale_rows,
    [AH_OP_GROUPED_LINEAR] = reference_grouped_linear,
    [AH_OP_GATE_ROWS] = reference_gate_rows,
    [AH_OP_SILU_MUL_HALVES] = reference_silu_mul_halves,
    [AH_OP_SWIGLU_CLAMPED] = reference_swiglu_clamped,
    [AH_OP_SHARES] = reference_shares,
};

#endif
