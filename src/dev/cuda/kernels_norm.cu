/* Normalisation of rows, forward and backward.
 *
 * A row is shared by a team of whole warps and read once, into registers. Backward also sums the gradients of weight
 * and bias: a block goes over a run of rows, every thread keeps the sums of its own columns, and a second kernel
 * (sums.cuh) adds up the blocks' sums. For rows above 16 KiB registers cannot hold these sums: there a separate kernel
 * computes them first, and reads both operands once more. The number of blocks follows from shape and dtype alone, and
 * so does the order of sums. */
#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"
#include "dev/cuda/sums.cuh"

/* RUNS of rows: two blocks for each multiprocessor of an A100, fewer for each of an H100, so that all run at once. With
 * the widest rows a multiprocessor holds only one block: there twice as many, so that few idle at the end. */
enum { WARPS = 8, MOST_WARPS = 16, FEW = 2, MANY = 8, RUNS = 216 };

/* The division of a row among its team: pack g of a thread begins at column (g * lanes + lane) * N. MANY is for rows
 * above 16 KiB. */
struct shape {
    int warps, teams; /* warps of a team; teams of a block */
    bool few;         /* FEW packs for a thread suffice, else MANY */
};

static struct shape shape_of(int64_t cols, int lanes)
{
    int64_t packs = (cols + lanes - 1) / lanes;
    struct shape s = {};
    s.few = packs <= FEW * MOST_WARPS * WARP;
    int64_t of_warp = (s.few ? FEW : MANY) * WARP;
    s.warps = (int)((packs + of_warp - 1) / of_warp);
    s.teams = s.few && s.warps < WARPS ? WARPS / s.warps : 1;
    return s;
}

static dim3 block_of(const struct shape *s)
{
    return dim3((unsigned)(s->warps * s->teams * WARP));
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

template <typename E, int N, int PACKS>
static __device__ void row_load(pack<E, N> row[PACKS], const E *from, const struct team *t, int64_t cols)
{
#pragma unroll
    for (int g = 0; g < PACKS; g++) {
        int64_t col = (int64_t)(g * t->lanes + t->lane) * N;
        row[g] = col < cols ? pack_load<E, N>(from + col) : pack_zero<E, N>();
    }
}

template <typename E, int N, int PACKS> static __device__ float row_sum(const pack<E, N> row[PACKS])
{
    float sum = 0;
#pragma unroll
    for (int g = 0; g < PACKS; g++)
#pragma unroll
        for (int u = 0; u < N; u++)
            sum += wide(row[g].lane[u]);
    return sum;
}

/* Returns the thread's sum of (x - centre)^2. */
template <typename E, int N, int PACKS>
static __device__ float row_deviation(const pack<E, N> row[PACKS], const struct team *t, int64_t cols, float centre)
{
    float sum = 0;
#pragma unroll
    for (int g = 0; g < PACKS; g++)
#pragma unroll
        for (int u = 0; u < N; u++) {
            float d = wide(row[g].lane[u]) - centre;
            sum = (int64_t)(g * t->lanes + t->lane) * N < cols ? fmaf(d, d, sum) : sum;
        }
    return sum;
}

template <typename E, int N, int PACKS>
static __device__ void row_write(const struct ah_cuda_norm &job, const pack<E, N> row[PACKS], const struct team *t,
                                 int64_t at, float centre, float scale)
{
#pragma unroll
    for (int g = 0; g < PACKS; g++) {
        int64_t col = (int64_t)(g * t->lanes + t->lane) * N;
        if (col >= job.cols)
            continue;
        pack<E, N> weight = pack_load<E, N>((const E *)job.weight + col), bias = pack_zero<E, N>(), y;
        if (job.bias)
            bias = pack_load<E, N>((const E *)job.bias + col);
#pragma unroll
        for (int u = 0; u < N; u++) {
            float normal = (wide(row[g].lane[u]) - centre) * scale;
            put(&y.lane[u], fmaf(normal, wide(weight.lane[u]) + job.offset, wide(bias.lane[u])));
        }
        pack_store<E, N>((E *)job.y + at + col, y);
    }
}

template <typename E, int N, int PACKS>
static __global__ void __launch_bounds__(MOST_WARPS *WARP) norm(struct ah_cuda_norm job, int warps)
{
    __shared__ float shared[2][MOST_WARPS];
    struct team t = team_of(warps);
    int64_t row = (int64_t)blockIdx.x * (blockDim.x / t.lanes) + t.index, cols = row < job.rows ? job.cols : 0;
    pack<E, N> x[PACKS];
    row_load<E, N, PACKS>(x, (const E *)job.x + row * cols, &t, cols);
    float mean = 0;
    if (job.mean)
        mean = team_sum(&t, shared[0], row_sum<E, N, PACKS>(x)) / (float)job.cols;
    float deviation = team_sum(&t, shared[1], row_deviation<E, N, PACKS>(x, &t, cols, mean));
    float rstd = 1.0F / sqrtf(deviation / (float)job.cols + job.eps);
    if (row >= job.rows)
        return;
    row_write<E, N, PACKS>(job, x, &t, row * cols, mean, rstd);
    if (t.lane == 0) {
        job.rstd[row] = rstd;
        if (job.mean)
            job.mean[row] = mean;
    }
}

template <typename E, int N>
static cudaError_t norm_launch(cudaStream_t stream, const struct ah_cuda_norm *job, const struct shape *s)
{
    constexpr int scale = lanes16<E> / N;
    dim3 grid(blocks_for(job->rows, s->teams));
    if (s->few)
        return launch(norm<E, N, FEW * scale>, grid, block_of(s), 0, stream, *job, s->warps);
    return launch(norm<E, N, MANY * scale>, grid, block_of(s), 0, stream, *job, s->warps);
}

template <typename E> static cudaError_t norm_of(cudaStream_t stream, const struct ah_cuda_norm *job)
{
    struct shape s = shape_of(job->cols, lanes16<E>);
    if (job->cols % lanes16<E> == 0)
        return norm_launch<E, lanes16<E>>(stream, job, &s);
    return norm_launch<E, 1>(stream, job, &s);
}

cudaError_t ah__cuda_norm_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_norm *job)
{
    return dtype == AH_BF16 ? norm_of<__nv_bfloat16>(stream, job) : norm_of<float>(stream, job);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* With g = dy * (weight + offset) and n = (x - mean) * rstd: dx = rstd * (g - mean(g) - n * mean(g n)); without a mean,
 * mean(g) is left out. */
struct row {
    int64_t at, cols; /* 0 columns beyond the block's rows */
    float centre, scale, offset;
};

static __device__ inline struct row row_at(const struct ah_cuda_norm_bwd &job, int64_t index, int64_t end)
{
    struct row r = {index * job.cols, job.cols, 0, 0, job.offset};
    if (index >= end) {
        r.at = r.cols = 0;
        return r;
    }
    r.scale = job.rstd[index];
    r.centre = job.mean ? job.mean[index] : 0;
    return r;
}

template <typename E, int N, int PACKS> struct gradients {
    pack<E, N> dy[PACKS], x[PACKS], weight[PACKS];
    float dweight[PACKS * N], dbias[PACKS * N]; /* sums over rows */
};

/* Returns the row's sums of g and g n, and adds the row to the sums of its columns. */
template <typename E, int N, int PACKS>
static __device__ struct twin row_sums(struct gradients<E, N, PACKS> *s, const struct row *r)
{
    struct twin sum = {0, 0}; /* sums of g and g n */
#pragma unroll
    for (int g = 0; g < PACKS; g++)
#pragma unroll
        for (int u = 0; u < N; u++) {
            float dy = wide(s->dy[g].lane[u]), normal = (wide(s->x[g].lane[u]) - r->centre) * r->scale;
            float slope = dy * (wide(s->weight[g].lane[u]) + r->offset);
            sum.a += slope;
            sum.b = fmaf(slope, normal, sum.b);
            s->dweight[g * N + u] = fmaf(dy, normal, s->dweight[g * N + u]);
            s->dbias[g * N + u] += dy;
        }
    return sum;
}

template <typename E, int N, int PACKS>
static __device__ void row_gradient(const struct ah_cuda_norm_bwd &job, const struct gradients<E, N, PACKS> *s,
                                    const struct row *r, const struct team *t, float mean_g, float mean_gn)
{
#pragma unroll
    for (int g = 0; g < PACKS; g++) {
        int64_t col = (int64_t)(g * t->lanes + t->lane) * N;
        if (col >= r->cols)
            continue;
        E *to = (E *)job.dx + r->at + col;
        pack<E, N> dx = pack_zero<E, N>();
        if (job.add_x)
            dx = pack_load<E, N>(to);
#pragma unroll
        for (int u = 0; u < N; u++) {
            float normal = (wide(s->x[g].lane[u]) - r->centre) * r->scale;
            float slope = wide(s->dy[g].lane[u]) * (wide(s->weight[g].lane[u]) + r->offset) - mean_g;
            put(&dx.lane[u], fmaf(fmaf(normal, -mean_gn, slope), r->scale, wide(dx.lane[u])));
        }
        pack_store<E, N>(to, dx);
    }
}

/* Adds the teams' sums to those of team 0, in order. If there are several teams, each has FEW packs and WARPS / 2 warps
 * at most. */
template <typename E, int N, int PACKS>
static __device__ void sums_join(struct gradients<E, N, PACKS> *s, const struct team *t, int teams)
{
    __shared__ float shared[2][WARPS / 2 * WARP * PACKS * N];
    for (int from = 1; from < teams; from++) {
#pragma unroll
        for (int i = 0; i < PACKS * N; i++)
            if (t->index == from) {
                shared[0][i * t->lanes + t->lane] = s->dweight[i];
                shared[1][i * t->lanes + t->lane] = s->dbias[i];
            }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PACKS * N; i++)
            if (t->index == 0) {
                s->dweight[i] += shared[0][i * t->lanes + t->lane];
                s->dbias[i] += shared[1][i * t->lanes + t->lane];
            }
        __syncthreads();
    }
}

/* Stores the sums in a block's row of partials: [2][cols]. */
template <typename E, int N, int PACKS>
static __device__ void sums_store(const struct gradients<E, N, PACKS> *s, const struct team *t, float *to, int64_t cols)
{
#pragma unroll
    for (int i = 0; i < PACKS * N; i++) {
        int64_t col = (int64_t)(i / N * t->lanes + t->lane) * N + i % N;
        if (t->index == 0 && col < cols) {
            to[col] = s->dweight[i];
            to[cols + col] = s->dbias[i];
        }
    }
}

/* Computes backward. The next row is loaded while the sums of the current one are joined. */
template <typename E, int N, int PACKS>
static __global__ void __launch_bounds__(MOST_WARPS *WARP)
    norm_bwd(struct ah_cuda_norm_bwd job, int warps, int64_t rows)
{
    __shared__ struct twin shared[2][MOST_WARPS];
    struct team t = team_of(warps);
    int teams = (int)blockDim.x / t.lanes, turn = 0;
    int64_t first = blockIdx.x * rows, end = first + rows < job.rows ? first + rows : job.rows;
    struct gradients<E, N, PACKS> s;
    struct row r = row_at(job, first + t.index, end);
    row_load<E, N, PACKS>(s.weight, (const E *)job.weight, &t, job.cols);
    row_load<E, N, PACKS>(s.dy, (const E *)job.dy + r.at, &t, r.cols);
    row_load<E, N, PACKS>(s.x, (const E *)job.x + r.at, &t, r.cols);
#pragma unroll
    for (int i = 0; i < PACKS * N; i++)
        s.dweight[i] = s.dbias[i] = 0;
    for (; first < end; first += teams, turn ^= 1) {
        struct row next = row_at(job, first + teams + t.index, end);
        pack<E, N> dy[PACKS], x[PACKS];
        row_load<E, N, PACKS>(dy, (const E *)job.dy + next.at, &t, next.cols);
        row_load<E, N, PACKS>(x, (const E *)job.x + next.at, &t, next.cols);
        struct twin sum = team_sum(&t, shared[turn], row_sums(&s, &r));
        row_gradient(job, &s, &r, &t, job.mean ? sum.a / (float)job.cols : 0, sum.b / (float)job.cols);
#pragma unroll
        for (int g = 0; g < PACKS; g++) {
            s.dy[g] = dy[g];
            s.x[g] = x[g];
        }
        r = next;
    }
    sums_join(&s, &t, teams);
    sums_store(&s, &t, job.partials + 2 * blockIdx.x * job.cols, job.cols);
}

/* ---- backward of wide rows --------------------------------------------------------------------------------------- */

/* Sums the columns of one warp's packs over a run of rows; the block's warps take rows in turn. */
template <typename E, int N>
static __global__ void __launch_bounds__(WARP *WARPS) norm_columns(struct ah_cuda_norm_bwd job, int64_t each)
{
    __shared__ float shared[WARPS][2 * N][WARP];
    int64_t col = ((int64_t)blockIdx.x * WARP + threadIdx.x) * N, first = blockIdx.y * each;
    int64_t end = first + each < job.rows ? first + each : job.rows;
    float sum[2 * N] = {}; /* sums for weights, then for biases */
    for (int64_t row = first + threadIdx.y; row < end && col < job.cols; row += WARPS) {
        pack<E, N> dy = pack_load<E, N>((const E *)job.dy + row * job.cols + col);
        pack<E, N> x = pack_load<E, N>((const E *)job.x + row * job.cols + col);
        float centre = job.mean ? job.mean[row] : 0, scale = job.rstd[row];
#pragma unroll
        for (int u = 0; u < N; u++) {
            sum[u] = fmaf(wide(dy.lane[u]), (wide(x.lane[u]) - centre) * scale, sum[u]);
            sum[N + u] += wide(dy.lane[u]);
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * N; i++)
        shared[threadIdx.y][i][threadIdx.x] = sum[i];
    __syncthreads();
    if (threadIdx.y > 0 || col >= job.cols)
        return;
    float *to = job.partials + 2 * blockIdx.y * job.cols + col;
#pragma unroll
    for (int i = 0; i < 2 * N; i++) {
        for (int warp = 1; warp < WARPS; warp++)
            sum[i] += shared[warp][i][threadIdx.x];
        to[i / N * job.cols + i % N] = sum[i];
    }
}

/* Returns the contribution of a pack of columns, from `col` on, to the row's sums; 0 beyond the last column. */
template <typename E, int N>
static __device__ inline struct twin pack_sums(const struct ah_cuda_norm_bwd &job, const pack<E, N> &dy,
                                               const pack<E, N> &x, const struct row *r, int64_t col)
{
    struct twin sum = {0, 0};
    pack<E, N> weight = col < r->cols ? pack_load<E, N>((const E *)job.weight + col) : pack_zero<E, N>();
#pragma unroll
    for (int u = 0; u < N; u++) {
        float slope = wide(dy.lane[u]) * (wide(weight.lane[u]) + r->offset);
        sum.a += slope;
        sum.b = fmaf(slope, (wide(x.lane[u]) - r->centre) * r->scale, sum.b);
    }
    return sum;
}

/* Computes the gradient of a pack. `means`: of g and of g n. */
template <typename E, int N>
static __device__ inline void pack_gradient(const struct ah_cuda_norm_bwd &job, const pack<E, N> &dy,
                                            const pack<E, N> &x, const struct row *r, int64_t col, struct twin means)
{
    E *to = (E *)job.dx + r->at + col;
    if (col >= r->cols)
        return;
    pack<E, N> weight = pack_load<E, N>((const E *)job.weight + col), dx = pack_zero<E, N>();
    if (job.add_x)
        dx = pack_load<E, N>(to);
#pragma unroll
    for (int u = 0; u < N; u++) {
        float normal = (wide(x.lane[u]) - r->centre) * r->scale;
        float slope = wide(dy.lane[u]) * (wide(weight.lane[u]) + r->offset) - means.a;
        put(&dx.lane[u], fmaf(fmaf(normal, -means.b, slope), r->scale, wide(dx.lane[u])));
    }
    pack_store<E, N>(to, dx);
}

/* Computes only the input's gradient: a block has one row at a time; the weight, which all rows read, stays in the
 * caches. */
template <typename E, int N, int PACKS>
static __global__ void __launch_bounds__(MOST_WARPS *WARP) norm_bwd_wide(struct ah_cuda_norm_bwd job, int warps)
{
    __shared__ struct twin shared[2][MOST_WARPS];
    struct team t = team_of(warps);
    int turn = 0;
    for (int64_t row = blockIdx.x; row < job.rows; row += gridDim.x, turn ^= 1) {
        struct row r = row_at(job, row, job.rows);
        struct twin sum = {0, 0};
        pack<E, N> dy[PACKS], x[PACKS];
        row_load<E, N, PACKS>(dy, (const E *)job.dy + r.at, &t, r.cols);
        row_load<E, N, PACKS>(x, (const E *)job.x + r.at, &t, r.cols);
#pragma unroll
        for (int g = 0; g < PACKS; g++)
            sum = sum + pack_sums(job, dy[g], x[g], &r, (int64_t)(g * t.lanes + t.lane) * N);
        sum = team_sum(&t, shared[turn], sum);
        sum.a = job.mean ? sum.a / (float)job.cols : 0;
        sum.b /= (float)job.cols;
#pragma unroll
        for (int g = 0; g < PACKS; g++)
            pack_gradient(job, dy[g], x[g], &r, (int64_t)(g * t.lanes + t.lane) * N, sum);
    }
}

/* Launches the sums first, since the gradient may overwrite their operands. */
template <typename E, int N>
static cudaError_t norm_bwd_wide_launch(cudaStream_t stream, const struct ah_cuda_norm_bwd *job, const struct shape *s,
                                        int64_t runs, int64_t each)
{
    constexpr int scale = lanes16<E> / N;
    dim3 grid(blocks_for(job->cols, N * WARP), (unsigned)runs);
    bool sums = job->dweight || job->dbias;
    cudaError_t error = sums ? launch(norm_columns<E, N>, grid, dim3(WARP, WARPS), 0, stream, *job, each) : cudaSuccess;
    return error != cudaSuccess ? error
                                : launch(norm_bwd_wide<E, N, MANY * scale>, dim3((unsigned)least(job->rows, 16 * RUNS)),
                                         block_of(s), 0, stream, *job, s->warps);
}

/* ---- launches of backward ---------------------------------------------------------------------------------------- */

/* Returns the number of blocks; *each: rows of a block. */
static int64_t runs_of(const struct shape *s, int64_t rows, int64_t *each)
{
    int64_t runs = s->warps <= WARPS ? RUNS : 2 * RUNS;
    *each = (rows + runs - 1) / runs;
    return (rows + *each - 1) / *each;
}

int64_t ah__cuda_norm_bwd_workspace(enum ah_dtype dtype, int64_t rows, int64_t cols)
{
    struct shape s = shape_of(cols, lanes16_of(dtype));
    int64_t each;
    return runs_of(&s, rows, &each) * 2 * cols * (int64_t)sizeof(float);
}

template <typename E, int N>
static cudaError_t norm_bwd_launch(cudaStream_t stream, const struct ah_cuda_norm_bwd *job, const struct shape *s)
{
    constexpr int scale = lanes16<E> / N;
    int64_t each, runs = runs_of(s, job->rows, &each);
    if (s->few)
        return launch(norm_bwd<E, N, FEW * scale>, dim3((unsigned)runs), block_of(s), 0, stream, *job, s->warps, each);
    return norm_bwd_wide_launch<E, N>(stream, job, s, runs, each);
}

template <typename E> static cudaError_t norm_bwd_of(cudaStream_t stream, const struct ah_cuda_norm_bwd *job)
{
    struct shape s = shape_of(job->cols, lanes16<E>);
    if (job->cols % lanes16<E> == 0)
        return norm_bwd_launch<E, lanes16<E>>(stream, job, &s);
    return norm_bwd_launch<E, 1>(stream, job, &s);
}

cudaError_t ah__cuda_norm_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_norm_bwd *job)
{
    struct shape shape = shape_of(job->cols, lanes16_of(dtype));
    int64_t each, runs = runs_of(&shape, job->rows, &each);
    cudaError_t error = dtype == AH_BF16 ? norm_bwd_of<__nv_bfloat16>(stream, job) : norm_bwd_of<float>(stream, job);
    if (error != cudaSuccess || (!job->dweight && !job->dbias))
        return error;
    struct ah_cuda_sums s = {
        {job->dweight, job->dbias}, {job->add_weight, job->add_bias}, job->partials, runs, job->cols, 2};
    return ah__cuda_sums_enqueue(stream, &s);
}
