/* The optimizer step, with the same bits as dev/host's. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/task.cuh"
#include "dev/draw.h"
#include "dev/planes.h"

enum { VECTOR = 4 };

/* The type of four elements: 16 bytes of floats, 8 of bfloat16. */
template <typename T> struct four;
template <> struct four<float> {
    typedef float4 type;
};
template <> struct four<unsigned short> {
    typedef ushort4 type;
};

/* ---- Adam: bound by memory, 14 to 28 bytes an element; each thread has four loads of 8 or 16 bytes in flight ----- */

struct update {
    const void *p, *m, *v;
    void *to_p, *to_m, *to_v;
    const unsigned short *rest;
    unsigned short *to_rest;
    const void *g;
    int64_t count, decayed;
    uint32_t first;
    struct ah_adam adam;
    const float *scale;
};

struct states {
    float p, m, v;
};

/* Does the operations of dev.h, each rounded once. */
static __device__ inline void adam_step(struct states *s, float given, const struct ah_adam *a, float scale,
                                        float decay)
{
    float g = __fmul_rn(given, scale);
    s->m = __fmaf_rn(a->beta1, s->m, __fmul_rn(a->one_minus_beta1, g));
    s->v = __fmaf_rn(a->beta2, s->v, __fmul_rn(__fmul_rn(a->one_minus_beta2, g), g));
    float root = __fadd_rn(__fmul_rn(__fsqrt_rn(s->v), a->inv_sqrt_bias2), a->eps);
    s->p = __fmaf_rn(-a->step_size, __fdiv_rn(s->m, root), __fmul_rn(s->p, decay));
}

/* Returns the stored form of a state; `random16` rounds it to BF16. */
template <typename T> static __device__ inline T state_of(float x, uint32_t random16);
template <> __device__ inline float state_of<float>(float x, uint32_t)
{
    return x;
}
template <> __device__ inline unsigned short state_of<unsigned short>(float x, uint32_t random16)
{
    return x == x ? ah__bf16_drawn(__float_as_uint(x), random16) : 0x7fc0; /* a GPU's NaN would round to 0 */
}

/* The dtypes of parameters and gradient, and of moments; planes: parameters have a rest. */
template <typename P, typename M, bool with_rest> struct form {
    typedef P param;
    typedef M moment;
    static const bool planes = with_rest;
};

/* Returns the parameter p together with its rest. */
template <bool planes, typename P> static __device__ inline float param_of(P p, unsigned short)
{
    return value_of(p);
}
template <> __device__ inline float param_of<true, unsigned short>(unsigned short p, unsigned short rest)
{
    return __uint_as_float(ah__planes_joined(p, rest));
}

/* Returns the stored form of an updated parameter. */
template <bool planes, typename P> static __device__ inline P param_stored(unsigned short *, float x, uint32_t random16)
{
    return state_of<P>(x, random16);
}
template <> __device__ inline unsigned short param_stored<true, unsigned short>(unsigned short *rest, float x, uint32_t)
{
    uint32_t bits = ah__plane_bits(__float_as_uint(x));
    *rest = static_cast<unsigned short>(bits & 0xffff);
    return ah__plane_upper(bits);
}

/* Updates one element. If the scale is not a number, the step is skipped: states stay as they are, and are copied if
 * they have another destination. */
template <typename F> static __device__ inline void adam_element(const struct update &u, int64_t i, float scale)
{
    typedef typename F::param P;
    typedef typename F::moment M;
    const P *p = static_cast<const P *>(u.p);
    const M *m = static_cast<const M *>(u.m), *v = static_cast<const M *>(u.v);
    const unsigned short rest = F::planes ? u.rest[i] : static_cast<unsigned short>(0);
    unsigned short below = rest;
    struct states s = {param_of<F::planes, P>(p[i], rest), value_of(m[i]), value_of(v[i])};
    bool skipped = scale != scale;
    uint32_t number = u.first + static_cast<uint32_t>(i), drawn = ah__draw(u.adam.draw, number);
    if (skipped && u.to_p == u.p)
        return;
    if (!skipped)
        adam_step(&s, value_of(static_cast<const P *>(u.g)[i]), &u.adam, scale,
                  i < u.decayed ? u.adam.decay_factor : 1.0F);
    P updated = param_stored<F::planes, P>(&below, s.p, ah__draw(~u.adam.draw, number) & 0xffff);
    static_cast<P *>(u.to_p)[i] = skipped ? p[i] : updated;
    static_cast<M *>(u.to_m)[i] = skipped ? m[i] : state_of<M>(s.m, drawn & 0xffff);
    static_cast<M *>(u.to_v)[i] = skipped ? v[i] : state_of<M>(s.v, drawn >> 16);
    if (F::planes)
        u.to_rest[i] = skipped ? rest : below;
}

template <typename F> static __global__ void __launch_bounds__(THREADS) adam_plain(struct update u)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    float scale = u.scale ? *u.scale : 1.0F;
    if (i < u.count)
        adam_element<F>(u, i, scale);
}

template <typename T> static __device__ inline typename four<T>::type four_at(const void *from, int64_t i)
{
    return *reinterpret_cast<const typename four<T>::type *>(static_cast<const T *>(from) + i);
}

template <typename T> static __device__ inline void four_put(void *to, int64_t i, T x, T y, T z, T w)
{
    const typename four<T>::type all = {x, y, z, w};
    *reinterpret_cast<typename four<T>::type *>(static_cast<T *>(to) + i) = all;
}

template <typename F> static __device__ inline void adam_four(const struct update &u, int64_t i, float scale)
{
    typedef typename F::param P;
    typedef typename F::moment M;
    const auto p = four_at<P>(u.p, i), g = four_at<P>(u.g, i);
    const auto m = four_at<M>(u.m, i), v = four_at<M>(u.v, i);
    ushort4 rest = {0, 0, 0, 0};
    if (F::planes)
        rest = four_at<unsigned short>(u.rest, i);
    struct states s[VECTOR] = {{param_of<F::planes, P>(p.x, rest.x), value_of(m.x), value_of(v.x)},
                               {param_of<F::planes, P>(p.y, rest.y), value_of(m.y), value_of(v.y)},
                               {param_of<F::planes, P>(p.z, rest.z), value_of(m.z), value_of(v.z)},
                               {param_of<F::planes, P>(p.w, rest.w), value_of(m.w), value_of(v.w)}};
    const float given[VECTOR] = {value_of(g.x), value_of(g.y), value_of(g.z), value_of(g.w)};
    P updated[VECTOR];
    M first[VECTOR], second[VECTOR];
    unsigned short below[VECTOR] = {0, 0, 0, 0};
    for (int j = 0; j < VECTOR; j++) {
        adam_step(&s[j], given[j], &u.adam, scale, i + j < u.decayed ? u.adam.decay_factor : 1.0F);
        uint32_t number = u.first + static_cast<uint32_t>(i + j), drawn = ah__draw(u.adam.draw, number);
        updated[j] = param_stored<F::planes, P>(&below[j], s[j].p, ah__draw(~u.adam.draw, number) & 0xffff);
        first[j] = state_of<M>(s[j].m, drawn & 0xffff);
        second[j] = state_of<M>(s[j].v, drawn >> 16);
    }
    four_put<P>(u.to_p, i, updated[0], updated[1], updated[2], updated[3]);
    four_put<M>(u.to_m, i, first[0], first[1], first[2], first[3]);
    four_put<M>(u.to_v, i, second[0], second[1], second[2], second[3]);
    if (F::planes)
        four_put<unsigned short>(u.to_rest, i, below[0], below[1], below[2], below[3]);
}

template <typename F> static __global__ void __launch_bounds__(THREADS) adam_vector(struct update u)
{
    int64_t i = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) * VECTOR;
    float scale = u.scale ? *u.scale : 1.0F;
    if (i + VECTOR <= u.count && scale == scale)
        adam_four<F>(u, i, scale);
    else
        for (int64_t end = i + VECTOR < u.count ? i + VECTOR : u.count; i < end; i++)
            adam_element<F>(u, i, scale);
}

/* Launches the kernel for the alignment of the addresses: tiles of a group may begin at any element. */
template <typename F> static cudaError_t adam_launch(cudaStream_t stream, const struct update &u)
{
    const size_t param = VECTOR * sizeof(typename F::param), moment = VECTOR * sizeof(typename F::moment);
    const size_t rest = VECTOR * sizeof *u.rest;
    bool aligned = is_aligned(u.p, param) && is_aligned(u.m, moment) && is_aligned(u.v, moment) &&
                   is_aligned(u.to_p, param) && is_aligned(u.to_m, moment) && is_aligned(u.to_v, moment) &&
                   is_aligned(u.rest, rest) && is_aligned(u.to_rest, rest) && is_aligned(u.g, param);
    if (aligned)
        return launch(adam_vector<F>, blocks_of(u.count, THREADS * VECTOR), THREADS, 0, stream, u);
    return launch(adam_plain<F>, blocks_of(u.count, THREADS), THREADS, 0, stream, u);
}

/* ---- moments in 8 bits: a warp has a group, each lane every 32nd element, 8 of them ------------------------------ */

enum { WARP = 32, GROUPS = THREADS / WARP, EACH = AH_CODE8_GROUP / WARP };

static __device__ const struct ah_code8 code8_signed = AH_CODE8_SIGNED, code8_unsigned = AH_CODE8_UNSIGNED;
static __device__ const float code8_decades[AH_CODE8_LEVELS] = AH_CODE8_DECADES;

/* Tables in shared memory, so that all lanes can read an entry at once. */
struct code8_tables {
    struct ah_code8 of_first, of_second;
    float decades[AH_CODE8_LEVELS];
};

static __device__ inline void code8_tables_fill(struct code8_tables *tables)
{
    if (threadIdx.x == 0) {
        tables->of_first = code8_signed;
        tables->of_second = code8_unsigned;
    }
    if (threadIdx.x < AH_CODE8_LEVELS)
        tables->decades[threadIdx.x] = code8_decades[threadIdx.x];
    __syncthreads();
}

static __device__ inline void code8_load(float *values, const uint8_t *group, const struct ah_code8 *table,
                                         const float *decades, int lane)
{
    float scale = *reinterpret_cast<const float *>(group + AH_CODE8_GROUP);
    for (int j = 0; j < EACH; j++)
        values[j] = __fmul_rn(ah__code8_value(group[j * WARP + lane], table, decades), scale);
}

/* Encodes and stores a group. All lanes have read its scale before the first of them writes it: shuffles order no
 * memory, __syncwarp() does. */
static __device__ inline void code8_store(uint8_t *group, const float *values, const struct ah_code8 *table, int lane)
{
    uint32_t most = 0;
    for (int j = 0; j < EACH; j++) {
        uint32_t magnitude = __float_as_uint(values[j]) & 0x7FFFFFFFU;
        most = most > magnitude ? most : magnitude;
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        uint32_t other = __shfl_xor_sync(0xFFFFFFFFU, most, step);
        most = most > other ? most : other;
    }
    uint32_t scale = ah__code8_scale(most);
    bool usable = ah__code8_usable(scale);
    float inverse = usable ? __fdiv_rn(1.0F, __uint_as_float(scale)) : 0.0F;
    __syncwarp();
    for (int j = 0; j < EACH; j++)
        group[j * WARP + lane] = ah__code8_of(usable ? __fmul_rn(values[j], inverse) : 0.0F, table);
    if (lane == 0)
        *reinterpret_cast<uint32_t *>(group + AH_CODE8_GROUP) = scale;
}

static __device__ inline void code8_copy(uint8_t *to, const uint8_t *from, int lane)
{
    for (int j = lane; j < AH_CODE8_BYTES && to != from; j += WARP)
        to[j] = from[j];
}

/* Updates the group of elements from i on, in a step that is not skipped. */
template <typename P, bool planes>
static __device__ inline void code8_group(const struct update &u, const struct code8_tables *tables, int64_t i,
                                          float scale, int lane)
{
    int64_t at = i / AH_CODE8_GROUP * AH_CODE8_BYTES;
    float first[EACH], second[EACH], given[EACH], param[EACH]; /* everything is loaded before anything is stored */
    for (int j = 0; j < EACH; j++) {
        int64_t k = i + j * WARP + lane;
        param[j] =
            param_of<planes, P>(static_cast<const P *>(u.p)[k], planes ? u.rest[k] : static_cast<unsigned short>(0));
        given[j] = value_of(static_cast<const P *>(u.g)[k]);
    }
    code8_load(first, static_cast<const uint8_t *>(u.m) + at, &tables->of_first, tables->decades, lane);
    code8_load(second, static_cast<const uint8_t *>(u.v) + at, &tables->of_second, tables->decades, lane);
    for (int j = 0; j < EACH; j++) {
        int64_t k = i + j * WARP + lane;
        struct states s = {param[j], first[j], second[j]};
        adam_step(&s, given[j], &u.adam, scale, i < u.decayed ? u.adam.decay_factor : 1.0F);
        first[j] = s.m;
        second[j] = s.v;
        uint32_t drawn = ah__draw(~u.adam.draw, u.first + static_cast<uint32_t>(k));
        unsigned short rest = 0;
        static_cast<P *>(u.to_p)[k] = param_stored<planes, P>(&rest, s.p, drawn & 0xffff);
        if (planes)
            u.to_rest[k] = rest;
    }
    code8_store(static_cast<uint8_t *>(u.to_m) + at, first, &tables->of_first, lane);
    code8_store(static_cast<uint8_t *>(u.to_v) + at, second, &tables->of_second, lane);
}

/* Handles a group in a skipped step: states stay as they are, and are copied if they have another destination. */
template <typename P, bool planes> static __device__ inline void code8_skip(const struct update &u, int64_t i, int lane)
{
    int64_t at = i / AH_CODE8_GROUP * AH_CODE8_BYTES;
    for (int64_t k = i + lane; k < i + AH_CODE8_GROUP; k += WARP) {
        static_cast<P *>(u.to_p)[k] = static_cast<const P *>(u.p)[k];
        if (planes)
            u.to_rest[k] = u.rest[k];
    }
    code8_copy(static_cast<uint8_t *>(u.to_m) + at, static_cast<const uint8_t *>(u.m) + at, lane);
    code8_copy(static_cast<uint8_t *>(u.to_v) + at, static_cast<const uint8_t *>(u.v) + at, lane);
}

template <typename P, bool planes> static __global__ void __launch_bounds__(THREADS) adam_code8(struct update u)
{
    __shared__ struct code8_tables tables;
    int lane = threadIdx.x % WARP;
    int64_t i = (static_cast<int64_t>(blockIdx.x) * GROUPS + threadIdx.x / WARP) * AH_CODE8_GROUP;
    float scale = u.scale ? *u.scale : 1.0F;
    code8_tables_fill(&tables);
    if (i >= u.count)
        return;
    if (scale == scale)
        code8_group<P, planes>(u, &tables, i, scale, lane);
    else
        code8_skip<P, planes>(u, i, lane);
}

/* ---- choice of the kernel ---------------------------------------------------------------------------------------- */

/* Launches the kernel for the format of moments. */
template <typename P, bool planes>
static cudaError_t adam_of(cudaStream_t stream, const struct update &u, enum ah_dtype moments)
{
    if (moments == AH_U8)
        return launch(adam_code8<P, planes>, blocks_of(u.count / AH_CODE8_GROUP, GROUPS), THREADS, 0, stream, u);
    return moments == AH_BF16 ? adam_launch<form<P, unsigned short, planes>>(stream, u)
                              : adam_launch<form<P, float, planes>>(stream, u);
}

cudaError_t ah__cuda_adam(cudaStream_t stream, const struct ah_task *task)
{
    const auto &t = task->as.adam;
    bool apart = t.to_p != NULL;
    struct update u = {t.p,
                       t.m,
                       t.v,
                       apart ? t.to_p : t.p,
                       apart ? t.to_m : t.m,
                       apart ? t.to_v : t.v,
                       static_cast<const unsigned short *>(t.rest),
                       static_cast<unsigned short *>(apart ? t.to_rest : t.rest),
                       t.g,
                       t.count,
                       t.decayed,
                       static_cast<uint32_t>(t.first),
                       t.adam,
                       t.scale};
    if (t.count == 0)
        return cudaSuccess;
    if (t.rest)
        return adam_of<unsigned short, true>(stream, u, t.moment_dtype);
    return t.dtype == AH_BF16 ? adam_of<unsigned short, false>(stream, u, t.moment_dtype)
                              : adam_of<float, false>(stream, u, t.moment_dtype);
}
