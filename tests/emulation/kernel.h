/* Force-included where g++ compiles a .cu file (-x c++ -include kernel.h): what nvcc gives device code. Threads of a
 * block are fibres of one thread (block.c), so shared variables are thread-local ones. Not there, so that it does not
 * compile: atomics on floats, whose sums would depend on timing. */
#ifndef EMULATION_KERNEL_H
#define EMULATION_KERNEL_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <type_traits>

#include <cuda_runtime.h>

#include <cuda_bf16.h>

#include "launch.h"

#undef __shared__
#define __shared__ static thread_local
#undef __launch_bounds__
#define __launch_bounds__(...)
#define AH_SHARED(type, name) type *name = static_cast<type *>(emulation_shared())

extern "C" {
extern __thread const uint3 threadIdx __attribute__((tls_model("initial-exec")));
extern __thread const uint3 blockIdx __attribute__((tls_model("initial-exec")));
extern __thread const dim3 blockDim __attribute__((tls_model("initial-exec")));
extern __thread const dim3 gridDim __attribute__((tls_model("initial-exec")));
}
static constexpr int warpSize = 32;

/* ---- launches */

template <typename... Params> struct emulation_bound {
    void (*kernel)(Params...);
    std::tuple<Params...> values;
    static void run(const void *bound)
    {
        const emulation_bound *self = static_cast<const emulation_bound *>(bound);
        std::apply(self->kernel, self->values);
    }
};

template <typename... Params, typename... Args>
static inline cudaError_t emulation_launch_kernel(const cudaLaunchConfig_t *config, void (*kernel)(Params...),
                                                  Args... args)
{
    static_assert((std::is_trivially_copyable<Params>::value && ...), "arguments of kernels are copied as bytes");
    emulation_bound<Params...> bound = {kernel, std::tuple<Params...>(static_cast<Params>(args)...)};
    emulation_launch launch = {};
    launch.kernel = reinterpret_cast<const void *>(kernel);
    launch.run = emulation_bound<Params...>::run;
    launch.bound = &bound;
    launch.bound_bytes = sizeof bound;
    return emulation_launch_enqueue(&launch, config);
}
#define cudaLaunchKernelEx emulation_launch_kernel

/* ---- barriers, warps */

#define EMULATION_SITE                                                                                                 \
    emulation_site                                                                                                     \
    {                                                                                                                  \
        __FILE__, __func__, __LINE__                                                                                   \
    }
#define __syncthreads() emulation_sync(EMULATION_SITE)
#define __syncwarp(...) emulation_syncwarp(EMULATION_SITE, ##__VA_ARGS__)
#define __shfl_sync(...) emulation_shfl(EMULATION_SITE, __VA_ARGS__)
#define __shfl_up_sync(...) emulation_shfl_up(EMULATION_SITE, __VA_ARGS__)
#define __shfl_down_sync(...) emulation_shfl_down(EMULATION_SITE, __VA_ARGS__)
#define __shfl_xor_sync(...) emulation_shfl_xor(EMULATION_SITE, __VA_ARGS__)
#define __ballot_sync(...) emulation_vote(EMULATION_SITE, __VA_ARGS__)
#define __any_sync(mask, predicate) (emulation_vote(EMULATION_SITE, mask, predicate) != 0)
#define __all_sync(mask, predicate) (emulation_vote(EMULATION_SITE, mask, !(predicate)) == 0)
#define __trap() emulation_trap_at(EMULATION_SITE)

static inline void emulation_sync(const emulation_site &site)
{
    emulation_barrier(&site);
}

static inline void emulation_syncwarp(const emulation_site &site, unsigned mask = ~0U)
{
    emulation_ballot(&site, mask, 0);
}

static inline unsigned emulation_vote(const emulation_site &site, unsigned mask, int predicate)
{
    return emulation_ballot(&site, mask, predicate);
}

static inline void emulation_trap_at(const emulation_site &site)
{
    emulation_trap(&site, "__trap()");
}

template <typename T>
static inline T emulation_exchange(const emulation_site &site, unsigned mask, T value, unsigned from_lane)
{
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "what a shuffle takes");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulation_shuffle(&site, mask, bits, from_lane);
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T>
static inline T emulation_shfl(const emulation_site &site, unsigned mask, T value, int lane, int width = 32)
{
    unsigned within = static_cast<unsigned>(width) - 1;
    return emulation_exchange(site, mask, value, (emulation_lane() & ~within) | (static_cast<unsigned>(lane) & within));
}

template <typename T>
static inline T emulation_shfl_up(const emulation_site &site, unsigned mask, T value, unsigned delta, int width = 32)
{
    unsigned here = emulation_lane(), in_segment = here & (static_cast<unsigned>(width) - 1);
    return emulation_exchange(site, mask, value, delta > in_segment ? here : here - delta);
}

template <typename T>
static inline T emulation_shfl_down(const emulation_site &site, unsigned mask, T value, unsigned delta, int width = 32)
{
    unsigned here = emulation_lane(), last = here | (static_cast<unsigned>(width) - 1);
    return emulation_exchange(site, mask, value, here + delta > last ? here : here + delta);
}

template <typename T>
static inline T emulation_shfl_xor(const emulation_site &site, unsigned mask, T value, int lanes, int width = 32)
{
    unsigned here = emulation_lane(), last = here | (static_cast<unsigned>(width) - 1);
    unsigned from = here ^ static_cast<unsigned>(lanes);
    return emulation_exchange(site, mask, value, from > last ? here : from);
}

/* ---- tensor cores, in place of dev/cuda/mma.cuh, whose comment says which lane has what. Products are exact; 16 of
 * them and the sum before are added in double precision. */

#define AH_DEV_CUDA_MMA_CUH
#define tensor_add(...) emulation_tensor_add(EMULATION_SITE, __VA_ARGS__)

static inline double emulation_half(unsigned long long word, int high)
{
    unsigned bits = static_cast<unsigned>(high ? word >> 16 << 16 : word << 16);
    float x;
    memcpy(&x, &bits, sizeof x);
    return static_cast<double>(x);
}

/* Adds the products of terms 2k, 2k + 1, 2k + 8 and 2k + 9: lane k of a group has them. */
static inline double emulation_terms(unsigned long long a, unsigned long long b)
{
    double sum = 0;
    for (int i = 0; i < 2; i++)
        for (int high = 0; high < 2; high++)
            sum += emulation_half(a >> 32 * i, high) * emulation_half(b >> 32 * i, high);
    return sum;
}

static inline void emulation_tensor_add(const emulation_site &site, float *sum, const uint32_t *a, const uint32_t *b)
{
    const unsigned lane = emulation_lane(), group = lane / 4 * 4, col = lane % 4 * 2;
    const unsigned long long upper = a[0] | static_cast<unsigned long long>(a[2]) << 32;
    const unsigned long long lower = a[1] | static_cast<unsigned long long>(a[3]) << 32;
    const unsigned long long column = b[0] | static_cast<unsigned long long>(b[1]) << 32;
    double total[4] = {sum[0], sum[1], sum[2], sum[3]};
    for (unsigned k = 0; k < 4; k++) {
        unsigned long long row[2] = {emulation_exchange(site, ~0U, upper, group + k),
                                     emulation_exchange(site, ~0U, lower, group + k)};
        for (unsigned right = 0; right < 2; right++) {
            unsigned long long of = emulation_exchange(site, ~0U, column, (col + right) * 4 + k);
            total[right] += emulation_terms(row[0], of);
            total[2 + right] += emulation_terms(row[1], of);
        }
    }
    for (int i = 0; i < 4; i++)
        sum[i] = static_cast<float>(total[i]);
}

/* ---- memory */

template <typename T> static inline T __ldg(const T *at)
{
    return *at;
}
template <typename T> static inline T __ldcs(const T *at)
{
    return *at;
}
template <typename T> static inline T __ldcg(const T *at)
{
    return *at;
}
template <typename T> static inline void __stcs(T *at, T value)
{
    *at = value;
}
template <typename T> static inline void __stcg(T *at, T value)
{
    *at = value;
}
template <typename T> static inline void __stwt(T *at, T value)
{
    *at = value;
}
static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block() {}
static inline void __threadfence_system()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define EMULATION_ATOMICS(T)                                                                                           \
    static inline T atomicAdd(T *at, T value)                                                                          \
    {                                                                                                                  \
        return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);                                                        \
    }                                                                                                                  \
    static inline T atomicExch(T *at, T value)                                                                         \
    {                                                                                                                  \
        return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);                                                       \
    }                                                                                                                  \
    static inline T atomicOr(T *at, T value)                                                                           \
    {                                                                                                                  \
        return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);                                                         \
    }                                                                                                                  \
    static inline T atomicCAS(T *at, T expected, T value)                                                              \
    {                                                                                                                  \
        __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                  \
        return expected;                                                                                               \
    }                                                                                                                  \
    static inline T atomicMax(T *at, T value)                                                                          \
    {                                                                                                                  \
        T old = __atomic_load_n(at, __ATOMIC_RELAXED);                                                                 \
        while (old < value && atomicCAS(at, old, value) != old)                                                        \
            old = __atomic_load_n(at, __ATOMIC_RELAXED);                                                               \
        return old;                                                                                                    \
    }
EMULATION_ATOMICS(int)
EMULATION_ATOMICS(unsigned)
EMULATION_ATOMICS(unsigned long long)

/* ---- arithmetic: each rounded once, as named */

/* A GPU's arithmetic has one NaN in fp32. */
static inline float emulation_nan(float x)
{
    const unsigned nan = 0x7fffffffU;
    if (x != x)
        memcpy(&x, &nan, sizeof x);
    return x;
}
static inline float __fadd_rn(float a, float b)
{
    return emulation_nan(a + b);
}
static inline float __fsub_rn(float a, float b)
{
    return emulation_nan(a - b);
}
static inline float __fmul_rn(float a, float b)
{
    return emulation_nan(a * b);
}
static inline float __fdiv_rn(float a, float b)
{
    return emulation_nan(a / b);
}
static inline float __frcp_rn(float a)
{
    return emulation_nan(1 / a);
}
static inline float __fsqrt_rn(float a)
{
    return emulation_nan(sqrtf(a));
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return emulation_nan(fmaf(a, b, c));
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dsub_rn(double a, double b)
{
    return a - b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline double __dsqrt_rn(double a)
{
    return sqrt(a);
}
static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}
static inline float emulation_rsqrtf(float a)
{
    return static_cast<float>(1 / sqrt(static_cast<double>(a)));
}
#define rsqrtf emulation_rsqrtf
#define __expf(a) expf(a)
#define __exp2f(a) exp2f(a)
#define __logf(a) logf(a)
#define __log2f(a) log2f(a)
static inline float __fdividef(float a, float b)
{
    return a / b;
}
static inline float __saturatef(float a)
{
    return a < 0 ? 0 : a > 1 ? 1 : a == a ? a : 0;
}

template <typename To, typename From> static inline To emulation_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline int __float_as_int(float a)
{
    return emulation_bits<int>(a);
}
static inline unsigned __float_as_uint(float a)
{
    return emulation_bits<unsigned>(a);
}
static inline float __int_as_float(int a)
{
    return emulation_bits<float>(a);
}
static inline float __uint_as_float(unsigned a)
{
    return emulation_bits<float>(a);
}
static inline long long __double_as_longlong(double a)
{
    return emulation_bits<long long>(a);
}
static inline double __longlong_as_double(long long a)
{
    return emulation_bits<double>(a);
}
static inline int __popc(unsigned a)
{
    return __builtin_popcount(a);
}
static inline int __clz(int a)
{
    return a ? __builtin_clz(static_cast<unsigned>(a)) : 32;
}
static inline int __ffs(int a)
{
    return __builtin_ffs(a);
}

template <typename A, typename B> static inline typename std::common_type<A, B>::type min(A a, B b)
{
    typename std::common_type<A, B>::type x = a, y = b;
    return y < x || x != x ? y : x;
}
template <typename A, typename B> static inline typename std::common_type<A, B>::type max(A a, B b)
{
    typename std::common_type<A, B>::type x = a, y = b;
    return x < y || x != x ? y : x;
}

#endif
