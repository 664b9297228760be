/* Causal attention by tiles of 64 queries and 64 keys, for every head size up to 256 and every length.
 *
 * A block of 16 x 16 threads keeps a tile of results in registers: thread (y, x) has rows 4y..4y+3 and, of each 64
 * channels, columns 4x..4x+3, so that each two 16-byte loads from shared memory serve 16 multiply-adds. Scores of a
 * tile are sums over the head's channels, staged 32 at a time; the next factor is staged 16 rows at a time, so that
 * shared memory stays below 48 KiB for every head size. Elements become fp32 when they are staged, all arithmetic is
 * fp32, and results are rounded when stored. Scores are in powers of two, as on the CPU device.
 *
 * Backward is deterministic without atomics: one kernel goes over queries for each tile of keys, another over keys for
 * each tile of queries, so that scores are computed twice: 7 products instead of the 5 that sums in memory would
 * need. */
#include <float.h>
#include <math.h>

#include "dev/cuda/attention.h"
#include "dev/cuda/tiles.cuh"

#define ALL_LANES 0xffffffffU
#define LOG2_E 1.44269504F
#define LN_2 0.693147181F

/* ---- one head ---------------------------------------------------------------------------------------------------- */

/* Offsets of one head of queries of one batch, and of the keys and values that it reads, to their first row in each
 * operand. */
struct place {
    int64_t query, shared, out; /* query: in q and dq; shared: in k, v and their gradients; out: in y and dy */
    int64_t row;                /* offset in lse and dot */
};

static __device__ inline place place_of(const ah_cuda_attention &job, int64_t batch, int head)
{
    const int64_t token = batch * job.seq;
    return {token * job.q_stride + head * job.q_head, token * job.kv_stride + head / job.group * job.kv_head,
            token * job.channels + head * (int64_t)job.head_size, (batch * job.heads + head) * job.seq};
}

/* Returns the tile that begins with row `from` of a head of `seq` rows. */
template <typename E>
static __device__ inline rows<E> tile_at(const void *head, int64_t offset, int64_t stride, int64_t from, int64_t seq)
{
    return {(const E *)head + offset + from * stride, stride, seq - from};
}

/* Returns the maximum over the 16 threads of a row. */
static __device__ inline float row_max(float x)
{
    for (int other = 8; other > 0; other /= 2)
        x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, other));
    return x;
}

static __device__ inline float row_sum(float x)
{
    for (int other = 8; other > 0; other /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, other);
    return x;
}

/* The keys of a tile, which begins `behind` rows before a tile of queries, that the queries see: query q sees keys q +
 * first to q + behind, and none before its document. */
struct sight {
    int64_t first, behind;
    const int32_t *positions; /* positions of the tile's queries; or null */
    int64_t queries;          /* number of queries in the tile */
};

static __device__ inline bool sees(const sight &s, int query, int key)
{
    if (s.positions && query < s.queries && key < query + s.behind - s.positions[query])
        return false;
    return key >= query + s.first && key <= query + s.behind;
}

/* Returns the positions of the batch. */
static __device__ inline const int32_t *positions_of(const ah_cuda_attention &job, int64_t batch)
{
    return job.positions ? job.positions + batch * job.seq : nullptr;
}

/* Returns the sight of the tile of queries that begins at `at`, `behind` rows after the tile of keys. */
static __device__ inline sight sight_of(const ah_cuda_attention &job, const int32_t *positions, int64_t at,
                                        int64_t behind)
{
    return {behind - job.window + 1, behind, positions ? positions + at : nullptr, job.seq - at};
}

/* Returns the start of the first tile of keys of which a tile of queries sees any. The tile's first query sees the
 * lowest key of all. */
static __device__ inline int64_t first_key(const ah_cuda_attention &job, const int32_t *positions, int64_t at)
{
    const int64_t first = at < job.window ? 0 : at - job.window + 1;
    const int64_t document = positions && positions[at] < at ? at - positions[at] : 0;
    return (first > document ? first : document) / TILE * TILE;
}

/* Returns a score after the cap. The score is in powers of two, `cap` in powers of e. */
template <bool CAPPED> static __device__ inline float counted(float score, float cap)
{
    return CAPPED ? cap * LOG2_E * tanhf(score / (cap * LOG2_E)) : score;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* State of a thread's rows: the largest score so far, and the thread's part of the sum of exponentials. */
struct softmax {
    float most[4], total[4];
};

/* Does one step of the online softmax: scores become 2^(score - most), or 0 for masked keys; `shrink` is the factor for
 * earlier sums. */
template <bool CAPPED>
static __device__ inline void softmax_step(softmax *s, float score[4][4], float shrink[4], const ah_cuda_attention &job,
                                           sight seen)
{
    const float scale = job.scale * LOG2_E;
    const int x = (int)threadIdx.x % 16 * 4, y = (int)threadIdx.x / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float most = s->most[i], sum = 0.0F;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            score[i][j] = sees(seen, y + i, x + j) ? counted<CAPPED>(score[i][j] * scale, job.cap) : -INFINITY;
            most = fmaxf(most, score[i][j]);
        }
        most = row_max(most);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            score[i][j] = exp2f(score[i][j] - most);
            sum += score[i][j];
        }
        shrink[i] = exp2f(s->most[i] - most);
        s->total[i] = fmaf(s->total[i], shrink[i], sum);
        s->most[i] = most;
    }
}

template <typename E> static __device__ inline float sink_of(const ah_cuda_attention &job, int head)
{
    return wide(((const E *)job.sinks)[head]);
}

/* Computes a tile of queries. Tiles that see most keys come first, so that the last blocks are short. */
template <typename E, int C, bool CAPPED>
static __global__ void __launch_bounds__(THREADS) attention_forward(ah_cuda_attention job, int64_t tile_count)
{
    __shared__ tiles s;
    const int64_t pairs = job.batch * job.heads, pair = blockIdx.x % pairs;
    const int64_t at = (tile_count - 1 - blockIdx.x / pairs) * TILE;
    const place h = place_of(job, pair / job.heads, (int)(pair % job.heads));
    const rows<E> q = tile_at<E>(job.q, h.query, job.q_stride, at, job.seq);
    const int size = job.head_size, y = (int)threadIdx.x / 16 * 4;
    softmax state;
    float out[C][4][4], score[4][4], shrink[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        /* Finite, since a row may see nothing of the first tile. A sink counts in one of the parts of the sum. */
        state.most[i] = job.sinks ? sink_of<E>(job, (int)(pair % job.heads)) * LOG2_E : -FLT_MAX;
        state.total[i] = job.sinks && threadIdx.x % 16 == 0 ? 1.0F : 0.0F;
#pragma unroll
        for (int c = 0; c < C; c++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                out[c][i][j] = 0.0F;
    }
    const int32_t *positions = positions_of(job, pair / job.heads);
    for (int64_t key = first_key(job, positions, at); key <= at; key += TILE) {
        across(score, &s, q, tile_at<E>(job.k, h.shared, job.kv_stride, key, job.seq), size);
        softmax_step<CAPPED>(&state, score, shrink, job, sight_of(job, positions, at, at - key));
#pragma unroll
        for (int c = 0; c < C; c++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    out[c][i][j] *= shrink[i];
        factor_put(&s, score, true);
        along<E, C>(out, &s, tile_at<E>(job.v, h.shared, job.kv_stride, key, job.seq), size);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float total = row_sum(state.total[i]);
        shrink[i] = 1.0F / total;
        if (threadIdx.x % 16 == 0 && at + y + i < job.seq)
            job.lse[h.row + at + y + i] = fmaf(state.most[i], LN_2, logf(total));
    }
    tile_store<E, C>((E *)job.y + h.out + at * job.channels, job.channels, job.seq - at, size, out, shrink, false);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* Computes dot = sum of dy * y over the channels of each (token, head), which the softmax's gradient subtracts, with 16
 * threads each. */
template <typename E> static __global__ void __launch_bounds__(THREADS) attention_dot(ah_cuda_attention job)
{
    const int64_t count = job.batch * job.seq * job.heads, step = (int64_t)gridDim.x * (THREADS / 16);
    const int64_t rounded = (count + step - 1) / step * step; /* shuffles need all threads of a warp */
    for (int64_t i = (int64_t)blockIdx.x * (THREADS / 16) + threadIdx.x / 16; i < rounded; i += step) {
        const int64_t token = i / job.heads, head = i % job.heads;
        const int64_t at = token * job.channels + head * job.head_size;
        float sum = 0.0F;
        for (int c = (int)threadIdx.x % 16 * 4; i < count && c < job.head_size; c += 64) {
            const float4 a = channels_load((const E *)job.dy + at, c, job.head_size);
            const float4 b = channels_load((const E *)job.y + at, c, job.head_size);
            sum = fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
        }
        sum = row_sum(sum);
        if (i < count && threadIdx.x % 16 == 0)
            job.dot[(token / job.seq * job.heads + head) * job.seq + token % job.seq] = sum;
    }
}

/* Returns the exponent of two of a probability; *slope: the slope of the score's cap. */
template <bool CAPPED>
static __device__ inline float exponent(float *slope, float score, const ah_cuda_attention &job, float minus)
{
    if (CAPPED) {
        const float t = tanhf(score * job.scale / job.cap);
        *slope = 1.0F - t * t;
        return fmaf(job.cap * LOG2_E, t, minus);
    }
    *slope = 1.0F;
    return fmaf(score, job.scale * LOG2_E, minus);
}

/* Computes the probabilities of a tile from its scores, and the slopes of the caps. Zero for masked keys and for
 * queries beyond the sequence. */
template <bool CAPPED>
static __device__ inline void probabilities(float score[4][4], float slope[4][4], const float *lse, int64_t queries,
                                            const ah_cuda_attention &job, sight seen)
{
    const int x = (int)threadIdx.x % 16 * 4, y = (int)threadIdx.x / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float minus = y + i < queries ? -lse[y + i] * LOG2_E : 0.0F;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float power = exponent<CAPPED>(&slope[i][j], score[i][j], job, minus);
            score[i][j] = y + i < queries && sees(seen, y + i, x + j) ? exp2f(power) : 0.0F;
        }
    }
}

/* Multiplies the probabilities by the slopes of their scores' caps, after they have been used for dv; the scores'
 * gradients are made of the result. */
template <bool CAPPED> static __device__ inline void steepen(float prob[4][4], const float slope[4][4])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            prob[i][j] = CAPPED ? prob[i][j] * slope[i][j] : prob[i][j];
}

static __device__ inline void gradients(float dprob[4][4], const float prob[4][4], const float *dot, int64_t queries)
{
    const int y = (int)threadIdx.x / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float subtract = y + i < queries ? dot[y + i] : 0.0F;
#pragma unroll
        for (int j = 0; j < 4; j++)
            dprob[i][j] = prob[i][j] * (dprob[i][j] - subtract);
    }
}

/* Computes the gradients of a tile of keys and values: sums over the heads that share them, in order, and over queries.
 * The first tiles, which most queries see, come first. */
template <typename E, int C, bool CAPPED>
static __global__ void __launch_bounds__(THREADS) attention_backward_keys(ah_cuda_attention job)
{
    __shared__ tiles s;
    const int kv_heads = job.heads / job.group, size = job.head_size;
    const int64_t pairs = job.batch * kv_heads, pair = blockIdx.x % pairs, at = blockIdx.x / pairs * TILE;
    const int first = (int)(pair % kv_heads) * job.group;
    const int32_t *positions = positions_of(job, pair / kv_heads);
    const float one[4] = {1.0F, 1.0F, 1.0F, 1.0F};
    const float scales[4] = {job.scale, job.scale, job.scale, job.scale};
    float dk[C][4][4] = {}, dv[C][4][4] = {}, prob[4][4], slope[4][4], dscore[4][4];
    for (int head = first; head < first + job.group; head++) {
        const place h = place_of(job, pair / kv_heads, head);
        for (int64_t from = at; from < job.seq && first_key(job, positions, from) <= at; from += TILE) {
            const rows<E> q = tile_at<E>(job.q, h.query, job.q_stride, from, job.seq);
            const rows<E> dy = tile_at<E>(job.dy, h.out, job.channels, from, job.seq);
            across(prob, &s, q, tile_at<E>(job.k, h.shared, job.kv_stride, at, job.seq), size);
            probabilities<CAPPED>(prob, slope, job.lse + h.row + from, job.seq - from, job,
                                  sight_of(job, positions, from, from - at));
            factor_put(&s, prob, false);
            steepen<CAPPED>(prob, slope);
            along<E, C>(dv, &s, dy, size);
            across(dscore, &s, dy, tile_at<E>(job.v, h.shared, job.kv_stride, at, job.seq), size);
            gradients(dscore, prob, job.dot + h.row + from, job.seq - from);
            factor_put(&s, dscore, false);
            along<E, C>(dk, &s, q, size);
        }
    }
    const int64_t shared = place_of(job, pair / kv_heads, first).shared + at * job.kv_stride;
    tile_store<E, C>((E *)job.dk + shared, job.kv_stride, job.seq - at, size, dk, scales, job.add_k);
    tile_store<E, C>((E *)job.dv + shared, job.kv_stride, job.seq - at, size, dv, one, job.add_v);
}

/* Computes the gradient of a tile of queries: a sum over keys. */
template <typename E, int C, bool CAPPED>
static __global__ void __launch_bounds__(THREADS) attention_backward_queries(ah_cuda_attention job, int64_t tile_count)
{
    __shared__ tiles s;
    const int64_t pairs = job.batch * job.heads, pair = blockIdx.x % pairs;
    const int64_t at = (tile_count - 1 - blockIdx.x / pairs) * TILE;
    const place h = place_of(job, pair / job.heads, (int)(pair % job.heads));
    const rows<E> q = tile_at<E>(job.q, h.query, job.q_stride, at, job.seq);
    const rows<E> dy = tile_at<E>(job.dy, h.out, job.channels, at, job.seq);
    const int size = job.head_size;
    const float scales[4] = {job.scale, job.scale, job.scale, job.scale};
    float dq[C][4][4] = {}, prob[4][4], slope[4][4], dscore[4][4];
    const int32_t *positions = positions_of(job, pair / job.heads);
    for (int64_t key = first_key(job, positions, at); key <= at; key += TILE) {
        const rows<E> k = tile_at<E>(job.k, h.shared, job.kv_stride, key, job.seq);
        across(prob, &s, q, k, size);
        probabilities<CAPPED>(prob, slope, job.lse + h.row + at, job.seq - at, job,
                              sight_of(job, positions, at, at - key));
        steepen<CAPPED>(prob, slope);
        across(dscore, &s, dy, tile_at<E>(job.v, h.shared, job.kv_stride, key, job.seq), size);
        gradients(dscore, prob, job.dot + h.row + at, job.seq - at);
        factor_put(&s, dscore, true);
        along<E, C>(dq, &s, k, size);
    }
    tile_store<E, C>((E *)job.dq + h.query + at * job.q_stride, job.q_stride, job.seq - at, size, dq, scales,
                     job.add_q);
}

/* ---- sinks ------------------------------------------------------------------------------------------------------- */

/* Takes the sink's share from each row of y, with 16 threads a row, and puts its exponential into the row's sum. */
template <typename E> static __global__ void __launch_bounds__(THREADS) attention_sinks(ah_cuda_attention job)
{
    const int64_t count = job.batch * job.seq * job.heads, step = (int64_t)gridDim.x * (THREADS / 16);
    const int64_t rounded = (count + step - 1) / step * step;
    for (int64_t i = (int64_t)blockIdx.x * (THREADS / 16) + threadIdx.x / 16; i < rounded; i += step) {
        const int64_t token = i / job.heads, head = i % job.heads;
        float *at = job.lse + (token / job.seq * job.heads + head) * job.seq + token % job.seq;
        const float lse = i < count ? *at : 0.0F, sink = i < count ? sink_of<E>(job, (int)head) : 0.0F;
        const float most = fmaxf(lse, sink), sum = most + logf(expf(lse - most) + expf(sink - most));
        const float share = expf(lse - sum);
        E *y = (E *)job.y + token * job.channels + head * job.head_size;
        for (int c = (int)threadIdx.x % 16; i < count && c < job.head_size; c += 16)
            put(y + c, wide(y[c]) * share);
        __syncwarp(); /* all have read the sum */
        if (i < count && threadIdx.x % 16 == 0)
            *at = sum;
    }
}

/* Computes the gradient of a head's sink in a block: each thread sums tokens that are THREADS apart, and these sums are
 * added in the order of a tree. */
template <typename E> static __global__ void __launch_bounds__(THREADS) sinks_backward(ah_cuda_attention job)
{
    __shared__ float part[THREADS];
    const int head = (int)blockIdx.x;
    const float sink = sink_of<E>(job, head);
    float sum = 0.0F;
    for (int64_t token = threadIdx.x; token < job.batch * job.seq; token += THREADS) {
        const int64_t row = (token / job.seq * job.heads + head) * job.seq + token % job.seq;
        sum = fmaf(-expf(sink - job.lse[row]), job.dot[row], sum);
    }
    part[threadIdx.x] = sum;
    for (int step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
    }
    if (threadIdx.x == 0)
        job.dsinks[head] = job.add_sinks ? job.dsinks[head] + part[0] : part[0];
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static int64_t tiles_of(const ah_cuda_attention *job)
{
    return blocks_for(job->seq, TILE);
}

template <typename E, int C> static cudaError_t forward_launch(cudaStream_t stream, const ah_cuda_attention *job)
{
    const int64_t count = tiles_of(job);
    return launch(job->cap > 0 ? attention_forward<E, C, true> : attention_forward<E, C, false>,
                  dim3((unsigned)(count * job->batch * job->heads)), dim3(THREADS), 0, stream, *job, count);
}

/* Launches a kernel that has 16 threads for each row of each head. */
static cudaError_t rows_launch(void (*kernel)(ah_cuda_attention), cudaStream_t stream, const ah_cuda_attention *job)
{
    const int64_t blocks = blocks_for(job->batch * job->seq * job->heads, THREADS / 16);
    return launch(kernel, dim3((unsigned)least(blocks, 4096)), dim3(THREADS), 0, stream, *job);
}

template <typename E, int C> static cudaError_t backward_launch(cudaStream_t stream, const ah_cuda_attention *job)
{
    const int64_t count = tiles_of(job);
    cudaError_t error = rows_launch(attention_dot<E>, stream, job);
    if (error == cudaSuccess)
        error =
            launch(job->cap > 0 ? attention_backward_keys<E, C, true> : attention_backward_keys<E, C, false>,
                   dim3((unsigned)(count * job->batch * (job->heads / job->group))), dim3(THREADS), 0, stream, *job);
    if (error == cudaSuccess)
        error = launch(job->cap > 0 ? attention_backward_queries<E, C, true> : attention_backward_queries<E, C, false>,
                       dim3((unsigned)(count * job->batch * job->heads)), dim3(THREADS), 0, stream, *job, count);
    return error;
}

typedef cudaError_t launcher(cudaStream_t stream, const ah_cuda_attention *job);

/* Launchers by dtype and by multiples of 64 channels. */
static launcher *const forward_launchers[2][4] = {
    {forward_launch<float, 1>, forward_launch<float, 2>, forward_launch<float, 3>, forward_launch<float, 4>},
    {forward_launch<__nv_bfloat16, 1>, forward_launch<__nv_bfloat16, 2>, forward_launch<__nv_bfloat16, 3>,
     forward_launch<__nv_bfloat16, 4>},
};
static launcher *const backward_launchers[2][4] = {
    {backward_launch<float, 1>, backward_launch<float, 2>, backward_launch<float, 3>, backward_launch<float, 4>},
    {backward_launch<__nv_bfloat16, 1>, backward_launch<__nv_bfloat16, 2>, backward_launch<__nv_bfloat16, 3>,
     backward_launch<__nv_bfloat16, 4>},
};

extern "C" cudaError_t ah__cuda_attention_enqueue(cudaStream_t stream, const struct ah_cuda_attention *job)
{
    return forward_launchers[job->dtype == AH_BF16][(job->head_size - 1) / 64](stream, job);
}

extern "C" cudaError_t ah__cuda_attention_bwd_enqueue(cudaStream_t stream, const struct ah_cuda_attention *job)
{
    return backward_launchers[job->dtype == AH_BF16][(job->head_size - 1) / 64](stream, job);
}

extern "C" cudaError_t ah__cuda_sinks_enqueue(cudaStream_t stream, const struct ah_cuda_attention *job)
{
    return rows_launch(job->dtype == AH_BF16 ? attention_sinks<__nv_bfloat16> : attention_sinks<float>, stream, job);
}

extern "C" cudaError_t ah__cuda_sinks_bwd_enqueue(cudaStream_t stream, const struct ah_cuda_attention *job)
{
    const bool bf16 = job->dtype == AH_BF16;
    const cudaError_t error = rows_launch(bf16 ? attention_dot<__nv_bfloat16> : attention_dot<float>, stream, job);
    if (error != cudaSuccess)
        return error;
    return launch(bf16 ? sinks_backward<__nv_bfloat16> : sinks_backward<float>, dim3((unsigned)job->heads),
                  dim3(THREADS), 0, stream, *job);
}

/* ---- masks of documents ------------------------------------------------------------------------------------------ */

/* Writes the mask, with a thread for each 16 bytes of a row. */
static __global__ void __launch_bounds__(THREADS)
    document_mask(__nv_bfloat16 *mask, const int32_t *positions, int64_t seq, int64_t stride, int64_t packs)
{
    const float out_of_sight = -0x1p100F;
    enum { LANES = lanes16<__nv_bfloat16> };
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < packs; i += (int64_t)gridDim.x * THREADS) {
        const int64_t at = i * LANES, row = at / stride, first = row % seq - positions[row];
        pack<__nv_bfloat16, LANES> out;
#pragma unroll
        for (int u = 0; u < LANES; u++)
            put(&out.lane[u], at % stride + u < first ? out_of_sight : 0.0F);
        pack_store<__nv_bfloat16, LANES>(mask + at, out);
    }
}

extern "C" cudaError_t ah__cuda_document_mask_enqueue(cudaStream_t stream, void *mask, const int32_t *positions,
                                                      int64_t batch, int64_t seq, int64_t stride)
{
    const int64_t packs = batch * seq * stride / lanes16<__nv_bfloat16>;
    return launch(document_mask, dim3((unsigned)least(blocks_for(packs, THREADS), 65536)), dim3(THREADS), 0, stream,
                  (__nv_bfloat16 *)mask, positions, seq, stride, packs);
}
