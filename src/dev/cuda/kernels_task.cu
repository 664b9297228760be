/* Tasks that are neither programs nor updates: casts, sums of squares, the clip factor. They have the same bits as
 * dev/host's. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/task.cuh"

#define AH_CLIP_FUNCTION static __host__ __device__ inline
#include "dev/clip.h"
#include "op/f16.h"
#include "op/mx.h"

/* ---- casts: each thread has 8 elements in flight ----------------------------------------------------------------- */

enum { CAST_EACH = 8, IN_PLACE_THREADS = 1024, IN_PLACE_EACH = 16, IN_PLACE_FIRST = IN_PLACE_THREADS * IN_PLACE_EACH };
enum { ZERO_RANGES = 64 };

static __device__ inline void cast_one(unsigned short *to, float from)
{
    *to = narrowed(from);
}
static __device__ inline void cast_one(float *to, unsigned short from)
{
    *to = widened(from);
}

static __device__ inline void cast_eight(unsigned short *to, const float *from)
{
    const float4 a = *reinterpret_cast<const float4 *>(from), b = *reinterpret_cast<const float4 *>(from + 4);
    reinterpret_cast<ushort4 *>(to)[0] = make_ushort4(narrowed(a.x), narrowed(a.y), narrowed(a.z), narrowed(a.w));
    reinterpret_cast<ushort4 *>(to)[1] = make_ushort4(narrowed(b.x), narrowed(b.y), narrowed(b.z), narrowed(b.w));
}

static __device__ inline void cast_eight(float *to, const unsigned short *from)
{
    const ushort4 a = reinterpret_cast<const ushort4 *>(from)[0], b = reinterpret_cast<const ushort4 *>(from)[1];
    reinterpret_cast<float4 *>(to)[0] = make_float4(widened(a.x), widened(a.y), widened(a.z), widened(a.w));
    reinterpret_cast<float4 *>(to)[1] = make_float4(widened(b.x), widened(b.y), widened(b.z), widened(b.w));
}

template <typename To, typename From>
static __global__ void __launch_bounds__(THREADS) cast_vector(To *to, const From *from, int64_t count)
{
    int64_t i = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) * CAST_EACH;
    if (i + CAST_EACH <= count)
        cast_eight(to + i, from + i);
    else
        for (; i < count; i++)
            cast_one(to + i, from[i]);
}

template <typename To, typename From>
static __global__ void __launch_bounds__(THREADS) cast_plain(To *to, const From *from, int64_t count)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count)
        cast_one(to + i, from[i]);
}

template <typename To, typename From>
static cudaError_t cast_launch(cudaStream_t stream, void *to, const void *from, int64_t first, int64_t last)
{
    To *t = static_cast<To *>(to) + first;
    const From *f = static_cast<const From *>(from) + first;
    int64_t count = last - first;
    if (is_aligned(t, 16) && is_aligned(f, 16))
        return launch(cast_vector<To, From>, blocks_of(count, THREADS * CAST_EACH), THREADS, 0, stream, t, f, count);
    return launch(cast_plain<To, From>, blocks_of(count, THREADS), THREADS, 0, stream, t, f, count);
}

/* Narrows the first elements in place: one block has read all of them before it writes any. */
static __global__ void __launch_bounds__(IN_PLACE_THREADS) narrow_first(void *at, int64_t count)
{
    unsigned short mine[IN_PLACE_EACH];
    const float *from = static_cast<const float *>(at);
    for (int j = 0; j < IN_PLACE_EACH; j++) {
        int64_t i = static_cast<int64_t>(j) * IN_PLACE_THREADS + threadIdx.x;
        mine[j] = i < count ? narrowed(from[i]) : static_cast<unsigned short>(0);
    }
    __syncthreads();
    for (int j = 0; j < IN_PLACE_EACH; j++) {
        int64_t i = static_cast<int64_t>(j) * IN_PLACE_THREADS + threadIdx.x;
        if (i < count)
            static_cast<unsigned short *>(at)[i] = mine[j];
    }
}

/* Narrows in place. Elements [n, 2n) are written where the floats [n/2, n) were, which an earlier pass has read. */
static cudaError_t narrow_in_place(cudaStream_t stream, void *at, int64_t count)
{
    int64_t first = IN_PLACE_FIRST, done = count < first ? count : first;
    cudaError_t error = launch(narrow_first, 1, IN_PLACE_THREADS, 0, stream, at, done);
    for (int64_t to; done < count && error == cudaSuccess; done = to) {
        to = 2 * done < count ? 2 * done : count;
        error = cast_launch<unsigned short, float>(stream, at, at, done, to);
    }
    return error;
}

struct zeros {
    int64_t from[ZERO_RANGES], to[ZERO_RANGES]; /* elements */
};

template <typename T> static __global__ void __launch_bounds__(THREADS) zero_ranges(T *at, struct zeros zeros)
{
    for (int64_t i = zeros.from[blockIdx.x] + threadIdx.x; i < zeros.to[blockIdx.x]; i += THREADS)
        at[i] = 0;
}

static cudaError_t zeros_launch(cudaStream_t stream, const struct ah_task *task)
{
    const auto &t = task->as.cast;
    cudaError_t error = cudaSuccess;
    for (int done = 0; done < t.zero_count && error == cudaSuccess; done += ZERO_RANGES) {
        struct zeros zeros = {};
        int count = t.zero_count - done < ZERO_RANGES ? t.zero_count - done : ZERO_RANGES;
        for (int i = 0; i < count; i++) {
            zeros.from[i] = t.zeros[done + i].from;
            zeros.to[i] = t.zeros[done + i].to;
        }
        if (t.to_dtype == AH_BF16)
            error = launch(zero_ranges<unsigned short>, count, THREADS, 0, stream, static_cast<unsigned short *>(t.to),
                           zeros);
        else
            error = launch(zero_ranges<float>, count, THREADS, 0, stream, static_cast<float *>(t.to), zeros);
    }
    return error;
}

static cudaError_t cast_all(cudaStream_t stream, const struct ah_task *task)
{
    const auto &t = task->as.cast;
    if (t.count == 0)
        return cudaSuccess;
    if (t.to_dtype == t.from_dtype) {
        size_t element = t.to_dtype == AH_BF16 ? sizeof(unsigned short) : sizeof(float);
        return cudaMemcpyAsync(t.to, t.from, static_cast<size_t>(t.count) * element, cudaMemcpyDeviceToDevice, stream);
    }
    if (t.to == t.from)
        return narrow_in_place(stream, t.to, t.count);
    if (t.to_dtype == AH_BF16)
        return cast_launch<unsigned short, float>(stream, t.to, t.from, 0, t.count);
    return cast_launch<float, unsigned short>(stream, t.to, t.from, 0, t.count);
}

cudaError_t ah__cuda_cast(cudaStream_t stream, const struct ah_task *task)
{
    cudaError_t error = cast_all(stream, task);
    return error == cudaSuccess ? zeros_launch(stream, task) : error;
}

/* ---- codes (op/codes.h): each thread makes 8 elements -------------------------------------------------------------
 * A thread's codes are 8 or 4 bytes, its elements 16 or 32; both are aligned for wide accesses. */

static __device__ const float nf4_values[16] = AH_NF4_VALUES, e2m1_values[16] = AH_E2M1_VALUES;

static __device__ inline void int8_expand(float to[CAST_EACH], const unsigned char *block, int within)
{
    const uint2 codes = *reinterpret_cast<const uint2 *>(block + within);
    const unsigned char *scales = block + AH_CODES_BLOCK;
    float scale = ah__f16_value(*reinterpret_cast<const unsigned short *>(scales + within / AH_INT8_GROUP * 2));
    for (int i = 0; i < CAST_EACH; i++) {
        unsigned word = i < 4 ? codes.x : codes.y;
        to[i] = static_cast<float>(static_cast<signed char>(word >> i % 4 * 8 & 255)) * scale;
    }
}

static __device__ inline void nibbles_expand(float to[CAST_EACH], const unsigned char *block, int within,
                                             const float *values, float scale)
{
    const unsigned codes = *reinterpret_cast<const unsigned *>(block + within / 2);
    for (int i = 0; i < CAST_EACH; i++) {
        unsigned byte = codes >> i / 2 * 8 & 255;
        to[i] = values[i % 2 ? byte & 15 : byte >> 4] * scale;
    }
}

static __device__ inline void nf4_expand(float to[CAST_EACH], const unsigned char *block, int within)
{
    const unsigned char *scales = block + AH_CODES_BLOCK / 2;
    float scale = *reinterpret_cast<const float *>(scales + within / AH_NF4_GROUP * 4);
    nibbles_expand(to, block, within, nf4_values, scale);
}

static __device__ inline void mxfp4_expand(float to[CAST_EACH], const unsigned char *block, int within)
{
    float scale = ah__e8m0_value(block[AH_CODES_BLOCK / 2 + within / AH_MXFP4_GROUP]);
    nibbles_expand(to, block, within, e2m1_values, scale);
}

static __device__ inline void eight_store(float *to, const float from[CAST_EACH])
{
    reinterpret_cast<float4 *>(to)[0] = make_float4(from[0], from[1], from[2], from[3]);
    reinterpret_cast<float4 *>(to)[1] = make_float4(from[4], from[5], from[6], from[7]);
}

static __device__ inline void eight_store(unsigned short *to, const float from[CAST_EACH])
{
    reinterpret_cast<ushort4 *>(to)[0] =
        make_ushort4(narrowed(from[0]), narrowed(from[1]), narrowed(from[2]), narrowed(from[3]));
    reinterpret_cast<ushort4 *>(to)[1] =
        make_ushort4(narrowed(from[4]), narrowed(from[5]), narrowed(from[6]), narrowed(from[7]));
}

template <typename To, ah_codes Codes>
static __global__ void __launch_bounds__(THREADS) expand(To *to, const unsigned char *from, int64_t count)
{
    int64_t i = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) * CAST_EACH;
    float values[CAST_EACH];
    if (i >= count)
        return;
    int within = static_cast<int>(i % AH_CODES_BLOCK);
    if (Codes == AH_CODES_INT8)
        int8_expand(values, from + i / AH_CODES_BLOCK * AH_INT8_BYTES, within);
    else if (Codes == AH_CODES_NF4)
        nf4_expand(values, from + i / AH_CODES_BLOCK * AH_NF4_BYTES, within);
    else
        mxfp4_expand(values, from + i / AH_CODES_BLOCK * AH_MXFP4_BYTES, within);
    eight_store(to + i, values);
}

template <typename To> static cudaError_t expand_launch(cudaStream_t stream, const struct ah_task *task)
{
    const auto &t = task->as.expand;
    To *to = static_cast<To *>(t.to);
    const unsigned char *from = static_cast<const unsigned char *>(t.from);
    unsigned blocks = blocks_of(t.count, THREADS * CAST_EACH);
    auto kernel = t.codes == AH_CODES_INT8  ? expand<To, AH_CODES_INT8>
                  : t.codes == AH_CODES_NF4 ? expand<To, AH_CODES_NF4>
                                            : expand<To, AH_CODES_MXFP4>;
    return launch(kernel, blocks, THREADS, 0, stream, to, from, t.count);
}

cudaError_t ah__cuda_expand(cudaStream_t stream, const struct ah_task *task)
{
    if (task->as.expand.count == 0)
        return cudaSuccess;
    return task->as.expand.to_dtype == AH_BF16 ? expand_launch<unsigned short>(stream, task)
                                               : expand_launch<float>(stream, task);
}

/* ---- sums of squares ----------------------------------------------------------------------------------------------
 * The sums have the host's order. Pieces are cut by size alone; a piece has 32 sums of every 32nd element, and its last
 * elements, less than 32, count to the first 16 sums; sums j and j + 16 are added, then these in order of j, then the
 * pieces. A warp does a piece. Each lane has one of the sums and 128 bytes in flight: 4 KiB for a warp and 2 MB for 30
 * million elements, which hides the latency of an H100's memory. */

static const int64_t squares_piece = 1 << 16;
enum { SUMS = 32, AHEAD_BYTES = 128, MOST_PIECES = 4096, WARPS = 4 };

/* Adds the square of a float. It is exact in double, so that a fused multiply-add also rounds once. A float too small
 * for float arithmetic counts as zero, as everywhere. */
static __device__ inline double add_square(double sum, float value)
{
    unsigned bits = __float_as_uint(value);
    double x = static_cast<double>((bits & 0x7F800000U) ? value : 0.0F);
    return __fma_rn(x, x, sum);
}

template <typename T> static __device__ inline double squares_lane(const T *x, int64_t n, int lane)
{
    enum { AHEAD = AHEAD_BYTES / sizeof(T) };
    double sum = 0;
    int64_t i = 0;
    for (; i + SUMS * AHEAD <= n; i += SUMS * AHEAD) {
        T ahead[AHEAD];
        for (int j = 0; j < AHEAD; j++)
            ahead[j] = x[i + j * SUMS + lane];
        for (int j = 0; j < AHEAD; j++)
            sum = add_square(sum, value_of(ahead[j]));
    }
    for (; i + SUMS <= n; i += SUMS)
        sum = add_square(sum, value_of(x[i + lane]));
    for (; i < n; i += SUMS / 2)
        if (lane < SUMS / 2 && i + lane < n)
            sum = add_square(sum, value_of(x[i + lane]));
    return sum;
}

template <typename T>
static __global__ void __launch_bounds__(SUMS *WARPS)
    squares(const T *x, int64_t count, int64_t piece, double *partials)
{
    __shared__ double sums[WARPS][SUMS];
    int lane = threadIdx.x % SUMS, warp = threadIdx.x / SUMS;
    int64_t index = static_cast<int64_t>(blockIdx.x) * WARPS + warp, from = index * piece;
    int64_t n = count - from < piece ? count - from : piece;
    sums[warp][lane] = n > 0 ? squares_lane(x + from, n, lane) : 0;
    __syncthreads();
    if (lane != 0 || n <= 0)
        return;
    double total = 0;
    for (int j = 0; j < SUMS / 2; j++)
        total = __dadd_rn(total, __dadd_rn(sums[warp][j], sums[warp][j + SUMS / 2]));
    partials[index] = total;
}

static __global__ void __launch_bounds__(THREADS) squares_total(const double *partials, int pieces, double *out)
{
    __shared__ double all[MOST_PIECES];
    for (int i = threadIdx.x; i < pieces; i += THREADS)
        all[i] = partials[i];
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    double sum = 0;
    for (int i = 0; i < pieces; i++)
        sum = __dadd_rn(sum, all[i]);
    *out = sum;
}

cudaError_t ah__cuda_sqnorm(cudaStream_t stream, const struct ah_task *task, double *partials)
{
    const auto &t = task->as.sqnorm;
    int64_t least = (t.count + MOST_PIECES - 1) / MOST_PIECES, piece = least > squares_piece ? least : squares_piece;
    int pieces = static_cast<int>((t.count + piece - 1) / piece);
    unsigned blocks = blocks_of(pieces, WARPS);
    cudaError_t error = cudaSuccess;
    if (pieces && t.dtype == AH_BF16)
        error = launch(squares<unsigned short>, blocks, SUMS * WARPS, 0, stream,
                       static_cast<const unsigned short *>(t.g), t.count, piece, partials);
    else if (pieces)
        error = launch(squares<float>, blocks, SUMS * WARPS, 0, stream, static_cast<const float *>(t.g), t.count, piece,
                       partials);
    return error == cudaSuccess ? launch(squares_total, 1, THREADS, 0, stream, partials, pieces, t.out) : error;
}

/* ---- clipping ---------------------------------------------------------------------------------------------------- */

static __global__ void clip_scale(const double *squares, int count, double limit, float *scale)
{
    *scale = ah__clip_scale(ah__clip_norm(squares, count), limit);
}

cudaError_t ah__cuda_clip(cudaStream_t stream, const struct ah_task *task)
{
    const auto &t = task->as.clip;
    return launch(clip_scale, 1, 1, 0, stream, t.squares, t.count, t.limit, t.scale);
}

/* ---- sums in order of ranks, as in comm/group.c: the link, not these kernels, limits their speed ----------------- */

template <typename T> static __device__ inline const T *brought(const struct ah_cuda_rank_sum &sum, int rank)
{
    return static_cast<const T *>(rank == sum.rank ? sum.own : sum.scratch + rank * sum.step_bytes);
}

static __device__ inline void sum_store(float *to, float sum)
{
    *to = sum;
}
static __device__ inline void sum_store(unsigned short *to, float sum)
{
    *to = narrowed(sum);
}

template <typename T> static __global__ void __launch_bounds__(THREADS) rank_sum(struct ah_cuda_rank_sum given)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= given.count)
        return;
    float sum = value_of(brought<T>(given, 0)[i]);
    for (int rank = 1; rank < given.world_size; rank++)
        sum = __fadd_rn(sum, value_of(brought<T>(given, rank)[i]));
    sum_store(static_cast<T *>(given.to) + i, sum);
}

static __global__ void __launch_bounds__(THREADS) rank_sum_doubles(struct ah_cuda_rank_sum given)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= given.count)
        return;
    double sum = 0;
    for (int rank = 0; rank < given.world_size; rank++)
        sum = __dadd_rn(sum, brought<double>(given, rank)[i]);
    static_cast<double *>(given.to)[i] = sum;
}

cudaError_t ah__cuda_rank_sum_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_rank_sum *sum)
{
    return launch(dtype == AH_BF16 ? rank_sum<unsigned short> : rank_sum<float>, blocks_of(sum->count, THREADS),
                  THREADS, 0, stream, *sum);
}

cudaError_t ah__cuda_rank_sum_doubles_enqueue(cudaStream_t stream, const struct ah_cuda_rank_sum *sum)
{
    return launch(rank_sum_doubles, blocks_of(sum->count, THREADS), THREADS, 0, stream, *sum);
}
