/* Functions of one element, or of several at one place. Each thread loads its operands before it computes, and
 * overwrites only elements that it has read itself, so operands may be in place. */
#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"

enum { THREADS = 256, PACKS = 2, MOST_IN = 3, MOST_OUT = 2 };

struct places {
    void *out[MOST_OUT];
    const void *in[MOST_IN];
    int64_t n;
};

/* ---- the functions ----------------------------------------------------------------------------------------------- */

/* Returns e^x, bounded so that 1 + e^x is finite and e^x / (1 + e^x) is a number. */
static __device__ inline float exp_bounded(float x)
{
    return expf(fminf(x, 88.3F));
}

/* GELU by tanh. With u = sqrt(2/pi) (x + 0.044715 x^3), (1 + tanh u) / 2 is the logistic function s(2u), which needs
 * one exp and loses no digits to cancellation. */
static __device__ inline float gelu_exp(float x, float square)
{
    return exp_bounded(x * fmaf(square, -0.0713548163F, -1.59576912F));
}

struct gelu {
    enum { IN = 1, OUT = 1 };
    static __device__ void at(float *y, const float *in)
    {
        y[0] = __fdividef(in[0], 1.0F + gelu_exp(in[0], in[0] * in[0]));
    }
};

/* Operands (dy, x). The slope is s + x s (1 - s) (2u)', where 1 - s = e s. */
struct gelu_bwd {
    enum { IN = 2, OUT = 1 };
    static __device__ void at(float *dx, const float *in)
    {
        float x = in[1], square = x * x, e = gelu_exp(x, square), s = __fdividef(1.0F, 1.0F + e);
        float inner = fmaf(square, 0.214064449F, 1.59576912F);
        dx[0] = in[0] * fmaf(x * s * (e * s), inner, s);
    }
};

/* Returns the probability of a normal variable below x; *density: its density at x. As on the CPU device. */
static __device__ inline float normal_below(float x, float *density)
{
    const float factor[] = {0.0162356608F, -0.0608639531F, 0.0469569489F, 0.0349443816F, 0.00706185726F,
                            0.0898367986F, 0.070840992F,   0.0957787186F, 0.099458836F,  0.0997497663F};
    float a = fminf(fabsf(x), 13.5F), square = a * a, lost = fmaf(a, a, -square), e = expf(-0.5F * square);
    e = fmaf(e, -0.5F * lost, e);
    float t = 1.0F / fmaf(a, 0.25F, 1.0F), p = factor[0];
#pragma unroll
    for (int i = 1; i < 10; i++)
        p = fmaf(p, t, factor[i]);
    *density = e * 0.398942280F;
    return x < 0.0F ? e * (p * t) : 1.0F - e * (p * t);
}

struct gelu_erf {
    enum { IN = 1, OUT = 1 };
    static __device__ void at(float *y, const float *in)
    {
        float density;
        y[0] = in[0] * normal_below(in[0], &density);
    }
};

struct gelu_erf_bwd {
    enum { IN = 2, OUT = 1 };
    static __device__ void at(float *dx, const float *in)
    {
        float density, below = normal_below(in[1], &density);
        dx[0] = in[0] * fmaf(in[1], density, below);
    }
};

/* ReLU; NaN stays NaN. */
struct relu {
    enum { IN = 1, OUT = 1 };
    static __device__ void at(float *y, const float *in)
    {
        y[0] = 0.0F > in[0] ? 0.0F : in[0];
    }
};

struct relu_bwd {
    enum { IN = 2, OUT = 1 };
    static __device__ void at(float *dx, const float *in)
    {
        dx[0] = in[0] * (0.0F < in[1] ? 1.0F : 0.0F);
    }
};

struct silu_mul {
    enum { IN = 2, OUT = 1 };
    static __device__ void at(float *y, const float *in)
    {
        y[0] = __fdividef(in[0], 1.0F + exp_bounded(-in[0])) * in[1];
    }
};

/* Operands (dy, gate g, up). With s = 1 / (1 + e^-g), the slope of g s is s + g s (1 - s), where 1 - s = e^-g s. */
struct silu_mul_bwd {
    enum { IN = 3, OUT = 2 };
    static __device__ void at(float *out, const float *in)
    {
        float e = exp_bounded(-in[1]), s = __fdividef(1.0F, 1.0F + e), silu = in[1] * s;
        out[0] = in[0] * in[2] * fmaf(silu, e * s, s);
        out[1] = in[0] * silu;
    }
};

struct swiglu_clamped {
    enum { IN = 2, OUT = 1 };
    float scale, limit;
    /* Returns x within limits; NaN stays NaN. */
    static __device__ float within(float x, float low, float high)
    {
        return x < low ? low : x > high ? high : x;
    }
    __device__ void at(float *y, const float *in) const
    {
        float g = in[0] > limit ? limit : in[0], u = within(in[1], -limit, limit);
        y[0] = __fdividef(g, 1.0F + exp_bounded(-scale * g)) * (u + 1.0F);
    }
};

/* Operands (dy, gate, up). With s = 1 / (1 + e^(-f g)), the slope of g s is s + f g s (1 - s). */
struct swiglu_clamped_bwd {
    enum { IN = 3, OUT = 2 };
    float scale, limit;
    __device__ void at(float *out, const float *in) const
    {
        float g = in[1] > limit ? limit : in[1], u = swiglu_clamped::within(in[2], -limit, limit);
        float e = exp_bounded(-scale * g), s = __fdividef(1.0F, 1.0F + e), glu = g * s;
        out[0] = in[1] > limit ? 0.0F : in[0] * (u + 1.0F) * fmaf(glu * scale, e * s, s);
        out[1] = in[2] > limit || in[2] < -limit ? 0.0F : in[0] * glu;
    }
};

struct gelu_mul {
    enum { IN = 2, OUT = 1 };
    static __device__ void at(float *y, const float *in)
    {
        gelu::at(y, in);
        y[0] *= in[1];
    }
};

/* Operands (dy, gate, up). */
struct gelu_mul_bwd {
    enum { IN = 3, OUT = 2 };
    static __device__ void at(float *out, const float *in)
    {
        const float with_up[2] = {in[0] * in[2], in[1]};
        gelu_bwd::at(&out[0], with_up);
        gelu::at(&out[1], &in[1]);
        out[1] *= in[0];
    }
};

struct scale {
    enum { IN = 1, OUT = 1 };
    float factor;
    __device__ void at(float *y, const float *in) const
    {
        y[0] = in[0] * factor;
    }
};

struct soft_cap {
    enum { IN = 1, OUT = 1 };
    float cap;
    __device__ void at(float *y, const float *in) const
    {
        y[0] = cap * tanhf(in[0] / cap);
    }
};

struct sum {
    enum { IN = 2, OUT = 1 };
    static __device__ void at(float *y, const float *in)
    {
        y[0] = in[0] + in[1];
    }
};

/* ---- over arrays ------------------------------------------------------------------------------------------------- */

template <typename E, int N, typename F>
static __device__ void pack_apply(pack<E, N> to[F::OUT], const pack<E, N> from[F::IN], const F &f)
{
#pragma unroll
    for (int u = 0; u < N; u++) {
        float in[F::IN], out[F::OUT];
#pragma unroll
        for (int i = 0; i < F::IN; i++)
            in[i] = wide(from[i].lane[u]);
        f.at(out, in);
#pragma unroll
        for (int i = 0; i < F::OUT; i++)
            put(&to[i].lane[u], out[i]);
    }
}

/* Processes packs `at`, `at` + THREADS, ... of one thread. */
template <typename E, int N, typename F, int COUNT>
static __device__ void packs_apply(const struct places &p, int64_t at, const F &f)
{
    pack<E, N> in[COUNT][F::IN], out[F::OUT];
#pragma unroll
    for (int j = 0; j < COUNT; j++)
#pragma unroll
        for (int i = 0; i < F::IN; i++)
            in[j][i] = pack_load<E, N>((const E *)p.in[i] + (at + j * THREADS) * N);
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        pack_apply<E, N, F>(out, in[j], f);
#pragma unroll
        for (int i = 0; i < F::OUT; i++)
            pack_store<E, N>((E *)p.out[i] + (at + j * THREADS) * N, out[i]);
    }
}

template <typename E, typename F> static __global__ void __launch_bounds__(THREADS) elementwise(struct places p, F f)
{
    constexpr int N = lanes16<E>;
    int64_t packs = p.n / N, at = (int64_t)blockIdx.x * (PACKS * THREADS) + threadIdx.x;
    if (at + (PACKS - 1) * THREADS < packs)
        packs_apply<E, N, F, PACKS>(p, at, f);
    else
        for (; at < packs; at += THREADS)
            packs_apply<E, N, F, 1>(p, at, f);
    /* The rest of less than a pack, element by element. */
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < p.n % N)
        packs_apply<E, 1, F, 1>(p, packs * N + threadIdx.x, f);
}

template <typename F>
static cudaError_t apply(cudaStream_t stream, enum ah_dtype dtype, const struct places *p, F f = F())
{
    if (dtype == AH_BF16)
        return launch(elementwise<__nv_bfloat16, F>, dim3(blocks_for(p->n, PACKS * THREADS * lanes16<__nv_bfloat16>)),
                      dim3(THREADS), 0, stream, *p, f);
    return launch(elementwise<float, F>, dim3(blocks_for(p->n, PACKS * THREADS * lanes16<float>)), dim3(THREADS), 0,
                  stream, *p, f);
}

/* ---- over halves of rows ----------------------------------------------------------------------------------------- */

/* The last two inputs, and both outputs if there are two, are halves of rows of 2 * cols elements; the others are rows
 * of cols. */
template <typename E, int N, typename F>
static __global__ void __launch_bounds__(THREADS) halves(struct places p, int64_t cols, F f)
{
    int64_t at = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N, wide_at = at + at / cols * cols;
    if (at >= p.n)
        return;
    pack<E, N> in[F::IN], out[F::OUT];
#pragma unroll
    for (int i = 0; i < F::IN; i++)
        in[i] = pack_load<E, N>((const E *)p.in[i] + (i < F::IN - 2 ? at : wide_at));
    pack_apply<E, N, F>(out, in, f);
#pragma unroll
    for (int i = 0; i < F::OUT; i++)
        pack_store<E, N>((E *)p.out[i] + (F::OUT < 2 ? at : wide_at), out[i]);
}

template <typename E, int N, typename F>
static cudaError_t forward_launch(const struct ah_cuda_halves *job, cudaStream_t stream, F f)
{
    const E *x = (const E *)job->in[0];
    return launch(halves<E, N, F>, dim3(blocks_for(job->rows * job->cols, THREADS * N)), dim3(THREADS), 0, stream,
                  places{{job->out}, {x, x + job->cols}, job->rows * job->cols}, job->cols, f);
}

template <typename E, int N, typename F>
static cudaError_t backward_launch(const struct ah_cuda_halves *job, cudaStream_t stream, F f)
{
    const E *x = (const E *)job->in[1];
    return launch(halves<E, N, F>, dim3(blocks_for(job->rows * job->cols, THREADS * N)), dim3(THREADS), 0, stream,
                  places{{job->out, (E *)job->out + job->cols}, {job->in[0], x, x + job->cols}, job->rows * job->cols},
                  job->cols, f);
}

template <typename E, int N>
static cudaError_t halves_launch(cudaStream_t stream, enum ah_op op, const struct ah_cuda_halves *job)
{
    switch ((int)op) {
    case AH_OP_SILU_MUL_HALVES:
        return forward_launch<E, N>(job, stream, silu_mul());
    case AH_OP_SILU_MUL_HALVES_BWD:
        return backward_launch<E, N>(job, stream, silu_mul_bwd());
    case AH_OP_SWIGLU_CLAMPED:
        return forward_launch<E, N>(job, stream, swiglu_clamped{job->scale, job->limit});
    case AH_OP_SWIGLU_CLAMPED_BWD:
        return backward_launch<E, N>(job, stream, swiglu_clamped_bwd{job->scale, job->limit});
    default:
        return cudaErrorNotSupported;
    }
}

template <typename E> static cudaError_t halves_of(cudaStream_t stream, enum ah_op op, const struct ah_cuda_halves *job)
{
    return job->cols % lanes16<E> == 0 ? halves_launch<E, lanes16<E>>(stream, op, job)
                                       : halves_launch<E, 1>(stream, op, job);
}

cudaError_t ah__cuda_halves_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype,
                                    const struct ah_cuda_halves *job)
{
    return dtype == AH_BF16 ? halves_of<__nv_bfloat16>(stream, op, job) : halves_of<float>(stream, op, job);
}

cudaError_t ah__cuda_elementwise_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype, void *const *out,
                                         const void *const *in, int64_t n, float factor)
{
    struct places p = {{out[0], out[1]}, {in[0], in[1], in[2]}, n};
    switch ((int)op) {
    case AH_OP_GELU:
        return apply<gelu>(stream, dtype, &p);
    case AH_OP_GELU_BWD:
        return apply<gelu_bwd>(stream, dtype, &p);
    case AH_OP_GELU_ERF:
        return apply<gelu_erf>(stream, dtype, &p);
    case AH_OP_GELU_ERF_BWD:
        return apply<gelu_erf_bwd>(stream, dtype, &p);
    case AH_OP_RELU:
        return apply<relu>(stream, dtype, &p);
    case AH_OP_RELU_BWD:
        return apply<relu_bwd>(stream, dtype, &p);
    case AH_OP_SILU_MUL:
        return apply<silu_mul>(stream, dtype, &p);
    case AH_OP_SILU_MUL_BWD:
        return apply<silu_mul_bwd>(stream, dtype, &p);
    case AH_OP_GELU_MUL:
        return apply<gelu_mul>(stream, dtype, &p);
    case AH_OP_GELU_MUL_BWD:
        return apply<gelu_mul_bwd>(stream, dtype, &p);
    case AH_OP_SCALE:
        return apply(stream, dtype, &p, scale{factor});
    case AH_OP_SOFT_CAP:
        return apply(stream, dtype, &p, soft_cap{factor});
    case AH_OP_ADD:
        return apply<sum>(stream, dtype, &p);
    default:
        return cudaErrorNotSupported;
    }
}
